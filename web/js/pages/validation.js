// SPDX-License-Identifier: Apache-2.0
// Validation: runs of gates, each with what every gate has said of every node, down to the evidence
// of a check; and what stands out among all measurements.
import { html } from "../html.js";
import { pathOf, seesSite } from "../api.js";
import { useResource } from "../resource.js";
import { nodeOf, needNodes, progress } from "../site.js";
import { go, link, route, setQuery } from "../router.js";
import { clock, number, plural } from "../format.js";
import { fold } from "../hostlist.js";
import { Age, Empty, Heading, Later, Loaded, NodeLink, Panel, State, Terms, Trouble } from "../parts/basics.js";
import { BigTable } from "../parts/table.js";
import { OrderButton } from "../parts/orders.js";
import { RunOrders } from "../parts/run_orders.js";
import { aboutRun, runTone } from "../parts/run_words.js";
import { verdictTone } from "../answers.js";
import { Choice } from "../parts/choice.js";
import { Group, grouped } from "../parts/group.js";

const checksPart = () => import("../parts/checks.js").then((part) => part.GateChecks);

/** @typedef {{node: string, gate: string, result: string, at?: string}} Result */
const kMostAlarms = 200, kMostGroups = 100;
const kOrder = ["fail", "failed", "pending", "pass"];
const isBad = (/** @type {string} */ result) => verdictTone(result) === "bad";

/** Live, as the stream says it: no column holds what changes with each event.
 * @type {import("../parts/table.js").Column[]} */
const kColumns = [
  { key: "result", title: "Verdict", width: "minmax(90px, .8fr)", cell: (r) => html`<${State} state=${r.result} tone=${verdictTone(r.result)} />` },
  { key: "node", title: "Node", width: "minmax(90px, 1fr)", cell: (r) => html`<${NodeLink} name=${r.node} />` },
  { key: "gate", title: "Gate", width: "minmax(90px, 1fr)", cell: (r) => html`<span class="mono">${r.gate}</span>` },
  { key: "at", title: "Said", width: "110px", wide: true, cell: (r) => (r.at ? html`<${Age} at=${r.at} />` : html`<span class="dim">–</span>`) },
  { key: "now", title: "Now", width: "minmax(120px, 2fr)", wide: true, cell: (r) => html`<${Doing} row=${r} />` },
];
/** @param {{row: Result}} p */
function Doing({ row }) {
  const now = row.result === "pending" ? progress.value.get(row.node) : undefined;
  return now ? html`<${State} state=${now.text || "begun"} tone="busy" />` : null;
}

/** @returns {import("../parts/orders.js").Order} */
const askForValidation = () => ({
  title: "Run gates again", verb: "validate", path: "/validations", act: "Ask", done: "asked for",
  text: "Gates run also where they have passed. Nodes are drained first where a gate needs them alone.",
  fields: [{ label: "Nodes", name: "nodes", hint: "a hostlist: gpu[001-016]" }, { label: "Gates", name: "gates", optional: true, hint: "names with commas between; empty: all of the nodes' profiles" },
    { label: "Each rack at one moment", name: "together", choices: ["no", "yes"], value: "no", hint: "its nodes begin a gate together, as power and cooling feel it" }],
  shape: (body) => ({ nodes: body.nodes, synchronized_load: body.together === "yes", ...(body.gates ? { gates: body.gates.split(/[\s,]+/).filter(Boolean) } : {}) }),
  then: (answer) => go(link(["validation", answer.id])),
});

/** How many gates said what. @param {{results: Result[], chosen: string}} p */
function Verdicts({ results, chosen }) {
  const counts = new Map();
  for (const each of results) counts.set(each.result, (counts.get(each.result) || 0) + 1);
  const rows = [...counts].sort((a, b) => kOrder.indexOf(a[0]) - kOrder.indexOf(b[0]));
  return html`<div class="legend" role="group" aria-label="Show only">${rows.map(([word, count]) => html`<button type="button" key=${word} class="quiet" aria-pressed=${chosen === word ? "true" : "false"} onClick=${() => setQuery({ result: chosen === word ? undefined : word })}><${State} state=${word} tone=${verdictTone(word)} /> <b>${number(count)}</b></button>`)}</div>`;
}

/** @param {{id: string}} p */
function One({ id }) {
  needNodes(); // a node's rack and profile say who its peers are
  const resource = useResource(`/validations/${encodeURIComponent(id)}`, { every_s: 10 });
  const run = resource.data?.run;
  const { query } = route.value;
  const wanted = { result: query.get("result") || "", q: query.get("q") || "", gate: query.get("gate") || "", node: query.get("node") || "" };
  const findings = useResource(run?.nodes ? pathOf("/findings", { nodes: run.nodes }) : null, { list: true });
  if (resource.problem && !resource.data) return html`<${Heading} title="Validation" /><${Trouble} problem=${resource.problem} />`;
  /** @type {Result[]} */
  const all = resource.data?.results || [];
  const shown = all.filter((each) => (!wanted.result || each.result === wanted.result) && (!wanted.gate || wanted.node || each.gate === wanted.gate) && each.node.includes(wanted.q))
    .sort((a, b) => kOrder.indexOf(a.result) - kOrder.indexOf(b.result) || (a.node < b.node ? -1 : a.node > b.node ? 1 : a.gate < b.gate ? -1 : 1));
  const said = all.filter((each) => each.result !== "pending").length;
  const bad = [...new Set(all.filter((each) => isBad(each.result)).map((each) => each.node))];
  const gates = new Set(all.map((each) => `gate.${each.gate}`));
  const groups = grouped((findings.data?.items || []).filter((/** @type {any} */ each) => gates.has(each.facet) && bad.includes(each.subject)));
  const chosen = wanted.node && wanted.gate ? all.find((each) => each.node === wanted.node && each.gate === wanted.gate) : undefined;
  return html`<${Heading} title=${`Validation ${id}`}>${run && html`<${State} state=${run.state} tone=${runTone(run.state)} /><span class="grow"></span><${RunOrders} run=${run} />`}<//>
    <${Loaded} resource=${resource}>${run && html`
      <${Terms} rows=${[["what", `${(run.validate?.gates || []).join(", ") || "all gates"} on ${run.nodes || "all nodes"}`], ["asked for by", html`${run.asked_by?.principal} <span class="dim">${clock(run.asked_at)}</span>`], ["now", run.text || (run.reason !== "none" && run.reason)],
        ["said", all.length > 0 && html`<progress max=${all.length} value=${said} aria-label=${`${said} of ${all.length}`}></progress> ${number(said)} of ${number(all.length)}`],
        ["did not pass", bad.length > 0 && html`<a class="mono wrap" href=${link(["nodes"], { q: fold(bad) })}>${fold(bad)}</a>`], ["run", html`<a href=${link(["runs", run.id])}>its plan and log</a>`]]} />
      ${(run.problems || []).map((/** @type {string} */ text) => html`<div class="note" data-tone="bad" key=${text}><i class="mark" aria-hidden="true"></i><div>${text}</div></div>`)}
      ${wanted.node && wanted.gate && html`<${Panel} id="gate" title=${html`${wanted.gate} on ${wanted.node}`} side=${html`<span class="links"><${NodeLink} name=${wanted.node} /> <button type="button" class="quiet" onClick=${() => setQuery({ node: undefined, gate: undefined, check: undefined })}>Close</button></span>`}>
        ${chosen ? html`<${Later} load=${checksPart} p=${{ node: nodeOf(wanted.node) || { node: wanted.node }, gate: wanted.gate, since: run.asked_at }} />` : html`<${Empty}>${wanted.gate} on ${wanted.node} is no part of this validation.<//>`}<//>`}
      <div class="filters" role="group" aria-label="Filters"><label class="choice"><span>Node</span><input type="search" value=${wanted.q} placeholder="a part of its name" onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label>
        ${!wanted.node && html`<${Choice} label="Gate" name="gate" value=${wanted.gate} choices=${[...new Set(all.map((each) => each.gate))].sort()} />`}<${Verdicts} results=${all} chosen=${wanted.result} /></div>
      ${shown.length === 0 ? html`<${Empty}>${all.length === 0 ? "No node of it has a gate of these." : "No gate has said so."}<//>` : html`<div class="short"><${BigTable} rows=${shown} columns=${kColumns} label="verdicts" narrow="minmax(0, 1fr) minmax(0, 1fr) minmax(0, 1fr)" onOpen=${(/** @type {Result} */ each) => setQuery({ node: each.node, gate: each.gate, check: undefined })} /></div>`}
      ${groups.length > 0 && html`<${Panel} title="What is wrong" count=${groups.length}>${groups.slice(0, kMostGroups).map((group) => html`<${Group} key=${group.key} group=${group} open=${false} />`)}<//>`}`}<//>`;
}

/** What stands out among all measurements. */
function Measured() {
  const report = useResource("/measurements", { live: false, every_s: 60 });
  const q = route.value.query.get("q") || "";
  const data = report.data;
  const alarms = (data?.alarms || []).filter((/** @type {any} */ each) => `${each.subject} ${each.metric} ${each.text}`.includes(q));
  const nodeIn = (/** @type {string} */ subject) => { const name = subject.replace(/@.*$/, ""); return nodeOf(name) ? name : ""; };
  return html`<${Panel} title="Measurements that stand out" count=${data ? alarms.length : undefined}><${Loaded} resource=${report}>${data && html`
    <p class="dim">${number(data.numbers)} measurements of ${plural(data.nodes.length, "node")}, ${plural(data.comparisons, "comparison")}; about ${number(data.false_alarms_expected)} of what is listed is chance</p>
    ${data.not_said && html`<p class="dim">${data.not_said}</p>`}
    ${data.left_out && html`<div class="note" data-tone="warn"><i class="mark" aria-hidden="true"></i><div>${data.left_out}</div></div>`}
    <div class="filters"><label class="choice grow"><span>Node or metric</span><input type="search" value=${q} onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label></div>
    ${alarms.length === 0 ? html`<${Empty}>${data.numbers > 0 ? data.comparisons > 0 ? "Everything that was evaluated is like its peers." : "Nothing was compared: this says nothing about any node." : "Nothing has been measured yet: gates and isolations measure."}<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Measurements that stand out"><table class="alarms"><thead><tr><th>What</th><th>Of</th><th>Measured</th><th>Typical</th><th>σ (limit)</th></tr></thead><tbody>
      ${alarms.slice(0, kMostAlarms).map((/** @type {any} */ each) => html`<tr key=${each.kind + each.subject + each.metric}><td class="wrap"><${State} state=${each.kind} tone="warn" /> ${each.text}</td><td class="nowrap">${nodeIn(each.subject) ? html`<a href=${link(["nodes", nodeIn(each.subject)], { tab: "measurements" })}>${each.subject}</a>` : each.subject}</td><td>${Number(each.value).toPrecision(4)}</td><td>${Number(each.typical).toPrecision(4)}</td><td class="nowrap">${Number(each.sigmas).toFixed(1)} (${Number(each.limit).toFixed(1)})</td></tr>`)}</tbody></table></div>`}
    ${Object.keys(data.expected_values || {}).length > 0 && html`<h3>Expected values</h3><${Terms} rows=${Object.entries(data.expected_values)} />`}`}<//><//>`;
}

/** @param {{runs: any[], to: string}} p */
const Lines = ({ runs, to }) => html`${runs.map((run) => html`<a class="line" key=${run.id} href=${link([to, run.id])}><${State} state=${run.state} tone=${runTone(run.state)} /><span class="what"><b>${aboutRun(run)}</b> <span class="dim">${(run.validate?.gates || []).join(", ")} ${run.text}</span></span><span class="who">${run.asked_by?.principal}</span><span class="since"><${Age} at=${run.asked_at} /></span></a>`)}`;

/** @param {{path: string[]}} p */
export default function Validation({ path }) {
  needNodes();
  const list = useResource(path[1] ? null : "/validations?limit=200");
  const isolations = useResource(path[1] ? null : "/runs?limit=50&kind=isolate");
  if (path[1]) return html`<${One} id=${path[1]} />`;
  const items = list.data?.items || [], others = isolations.data?.items || [];
  return html`<${Heading} title="Validation"><span class="dim">${number(items.length)}</span><span class="grow"></span><${OrderButton} order=${askForValidation()}>Validate…<//><//>
    <${Panel} title="Runs of gates"><${Loaded} resource=${list}>${items.length === 0 ? html`<${Empty}>Nobody has asked for one. Gates also run by themselves before a node joins its pool: its page shows their answers.<//>` : html`<${Lines} runs=${items} to="validation" />`}<//><//>
    ${others.length > 0 && html`<${Panel} title="Isolations" side=${html`<a href=${link(["fabric"])}>measured pairs</a>`}><${Lines} runs=${others} to="runs" /><//>`}
    ${seesSite() && html`<${Measured} />`}`;
}
