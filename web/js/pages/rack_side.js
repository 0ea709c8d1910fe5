// SPDX-License-Identifier: Apache-2.0
// At the rack: for somebody with a phone in front of the machine. What to replace or swap, and where.
import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { needNodes, nodes } from "../site.js";
import { matcher } from "../hostlist.js";
import { go, link, route } from "../router.js";
import { toneOf } from "../states.js";
import { evidence } from "../format.js";
import { Age, Empty, Heading, Loaded, Severity, State, Terms, Trouble } from "../parts/basics.js";
import { OrderButton, putIntoQuarantine, takeOutOfQuarantine } from "../parts/orders.js";

const kShown = 40;

const kAskingMs = 1_000;

/** The LED by which the machine is found: its BMC is asked, which takes a moment.
 * @param {{name: string}} p */
function Locator({ name }) {
  const at = `/nodes/${encodeURIComponent(name)}/locator`;
  const led = useResource(at, { live: false });
  const state = led.data?.state || "unknown";
  useEffect(() => {
    if (state !== "asking") return;
    const timer = setInterval(led.again, kAskingMs);
    return () => clearInterval(timer);
  }, [state]);
  const tones = /** @type {Record<string, string>} */ ({ on: "ok", off: "wait", asking: "busy", failed: "bad" });
  /** @param {"on" | "off"} word @returns {import("../parts/orders.js").Order} */
  const turn = (word) => ({ title: `Locate LED of ${name}: ${word}`, verb: "power", path: at, body: { led: word }, act: `Switch ${word}`, done: "the BMC is asked", text: word === "on" ? "The machine blinks at the rack until somebody switches it off." : "The machine stops blinking." });
  return html`<div class="locator"><span class="dim">locate LED</span> <${State} state=${state} tone=${tones[state] || "warn"} /> ${led.data?.at && html`<${Age} at=${led.data.at} />`}
    <${OrderButton} quiet order=${turn("on")}>On…<//><${OrderButton} quiet order=${turn("off")}>Off…<//>
    ${led.data?.text && html`<p class="dim">${led.data.text}</p>`}</div>`;
}

/** @param {{name: string}} p */
function Machine({ name }) {
  const on = (/** @type {import("../types.js").Event} */ event) => event.subject === name && event.kind !== "action-progress";
  const at = `/nodes/${encodeURIComponent(name)}`;
  const resource = useResource(at, { on }), findings = useResource(`${at}/findings`, { on }), why = useResource(`${at}/why`, { on });
  const node = resource.data;
  if (resource.problem?.status === 404) return html`<${Trouble} problem=${resource.problem} />`;
  return html`<${Loaded} resource=${resource}>${node && html`<section class="machine">
    <h2>${node.node} <${State} state=${node.state} /></h2>
    <div class="place"><div><span>rack</span><b>${node.rack || "-"}</b></div><div><span>unit</span><b>${node.unit || "-"}</b></div></div>
    <${Terms} rows=${[["serial", html`<b class="mono wrap">${node.serial}</b>`], ["BMC", html`<span class="mono wrap">${node.bmc}</span>`], ["MAC", html`<span class="mono">${node.mac}</span>`]]} />
    <${Locator} name=${name} />
    ${(findings.data?.items || []).map((/** @type {any} */ finding) => html`<article class="task" key=${finding.facet + finding.text}><${Severity} severity=${finding.severity} />
      <p class="big">${finding.what_to_do || finding.text}</p>${finding.what_to_do && html`<p>${finding.text}</p>`}<p class="dim"><span class="mono">${finding.facet}</span> · <${Age} at=${finding.at} /></p>
      ${evidence(finding.evidence) && html`<details><summary>evidence</summary><pre tabindex="0">${evidence(finding.evidence)}</pre></details>`}</article>`)}
    ${findings.data && findings.data.items.length === 0 && html`<${Empty}>No finding: nothing is to be replaced here.<//>`}
    ${why.data && !why.data.as_declared && html`<p><span class="dim">next step</span> ${why.data.next_step}</p>`}
    <div class="buttons">${node.quarantine || node.state === "quarantined" ? html`<${OrderButton} order=${takeOutOfQuarantine(name)}>Repaired: take out of quarantine…<//>` : html`<${OrderButton} order=${putIntoQuarantine(name)}>Keep it out: quarantine…<//>`}<a class="button quiet" href=${link(["nodes", name])}>All of it</a></div></section>`}<//>`;
}

/** @param {{path: string[]}} p */
export default function RackSide({ path }) {
  needNodes();
  const name = path[1] || "";
  const wanted = route.value.query.get("q") || "";
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    const text = input.current?.value.trim() || "";
    const hit = (nodes.value || []).find((node) => node.node === text) || (nodes.value || []).filter((node) => matcher(text)(node.node));
    go(Array.isArray(hit) ? (hit.length === 1 ? link(["rack-side", hit[0].node]) : link(["rack-side"], { q: text })) : link(["rack-side", hit.node]));
  };
  const chosen = (nodes.value || []).filter((node) => (wanted ? matcher(wanted)(node.node) : toneOf(node.state) === "bad" || (node.state === "quarantined" && node.findings > 0)))
    .sort((a, b) => (a.rack || "").localeCompare(b.rack || "", "en", { numeric: true }));
  return html`<${Heading} title="At the rack" />
    <form class="finder" onSubmit=${find}><label><span>Node</span><input ref=${input} type="search" key=${name + wanted} defaultValue=${name || wanted} autocomplete="off" autocapitalize="off" spellcheck=${false} enterkeyhint="search" placeholder="gpu001" /></label><button class="primary" type="submit">Show</button></form>
    ${name ? html`<${Machine} name=${name} /><p><a href=${link(["rack-side"])}>Other nodes that need hands</a></p>` : html`
      <h2 class="section">${wanted ? `Nodes with “${wanted}”` : "Nodes that need hands"} <span class="count">${chosen.length}</span></h2>
      ${nodes.value !== null && chosen.length === 0 && html`<${Empty}>${wanted ? "No node is called so." : "None."}<//>`}
      <div class="panel">${chosen.slice(0, kShown).map((node) => html`<a class="line tall-line" key=${node.node} href=${link(["rack-side", node.node])}><b>${node.node}</b><span class="what dim">rack ${node.rack || "-"}${node.unit ? `, unit ${node.unit}` : ""}</span><${State} state=${node.state} /></a>`)}</div>
      ${chosen.length > kShown && html`<p class="dim">and ${chosen.length - kShown} more: type a part of the name</p>`}`}`;
}
