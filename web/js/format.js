// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them.

/** @param {number} seconds */
export function duration(seconds) {
  if (!(seconds >= 0)) return "-";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** @param {string | undefined} at RFC 3339 @param {number} now ms */
export function age(at, now) {
  const then = Date.parse(at || "");
  if (!Number.isFinite(then)) return "-";
  const seconds = (now - then) / 1000;
  if (seconds < -60) return `in ${duration(-seconds)}`;
  return seconds < 10 ? "just now" : `${duration(seconds)} ago`;
}

/** UTC, as every log of muster has it. @param {string | undefined} at */
export function clock(at) {
  if (!at || !Number.isFinite(Date.parse(at))) return "-";
  return new Date(at).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

/** @param {number} count @param {string} one @param {string} [many] */
export function plural(count, one, many) {
  return `${number(count)} ${count === 1 ? one : many || one + "s"}`;
}

/** Thousands apart: 10 000 as 10,000. @param {number} value */
export function number(value) {
  return Number(value || 0).toLocaleString("en-GB");
}

/** sha256:0123456789ab… @param {string | undefined} text */
export function digest(text) {
  if (!text || text === "-") return "-";
  return text.length > 24 && /[0-9a-f]{32}/.test(text) ? text.replace(/([0-9a-f]{12})[0-9a-f]+/, "$1…") : text;
}

/** Hashes inside of a sentence, to what tells them apart. @param {string | undefined} text */
export function shortHashes(text) {
  return (text || "").replace(/([0-9a-f]{12})[0-9a-f]{20,}/g, "$1…");
}

/** @param {any} value */
export function evidence(value) {
  if (value === undefined || value === null || value === "") return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}
