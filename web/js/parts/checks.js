// SPDX-License-Identifier: Apache-2.0
// What the checks of a gate have answered on one node: verdict, what was seen against what was
// expected, where that comes from, and the evidence as the agent has sent it.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { progress } from "../site.js";
import { link, route, setQuery } from "../router.js";
import { number } from "../format.js";
import { answersOf, checkTone, rawLines, verdictOf, verdictTone } from "../answers.js";
import { Age, Empty, Later, Loaded, State, Terms } from "./basics.js";

/** @typedef {import("../answers.js").Answered} Answered */
/** @typedef {{id: string, what: string, units: string, expected_from: string, what_to_do: string}} Check */
/** @typedef {{facet: string, value: string, source: string, observed_at: string, evidence?: any}} Fact */

const plots = () => import("./plots.js").then((part) => part.Measurements);

/** @param {{node: import("../types.js").Node | {node: string}, answer: Answered, check?: Check, open: boolean}} p */
function One({ node, answer, check, open }) {
  const values = Object.entries(answer.values || {});
  const raw = rawLines(answer.evidence);
  return html`<details class="answered" open=${open || answer.status !== "pass"} data-check=${answer.id}>
    <summary><${State} state=${answer.status} tone=${checkTone(answer.status)} /><span class="what"><b class="mono">${answer.id}</b> ${answer.text}</span></summary>
    <div class="inside"><${Terms} rows=${[["looks at", check?.what], ["observed", answer.text], ["expected by", check?.expected_from], ["took", answer.seconds !== undefined && answer.seconds > 0 && `${answer.seconds.toFixed(1)} s`],
      ["what to do", answer.status !== "pass" && check?.what_to_do && html`<b>${check.what_to_do}</b>`]]} />
      ${values.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${`Measured by ${answer.id}`}><table><thead><tr><th>Measured</th><th>Value</th></tr></thead><tbody>${values.map(([name, value]) => html`<tr key=${name}><td class="mono">${name}</td><td>${value === null ? html`<${State} state="no number" tone="bad" />` : Number(Number(value).toPrecision(6)).toLocaleString("en-GB", { maximumFractionDigits: 6 })}</td></tr>`)}</tbody></table></div>`}
      ${raw && html`<h3>Evidence</h3><pre tabindex="0" aria-label=${`evidence of ${answer.id}`}>${raw}</pre>`}
      ${open && values.length > 0 && html`<h3>Against its peers</h3><${Later} load=${plots} p=${{ node, check: answer.id }} />`}
      ${values.length > 0 && !open && html`<p><a href=${link(route.value.path, { ...Object.fromEntries(route.value.query), check: answer.id })}>Against its peers, over time</a></p>`}</div></details>`;
}

/** @param {{node: any, gate: string, since?: string}} p node: with profile and rack, where they are
 * known; since: what was answered before is of an earlier run */
export function GateChecks({ node, gate, since }) {
  const name = node.node;
  const facts = useResource(`/nodes/${encodeURIComponent(name)}/facts`, { on: (event) => event.subject === name && event.kind !== "action-progress" });
  const checks = useResource("/checks", { live: false, every_s: 3600 });
  /** @type {Fact | undefined} */
  const fact = (facts.data?.items || []).find((/** @type {Fact} */ each) => each.facet === `gate.${gate}`);
  const is_old = !!fact && !!since && Date.parse(fact.observed_at) < Date.parse(since);
  const answers = fact && answersOf(fact.evidence);
  const now = progress.value.get(name), chosen = route.value.query.get("check") || "";
  const table = new Map((checks.data?.items || []).map((/** @type {Check} */ each) => [each.id, each]));
  const passed = (answers || []).filter((each) => each.status === "pass").length;
  return html`<${Loaded} resource=${facts}>
    ${now && html`<p role="status"><${State} state="running" tone="busy" /> ${now.text}${now.fraction >= 0 ? html` <progress max="1" value=${now.fraction} aria-label=${`${Math.round(now.fraction * 100)} %`}></progress>` : ""}</p>`}
    ${!fact ? html`<${Empty}>${gate} has not run on ${name} yet.<//>` : html`
      <p><${State} state=${verdictOf(fact.value)} tone=${verdictTone(verdictOf(fact.value))} /> ${answers ? html`${number(passed)} of ${number(answers.length)} checks passed` : ""} <span class="dim">${fact.source}, <${Age} at=${fact.observed_at} />${is_old ? ": of an earlier run" : ""}</span></p>
      ${!answers ? html`<${Empty}>Its answers were not kept: only the verdict is known.${rawLines(fact.evidence) && html`<pre tabindex="0" aria-label="evidence">${rawLines(fact.evidence)}</pre>`}<//>`
        : answers.map((answer) => html`<${One} key=${answer.id} node=${node} answer=${answer} check=${table.get(answer.id)} open=${answer.id === chosen} />`)}
      ${chosen && html`<p><button type="button" class="quiet" onClick=${() => setQuery({ check: undefined })}>Without the plots</button></p>`}`}<//>`;
}
