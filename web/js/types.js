// SPDX-License-Identifier: Apache-2.0
// The API's shapes as docs/api.md has them; members that the page does not show are left out.

/** @typedef {{what: string, since?: string, code?: string, reason?: string}} Stale */
/** @typedef {{node: string, state: string, pool: string, image: string, certificate: string,
 *   rack: string, profile: string, findings: number, stale: Stale[], pool_name?: string,
 *   unit?: number, mac?: string, address?: string, bmc?: string, serial?: string,
 *   declared_image?: string, firmware?: string, drivers?: string[], gates?: string[],
 *   quarantine?: Quarantined, hold?: Hold}} Node */
/** @typedef {{subject: string, facet: string, severity: string, text: string, what_to_do: string,
 *   source: string, at: string, evidence?: any}} Finding */
/** @typedef {{sequence: number, at: string, kind: string, subject: string, action?: string,
 *   text?: string, fraction?: number}} Event */
/** @typedef {{subject: string, word: string, state: string, as_declared: boolean, facet: string,
 *   expected: string, observed: string, last_evidence: string, console: string[],
 *   next_step: string, unmet: string[], stale: string[], rollout: string, findings: Finding[],
 *   events: Event[]}} Explanation */
/** @typedef {{name: string, version: string, host: string, as_of: string, nodes: number,
 *   states: Record<string, number>, with_findings: number, stale: number, findings: number,
 *   racks: number, pools: number,
 *   monitor?: {running: boolean, breaker_open?: boolean, text?: string, holder?: string},
 *   leader?: {holder: string, address?: string}, several_controllers?: boolean, rollout?: string,
 *   inventory_digest?: string, last_event: number, overrides?: string[], access_problems?: string[]}} Site */
/** @typedef {{principal: string, way: string, role: string, verbs: string[], expires_at?: string,
 *   scope?: {pools?: string[], racks?: string[], nodes?: string}}} Me */
/** @typedef {{rack?: string, pool?: string, profile?: string, nodes: number, hostlist: string,
 *   states: Record<string, number>, with_findings: number, stale: number, scheduler?: string,
 *   partition?: string, breaker?: any, image?: string, drivers?: string[], firmware?: string,
 *   gates?: string[], fabric?: string, other_fabrics?: string[]}} Group */
/** @typedef {{node: string, since: string, by: string, reason: string, evidence?: any}} Quarantined */
/** @typedef {{node: string, hold: string, seen_at?: string, overridden: boolean,
 *   overridden_by?: string}} Hold */
/** @typedef {{pool: string, since: string, nodes: string, nodes_count: number, reason: string}} Breaker */
/** @typedef {{facet: string, from: string, to: string, disruption: string, reason: string,
 *   blocked: string, expected_s: number, nodes: string, nodes_count: number}} Change */
/** @typedef {{actions: number, blocked: number, subjects: number, taken_out: string,
 *   taken_out_count: number, wiped: string, reset: string, at_least_s: number,
 *   domains: {kind: string, name: string, taken_out: number, already_out: number, size: number,
 *   limit: number}[]}} Disturbed */
/** @typedef {{a: string, a_port: number, b: string, b_port: number, width_speed: string,
 *   level: number, state: string, faults: {kind: string, declared: string, found: string,
 *   repair: string}[], health?: {grade: string, complaints: string[], advice: string,
 *   transceiver: string}}} Cable */
/** @typedef {{profile: string, baseline: string, component: string, place: number, declared: string,
 *   found: string, state: string, through: string[], staged: string, why: string, nodes: string,
 *   nodes_count: number}} FirmwareCell */
/** @template T @typedef {{items: T[], next?: string, total?: number, as_of?: string}} List */

export {};
