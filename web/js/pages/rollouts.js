// SPDX-License-Identifier: Apache-2.0
// Rollouts: waves, gates and their numbers, who is where.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { link } from "../router.js";
import { clock, number, plural } from "../format.js";
import { fold } from "../hostlist.js";
import { aboutRun, runTone } from "../parts/run_words.js";
import { Age, Empty, Heading, Loaded, NodeLink, Panel, State, Terms, Trouble } from "../parts/basics.js";
import { Events } from "../parts/events.js";
import { askForRollout, rollBack } from "../parts/run_asks.js";
import { RunOrders } from "../parts/run_orders.js";
import { OrderButton } from "../parts/orders.js";

const kVerdicts = /** @type {Record<string, string>} */ ({ holds: "ok", slower: "bad", inconclusive: "warn" });
/** A loss as what has changed. @param {number} loss in percent */
export const change = (loss) => `${-loss > 0.05 ? "+" : ""}${(-loss).toFixed(1).replace("-0.0", "0.0")} %`;

const kLogged = 200;
/** Of what a node's actions say on their way the end is enough here. @param {any} event */
const isLogged = (event) => !["action-progress", "action-waiting"].includes(event.kind);

/** One gate: whether it let the rollout go on, and by which numbers. @param {{gate: any}} p */
function Gate({ gate }) {
  const word = gate.passed ? "passed" : gate.accepted_by ? "accepted" : "failed";
  return html`<article class="gate"><header><b>${gate.wave}</b> <${State} state=${word} tone=${{ passed: "ok", accepted: "held", failed: "bad" }[word]} /> <span class="dim">${number(gate.failed)} of ${plural(gate.attempted, "node")} failed${gate.accepted_by ? `, accepted by ${gate.accepted_by}` : ""}</span></header>
    ${[...(gate.reasons || []), ...(gate.notes || [])].map((/** @type {string} */ text) => html`<p key=${text}>${text}</p>`)}
    ${(gate.comparisons || []).length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label=${`Measurements of ${gate.wave}`}><table class="measured"><thead><tr><th>Measured</th><th>Verdict</th><th>Change</th><th>Between</th><th>Tolerated</th><th>Nodes</th><th>Worst</th></tr></thead><tbody>
      ${gate.comparisons.map((/** @type {any} */ each) => html`<tr key=${each.measure}><td class="mono">${each.measure}</td><td><${State} state=${each.verdict} tone=${kVerdicts[each.verdict] || "warn"} /></td><td class="nowrap">${change(each.mean_loss_percent)}</td>
        <td class="nowrap">${each.nodes > 1 ? html`${change(each.most_loss_percent)} … ${change(each.least_loss_percent)} <span class="dim">at ${each.confidence_percent} %</span>` : html`<span class="dim">one node says nothing</span>`}</td><td class="nowrap">${change(each.tolerated_percent)}</td><td>${number(each.nodes)}</td><td class="nowrap">${each.worst_node && html`<${NodeLink} name=${each.worst_node} /> ${change(each.worst_loss_percent)}`}</td></tr>`)}</tbody></table></div>`}</article>`;
}

/** @param {{rollout: any}} p */
function Waves({ rollout }) {
  const progress = rollout.nodes || {}, back = rollout.direction === "back";
  const isDone = (/** @type {string} */ name) => ["done", "untouched", "skipped", ...(back ? ["returned"] : [])].includes(progress[name]?.state);
  return html`<ol class="waves">${(rollout.waves || []).map((/** @type {any} */ wave, /** @type {number} */ i) => {
    const names = wave.nodes || [], done = names.filter(isDone).length, failed = names.filter((/** @type {string} */ name) => /fail/.test(progress[name]?.state || "")).length;
    return html`<li key=${wave.name} data-current=${i === rollout.wave ? "" : undefined}><b>${wave.name}</b><progress max=${names.length || 1} value=${done} aria-label=${`${wave.name}: ${done} of ${names.length}`}></progress><span>${number(done)} of ${number(names.length)}</span>${failed > 0 && html`<${State} state=${`${failed} failed`} tone="bad" />`}<span class="mono wrap dim">${fold(names)}</span></li>`;
  })}</ol>`;
}

/** @param {{id: string}} p */
function One({ id }) {
  const resource = useResource(`/rollouts/${encodeURIComponent(id)}`);
  const rollout = resource.data;
  const runs = useResource("/runs?limit=200&kind=rollout", { every_s: 10 });
  const mine = (runs.data?.items || []).filter((/** @type {any} */ run) => rollout && run.rollout?.id === rollout.id);
  const run = mine.find((/** @type {any} */ each) => !each.is_over) || mine[0];
  const events = useResource(run ? `/runs/${encodeURIComponent(run.id)}/events?limit=1000` : null);
  if (resource.problem?.status === 404) return html`<${Heading} title="Rollout" /><${Trouble} problem=${resource.problem} />`;
  const progress = rollout?.nodes || {};
  /** @type {Record<string, string[]>} */
  const by_state = {};
  for (const [node, each] of /** @type {[string, any][]} */ (Object.entries(progress))) (by_state[each.state] ||= []).push(node);
  const gates = [...(rollout?.gates || [])].reverse();
  const undoes = mine.some((/** @type {any} */ each) => each.rollout.back && !each.is_over);
  return html`<${Heading} title=${`Rollout ${rollout?.id || id}`}>${rollout && html`<${State} state=${rollout.state} tone=${runTone(rollout.state)} />${rollout.direction === "back" && rollout.state !== "rolled-back" && html`<${State} state="rolling back" tone="held" />`}<span class="grow"></span>
      ${run && !run.is_over && html`<${RunOrders} run=${run} />`}${rollout.state !== "rolled-back" && !undoes && html`<${OrderButton} quiet order=${rollBack(rollout.id)}>Roll back…<//>`}`}<//>
    <${Loaded} resource=${resource}>${rollout && html`
      <${Terms} rows=${[["asked for by", `${rollout.user}@${rollout.host}`], ["command", html`<span class="mono wrap">${rollout.command}</span>`], ["begun", clock(rollout.at)],
        ["run", mine.length > 0 && html`${mine.map((/** @type {any} */ each) => html`<div key=${each.id}><a href=${link(["runs", each.id])}>${each.id}</a> <${State} state=${each.state} tone=${runTone(each.state)} /> <span class="dim">${each.rollout.back ? "undoes it, " : ""}asked for by ${each.asked_by?.principal}</span></div>`)}`],
        ["order", rollout.order?.order && rollout.order.order !== "none" && `${rollout.order.order} by ${rollout.order.by}`], ["why it stands", (rollout.reasons || []).join("; ")], ["watched until", rollout.soak_until && clock(rollout.soak_until)],
        ["not brought back by a rollback", (rollout.irreversible || []).join("; ")]]} />
      <${Panel} title="Waves"><${Waves} rollout=${rollout} /><//>
      <${Panel} title="Gates">${gates.length === 0 ? html`<${Empty}>No gate has been looked at yet.<//>` : gates.map((gate, i) => html`<${Gate} key=${gates.length - i} gate=${gate} />`)}<//>
      <${Panel} title="Nodes">${Object.entries(by_state).map(([state, names]) => html`<div class="line" key=${state}><${State} state=${state} tone=${runTone(state)} /><span class="what mono wrap">${fold(names)}</span><span class="since">${number(names.length)}</span></div>`)}
        ${Object.entries(progress).filter(([, each]) => /** @type {any} */ (each).why).slice(0, 40).map(([node, each]) => html`<div class="line" key=${"w" + node}><a class="name" href=${link(["nodes", node])}>${node}</a><span class="what">${/** @type {any} */ (each).why}</span></div>`)}<//>
      <${Panel} title="Log">${run ? html`<${Loaded} resource=${events}><${Events} events=${(events.data?.items || []).filter(isLogged).reverse().slice(0, kLogged)} named=${true} /><//>` : html`<${Empty}>No run carried it out: see the <a href=${link(["log"])}>log</a> of the site.<//>`}<//>`}<//>`;
}

/** @param {{path: string[]}} p */
export default function Rollouts({ path }) {
  const list = useResource(path[1] ? null : "/rollouts");
  const runs = useResource(path[1] ? null : "/runs?limit=50&open=true&kind=rollout");
  if (path[1]) return html`<${One} id=${path[1]} />`;
  const items = list.data?.items || [];
  const waiting = (runs.data?.items || []).filter((/** @type {any} */ run) => !items.some((/** @type {any} */ each) => each.id === run.rollout?.id && each.is_open));
  return html`<${Heading} title="Rollouts"><span class="dim">${number(items.length)}</span><span class="grow"></span><${OrderButton} order=${askForRollout()}>Start…<//><//>
    ${waiting.length > 0 && html`<${Panel} title="Not begun" count=${waiting.length}>${waiting.map((/** @type {any} */ run) => html`<a class="line" key=${run.id} href=${link(["runs", run.id])}><${State} state=${run.state} tone=${runTone(run.state)} /><span class="what"><b>${aboutRun(run)}</b> <span class="dim">${run.text}</span></span><span class="who">${run.asked_by?.principal}</span><span class="since"><${Age} at=${run.asked_at} /></span></a>`)}<//>`}
    <${Loaded} resource=${list}>${items.length === 0 ? html`<${Empty}>There has been no rollout. One changes nodes in waves that stop when a gate fails.<//>` : html`<div class="panel">${items.map((/** @type {any} */ each) => html`<a class="line" key=${each.id} href=${link(["rollouts", each.id])}><${State} state=${each.state} tone=${each.is_open ? runTone(each.state) === "held" ? "held" : "busy" : runTone(each.state)} /><span class="what"><b>${each.id}</b> <span class="mono">${each.command}</span></span><span class="who">${each.user}@${each.host}</span><span class="since"><${Age} at=${each.at} /></span></a>`)}</div>`}<//>`;
}
