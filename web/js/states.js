// SPDX-License-Identifier: Apache-2.0
// The words of a node's state (lifecycle/model/facet_table.cc, node_state.cc): what each means for
// somebody who looks. A tone is a colour and a shape; the word always stands beside it.

/** @typedef {"ok" | "busy" | "wait" | "held" | "warn" | "bad"} Tone */

/** The stages of a node's road, in order: [stage, word while it is worked on, word once reached]. */
export const kStages = /** @type {[string, string, string][]} */ ([
  ["enrol", "enrolling", "enrolled"],
  ["firmware", "updating firmware", "firmware as declared"],
  ["bios", "configuring BIOS", "BIOS as declared"],
  ["raid", "configuring RAID", "RAID as declared"],
  ["inspect", "inspecting", "inspected"],
  ["image", "imaging", "imaged"],
  ["boot", "first boot", "booted"],
  ["drivers", "configuring", "configured"],
  ["in-band", "updating firmware", "in-band firmware as declared"],
  ["storage", "mounting storage", "storage mounted"],
  ["fabric", "checking fabric", "on fabric"],
  ["gates", "validating", "validated"],
  ["certify", "certifying", "certified"],
  ["pool", "joining", "in pool"],
]);

/** @type {Record<string, Tone>} */
const kTones = {
  "in pool": "ok", "as declared": "ok",
  draining: "busy", working: "busy",
  quarantined: "held", maintenance: "held",
  failed: "bad", unhealthy: "bad", faulty: "bad",
  "not as declared": "wait", declared: "wait",
};
for (const [, busy, reached] of kStages) {
  kTones[busy] ||= "busy";
  kTones[reached] ||= "wait";
}

/** @param {string} state @returns {Tone} */
export function toneOf(state) {
  return kTones[state] || (state.startsWith("working on") ? "busy" : "warn");
}

/** Worst first: the order of every list of states. @type {Tone[]} */
export const kToneOrder = ["bad", "held", "warn", "busy", "wait", "ok"];
/** @type {Record<Tone, string>} */
export const kToneWords = {
  bad: "broken", held: "held by a person", warn: "unclear", busy: "being worked on",
  wait: "on its way", ok: "in use",
};
/** @param {Record<string, number>} states @returns {[string, number][]} */
export function inOrder(states) {
  return Object.entries(states).sort((a, b) =>
    kToneOrder.indexOf(toneOf(a[0])) - kToneOrder.indexOf(toneOf(b[0])) || b[1] - a[1]);
}

/** Whose stage a facet is: [facet or prefix, stage, usual seconds] (facet_table.cc; a test compares).
 * @type {[string, string, number][]} */
export const kFacetStages = [
  ["enrolled", "enrol", 3], ["firmware.", "firmware", 0], ["firmware-left.", "firmware", 0],
  ["firmware-staged.", "firmware", 0], ["bios", "bios", 480], ["raid", "raid", 600],
  ["inspected", "inspect", 90],
  ["image", "image", 300], ["os", "boot", 60], ["driver.", "drivers", 90], ["network", "drivers", 30],
  ["storage.", "storage", 60], ["fabric.", "fabric", 20], ["gate.", "gates", 0],
  ["certificate", "certify", 1], ["pool", "pool", 30],
];
/** Usual seconds of a stage; 0: it depends. @param {string} stage */
export function usualSeconds(stage) {
  return Math.max(...kFacetStages.filter((row) => row[1] === stage).map((row) => row[2]), 0);
}
/** @param {string} facet @returns {string} "" where it belongs to none */
export function stageOf(facet) {
  let best = /** @type {[string, string, number]} */ (["", "", 0]);
  for (const row of kFacetStages) {
    const fits = /[.]$/.test(row[0]) ? facet.startsWith(row[0]) : facet === row[0];
    if (fits && row[0].length > best[0].length) best = row;
  }
  return best[1];
}
