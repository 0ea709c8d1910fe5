// SPDX-License-Identifier: Apache-2.0
// What asks for a run: a form of each kind.
import { html } from "../html.js";
import { go, link } from "../router.js";

/** Of a run that was asked for just now. @param {any} run */
const showRun = (run) => { if (run?.id) go(link(["runs", run.id])); };

/** The runs' own plan, after a look at the nodes. @param {string} nodes @returns {import("./orders.js").Order} */
export const askForRun = (nodes) => ({
  title: "Ask for a run", verb: "run", path: "/runs", act: "Ask", done: "asked for",
  text: "The server looks at the nodes, plans what differs from the inventory, and waits for a word to the plan; nothing is changed before.",
  fields: [{ label: "Nodes", name: "nodes", value: nodes, optional: true, hint: "a hostlist; empty: all" }],
  body: { kind: "apply", confirm: true, after_restart: "continue" }, then: showRun,
});

/** @returns {import("./orders.js").Order} */
export const askForRollout = () => ({
  title: "Start a rollout", verb: "run", path: "/runs", act: "Ask", done: "asked for", then: showRun,
  text: html`The driver replaces the one of its kind, wave by wave; between two waves a gate compares what nodes do and measure. Nothing is changed before somebody has said yes to the plan. Other changes, of images, firmware or settings: <code>muster rollout start --change FILE</code>`,
  fields: [{ label: "Driver", name: "driver", hint: "as the inventory declares it: nvidia-575" }, { label: "Nodes", name: "nodes", hint: "a hostlist: gpu[001-128]" },
    { label: "Nodes of the first wave", name: "canaries", kind: "number", optional: true, hint: "empty: as the inventory says" }, { label: "When a gate fails", name: "on_failure", choices: ["halt", "roll-back"], value: "halt" }],
  shape: (body) => ({ kind: "rollout", confirm: true, driver: body.driver, nodes: body.nodes, on_failure: body.on_failure, ...(body.canaries ? { canaries: Number(body.canaries) } : {}) }),
});
/** @param {string} id @returns {import("./orders.js").Order} */
export const rollBack = (id) => ({
  title: `Roll ${id} back`, verb: "run", path: "/runs", act: "Ask", word: "roll back", done: "asked for", then: showRun,
  text: "What it has changed is changed back, node by node, by a run of its own with a plan of its own; what the rollout still does is stopped when that begins.",
  fields: [{ label: "Why disks may be wiped once", name: "wipe_reason", optional: true, hint: "only where it has changed an image" }],
  body: { kind: "rollout", rollback: id, confirm: true },
});
