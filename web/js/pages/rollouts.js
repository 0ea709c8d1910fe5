// SPDX-License-Identifier: Apache-2.0
// Rollouts: waves, gates and their numbers, who is where.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { link } from "../router.js";
import { clock, evidence, number } from "../format.js";
import { fold } from "../hostlist.js";
import { Age, Empty, Heading, Loaded, Panel, State, Terms, Trouble } from "../parts/basics.js";

/** @param {string} state */
export function runTone(state) {
  if (/fail|abort|stuck|outdated|work-left/.test(state)) return "bad";
  if (/pause|wait|needs-approval|block|^planned$/.test(state)) return "held";
  if (/run|open|start|back|returning|planning|approved/.test(state)) return "busy";
  return /done|finish|complete|succe/.test(state) ? "ok" : "wait";
}

/** @param {any} run */
export function aboutRun(run) {
  if (run.kind === "image-build") return `${run.kind} ${run.image_build?.image || "of what is missing"}`;
  return `${run.kind} ${run.nodes || "all nodes"}`;
}

/** @param {{id: string}} p */
function One({ id }) {
  const resource = useResource(`/rollouts/${encodeURIComponent(id)}`);
  const rollout = resource.data;
  if (resource.problem?.status === 404) return html`<${Heading} title="Rollout" /><${Trouble} problem=${resource.problem} />`;
  const progress = rollout?.nodes || {};
  /** @type {Record<string, string[]>} */
  const by_state = {};
  for (const [node, each] of /** @type {[string, any][]} */ (Object.entries(progress))) (by_state[each.state] ||= []).push(node);
  const waves = (rollout?.waves || []).map((/** @type {any} */ wave) => {
    const names = wave.nodes || [];
    return { ...wave, names, done: names.filter((/** @type {string} */ name) => progress[name]?.state === "done").length, failed: names.filter((/** @type {string} */ name) => /fail/.test(progress[name]?.state || "")).length };
  });
  return html`<${Heading} title=${`Rollout ${rollout?.id || id}`}>${rollout && html`<${State} state=${rollout.state} tone=${runTone(rollout.state)} />`}<//>
    <${Loaded} resource=${resource}>${rollout && html`
      <${Terms} rows=${[["asked for by", `${rollout.user}@${rollout.host}`], ["command", html`<span class="mono wrap">${rollout.command}</span>`], ["begun", clock(rollout.at)], ["order", rollout.order?.order && rollout.order.order !== "none" && `${rollout.order.order} by ${rollout.order.by}`], ["why", (rollout.reasons || []).join("; ")], ["watched until", rollout.soak_until && clock(rollout.soak_until)]]} />
      <${Panel} title="Waves"><ol class="waves">${waves.map((/** @type {any} */ wave, /** @type {number} */ i) => html`<li key=${wave.name} data-current=${i === rollout.wave ? "" : undefined}><b>${wave.name}</b><progress max=${wave.names.length || 1} value=${wave.done} aria-label=${`${wave.name}: ${wave.done} of ${wave.names.length}`}></progress><span>${number(wave.done)} of ${number(wave.names.length)}</span>${wave.failed > 0 && html`<${State} state=${`${wave.failed} failed`} tone="bad" />`}<span class="mono wrap dim">${fold(wave.names)}</span></li>`)}</ol><//>
      <div class="two"><${Panel} title="Nodes">${Object.entries(by_state).map(([state, names]) => html`<div class="line" key=${state}><${State} state=${state} tone=${runTone(state)} /><span class="what mono wrap">${fold(names)}</span><span class="since">${number(names.length)}</span></div>`)}
        ${Object.entries(progress).filter(([, each]) => /** @type {any} */ (each).why).slice(0, 40).map(([node, each]) => html`<div class="line" key=${"w" + node}><a class="name" href=${link(["nodes", node])}>${node}</a><span class="what">${/** @type {any} */ (each).why}</span></div>`)}<//>
      <${Panel} title="Gates">${(rollout.gates || []).length === 0 ? html`<${Empty}>No gate has been looked at yet.<//>` : (rollout.gates || []).map((/** @type {any} */ gate, /** @type {number} */ i) => html`<details key=${i}><summary>${gate.wave || gate.name || `gate ${i + 1}`} <span class="dim">${gate.verdict || gate.text || ""}</span></summary><pre tabindex="0">${evidence(gate)}</pre></details>`)}<//></div>`}<//>`;
}

/** @param {{path: string[]}} p */
export default function Rollouts({ path }) {
  const list = useResource(path[1] ? null : "/rollouts");
  if (path[1]) return html`<${One} id=${path[1]} />`;
  const items = list.data?.items || [];
  return html`<${Heading} title="Rollouts"><span class="dim">${number(items.length)}</span><//>
    <${Loaded} resource=${list}>${items.length === 0 ? html`<${Empty}>There has been no rollout. <span class="mono">muster rollout start</span> changes some nodes in waves that stop when a gate fails.<//>` : html`<div class="panel">${items.map((/** @type {any} */ each) => html`<a class="line" key=${each.id} href=${link(["rollouts", each.id])}><${State} state=${each.state} tone=${each.is_open ? runTone(each.state) === "held" ? "held" : "busy" : runTone(each.state)} /><span class="what"><b>${each.id}</b> <span class="mono">${each.command}</span></span><span class="who">${each.user}@${each.host}</span><span class="since"><${Age} at=${each.at} /></span></a>`)}</div>`}<//>`;
}
