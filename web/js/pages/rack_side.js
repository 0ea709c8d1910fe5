// SPDX-License-Identifier: Apache-2.0
// At the rack: for somebody with a phone in front of the machine. What to replace or swap, and where.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { get, pathOf } from "../api.js";
import { useResource } from "../resource.js";
import { needNodes, nodes } from "../site.js";
import { matcher } from "../hostlist.js";
import { go, link, route } from "../router.js";
import { toneOf } from "../states.js";
import { evidence } from "../format.js";
import { Age, Empty, Heading, Loaded, Severity, State, Terms, Trouble } from "../parts/basics.js";
import { OrderButton, putIntoQuarantine, say, takeOutOfQuarantine } from "../parts/orders.js";
import { canScan, Scanner } from "../parts/scanner.js";
import { cableEnd, cableKey, cableTones, hostOf, sentence } from "../parts/cable.js";

/** @typedef {import("../types.js").Cable} Cable */
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

/** @param {any} finding @returns {import("../parts/orders.js").Order} */
const markDone = (finding) => ({
  title: `Done at ${finding.subject}`, verb: "hold", path: "/findings/clear", act: "Mark done", done: "marked done", body: { nodes: finding.subject, facet: finding.facet },
  text: html`<p>${finding.what_to_do || finding.text}</p><p>The finding ends now. Whoever looks next raises it again when it is still so.</p>`,
  fields: [{ label: "What was done", name: "reason", hint: "kept in the audit log with your name" }],
});

/** What hands have to do, each with what it is known by. @param {{findings: any[]}} p */
function Tasks({ findings }) {
  return html`${findings.map((finding) => html`<article class="task" key=${finding.subject + finding.facet + finding.text}><${Severity} severity=${finding.severity} />
      <p class="big">${finding.what_to_do || finding.text}</p>${finding.what_to_do && html`<p>${finding.text}</p>`}<p class="dim"><span class="mono">${finding.facet}</span> · <${Age} at=${finding.at} /></p>
      ${evidence(finding.evidence) && html`<details><summary>evidence</summary><pre tabindex="0">${evidence(finding.evidence)}</pre></details>`}
      ${finding.source === "monitor" ? html`<p class="dim">When it is done: the monitor sees it, and ends this.</p>` : finding.source !== "quarantine" && html`<div class="buttons"><${OrderButton} order=${markDone(finding)}>Done…<//></div>`}</article>`)}`;
}

/** One end of a cable: where it is, and what else its machine asks for. @param {{device: string, port: number}} p */
function End({ device, port }) {
  const host = device.includes(" ") ? hostOf(device) : "";
  const node = useResource(host ? `/nodes/${encodeURIComponent(host)}` : null), findings = useResource(host ? `/nodes/${encodeURIComponent(host)}/findings` : null);
  return html`<section class="machine"><h2>${device ? cableEnd(device, port) : "not declared"}</h2>
    ${node.data && html`<div class="place"><div><span>rack</span><b>${node.data.rack || "-"}</b></div><div><span>unit</span><b>${node.data.unit || "-"}</b></div></div>`}
    <${Tasks} findings=${(findings.data?.items || []).filter((/** @type {any} */ each) => each.facet.startsWith("fabric."))} />
    ${host && html`<p><a href=${link(["rack-side", host])}>All of ${host}</a></p>`}</section>`;
}

/** @param {{wanted: string}} p */
function AtCable({ wanted }) {
  const cables = useResource(pathOf("/fabric/cables", { device: wanted.replace(/:\d+$/, "") }), { list: true, live: false, every_s: 15 });
  /** @type {Cable | undefined} */
  const cable = (cables.data?.items || []).find((/** @type {Cable} */ each) => cableKey(each) === wanted || `${each.b}:${each.b_port}` === wanted);
  return html`<${Loaded} resource=${cables}>${!cable ? html`<${Empty}>There is no cable at ${wanted}.<//>` : html`<article class="task"><p class="big">${sentence(cable)}</p>
    <${Terms} rows=${[["state", html`<${State} state=${cable.faults[0]?.kind || cable.state.replace("-", " ")} tone=${cableTones[cable.state]} />`], ["declared as", cable.width_speed],
      ["errors", cable.health && html`<${State} state=${cable.health.grade} tone=${cableTones[cable.health.grade] || "warn"} /> ${cable.health.complaints.join("; ")}`], ["transceiver", cable.health?.transceiver && html`<b class="mono">${cable.health.transceiver}</b>`]]} /></article>
    <${End} device=${cable.a} port=${cable.a_port} /><${End} device=${cable.b} port=${cable.b_port} />`}<//>`;
}

/** Where a label leads: a node by its name or serial number, a cable by one of its ends or the
 * serial number of its transceiver; else the names that have it in them.
 * @param {string} text */
async function placeOf(text) {
  const names = (nodes.value || []).map((node) => node.node);
  if (names.includes(text)) return link(["rack-side", text]);
  const some = text && !/[\s:]/.test(text) ? names.filter(matcher(text)) : []; // an end of a cable has its node's name in it
  if (some.length === 1) return link(["rack-side", some[0]]);
  if (some.length > 1 || !text) return link(["rack-side"], { q: text });
  const by_serial = (await get("/nodes", { serial: text }).catch(() => null))?.items || [];
  if (by_serial.length === 1) return link(["rack-side", by_serial[0].node]);
  /** @type {Cable[]} */
  const at_device = (await get("/fabric/cables", { device: text.replace(/:\d+$/, "") }).catch(() => null))?.items || [];
  const here = at_device.filter((each) => cableKey(each) === text || `${each.b}:${each.b_port}` === text);
  if (here.length === 1 || at_device.length === 1) return link(["rack-side"], { cable: cableKey(here[0] || at_device[0]) });
  if (at_device.length > 1) return link(["fabric"], { q: text, all: "true" });
  /** @type {Cable[]} */
  const faulty = (await get("/fabric/cables", { faulty: true }).catch(() => null))?.items || [];
  const by_part = faulty.find((each) => each.health?.transceiver === text);
  return by_part ? link(["rack-side"], { cable: cableKey(by_part) }) : link(["rack-side"], { q: text });
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
    <${Tasks} findings=${findings.data?.items || []} />
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
  const [scanning, setScanning] = useState(false);
  const cable = route.value.query.get("cable") || "";
  const lead = (/** @type {string} */ text) => placeOf(text.trim()).then(go, (error) => say(String(error.message || error)));
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    void lead(input.current?.value || "");
  };
  const scanned = (/** @type {string} */ text) => { setScanning(false); void lead(text); };
  const chosen = (nodes.value || []).filter((node) => (wanted ? matcher(wanted)(node.node) : toneOf(node.state) === "bad" || (node.state === "quarantined" && node.findings > 0)))
    .sort((a, b) => (a.rack || "").localeCompare(b.rack || "", "en", { numeric: true }));
  return html`<${Heading} title="At the rack" />
    <form class="finder" onSubmit=${find}><label><span>Node, serial number or cable</span><input ref=${input} type="search" key=${name + wanted + cable} defaultValue=${name || wanted || cable} autocomplete="off" autocapitalize="off" spellcheck=${false} enterkeyhint="search" placeholder="gpu001" /></label><button class="primary" type="submit">Show</button>${canScan() && html`<button type="button" aria-pressed=${scanning ? "true" : "false"} onClick=${() => setScanning(!scanning)}>Scan</button>`}</form>
    ${scanning && html`<${Scanner} onCode=${scanned} />`}
    ${cable ? html`<${AtCable} key=${cable} wanted=${cable} />` : ""}${cable ? "" : name ? html`<${Machine} name=${name} /><p><a href=${link(["rack-side"])}>Other nodes that need hands</a></p>` : html`
      <h2 class="section">${wanted ? `Nodes with “${wanted}”` : "Nodes that need hands"} <span class="count">${chosen.length}</span></h2>
      ${nodes.value !== null && chosen.length === 0 && html`<${Empty}>${wanted ? "No node is called so, and no label of a node or cable is that." : "None."}<//>`}
      <div class="panel">${chosen.slice(0, kShown).map((node) => html`<a class="line tall-line" key=${node.node} href=${link(["rack-side", node.node])}><b>${node.node}</b><span class="what dim">rack ${node.rack || "-"}${node.unit ? `, unit ${node.unit}` : ""}</span><${State} state=${node.state} /></a>`)}</div>
      ${chosen.length > kShown && html`<p class="dim">and ${chosen.length - kShown} more: type a part of the name</p>`}`}`;
}
