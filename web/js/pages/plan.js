// SPDX-License-Identifier: Apache-2.0
// Plan: what differs from the inventory and what it would disturb, and the plans that wait for a
// word.
import { html } from "../html.js";
import { pathOf, refusal } from "../api.js";
import { useResource } from "../resource.js";
import { hasRuns, site } from "../site.js";
import { link, route, setQuery } from "../router.js";
import { number, plural } from "../format.js";
import { Age, Empty, Heading, Loaded, Panel, State, Terms } from "../parts/basics.js";
import { OrderButton } from "../parts/orders.js";
import { Changes, Impact } from "../parts/plan.js";
import { askForRun } from "../parts/run_asks.js";
import { missing, RunOrders } from "../parts/run_orders.js";
import { aboutRun, runTone } from "../parts/run_words.js";

const kAsks = ["queued", "planning", "planned", "needs-approval"];
const kMostNodes = 2_000;

/** Who has to say something. @param {any} run */
function whoMust(run) {
  const lacks = missing(run), author = run.asked_by?.principal;
  const parts = [lacks.confirmation && html`the word of <b>${author}</b>${lacks.approvals > 0 ? "" : ", or of an approver or admin"}`, lacks.approvals > 0 && html`<b>${plural(lacks.approvals, "approval")}</b> by an approver or admin other than ${author}`].filter(Boolean);
  return parts.length === 2 ? html`${parts[0]}, and ${parts[1]}` : parts[0] || "";
}

/** Plans of runs that wait: each with what it disturbs and who has to say something.
 * @param {{runs: any[]}} p */
function Waiting({ runs }) {
  if (runs.length === 0) return html`<${Empty}>No plan waits for a word.<//>`;
  return html`${runs.map((run) => html`<article class="card" key=${run.id}><header><${State} state=${run.state} tone=${runTone(run.state)} /><a class="name" href=${link(["runs", run.id])}>${aboutRun(run)}</a><span class="dim">${run.asked_by?.principal}, <${Age} at=${run.asked_at} /></span></header>
    ${run.impact ? html`<${Impact} impact=${run.impact} />` : html`<p class="dim">${run.text || "It is not planned yet."}</p>`}
    <${Terms} rows=${[["waits for", whoMust(run)],
      ["said yes", (run.approvals || []).map((/** @type {any} */ each) => each.principal).join(", ")]]} />
    <div class="buttons"><${RunOrders} run=${run} /></div></article>`)}`;
}

/** @param {{nodes: string}} p */
function Ahead({ nodes }) {
  const plan = useResource(pathOf("/plan", { nodes }), { live: false, every_s: 30 });
  const data = plan.data;
  return html`<${Loaded} resource=${plan}>${data && html`<div class="two">
      <${Panel} title="What it would disturb"><${Impact} impact=${data.impact} exceeded=${data.exceeded} /><//>
      <${Panel} title="What is not known"><p class="dim">By what was seen last, <${Age} at=${data.as_of} />. A run looks at its nodes first.</p>
        ${data.unread.map((/** @type {any} */ each) => html`<div class="line" key=${each.what}><${State} state=${each.what} tone="warn" /><span class="what"><a class="mono" href=${link(["nodes"], { q: each.nodes })}>${each.nodes}</a></span></div>`)}<//></div>
    <${Panel} title="Changes" count=${data.impact.actions}><${Changes} groups=${data.groups} more=${data.groups_count - data.groups.length} /><//>`}<//>`;
}

export default function Plan() {
  const nodes = route.value.query.get("nodes") || "";
  const why = refusal("plan");
  const runs = useResource(hasRuns.value ? "/runs?limit=50&open=true" : null, { every_s: 10 });
  const waiting = (runs.data?.items || []).filter((/** @type {any} */ run) => kAsks.includes(run.state));
  const too_many = !nodes && (site.value?.nodes || 0) > kMostNodes;
  const choose = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    setQuery({ nodes: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("nodes") || "").trim() || undefined });
  };
  return html`<${Heading} title="Plan"><span class="grow"></span><${OrderButton} order=${askForRun(nodes)}>Ask for a run…<//><//>
    <${Panel} title="Plans that wait" count=${waiting.length}>${hasRuns.value === false ? html`<${Empty}>This server has no runs.<//>` : html`<${Loaded} resource=${hasRuns.value ? runs : { data: undefined, problem: null, reading: true }}><${Waiting} runs=${waiting} /><//>`}<//>
    <h2 class="section">What differs from the inventory</h2>
    <form class="filters" onSubmit=${choose}><label class="choice grow"><span>Nodes</span><input name="nodes" type="search" key=${nodes} defaultValue=${nodes} placeholder="gpu[001-128]; empty: all" autocomplete="off" autocapitalize="off" spellcheck=${false} /></label><button type="submit">Look ahead</button></form>
    ${why ? html`<div class="note" data-tone="held"><i class="mark" aria-hidden="true"></i><div>${why}.</div></div>`
      : too_many ? html`<div class="note" data-tone="wait"><i class="mark" aria-hidden="true"></i><div>Name at most ${number(kMostNodes)} nodes, or ask for a run, which plans for all.</div></div>`
      : html`<${Ahead} key=${nodes} nodes=${nodes} />`}`;
}
