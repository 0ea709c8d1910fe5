// SPDX-License-Identifier: Apache-2.0
// Node: one machine, and why it is where it is.
import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { nodeOf, nodes, now, progress } from "../site.js";
import { link, route, setQuery } from "../router.js";
import { age, clock, digest, duration, evidence, shortHashes } from "../format.js";
import { kStages, stageOf, toneOf, usualSeconds } from "../states.js";
import { Age, Empty, Heading, Later, Loaded, Panel, Severity, State, Terms, Trouble, Why } from "../parts/basics.js";
import { Power } from "../parts/power.js";
import { grantWipe, OrderButton, overrideHold, putIntoQuarantine, takeOutOfQuarantine } from "../parts/orders.js";
import { Events } from "../parts/events.js";

/** @typedef {import("../types.js").Explanation} Explanation */
/** @typedef {import("../types.js").Node} Node */

const kTabs = /** @type {[string, string][]} */ ([["overview", "Overview"], ["facts", "Facts"], ["findings", "Findings"], ["plan", "Plan"], ["firmware", "Firmware"], ["gates", "Gates"], ["events", "Events"], ["history", "History"], ["certificate", "Certificate"], ["measurements", "Measurements"], ["console", "Console"]]);

const measurementsPart = () => import("../parts/plots.js").then((part) => part.Measurements);
const gatesPart = () => import("../parts/checks.js").then((part) => part.GateChecks);
const planPart = () => import("../parts/node_plan.js").then((part) => part.NodePlan);
const firmwarePart = () => import("../parts/node_plan.js").then((part) => part.NodeFirmware);
const consolePart = () => import("../parts/console.js").then((part) => part.default);

/** The road, stage by stage. What is not met says so by the explanation's own list.
 * @param {{node: Node, why?: Explanation}} p */
function Stages({ node, why }) {
  const unmet = (why?.unmet || []).map((line) => ({ line, stage: stageOf(line.split(": ")[0]) }));
  const busy = kStages.findIndex((stage) => stage[1] === node.state && (!why?.facet || !stageOf(why.facet) || stageOf(why.facet) === stage[0]));
  const bad = toneOf(node.state) === "bad" && why ? stageOf(why.facet) : "";
  const done = progress.value.get(node.node);
  const line = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { // where it stands is in sight, also on a phone
    const box = line.current;
    const first = /** @type {HTMLElement | null} */ (box?.querySelector('li:not([data-tone="ok"])'));
    if (box && first && why) box.scrollLeft = first.offsetLeft - box.clientWidth / 2;
  }, [node.node, !why]);
  return html`<ol class="stages" ref=${line} tabindex="0" aria-label="Stages of its road">${kStages.map(([stage, working, reached], i) => {
    const lines = unmet.filter((each) => each.stage === stage).map((each) => each.line);
    const state = bad === stage ? ["bad", "failed"] : i === busy ? ["busy", working] : !why ? ["wait", "…"] : lines.length > 0 ? ["wait", "not yet"] : ["ok", "met"];
    const usual = usualSeconds(stage);
    return html`<li key=${stage} data-tone=${state[0]} title=${lines.join("\n") || reached}>
      <i class="mark" aria-hidden="true"></i><b>${stage}</b><span>${state[1]}</span>
      <small>${i === busy && done && done.fraction >= 0 ? `${Math.round(done.fraction * 100)} %` : usual > 0 ? `usually ${duration(usual)}` : ""}</small></li>`;
  })}</ol>`;
}

/** @param {{name: string, on: any}} p */
function Facts({ name, on }) {
  const facts = useResource(`/nodes/${encodeURIComponent(name)}/facts`, { on });
  const wanted = route.value.query.get("q") || "";
  const rows = (facts.data?.items || []).filter((/** @type {any} */ fact) => fact.facet.includes(wanted) || String(fact.value).includes(wanted));
  return html`<div class="filters"><label class="choice grow"><span>Facet or value</span><input type="search" value=${wanted} onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label></div>
    <${Loaded} resource=${facts}>${rows.length === 0 ? html`<${Empty}>Nothing of this is known.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Facts"><table class="stack"><thead><tr><th>Facet</th><th>Value</th><th>Source</th><th>Observed</th></tr></thead>
      <tbody>${rows.map((/** @type {any} */ fact) => html`<tr key=${fact.facet}><td class="mono">${fact.facet}</td><td class="wrap">${fact.value}${evidence(fact.evidence) && html`<details><summary class="dim">evidence</summary><pre tabindex="0">${evidence(fact.evidence)}</pre></details>`}</td><td>${fact.source}</td><td><${Age} at=${fact.observed_at} /></td></tr>`)}</tbody></table></div>`}<//>`;
}

/** @param {{finding: import("../types.js").Finding}} p */
function FindingCard({ finding }) {
  return html`<article class="card"><header><${Severity} severity=${finding.severity} /><b>${finding.text}</b></header>
    <${Terms} rows=${[["what to do", finding.what_to_do && html`<b>${finding.what_to_do}</b>`], ["facet", html`<span class="mono">${finding.facet}</span>`], ["raised by", finding.source], ["since", html`<${Age} at=${finding.at} />`]]} />
    ${evidence(finding.evidence) && html`<details><summary>evidence</summary><pre tabindex="0">${evidence(finding.evidence)}</pre></details>`}</article>`;
}

/** @param {{name: string, on: any}} p */
function History({ name, on }) {
  const history = useResource(`/nodes/${encodeURIComponent(name)}/history`, { on });
  const actions = history.data?.actions || [], requests = history.data?.requests || [];
  const told = (/** @type {any} */ action) => (action && typeof action === "object" ? `${action.facet || action.id || ""}${action.to ? ` → ${action.to}` : ""}` : action);
  return html`<${Loaded} resource=${history}>
    ${actions.length === 0 ? html`<${Empty}>muster has changed nothing here yet.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Actions"><table class="stack"><thead><tr><th>Begun</th><th>Action</th><th>Ended</th><th>Outcome</th></tr></thead><tbody>
      ${actions.map((/** @type {any} */ each) => html`<tr key=${each.id}><td class="nowrap">${clock(each.opened_at)}</td><td class="mono wrap">${told(each.action)}${each.to && typeof each.action !== "object" ? ` → ${each.to}` : ""}</td><td class="nowrap"><${State} state=${each.state} tone=${{ done: "ok", failed: "bad", open: "busy", blocked: "held" }[/** @type {string} */ (each.state)] || "wait"} /></td><td class="wrap">${each.outcome}</td></tr>`)}</tbody></table></div>`}
    ${requests.length > 0 && html`<h2 class="section">Who asked</h2><div class="scroll" tabindex="0" role="region" aria-label="Requests"><table class="stack"><thead><tr><th>When</th><th>Who</th><th>Command</th><th>Outcome</th></tr></thead><tbody>${requests.map((/** @type {any} */ each) => html`<tr key=${each.id}><td class="nowrap">${clock(each.at)}</td><td>${each.user}@${each.host}</td><td class="mono wrap">${each.command}</td><td class="wrap">${each.outcome}</td></tr>`)}</tbody></table></div>`}<//>`;
}

/** @param {{name: string, on: any}} p */
function Certificate({ name, on }) {
  const certificate = useResource(`/nodes/${encodeURIComponent(name)}/certificate`, { on });
  if (certificate.problem?.status === 404) return html`<${Empty}>It has no certificate. One is signed when every gate of its profile has passed for the hardware, image, drivers and firmware that it has.<//>`;
  const data = certificate.data;
  const rows = data && Object.entries(data).filter(([key, value]) => !["valid", "void_because"].includes(key) && (typeof value !== "object" || value === null));
  const parts = data && Object.entries(data).filter(([, value]) => value && typeof value === "object");
  return html`<${Loaded} resource=${certificate}>${data && html`
    <p><${State} state=${data.valid ? "valid" : "void"} tone=${data.valid ? "ok" : "bad"} /> ${data.void_because}</p>
    <${Terms} rows=${rows.map((/** @type {[string, any]} */ [key, value]) => [key.replaceAll("_", " "), /** @type {any} */ (/_at$|^at$/.test(key) ? html`${clock(String(value))} <span class="dim">${age(String(value), now.value)}</span>` : html`<span class="mono wrap">${String(value)}</span>`)])} />
    ${parts.map((/** @type {[string, any]} */ [key, value]) => html`<details key=${key}><summary>${key.replaceAll("_", " ")}</summary><pre tabindex="0">${evidence(value)}</pre></details>`)}`}<//>`;
}

/** @param {{path: string[]}} p */
export default function NodePage({ path }) {
  const name = path[1];
  const on = (/** @type {import("../types.js").Event} */ event) => event.subject === name && event.kind !== "action-progress";
  const at = `/nodes/${encodeURIComponent(name)}`;
  const resource = useResource(at, { on }), why = useResource(`${at}/why`, { on });
  const asked_tab = route.value.query.get("tab") || "";
  const tab = kTabs.some(([key]) => key === asked_tab) ? asked_tab : "overview";
  const events = useResource(tab === "events" ? `${at}/events?limit=500` : null, { on });
  const findings = useResource(tab === "findings" ? `${at}/findings` : null, { on });
  if (resource.problem?.status === 404)
    return html`<${Heading} title=${name} /><${Trouble} problem=${resource.problem} /><p><a href=${link(["nodes"], { q: name })}>Nodes with “${name}” in their name</a></p>`;
  /** @type {Node | undefined} */
  const node = resource.data && { ...resource.data, ...(nodes.value ? { state: nodeOf(name)?.state || resource.data.state } : {}) };
  /** @type {Explanation | undefined} */
  const reason = why.data;
  return html`<${Heading} title=${name}>${node && html`<${State} state=${reason?.word || node.state} />`}<span class="grow"></span>
      ${node && html`${node.quarantine || node.state === "quarantined" ? html`<${OrderButton} quiet order=${takeOutOfQuarantine(name)}>Take out of quarantine…<//>` : html`<${OrderButton} quiet order=${putIntoQuarantine(name)}>Quarantine…<//>`}
      ${node.hold && !node.hold.overridden && html`<${OrderButton} quiet order=${overrideHold(name)}>Override hold…<//>`}
      <${OrderButton} quiet order=${grantWipe(name)}>Permit a wipe…<//>`}<//>
    <${Loaded} resource=${resource}>${node && html`
      <${Stages} node=${node} why=${reason} />
      <div class="tabs" role="tablist" aria-label=${`About ${name}`}>${kTabs.map(([key, title]) => html`<a role="tab" key=${key} id=${`tab-${key}`} aria-selected=${tab === key ? "true" : "false"} href=${link(["nodes", name], { tab: key === "overview" ? undefined : key })}>${title}${key === "findings" && node.findings > 0 ? html` <span class="count">${node.findings}</span>` : ""}</a>`)}</div>
      <div role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      ${tab === "overview" && html`<div class="two"><${Panel} title="Why"><${Loaded} resource=${why}>${reason && html`<p class="lead">${reason.state}</p>
          ${!reason.as_declared || reason.facet ? html`<${Why} why=${reason} />` : null}
          ${reason.unmet.length > 0 && html`<h3>Not met</h3><ul class="plain">${reason.unmet.map((line) => html`<li class="mono wrap" key=${line} title=${line}>${shortHashes(line)}</li>`)}</ul>`}
          ${reason.stale.length > 0 && html`<h3>Stale</h3><ul class="plain">${reason.stale.map((line) => html`<li key=${line}>${line}</li>`)}</ul>`}`}<//><//>
        <${Panel} title="Declared and observed"><${Terms} rows=${[["rack", node.rack && node.rack !== "-" && html`<a href=${link(["racks", node.rack])}>${node.rack}</a>${node.unit ? `, unit ${node.unit}` : ""}`], ["profile", node.profile], ["pool", node.pool_name && html`${node.pool_name} <span class="dim">(${node.pool})</span>`],
          ["image", html`<span class="mono wrap">${digest(node.image)}</span>${node.declared_image ? html` <span class="dim">declared: ${node.declared_image}</span>` : ""}`], ["firmware", node.firmware], ["drivers", (node.drivers || []).join(", ")], ["gates", (node.gates || []).join(", ")], ["certificate", node.certificate],
          ["serial", html`<span class="mono">${node.serial}</span>`], ["address", node.address], ["MAC", html`<span class="mono">${node.mac}</span>`], ["BMC", html`<span class="mono">${node.bmc}</span>`], ["power", html`<${Power} name=${name} />`],
          ["quarantine", node.quarantine && html`${node.quarantine.reason} <span class="dim">${node.quarantine.by}, <${Age} at=${node.quarantine.since} /></span>`], ["hold", node.hold && html`${node.hold.hold}${node.hold.overridden ? html` <span class="dim">overridden by ${node.hold.overridden_by}</span>` : ""}`]]} /><//></div>
        ${reason && reason.events?.length > 0 && html`<${Panel} title="Lately"><${Events} events=${[...reason.events].reverse()} /><//>`}`}
      ${tab === "facts" && html`<${Facts} name=${name} on=${on} />`}
      ${tab === "findings" && html`<${Loaded} resource=${findings}>${(findings.data?.items || []).length === 0 ? html`<${Empty}>No findings.<//>` : findings.data.items.map((/** @type {any} */ finding) => html`<${FindingCard} key=${finding.facet + finding.at + finding.text} finding=${finding} />`)}<//>`}
      ${tab === "plan" && html`<${Later} key="plan" load=${planPart} p=${{ name, on }} />`}
      ${tab === "firmware" && html`<${Later} key="firmware" load=${firmwarePart} p=${{ name, on, baseline: node.firmware }} />`}
      ${tab === "gates" && ((node.gates || []).length === 0 ? html`<${Empty}>Its profile names no gates.<//>` : (node.gates || []).map((gate) => html`<${Panel} key=${gate} title=${gate}><${Later} load=${gatesPart} p=${{ node, gate }} /><//>`))}
      ${tab === "events" && html`<${Loaded} resource=${events}><${Events} events=${[...(events.data?.items || [])].reverse()} /><//>`}
      ${tab === "history" && html`<${History} name=${name} on=${on} />`}
      ${tab === "certificate" && html`<${Certificate} name=${name} on=${on} />`}
      ${tab === "measurements" && html`<${Later} key="measurements" load=${measurementsPart} p=${{ node }} />`}
      ${tab === "console" && html`<${Later} key="console" load=${consolePart} p=${{ name, on }} />`}</div>`}<//>`;
}
