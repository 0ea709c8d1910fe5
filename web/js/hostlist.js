// SPDX-License-Identifier: Apache-2.0
// Hostlists as the inventory writes them: gpu[001-128],login1.

const kMostRanges = 200;

/** Names that differ in their last number are folded; the order of the rest is kept.
 * @param {string[]} names @returns {string} */
export function fold(names) {
  /** @type {Map<string, number[]>} key: prefix NUL suffix NUL width */
  const groups = new Map();
  /** @type {string[]} */
  const alone = [];
  for (const name of names) {
    const found = /^(.*?)(\d+)(\D*)$/.exec(name);
    if (!found) { alone.push(name); continue; }
    const key = [found[1], found[3], found[2].length].join("\0");
    const list = groups.get(key);
    if (list) list.push(Number(found[2]));
    else groups.set(key, [Number(found[2])]);
  }
  const out = [];
  for (const [key, numbers] of groups) {
    const [prefix, suffix, width] = key.split("\0");
    const pad = (/** @type {number} */ n) => String(n).padStart(Number(width), "0");
    const sorted = [...new Set(numbers)].sort((a, b) => a - b);
    const ranges = [];
    for (let i = 0; i < sorted.length;) {
      let end = i;
      while (end + 1 < sorted.length && sorted[end + 1] === sorted[end] + 1) ++end;
      ranges.push(end > i ? `${pad(sorted[i])}-${pad(sorted[end])}` : pad(sorted[i]));
      i = end + 1;
    }
    out.push(sorted.length > 1 ? `${prefix}[${ranges.join(",")}]${suffix}` : `${prefix}${ranges[0]}${suffix}`);
  }
  return [...out, ...alone].join(",");
}

/** Splits at commas outside of brackets. @param {string} text */
function words(text) {
  const out = [];
  let word = "", depth = 0;
  for (const letter of text) {
    if (letter === "[") ++depth;
    if (letter === "]") --depth;
    if ((letter === "," || letter === " ") && depth <= 0) { out.push(word); word = ""; } else word += letter;
  }
  return [...out, word].filter(Boolean).slice(0, kMostRanges);
}

/** What a person types: a hostlist, or a part of a name. Matching, not expanding, so that no list
 * is too long. @param {string} text @returns {(name: string) => boolean} */
export function matcher(text) {
  const tests = words(text.trim()).map((word) => {
    const found = /^([^[\]]*)\[([\d,-]*)\]?([^[\]]*)$/.exec(word);
    if (!found) return (/** @type {string} */ name) => name.includes(word);
    const [, prefix, inner, suffix] = found;
    const ranges = inner.split(",").filter(Boolean).map((range) => {
      const [low, high = low] = range.split("-");
      return { low: Number(low), high: high === "" ? Infinity : Number(high), width: low.length };
    });
    return (/** @type {string} */ name) => {
      if (!name.startsWith(prefix) || !name.endsWith(suffix)) return false;
      const middle = name.slice(prefix.length, name.length - suffix.length);
      if (!/^\d+$/.test(middle)) return false;
      const number = Number(middle);
      return ranges.length === 0 || ranges.some((range) => number >= range.low && number <= range.high &&
        middle === String(number).padStart(range.width, "0"));
    };
  });
  if (tests.length === 0) return () => true;
  return (name) => tests.some((test) => test(name));
}
