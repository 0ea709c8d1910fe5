// SPDX-License-Identifier: Apache-2.0
// Now: what is wrong, what runs, what waits for a person.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { hasRuns, needNodes, nodes, progress, site } from "../site.js";
import { fold } from "../hostlist.js";
import { link } from "../router.js";
import { number, plural } from "../format.js";
import { toneOf } from "../states.js";
import { Age, Counts, Empty, Heading, Loaded, NodeLink, Panel, State, Terms, Trouble } from "../parts/basics.js";
import { Group, grouped } from "../parts/group.js";
import { acknowledgeBreakers, OrderButton, overrideHold, reloadInventory, takeOutOfQuarantine } from "../parts/orders.js";
import { nodesProblem } from "../site.js";
import { aboutRun, runTone } from "../parts/run_words.js";

const kShown = 40;
/** States of a run that wait for a person. */
const kAsks = ["planned", "needs-approval", "paused"];

function Running() {
  const rollouts = useResource("/rollouts");
  const runs = useResource(hasRuns.value ? "/runs?limit=50&open=true" : null);
  /** @type {Map<string, string[]>} */
  const busy = new Map();
  for (const node of nodes.value || []) if (toneOf(node.state) === "busy") busy.set(node.state, [...(busy.get(node.state) || []), node.node]);
  const open_rollout = (rollouts.data?.items || []).find((/** @type {any} */ each) => each.is_open);
  const open_runs = (runs.data?.items || []).filter((/** @type {any} */ each) => !each.is_over && !kAsks.includes(each.state) && !(open_rollout && each.rollout?.id === open_rollout.id));
  const none = busy.size === 0 && !open_rollout && open_runs.length === 0;
  return html`<${Panel} title="What runs">
    ${none && html`<${Empty}>Nothing is being changed.<//>`}
    ${open_rollout && html`<a class="line" href=${link(["rollouts", open_rollout.id])}><${State} state=${open_rollout.state} tone=${runTone(open_rollout.state)} /><span class="what"><b>rollout</b> ${open_rollout.command}</span><span class="since"><${Age} at=${open_rollout.at} /></span></a>`}
    ${open_runs.map((/** @type {any} */ run) => html`<a class="line" key=${run.id} href=${link(["runs", run.id])}><${State} state=${run.state} tone=${runTone(run.state)} /><span class="what"><b>${aboutRun(run)}</b> ${run.text}</span>${run.progress?.planned > 0 && html`<progress max=${run.progress.planned} value=${run.progress.done} aria-label=${`${run.progress.done} of ${run.progress.planned}`}></progress>`}<span class="since"><${Age} at=${run.asked_at} /></span></a>`)}
    ${[...busy].map(([state, names]) => {
      const known = names.map((name) => progress.value.get(name)).filter((each) => each && each.fraction >= 0);
      const mean = known.length > 0 ? known.reduce((sum, each) => sum + (each?.fraction || 0), 0) / known.length : -1;
      return html`<a class="line" key=${state} href=${names.length === 1 ? link(["nodes", names[0]]) : link(["nodes"], { state })}><${State} state=${state} />
        <span class="what mono wrap">${fold(names)}</span>${mean >= 0 && html`<progress max="1" value=${mean} aria-label=${`${state}: ${Math.round(mean * 100)} %`}></progress>`}<span class="since">${number(names.length)}</span></a>`;
    })}<//>`;
}

function Waiting() {
  const quarantine = useResource("/quarantine"), holds = useResource("/holds"), breakers = useResource("/breakers");
  const inventory = useResource("/inventory", { every_s: 30 });
  const runs = useResource(hasRuns.value ? "/runs?limit=50&open=true" : null);
  const held = (holds.data?.items || []).filter((/** @type {any} */ each) => !each.overridden);
  const open = breakers.data?.items || [], kept = quarantine.data?.items || [];
  const to_approve = (runs.data?.items || []).filter((/** @type {any} */ each) => kAsks.includes(each.state));
  const differs = inventory.data?.file_differs;
  const loud = site.value?.overrides || [], shut = site.value?.access_problems || [];
  const count = held.length + open.length + kept.length + to_approve.length + loud.length + shut.length + (differs ? 1 : 0);
  return html`<${Panel} title="What waits for a person" count=${count}>
    <${Trouble} problem=${quarantine.problem?.code === "unreachable" ? null : quarantine.problem} />
    ${count === 0 && html`<${Empty}>Nothing waits.<//>`}
    ${open.map((/** @type {any} */ each) => html`<div class="line" key=${"b" + each.pool}><${State} state="breaker open" tone="bad" /><span class="what"><b>${each.pool}</b> ${each.reason} <span class="dim">${plural(each.nodes_count || 0, "node")}</span></span><span class="since"><${Age} at=${each.since} /></span><${OrderButton} quiet order=${acknowledgeBreakers()}>Acknowledge…<//></div>`)}
    ${differs && html`<div class="line"><${State} state="inventory differs" tone="warn" /><span class="what">The file on the controller is not what the server works with. ${(inventory.data?.diagnostics || []).length > 0 && html`<a href="#/inventory">It has errors.</a>`}</span><${OrderButton} quiet order=${reloadInventory()}>Reload…<//></div>`}
    ${loud.map((text) => html`<a class="line" key=${text} href=${link(["runs", (/^run (\S+):/.exec(text) || ["", ""])[1]])}><${State} state="overridden" tone="warn" /><span class="what">${text}</span></a>`)}
    ${shut.map((text) => html`<div class="line" key=${text}><${State} state="access" tone="warn" /><span class="what">${text}</span></div>`)}
    ${to_approve.map((/** @type {any} */ run) => html`<a class="line" key=${run.id} href=${link(["runs", run.id])}><${State} state=${run.state} tone="held" /><span class="what"><b>${aboutRun(run)}</b> asked for by ${run.asked_by?.principal}${run.state === "paused" && run.text ? html`<span class="dim">: ${run.text}</span>` : ""}</span><span class="since"><${Age} at=${run.asked_at} /></span></a>`)}
    ${kept.slice(0, kShown).map((/** @type {any} */ each) => html`<div class="line" key=${"q" + each.node}><${State} state="quarantined" /><span class="what"><${NodeLink} name=${each.node} /> ${each.reason} <span class="dim">${each.by}</span></span><span class="since"><${Age} at=${each.since} /></span><${OrderButton} quiet order=${takeOutOfQuarantine(each.node)}>Take out…<//></div>`)}
    ${held.slice(0, kShown).map((/** @type {any} */ each) => html`<div class="line" key=${"h" + each.node}><${State} state="hold" tone="held" /><span class="what"><${NodeLink} name=${each.node} /> ${each.hold}</span><span class="since"><${Age} at=${each.seen_at} /></span><${OrderButton} quiet order=${overrideHold(each.node)}>Override…<//></div>`)}
    ${(kept.length > kShown || held.length > kShown) && html`<p><a href=${link(["nodes"], { state: "quarantined" })}>all of them</a></p>`}<//>`;
}

export default function Now() {
  needNodes();
  const findings = useResource("/findings?limit=2000");
  const sums = site.value;
  const groups = grouped(findings.data?.items || []);
  // A quarantine is somebody's word: it waits, beside.
  const wrong = groups.filter((group) => group.first.severity !== "info" && group.first.source !== "quarantine");
  const [more, setMore] = useState(false);
  const stale = (nodes.value || []).filter((node) => node.stale?.length > 0);
  const monitor = sums?.monitor;
  return html`<${Heading} title="Now" />
    <${Trouble} problem=${nodesProblem.value?.code === "unreachable" ? null : nodesProblem.value} />
    ${sums && html`<div class="sums"><${Counts} states=${sums.states} />
      <${Terms} rows=${[["monitor", monitor && html`<${State} state=${monitor.running ? "running" : "not running"} tone=${monitor.running ? "ok" : "warn"} />`],
        ["controller", sums.leader?.holder || sums.host], ["not in use", number(sums.nodes - (sums.states["in pool"] || 0))],
        ["stale", sums.stale > 0 ? html`<a href=${link(["nodes"], { stale: "true" })}>${plural(sums.stale, "node")}</a>` : "none"], ["as of", html`<${Age} at=${sums.as_of} />`]]} /></div>`}
    ${monitor && !monitor.running && html`<div class="note" data-tone="warn"><i class="mark" aria-hidden="true"></i><div>Nobody watches the nodes: ${monitor.text || "no monitor runs"}. What you see is what was read last.</div></div>`}
    <div class="now"><${Panel} title="What is wrong" count=${wrong.length} side=${html`<a href="#/findings">all findings</a>`}>
      <${Loaded} resource=${findings}>
        ${wrong.length === 0 && html`<${Empty}>No errors, no warnings.<//>`}
        ${wrong.slice(0, more ? undefined : kShown).map((group, i) => html`<${Group} key=${group.key} group=${group} open=${i === 0} />`)}
        ${wrong.length > kShown && !more && html`<button type="button" class="quiet" onClick=${() => setMore(true)}>${number(wrong.length - kShown)} more</button>`}
        ${stale.length > 0 && html`<details class="finding"><summary><${State} state="stale" tone="warn" /><span class="what"><b>could not be read lately</b></span><span class="who">${plural(stale.length, "node")}</span></summary><div class="inside"><p class="mono wrap">${fold(stale.map((node) => node.node))}</p></div></details>`}
      <//><//>
    <div><${Running} /><${Waiting} /></div></div>`;
}
