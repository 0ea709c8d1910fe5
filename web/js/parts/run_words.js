// SPDX-License-Identifier: Apache-2.0
// A run in a few words, and the tone of its state.

/** @param {string} state */
export function runTone(state) {
  if (/fail|abort|stuck|outdated|work-left/.test(state)) return "bad";
  if (state === "rolled-back" || state === "returned") return "wait";
  if (/pause|halt|wait|needs-approval|block|^planned$/.test(state)) return "held";
  if (/run|open|start|back|returning|planning|approved/.test(state)) return "busy";
  return /done|finish|complete|succe/.test(state) ? "ok" : "wait";
}

/** @param {any} run */
export function aboutRun(run) {
  if (run.kind === "rollout" && run.rollout) return `${run.rollout.back ? `undo rollout ${run.rollout.id}` : `rollout ${run.rollout.driver || "of a change"}`} ${run.nodes || ""}`.trim();
  if (run.kind === "image-build") return `${run.kind} ${run.image_build?.image || "of what is missing"}`;
  return `${run.kind} ${run.nodes || "all nodes"}`;
}
