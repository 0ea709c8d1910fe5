// SPDX-License-Identifier: Apache-2.0
// Orders: a button that says why it may not, a dialog that says what will be done, and asks for a
// typed word where something is lost.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { loggedOut, order, orderKey, Problem, refusal } from "../api.js";
import { Trouble } from "./basics.js";

/** @typedef {{label: string, name: string, value?: string, hint?: string, choices?: string[],
 *   optional?: boolean, kind?: string}} Field */
/** @typedef {{title: string, text: any, method?: "POST" | "DELETE", path: string, verb: string,
 *   fields?: Field[], body?: Record<string, any>, word?: string, act: string, done?: string,
 *   shape?: (body: Record<string, any>) => Record<string, any>, then?: (answer: any) => void}} Order */

/** @type {import("@preact/signals").Signal<Order | null>} */
const asked = signal(null);
/** @type {import("@preact/signals").Signal<{text: string, tone: string, id: number} | null>} */
const said = signal(null);
let said_count = 0;
loggedOut.subscribe((out) => { if (out) asked.value = null; }); // the next one is perhaps somebody else

/** @param {string} text @param {string} [tone] */
export function say(text, tone = "ok") {
  const id = ++said_count;
  said.value = { text, tone, id };
  setTimeout(() => { if (said.value?.id === id) said.value = null; }, 6_000);
}

export function Said() {
  const now = said.value;
  return html`<div class="said" role="status">${now && html`<span data-tone=${now.tone}><i class="mark" aria-hidden="true"></i> ${now.text}</span>`}</div>`;
}

/** @param {{order: Order, children: any, quiet?: boolean}} p */
export function OrderButton({ order: wanted, children, quiet }) {
  const why = refusal(wanted.verb);
  return html`<span class="order"><button type="button" class=${quiet ? "quiet" : ""} aria-disabled=${why ? "true" : undefined}
    data-danger=${wanted.word ? "" : undefined} title=${why || undefined}
    onClick=${() => (why ? say(why, "held") : (asked.value = wanted))}>${children}</button>${why && html`<span class="sr">${why}</span>`}</span>`;
}

/** The one dialog of the page. */
export function OrderDialog() {
  const wanted = asked.value;
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [word, setWord] = useState("");
  const sent = useRef({ text: "", key: "" });
  useLayoutEffect(() => {
    if (!wanted || !box.current) return;
    box.current.showModal();
    const first = /** @type {HTMLElement | null} */ (box.current.querySelector("input, select, textarea"));
    first?.focus();
    const left = () => close(); // by the browser's Back: an order belongs to what stands behind it
    addEventListener("hashchange", left);
    return () => removeEventListener("hashchange", left);
  }, [wanted]);
  if (!wanted) return null;
  // What an order leaves must be gone before the next dialog is drawn: its button said "working…".
  const forget = () => { sent.current = { text: "", key: "" }; setProblem(null); setWord(""); setBusy(false); asked.value = null; };
  const close = () => { box.current?.close(); forget(); };
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (busy || (wanted.word && word !== wanted.word)) return;
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    /** @type {Record<string, any>} */
    let body = { ...wanted.body };
    for (const field of wanted.fields || []) {
      const value = String(form.get(field.name) || "").trim();
      if (value || !field.optional) body[field.name] = value;
    }
    if (wanted.shape) body = wanted.shape(body);
    setBusy(true);
    setProblem(null);
    const text = JSON.stringify([wanted.method, wanted.path, body]);
    if (sent.current.text !== text) sent.current = { text, key: orderKey() };
    try {
      const answer = await order(wanted.method || "POST", wanted.path, body, sent.current.key);
      close();
      say(wanted.done || "done");
      wanted.then?.(answer);
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem({ detail: String(error) }, 0));
      setBusy(false);
    }
  };
  return html`<dialog ref=${box} aria-labelledby="order-title" onClose=${forget}>
    <form onSubmit=${submit}>
      <h2 id="order-title">${wanted.title}</h2>
      <div class="about">${wanted.text}</div>
      ${(wanted.fields || []).map((field) => html`<label key=${field.name}><span>${field.label}</span>
        ${field.choices
          ? html`<select name=${field.name}>${field.choices.map((choice) => html`<option selected=${choice === field.value}>${choice}</option>`)}</select>`
          : html`<input name=${field.name} defaultValue=${field.value || ""} required=${!field.optional} type=${field.kind || "text"} autocomplete="off" maxlength="1000" />`}
        ${field.hint && html`<small>${field.hint}</small>`}</label>`)}
      ${wanted.word && html`<label><span>Type <b class="mono">${wanted.word}</b> to confirm</span>
        <input name="confirm" autocomplete="off" autocapitalize="off" spellcheck=${false} value=${word} onInput=${(/** @type {any} */ e) => setWord(e.target.value)} /></label>`}
      <${Trouble} problem=${problem} />
      <div class="buttons"><button type="button" class="quiet" onClick=${close}>Cancel</button>
      <button type="submit" class="primary" data-danger=${wanted.word ? "" : undefined} aria-disabled=${busy || (wanted.word && word !== wanted.word) ? "true" : undefined}>${busy ? "working…" : wanted.act}</button></div>
    </form></dialog>`;
}

const kReason = { label: "Why", name: "reason", hint: "kept in the audit log with your name" };

/** @param {string} nodes @returns {Order} */
export const putIntoQuarantine = (nodes) => ({
  title: "Put into quarantine", verb: "hold", path: "/quarantine", act: "Put into quarantine",
  text: "The nodes are drained: no new jobs start there, and muster changes nothing on them until somebody takes them out.",
  fields: [{ label: "Nodes", name: "nodes", value: nodes, hint: "a hostlist: gpu[001-004]" }, kReason],
  done: "in quarantine",
});
/** @param {string} node @returns {Order} */
export const takeOutOfQuarantine = (node) => ({
  title: `Take ${node} out of quarantine`, verb: "hold", path: `/quarantine/${encodeURIComponent(node)}/remove`,
  act: "Take out", text: "muster looks at it again, validates it where its certificate is void, and lets it into its pool.",
  fields: [kReason], done: `${node} is out of quarantine`,
});
/** @param {string} nodes @returns {Order} */
export const overrideHold = (nodes) => ({
  title: "Override a hold", verb: "hold", path: "/holds/override", act: "Override",
  text: "A person or another tool drained these nodes in the scheduler. muster will undrain them when they are as declared.",
  fields: [{ label: "Nodes", name: "nodes", value: nodes }, kReason], word: "override", done: "overridden",
});
/** @returns {Order} */
export const acknowledgeBreakers = () => ({
  title: "Acknowledge the open breakers", verb: "hold", path: "/breakers/acknowledge", act: "Acknowledge",
  text: "Too many nodes left a pool at once, so muster stopped draining there. After this it goes on.",
  fields: [kReason], word: "acknowledge", done: "acknowledged",
});
/** @param {string} node @returns {Order} */
export const grantWipe = (node) => ({
  title: `Permit one wipe of ${node}`, verb: "wipe", path: "/wipe-grants", act: "Permit the wipe",
  text: "The next action that needs it may wipe the system disk of this node, once. What is on it is lost.",
  fields: [kReason], body: { nodes: node, data: false }, word: node, done: "permitted once",
});
/** @returns {Order} */
export const reloadInventory = () => ({
  title: "Read the inventory again", verb: "run", path: "/inventory/reload", act: "Reload",
  text: "The file on the controller becomes what the server works with. One with errors is refused, and the one in use stays.",
  body: {}, done: "the inventory was read again",
});
