// SPDX-License-Identifier: Apache-2.0
// What may be said to a run as it stands: confirmed, approved, overridden, held, ended.
import { html } from "../html.js";
import { me } from "../api.js";
import { digest } from "../format.js";
import { OrderButton } from "./orders.js";
import { aboutRun } from "./run_words.js";
import { useWindows, windowWords } from "./windows.js";

/** What a run that waits for people waits for; somebody else's approval stands for its author's word.
 * @param {any} run @returns {{confirmation: boolean, approvals: number}} approvals: that are missing */
export function missing(run) {
  const counts = (run.approvals || []).filter((/** @type {any} */ each) => each.plan_hash === run.plan_hash && !each.void_because);
  const others = counts.filter((/** @type {any} */ each) => !each.confirmation).length;
  const waits = run.state === "needs-approval";
  return { confirmation: waits && run.confirm && others === 0 && !counts.some((/** @type {any} */ each) => each.confirmation),
    approvals: waits ? Math.max(0, (run.approvals_needed || 0) - others) : 0 };
}

/** What may be said to a run as it stands. @param {{run: any}} p */
export function RunOrders({ run }) {
  const at = `/runs/${encodeURIComponent(run.id)}`, body = { plan_hash: run.plan_hash };
  const mine = run.asked_by?.principal === me.value?.principal;
  const told = html`${aboutRun(run)}, plan <span class="mono">${digest(run.plan_hash)}</span>${run.subjects ? html` on <span class="mono wrap">${run.subjects}</span>` : ""}. What it disturbs is listed on this page.`;
  const waits = ["queued", "planning", "planned", "needs-approval"].includes(run.state);
  const lacks = missing(run), windows = useWindows(run.is_over ? undefined : run.impact).filter((/** @type {any} */ each) => !each.is_open);
  const opens = windows.length > 0 && html`<p>It begins in the window: ${windows.map(windowWords).join("; ")}.</p>`;
  /** @type {any[]} */
  const orders = [];
  if (mine && lacks.confirmation) orders.push([{ title: opens ? "Run the plan in its window" : "Run the plan", text: html`${told}${opens}`, verb: "run", path: `${at}/confirm`, body, act: "Run", word: "run", done: lacks.approvals > 0 ? "it runs when others have approved it" : opens ? "it runs when the window opens" : "it runs" }, opens ? "Run in window…" : "Run…"]);
  if (!mine && run.state === "needs-approval") orders.push([{ title: "Approve the plan", text: html`${told}${opens}`, verb: "approve", path: `${at}/approve`, body, act: "Approve", word: "approve", done: "approved" }, "Approve…"]);
  if (me.value?.role === "admin" && (lacks.approvals > 0 || (run.state === "waiting" && run.reason === "outside-window"))) orders.push([{ title: "Override", text: html`<p>${told}</p><p>It begins at once, ${lacks.approvals > 0 ? "without its approvals" : "outside its window"}. This stays on the first page until somebody else acknowledges it.</p>`, verb: "admin", path: `${at}/override`, body, act: "Override", word: "override", done: "overridden", fields: [{ label: "Why", name: "reason", hint: "kept in the audit log with your name" }] }, "Override…"]);
  if ((run.overrides || []).some((/** @type {any} */ each) => !each.acknowledged_by && each.principal !== me.value?.principal)) orders.push([{ title: "Acknowledge the override", text: html`${run.overrides.map((/** @type {any} */ each) => html`<p key=${each.at}>${each.principal}: ${each.reason}</p>`)}`, verb: "approve", path: `${at}/acknowledge`, body: {}, act: "Acknowledge", done: "acknowledged" }, "Acknowledge override…"]);
  if (run.state === "running") orders.push([{ title: "Pause the run", text: "What is under way on a node ends first; nothing new begins.", verb: "run", path: `${at}/pause`, body: {}, act: "Pause", done: "it will pause" }, "Pause…"]);
  const halted = run.kind === "rollout" && run.reason === "rollout-halted";
  if (run.state === "paused") orders.push([{ title: "Go on with the run", text: halted ? html`<p>${run.text}</p><p>Nodes of the wave that have failed are tried again.</p>` : aboutRun(run), verb: "run", path: `${at}/resume`, body: {}, act: "Go on", done: "it goes on",
    fields: halted ? [{ label: "Although its gate failed, because", name: "accept", optional: true, hint: "kept in the audit log with your name" }] : [] }, "Resume…"]);
  if (run.kind === "rollout" && !run.is_over && !waits) orders.push([{ title: "Abort the rollout", text: "Nodes under way are finished, no others are begun; what has changed stays changed.", verb: "run", path: `${at}/cancel`, body: {}, act: "Abort", word: "abort", done: "it will stop" }, "Abort…"]);
  else if (!run.is_over) orders.push([{ title: waits ? "Discard the plan" : "Cancel the run", text: waits ? "Nothing of it is carried out." : "What is under way on a node ends first; the rest is not done.", verb: "run", path: `${at}/cancel`, body: {}, act: waits ? "Discard" : "Cancel the run", word: waits ? "" : "cancel", done: waits ? "discarded" : "it will stop" }, waits ? "Discard…" : "Cancel…"]);
  return html`${orders.map(([order, label]) => html`<${OrderButton} quiet key=${label} order=${order}>${label}<//>`)}`;
}
