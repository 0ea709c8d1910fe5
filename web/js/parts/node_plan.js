// SPDX-License-Identifier: Apache-2.0
// What is planned for one node: what differs from the inventory, and its firmware's way to the
// baseline.
import { html } from "../html.js";
import { pathOf, refusal } from "../api.js";
import { useResource } from "../resource.js";
import { hasRuns } from "../site.js";
import { link } from "../router.js";
import { duration, number } from "../format.js";
import { matcher } from "../hostlist.js";
import { Age, Empty, Loaded, Panel, State, Terms } from "./basics.js";
import { OrderButton } from "./orders.js";
import { Changes } from "./plan.js";
import { askForRun } from "./run_asks.js";
import { aboutRun, runTone } from "./run_words.js";

/** Runs that are not over and mean it. @param {{name: string}} p */
function Runs({ name }) {
  const runs = useResource(hasRuns.value ? "/runs?limit=50&open=true" : null, { every_s: 10 });
  const mine = (runs.data?.items || []).filter((/** @type {any} */ run) => matcher(run.subjects || run.nodes || "")(name));
  return mine.length > 0 && html`<${Panel} title="Runs that mean it" count=${mine.length}>${mine.map((/** @type {any} */ run) => html`<a class="line" key=${run.id} href=${link(["runs", run.id])}><${State} state=${run.state} tone=${runTone(run.state)} /><span class="what"><b>${aboutRun(run)}</b> <span class="dim">${run.text}</span></span><span class="since"><${Age} at=${run.asked_at} /></span></a>`)}<//>`;
}

/** @param {{name: string, on: any}} p */
export function NodePlan({ name, on }) {
  const why = refusal("plan");
  const plan = useResource(why ? null : pathOf("/plan", { nodes: name }), { on, every_s: 30 });
  const data = plan.data;
  return html`<${Runs} name=${name} />
    <${Panel} title="What differs from the inventory" side=${html`<${OrderButton} quiet order=${askForRun(name)}>Ask for a run…<//>`}>
      ${why ? html`<div class="note" data-tone="held"><i class="mark" aria-hidden="true"></i><div>${why}.</div></div>` : html`<${Loaded} resource=${plan}>${data && html`
        <p class="dim">By what was seen last, <${Age} at=${data.as_of} />${data.unread.length > 0 ? html`; not read: ${data.unread.map((/** @type {any} */ each) => each.what).join(", ")}` : ""}. A run looks at the node first. <a href=${link(["plan"], { nodes: name })}>What it disturbs</a></p>
        ${data.exceeded.map((/** @type {string} */ line) => html`<div class="note" data-tone="bad" key=${line}><i class="mark" aria-hidden="true"></i><div>${line}</div></div>`)}
        <${Changes} groups=${data.groups} more=${data.groups_count - data.groups.length} />`}<//>`}<//>`;
}

/** @param {{name: string, on: any, baseline: string}} p */
export function NodeFirmware({ name, on, baseline }) {
  const list = useResource(pathOf("/firmware/plan", { nodes: name }), { on, every_s: 30 });
  const facts = useResource(`/nodes/${encodeURIComponent(name)}/facts`, { on });
  const running = (facts.data?.items || []).filter((/** @type {any} */ fact) => fact.facet.startsWith("firmware."));
  const way = (list.data?.items || [])[0];
  return html`<${Loaded} resource=${list}>${!way ? html`<${Empty}>Its profile declares no firmware baseline.<//>` : html`<${Panel} title=${html`Way to ${way.baseline || baseline}`}>
      ${way.forbidden_now.map((/** @type {string} */ text) => html`<div class="note" data-tone="warn" key=${text}><i class="mark" aria-hidden="true"></i><div>${text}</div></div>`)}
      ${way.waves.length === 0 && way.undone.length === 0 ? html`<${Empty}>Every component is as declared.<//>` : html`<${Terms} rows=${[["takes about", duration(way.minutes * 60)], ["flashes", number(way.flashes)], ["resets", number(way.resets)], ["AC cycles", number(way.ac_cycles)]]} />`}
      ${way.waves.map((/** @type {any} */ wave, /** @type {number} */ i) => html`<h3>${i + 1}. ${wave.activation}, about ${duration(wave.minutes * 60)}</h3><ul class="plain">${wave.steps.map((/** @type {any} */ step) => html`<li class="mono wrap" key=${step.component + step.to}><b>${step.component}</b> ${step.from || "?"} → ${step.to}</li>`)}</ul>`)}
      ${way.undone.map((/** @type {any} */ each) => html`<div class="line" key=${each.component}><${State} state="stays" tone="held" /><span class="what"><b class="mono">${each.component}</b> ${each.running || "?"}, wanted ${each.wanted} <span class="dim">${each.why}</span></span></div>`)}<//>`}<//>
    <${Panel} title="What runs" count=${running.length}><${Loaded} resource=${facts}>${running.length === 0 ? html`<${Empty}>No version has been read.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Firmware versions"><table class="stack"><thead><tr><th>Component</th><th>Version</th><th>Source</th><th>Observed</th></tr></thead><tbody>${running.map((/** @type {any} */ fact) => html`<tr key=${fact.facet}><td class="mono">${fact.facet.slice("firmware.".length)}</td><td class="mono wrap">${fact.value}</td><td>${fact.source}</td><td><${Age} at=${fact.observed_at} /></td></tr>`)}</tbody></table></div>`}<//>
      <p><a href=${link(["firmware"])}>The matrix of the site</a></p><//>`;
}
