// SPDX-License-Identifier: Apache-2.0
// Runs: work that outlives the terminal (docs/api.md, runs): asked for, planned, confirmed or
// approved by the plan's hash, carried out. Shown where the server has them.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { me } from "../api.js";
import { go, link, route, setQuery } from "../router.js";
import { clock, digest, duration, number, plural } from "../format.js";
import { fold } from "../hostlist.js";
import { Age, Empty, Heading, Loaded, NodeLink, Panel, State, Terms, Trouble } from "../parts/basics.js";
import { OrderButton } from "../parts/orders.js";
import { Events } from "../parts/events.js";
import { aboutRun, runTone } from "./rollouts.js";

const kShown = 60;

/** The same change of many nodes is one line. @param {{plan: any}} p */
function Plan({ plan }) {
  /** @type {Map<string, {action: any, names: string[]}>} */
  const groups = new Map();
  for (const action of plan.actions || []) {
    const key = [action.facet, action.from, action.to, action.disruption, action.blocked].join("|");
    const group = groups.get(key);
    if (group) group.names.push(action.subject);
    else groups.set(key, { action, names: [action.subject] });
  }
  const weight = ["wipe", "reset", "drain", "none"];
  const rows = [...groups.values()].sort((a, b) => weight.indexOf(a.action.disruption) - weight.indexOf(b.action.disruption) || b.names.length - a.names.length);
  if (rows.length === 0) return html`<${Empty}>Nothing is to be done.<//>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Plan"><table><thead><tr><th>Disturbs</th><th>What</th><th>From → to</th><th>Nodes</th><th>Usually</th></tr></thead><tbody>
    ${rows.slice(0, kShown).map(({ action, names }) => html`<tr key=${action.id}><td class="nowrap"><${State} state=${action.blocked ? "blocked" : action.disruption} tone=${action.blocked ? "held" : /** @type {any} */ ({ wipe: "bad", reset: "warn", drain: "busy" })[action.disruption] || "wait"} /></td><td class="mono">${action.facet}</td>
      <td class="wrap" title=${action.reason}>${digest(action.from) || "unknown"} → ${digest(action.to)}${action.blocked && html`<div class="dim">${action.blocked}</div>`}</td><td class="mono wrap">${names.length === 1 ? html`<${NodeLink} name=${names[0]} />` : html`${fold(names)} <span class="dim">${plural(names.length, "node")}</span>`}</td><td class="nowrap">${duration(action.expected_s)}</td></tr>`)}</tbody></table></div>
    ${rows.length > kShown && html`<p class="dim">and ${number(rows.length - kShown)} more</p>`}`;
}

/** @param {{run: any}} p */
function Orders({ run }) {
  const at = `/runs/${encodeURIComponent(run.id)}`, body = { plan_hash: run.plan_hash };
  const mine = run.asked_by?.principal === me.value?.principal;
  const told = html`${aboutRun(run)}, plan <span class="mono">${digest(run.plan_hash)}</span>${run.subjects ? html` on <span class="mono wrap">${run.subjects}</span>` : ""}. What it disturbs is listed on this page.`;
  /** @type {any[]} */
  const orders = [];
  if (run.state === "planned") orders.push([{ title: "Confirm the plan", text: told, verb: "run", path: `${at}/confirm`, body, act: "Confirm", word: "confirm", done: "confirmed" }, "Confirm…"]);
  if (run.state === "needs-approval") orders.push([{ title: "Approve the plan", text: told, verb: "approve", path: `${at}/approve`, body, act: "Approve", word: "approve", done: "approved" }, mine ? "Approve (somebody else's word)…" : "Approve…"]);
  if (run.state === "running") orders.push([{ title: "Pause the run", text: "What is under way on a node ends first; nothing new begins.", verb: "run", path: `${at}/pause`, body: {}, act: "Pause", done: "it will pause" }, "Pause…"]);
  if (run.state === "paused") orders.push([{ title: "Go on with the run", text: aboutRun(run), verb: "run", path: `${at}/resume`, body: {}, act: "Go on", done: "it goes on" }, "Resume…"]);
  if (!run.is_over) orders.push([{ title: "Cancel the run", text: "What is under way on a node ends first; the rest is not done.", verb: "run", path: `${at}/cancel`, body: {}, act: "Cancel the run", word: "cancel", done: "it will stop" }, "Cancel…"]);
  return html`${orders.map(([order, label]) => html`<${OrderButton} quiet key=${label} order=${order}>${label}<//>`)}`;
}

/** @param {{id: string}} p */
function One({ id }) {
  const at = `/runs/${encodeURIComponent(id)}`;
  const resource = useResource(at, { every_s: 10 });
  const run = resource.data;
  const plan = useResource(run?.plan_hash ? `${at}/plan` : null, { live: false, every_s: 600 });
  const events = useResource(`${at}/events?limit=200`);
  if (resource.problem?.status === 404) return html`<${Heading} title="Run" /><${Trouble} problem=${resource.problem} />`;
  const done = run?.progress || {};
  const counted = ["failed", "blocked", "skipped", "held"].filter((word) => done[word] > 0).map((word) => `${number(done[word])} ${word}`);
  return html`<${Heading} title=${`Run ${id}`}>${run && html`<${State} state=${run.state} tone=${runTone(run.state)} /><span class="grow"></span><${Orders} run=${run} />`}<//>
    <${Loaded} resource=${resource}>${run && html`
      <${Terms} rows=${[["what", aboutRun(run)], ["asked for by", html`${run.asked_by?.principal} <span class="dim">${run.asked_by?.way}, ${clock(run.asked_at)}</span>`],
        ["now", run.text || (run.reason !== "none" && run.reason)], ["order", run.order !== "none" && `${run.order} by ${run.ordered_by}`], ["carried out by", run.worked_on_by],
        ["plan", run.plan_hash && html`<span class="mono">${digest(run.plan_hash)}</span> <span class="dim">${clock(run.planned_at)}</span>`], ["approvals", (run.approvals_needed > 0 || (run.approvals || []).length > 0) && `${(run.approvals || []).length} of ${run.approvals_needed}: ${(run.approvals || []).map((/** @type {any} */ each) => each.principal).join(", ") || "none yet"}`],
        ["done", done.planned > 0 && html`<progress max=${done.planned} value=${done.done} aria-label=${`${done.done} of ${done.planned}`}></progress> ${number(done.done)} of ${number(done.planned)}${counted.length > 0 ? `, ${counted.join(", ")}` : ""}`]]} />
      ${(run.problems || []).map((/** @type {string} */ text) => html`<div class="note" data-tone="bad" key=${text}><i class="mark" aria-hidden="true"></i><div>${text}</div></div>`)}
      ${run.plan_hash && html`<${Panel} title="Plan" count=${(plan.data?.actions || []).length}><${Loaded} resource=${plan}>${plan.data && html`<${Plan} plan=${plan.data} />`}<//><//>`}
      <div class="two"><${Panel} title="What has happened"><${Loaded} resource=${events}><${Events} events=${[...(events.data?.items || [])].reverse()} named=${true} /><//><//>
      <${Panel} title="States">${(run.stamps || []).map((/** @type {any} */ stamp, /** @type {number} */ i) => html`<div class="line" key=${i}><${State} state=${stamp.state} tone=${runTone(stamp.state)} /><span class="what">${stamp.reason !== "none" && stamp.reason} <span class="dim">${stamp.by}</span></span><span class="since"><${Age} at=${stamp.at} /></span></div>`)}<//></div>`}<//>`;
}

/** @type {import("../parts/orders.js").Order} */
const kApply = {
  title: "Ask for an apply", verb: "run", path: "/runs", act: "Ask", done: "asked for", text: "The server plans what differs from the inventory and waits for a confirmation of the plan; nothing is changed before.",
  fields: [{ label: "Nodes", name: "nodes", optional: true, hint: "a hostlist; empty: all" }],
  body: { kind: "apply", confirm: true, after_restart: "continue" },
  then: (run) => { if (run?.id) go(link(["runs", run.id])); },
};

/** @param {{path: string[]}} p */
export default function Runs({ path }) {
  const open = !!route.value.query.get("open");
  const list = useResource(path[1] ? null : open ? "/runs?limit=200&open=true" : "/runs?limit=200");
  if (path[1]) return html`<${One} id=${path[1]} />`;
  const items = list.data?.items || [];
  return html`<${Heading} title="Runs"><span class="dim">${number(items.length)}</span><span class="grow"></span><${OrderButton} order=${kApply}>Apply…<//><//>
    <div class="filters"><label class="check"><input type="checkbox" checked=${open} onChange=${(/** @type {any} */ e) => setQuery({ open: e.target.checked ? "true" : undefined })} /> not over</label></div>
    <${Loaded} resource=${list}>${items.length === 0 ? html`<${Empty}>No run is so.<//>` : html`<div class="panel">${items.map((/** @type {any} */ run) => html`<a class="line" key=${run.id} href=${link(["runs", run.id])}><${State} state=${run.state} tone=${runTone(run.state)} /><span class="what"><b>${aboutRun(run)}</b> <span class="dim">${run.text}</span></span><span class="who">${run.asked_by?.principal}</span><span class="since"><${Age} at=${run.asked_at} /></span></a>`)}</div>`}<//>`;
}
