// SPDX-License-Identifier: Apache-2.0
// What the whole page knows of the site: its sums, and all nodes, kept right by the event stream.
import { computed, signal } from "@preact/signals";
import { all, get, ordersDone, Problem } from "./api.js";
import { beginAfter, connection, onEvent, resync } from "./live.js";

/** @typedef {import("./types.js").Node} Node */

/** @type {import("@preact/signals").Signal<import("./types.js").Site | null>} */
export const site = signal(null);
/** In the order of the inventory. @type {import("@preact/signals").Signal<Node[] | null>} */
export const nodes = signal(null);
/** @type {import("@preact/signals").Signal<Problem | null>} */
export const nodesProblem = signal(null);
/** Whether the server has runs (docs/api.md); null: not asked yet.
 * @type {import("@preact/signals").Signal<boolean | null>} */
export const hasRuns = signal(null);
/** How far the server's clock is before this computer's, ms; 0: as good as equal. */
export const clockError = signal(0);
/** A clock for ages: the server's. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now() + clockError.value; }, 5_000);

const kGatherMs = 150; // events of one moment are one request
const kAgainMs = 1_100; // the server makes fleet lists at most once a second
const kMostNamed = 200; // more changed nodes than this: all are read
const kCheckMs = 15_000;
const kClockMs = 120_000; // fleets of thousands are read anew twice a minute


/** @type {Map<string, number>} index by name, of the list that is shown */
let index = new Map();
let wants_nodes = false;
/** @type {Set<string>} */
let changed = new Set();
let newest_event_at = "";
/** @type {ReturnType<typeof setTimeout> | 0} */
let timer = 0;
let reading = false;

/** @param {Node[]} list */
function take(list) {
  index = new Map(list.map((node, at) => [node.node, at]));
  nodes.value = list;
  nodesProblem.value = null;
}

async function readAllNodes() {
  const list = await all("/nodes");
  take(list.items);
  return list.as_of || "";
}

/** @param {string[]} names */
async function readSome(names) {
  const list = await all("/nodes", { nodes: names.join(",") });
  const copy = (nodes.value || []).slice();
  for (const node of list.items) {
    const at = index.get(node.node);
    if (at === undefined) return readAllNodes(); // the inventory is another one
    copy[at] = node;
  }
  nodes.value = copy;
  return list.as_of || "";
}

/** Whether the sums of what is shown are those of the server. */
function agrees() {
  if (!site.value || !nodes.value) return true;
  /** @type {Record<string, number>} */
  const counts = {};
  for (const node of nodes.value) counts[node.state] = (counts[node.state] || 0) + 1;
  const theirs = site.value.states;
  return site.value.nodes === nodes.value.length &&
    Object.keys({ ...counts, ...theirs }).every((word) => (counts[word] || 0) === (theirs[word] || 0));
}

async function readSite() {
  const read = site.value = await get("/site");
  const error = Date.parse(read.as_of) - Date.now();
  clockError.value = Math.abs(error) > kClockMs ? error : 0;
  now.value = Date.now() + clockError.value;
  return read;
}

async function refresh() {
  timer = 0;
  if (reading) return schedule(kGatherMs);
  reading = true;
  const names = [...changed].filter((name) => !name.startsWith("@"));
  const wanted_at = newest_event_at;
  changed = new Set();
  try {
    let as_of = (await readSite()).as_of || "";
    if (wants_nodes) {
      if (!nodes.value || names.length > kMostNamed) as_of = await readAllNodes();
      else if (names.length > 0) as_of = await readSome(names);
      else if (!agrees()) as_of = await readAllNodes();
    }
    if (wanted_at && as_of && as_of <= wanted_at) {
      names.forEach((name) => changed.add(name));
      schedule(kAgainMs);
    }
  } catch (error) {
    names.forEach((name) => changed.add(name));
    if (error instanceof Problem) {
      nodesProblem.value = error;
      if (error.code === "not-found" && names.length > 0) changed = new Set(), nodes.value = null, schedule(kAgainMs);
    }
  } finally {
    reading = false;
  }
}

/** @param {number} ms */
function schedule(ms) {
  if (!timer) timer = setTimeout(refresh, ms);
}

/** A page that shows nodes calls this; they are read once and then followed. */
export function needNodes() {
  if (wants_nodes) return;
  wants_nodes = true;
  schedule(0);
}

/** @param {string} name */
export function nodeOf(name) {
  const at = index.get(name);
  return at === undefined ? undefined : nodes.value?.[at];
}

export const nodesByRack = computed(() => {
  /** @type {Map<string, Node[]>} */
  const racks = new Map();
  for (const node of nodes.value || []) {
    const rack = node.rack && node.rack !== "-" ? node.rack : "";
    const list = racks.get(rack);
    if (list) list.push(node);
    else racks.set(rack, [node]);
  }
  return racks;
});

/** How far what is under way has come, by subject: from the stream alone.
 * @type {import("@preact/signals").Signal<Map<string, {text: string, fraction: number, at: string}>>} */
export const progress = signal(new Map());
let progress_timer = 0;
/** @param {import("./types.js").Event} event */
function takeProgress(event) {
  if (event.kind === "action-progress" || event.kind === "action-started")
    progress.value.set(event.subject, { text: event.text || "", fraction: event.fraction ?? -1, at: event.at });
  else if (!progress.value.delete(event.subject)) return;
  progress_timer ||= setTimeout(() => {
    progress_timer = 0;
    progress.value = new Map(progress.value);
  }, 500);
}

export async function begin() {
  beginAfter((await readSite()).last_event || 0);
  get("/runs", { limit: 1 }).then(() => { hasRuns.value = true; }, () => { hasRuns.value = false; });
  wire();
}

let wired = false;
function wire() {
  if (wired) return;
  wired = true;
  onEvent((event) => {
    takeProgress(event);
    if (event.kind === "action-progress") return; // moves nothing but itself
    if (event.subject) changed.add(event.subject);
    if (event.at > newest_event_at) newest_event_at = event.at;
    schedule(kGatherMs);
  });
  let seen_orders = ordersDone.value, seen_resync = resync.value;
  ordersDone.subscribe((count) => { if (count !== seen_orders) seen_orders = count, schedule(kGatherMs); });
  resync.subscribe((count) => {
    if (count === seen_resync) return;
    seen_resync = count;
    nodes.value && readAllNodes().catch(() => schedule(kAgainMs));
    schedule(0);
  });
  setInterval(() => { if (!document.hidden && connection.value === "live") schedule(0); }, kCheckMs);
}

/** For a log-in after a log-out: another identity sees other nodes. */
export function forget() {
  wants_nodes = false;
  site.value = null;
  nodes.value = null;
  index = new Map();
}
