// SPDX-License-Identifier: Apache-2.0
// A cable as people speak of it.

/** @typedef {import("../types.js").Cable} Cable */
/** Of a cable's state, and of its errors. */
export const cableTones = /** @type {Record<string, any>} */ ({ "as-declared": "ok", deviates: "bad", excused: "wait", "not-seen": "wait", good: "ok", warning: "warn", unproven: "warn", bad: "bad" });

export const cableEnd = (/** @type {string} */ device, /** @type {number} */ port) => (port ? `${device} port ${port}` : device);
export const cableKey = (/** @type {Cable} */ cable) => `${cable.a}:${cable.a_port}`;
/** The node that an HCA is in: "gpu001 mlx5_0". @param {string} device */
export const hostOf = (device) => device.split(" ")[0];

/** What somebody at the rack does about it, in one sentence. @param {Cable} cable */
export function sentence(cable) {
  const repair = [...new Set(cable.faults.map((fault) => fault.repair).filter(Boolean))];
  if (repair.length > 0) return repair.join("; ");
  if (cable.health && cable.health.advice) return cable.health.advice;
  return cable.state === "not-seen" ? "Nobody has looked at this fabric yet: muster fabric diff." : "Nothing: it is as declared.";
}
