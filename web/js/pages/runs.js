// SPDX-License-Identifier: Apache-2.0
// Runs: work that outlives the terminal. Shown where the server has them (docs/api.md, runs).
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { pathOf } from "../api.js";
import { link, route } from "../router.js";
import { clock, evidence, number } from "../format.js";
import { Age, Empty, Heading, Loaded, Panel, State, Terms, Trouble } from "../parts/basics.js";
import { OrderButton } from "../parts/orders.js";
import { Choice } from "./nodes.js";
import { runTone } from "./rollouts.js";

const whatOf = (/** @type {any} */ run) => run.command || run.summary || run.text || "";
const bornAt = (/** @type {any} */ run) => run.at || run.created_at || run.started_at;
const isOver = (/** @type {any} */ run) => !!(run.ended_at || /done|failed|cancel|over/.test(run.state || ""));

/** @param {{id: string}} p */
function One({ id }) {
  const at = `/runs/${encodeURIComponent(id)}`;
  const resource = useResource(at, { every_s: 10 });
  const run = resource.data;
  if (resource.problem?.status === 404) return html`<${Heading} title="Run" /><${Trouble} problem=${resource.problem} />`;
  const plain = run && Object.entries(run).filter(([key, value]) => value !== null && typeof value !== "object" && !["id", "state", "command"].includes(key));
  const parts = run && Object.entries(run).filter(([, value]) => value && typeof value === "object" && (!Array.isArray(value) || value.length > 0));
  const reason = { label: "Why", name: "reason", optional: true };
  return html`<${Heading} title=${`Run ${id}`}>${run && html`<${State} state=${run.state} tone=${runTone(run.state)} /><span class="grow"></span>
      ${/approv/.test(run.state) && html`<${OrderButton} order=${{ title: `Approve run ${id}`, text: whatOf(run), verb: "approve", path: `${at}/approve`, act: "Approve", word: "approve", done: "approved", fields: [reason] }}>Approve…<//>`}
      ${!isOver(run) && html`<${OrderButton} quiet order=${{ title: `Cancel run ${id}`, text: "What is under way on a node is ended at its next safe point.", verb: "run", path: `${at}/cancel`, act: "Cancel the run", word: "cancel", done: "it will stop", fields: [reason] }}>Cancel…<//>`}`}<//>
    <${Loaded} resource=${resource}>${run && html`<p class="lead mono wrap">${whatOf(run)}</p>
      <${Terms} rows=${plain.map((/** @type {[string, any]} */ [key, value]) => [key.replaceAll("_", " "), /** @type {any} */ (/_at$|^at$/.test(key) ? clock(String(value)) : String(value))])} />
      ${parts.map((/** @type {[string, any]} */ [key, value]) => html`<${Panel} key=${key} title=${key.replaceAll("_", " ")}><pre tabindex="0">${Array.isArray(value) && value.every((each) => typeof each === "string") ? value.join("\n") : evidence(value)}</pre><//>`)}`}<//>`;
}

/** @param {{path: string[]}} p */
export default function Runs({ path }) {
  const state = route.value.query.get("state") || "";
  const list = useResource(path[1] ? null : pathOf("/runs", { limit: 200, state }));
  if (path[1]) return html`<${One} id=${path[1]} />`;
  const items = list.data?.items || [];
  return html`<${Heading} title="Runs"><span class="dim">${number(list.data?.total ?? items.length)}</span><//>
    <div class="filters"><${Choice} label="State" name="state" value=${state} choices=${[...new Set(items.map((/** @type {any} */ run) => run.state))].sort()} /></div>
    <${Loaded} resource=${list}>${items.length === 0 ? html`<${Empty}>No run is so.<//>` : html`<div class="panel">${items.map((/** @type {any} */ run) => html`<a class="line" key=${run.id} href=${link(["runs", run.id])}><${State} state=${run.state} tone=${runTone(run.state)} /><span class="what"><b>${run.kind || run.id}</b> <span class="mono">${whatOf(run)}</span></span><span class="who">${run.user || run.by || run.submitted_by || ""}</span><span class="since"><${Age} at=${bornAt(run)} /></span></a>`)}</div>`}<//>`;
}
