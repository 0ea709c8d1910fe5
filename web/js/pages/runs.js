// SPDX-License-Identifier: Apache-2.0
// Runs: work that outlives the terminal (docs/api.md, runs): asked for, planned, confirmed or
// approved by the plan's hash, carried out. Shown where the server has them.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { link, route, setQuery } from "../router.js";
import { clock, digest, number } from "../format.js";
import { Age, Empty, Heading, Loaded, Panel, State, Terms, Trouble } from "../parts/basics.js";
import { OrderButton } from "../parts/orders.js";
import { Events } from "../parts/events.js";
import { Changes, groupedActions, Impact } from "../parts/plan.js";
import { askForRun } from "../parts/run_asks.js";
import { RunOrders } from "../parts/run_orders.js";
import { aboutRun, runTone } from "../parts/run_words.js";

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
  return html`<${Heading} title=${`Run ${id}`}>${run && html`<${State} state=${run.state} tone=${runTone(run.state)} /><span class="grow"></span><${RunOrders} run=${run} />`}<//>
    <${Loaded} resource=${resource}>${run && html`
      <${Terms} rows=${[["what", aboutRun(run)], ["rollout", run.rollout && html`<a href=${link(["rollouts", run.rollout.id])}>${run.rollout.id}</a>`], ["asked for by", html`${run.asked_by?.principal} <span class="dim">${run.asked_by?.way}, ${clock(run.asked_at)}</span>`],
        ["now", run.text || (run.reason !== "none" && run.reason)], ["order", run.order !== "none" && `${run.order} by ${run.ordered_by}`], ["carried out by", run.worked_on_by],
        ["plan", run.plan_hash && html`<span class="mono">${digest(run.plan_hash)}</span> <span class="dim">${clock(run.planned_at)}</span>`], ["approvals", (run.approvals_needed > 0 || (run.approvals || []).length > 0) && html`${(run.approvals || []).filter((/** @type {any} */ each) => !each.void_because).length} of ${run.approvals_needed}: ${(run.approvals || []).map((/** @type {any} */ each) => `${each.principal}${each.void_because ? ` (does not count: ${each.void_because})` : ""}`).join(", ") || "none yet"}`],
        ["overridden", (run.overrides || []).length > 0 && run.overrides.map((/** @type {any} */ each) => html`<div key=${each.at}>${each.principal}: ${each.reason} <span class="dim">${clock(each.at)}, ${each.acknowledged_by ? `acknowledged by ${each.acknowledged_by}` : "nobody has acknowledged it"}</span></div>`)], ["waits until", run.state === "waiting" && run.waits_until && clock(run.waits_until)],
        ["done", done.planned > 0 && html`<progress max=${done.planned} value=${done.done} aria-label=${`${done.done} of ${done.planned}`}></progress> ${number(done.done)} of ${number(done.planned)}${counted.length > 0 ? `, ${counted.join(", ")}` : ""}`]]} />
      ${(run.problems || []).map((/** @type {string} */ text) => html`<div class="note" data-tone="bad" key=${text}><i class="mark" aria-hidden="true"></i><div>${text}</div></div>`)}
      ${run.impact && html`<${Panel} title="What it disturbs"><${Impact} impact=${run.impact} /><//>`}
      ${run.plan_hash && html`<${Panel} title="Plan" count=${(plan.data?.actions || []).length}><${Loaded} resource=${plan}>${plan.data && html`<${Changes} groups=${groupedActions(plan.data.actions || [])} />`}<//><//>`}
      <div class="two"><${Panel} title="What has happened"><${Loaded} resource=${events}><${Events} events=${[...(events.data?.items || [])].reverse()} named=${true} /><//><//>
      <${Panel} title="States">${(run.stamps || []).map((/** @type {any} */ stamp, /** @type {number} */ i) => html`<div class="line" key=${i}><${State} state=${stamp.state} tone=${runTone(stamp.state)} /><span class="what">${stamp.reason !== "none" && stamp.reason} <span class="dim">${stamp.by}</span></span><span class="since"><${Age} at=${stamp.at} /></span></div>`)}<//></div>`}<//>`;
}

/** @param {{path: string[]}} p */
export default function Runs({ path }) {
  const open = !!route.value.query.get("open");
  const list = useResource(path[1] ? null : open ? "/runs?limit=200&open=true" : "/runs?limit=200");
  if (path[1]) return html`<${One} id=${path[1]} />`;
  const items = list.data?.items || [];
  return html`<${Heading} title="Runs"><span class="dim">${number(items.length)}</span><span class="grow"></span><${OrderButton} order=${askForRun("")}>Apply…<//><//>
    <div class="filters"><label class="check"><input type="checkbox" checked=${open} onChange=${(/** @type {any} */ e) => setQuery({ open: e.target.checked ? "true" : undefined })} /> not over</label></div>
    <${Loaded} resource=${list}>${items.length === 0 ? html`<${Empty}>No run is so.<//>` : html`<div class="panel">${items.map((/** @type {any} */ run) => html`<a class="line" key=${run.id} href=${link(["runs", run.id])}><${State} state=${run.state} tone=${runTone(run.state)} /><span class="what"><b>${aboutRun(run)}</b> <span class="dim">${run.text}</span></span><span class="who">${run.asked_by?.principal}</span><span class="since"><${Age} at=${run.asked_at} /></span></a>`)}</div>`}<//>`;
}
