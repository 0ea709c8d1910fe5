// SPDX-License-Identifier: Apache-2.0
// What a gate's checks have answered, as a fact's evidence holds it (wire/messages.h, CheckResult).

/** @typedef {{id: string, status: string, text: string, values: Record<string, number | null>,
 *   evidence?: string, seconds?: number}} Answered */

/** No answer is no pass: everything but a pass is bad. @param {string} status */
export const checkTone = (status) => (status === "pass" ? "ok" : status === "fail" ? "bad" : "warn");
/** "pass:SCOPE" says "pass". @param {string} value */
export const verdictOf = (value) => value.replace(/:.*$/, "");
/** @param {string} verdict */
export const verdictTone = (verdict) => (verdict === "pass" ? "ok" : verdict === "pending" ? "wait" : "bad");

/** The answers in a fact of a gate; null: it holds none. Those that did not pass come first.
 * @param {any} evidence text or JSON @returns {Answered[] | null} */
export function answersOf(evidence) {
  const held = parsed(evidence);
  if (!Array.isArray(held?.results)) return null;
  const weight = (/** @type {Answered} */ each) => (each.status === "fail" ? 0 : each.status === "pass" ? 2 : 1);
  const answers = held.results.filter((/** @type {any} */ each) => each && typeof each.id === "string");
  return answers.length === 0 ? null : answers.sort((/** @type {Answered} */ a, /** @type {Answered} */ b) => weight(a) - weight(b) || (a.id < b.id ? -1 : 1));
}

/** @param {any} value */
function parsed(value) {
  if (typeof value !== "string") return value;
  try { return JSON.parse(value); } catch { return undefined; }
}

/** JSON, a member a line; every number and word stays as it was written: seeds have 64 bits.
 * @param {string} text */
export function indented(text) {
  let out = "", depth = 0, quoted = false;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (quoted) {
      out += c === "\\" ? c + text[++i] : c;
      quoted = c !== '"';
    } else if (c === '"') { out += c; quoted = true; }
    else if (c === "{" || c === "[") {
      const end = /^\s*[}\]]/.exec(text.slice(i + 1, i + 100));
      if (end) { out += c + end[0].trim(); i += end[0].length; }
      else { ++depth; out += c + line(); }
    } else if (c === "}" || c === "]") { --depth; out += line() + c; }
    else if (c === ",") out += c + line();
    else if (c === ":") out += ": ";
    else if (!/\s/.test(c)) out += c;
  }
  return out;
}

/** Evidence as lines: text as it is, JSON member by member. @param {any} value */
export function rawLines(value) {
  if (value === undefined || value === null || value === "") return "";
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  const held = parsed(value);
  return held && typeof held === "object" ? indented(value) : value;
}
