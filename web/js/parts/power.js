// SPDX-License-Identifier: Apache-2.0
// A machine's power: what came of the last order, and the orders.
import { useEffect } from "preact/hooks";
import { html } from "../html.js";
import { me } from "../api.js";
import { useResource } from "../resource.js";
import { Age, State } from "./basics.js";
import { OrderButton } from "./orders.js";

const kAskingMs = 1_000;
const kTones = /** @type {Record<string, string>} */ ({ done: "ok", asking: "busy", failed: "bad" });
/** What each does to the machine; the first is asked for without a typed word. */
const kActions = /** @type {Record<string, string>} */ ({
  on: "switch on", shutdown: "ask its system to shut down", off: "cut its power at once", restart: "cut its power at once and give it again",
  "ac-cycle": "cut standby power too, for minutes", nmi: "interrupt its system, which writes a crash dump or stops", reset: "restart its BMC; the machine runs on" });

/** @param {string} name @param {() => void} then @returns {import("./orders.js").Order} */
const switchOn = (name, then) => ({ title: `Switch ${name} on`, verb: "power", path: pathOf(name), act: "Switch on", done: "the BMC is asked", then,
  text: "The machine starts as its boot order says.", body: { action: "on" }, fields: [{ label: "Why", name: "reason", optional: true, hint: "kept in the audit log with your name" }] });

/** @param {string} name @param {() => void} then @returns {import("./orders.js").Order} */
const cut = (name, then) => ({ title: `Power of ${name}`, verb: "power", path: pathOf(name), act: "Order", word: name, done: "the BMC is asked", then,
  text: html`<ul class="plain">${Object.entries(kActions).slice(1).map(([word, effect]) => html`<li key=${word}><b class="mono">${word}</b> ${effect}</li>`)}</ul><p>It is refused while muster or a job works on the machine, and where the inventory asks others to agree.</p>`,
  body: { confirm_node: name },
  fields: [{ label: "What", name: "action", choices: Object.keys(kActions).slice(1) }, { label: "Why", name: "reason", hint: "kept in the audit log with your name" },
    { label: "Although it may be running jobs", name: "force", choices: ["no", "yes"] },
    ...(me.value?.role === "admin" ? [{ label: "Although the inventory asks others to agree", name: "override", choices: ["no", "yes"], hint: "stays a finding until somebody has seen it" }] : [])],
  shape: (body) => ({ ...body, force: body.force === "yes", ...("override" in body ? { override: body.override === "yes" } : {}) }) });

/** @param {string} name */
const pathOf = (name) => `/nodes/${encodeURIComponent(name)}/power`;

/** @param {{name: string}} p */
export function Power({ name }) {
  const power = useResource(pathOf(name), { live: false });
  const row = power.data, asking = row?.state === "asking";
  useEffect(() => {
    if (!asking) return;
    const timer = setInterval(power.again, kAskingMs);
    return () => clearInterval(timer);
  }, [asking]);
  return html`<div class="power">${row && row.state !== "unknown" && html`<${State} state=${row.state} tone=${kTones[row.state] || "warn"} /> <b class="mono">${row.action}</b>${row.power && html`, power is ${row.power}`} <span class="dim">${row.by}, <${Age} at=${row.at} /></span>`}
    <${OrderButton} quiet order=${switchOn(name, power.again)}>Switch on…<//> <${OrderButton} quiet order=${cut(name, power.again)}>Power…<//>
    ${row?.text && html`<p class="dim">${row.text}</p>`}</div>`;
}
