// SPDX-License-Identifier: Apache-2.0
// Where the lines and numbers of a plot stand.

/** Round steps of 1, 2 or 5 that a span of values is divided by: about `wanted` of them.
 * @param {number} low @param {number} high @param {number} wanted @returns {number[]} */
export function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) || 10 * power;
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && out.length < 3 * wanted; ++i) out.push(i * step || 0);
  return out;
}

/** A line where measurements follow each other; one that is missing leaves a gap.
 * @param {(number | undefined)[]} values @param {number[]} xs @param {(value: number) => number} y */
export function lineOf(values, xs, y) {
  let out = "", pen = "M";
  values.forEach((value, i) => {
    if (value === undefined || !Number.isFinite(value)) { pen = "M"; return; }
    out += `${pen}${xs[i].toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  });
  return out;
}
