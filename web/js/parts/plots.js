// SPDX-License-Identifier: Apache-2.0
// What the gates measured, over time, against the nodes of the same rack.
import { useEffect, useMemo, useState } from "preact/hooks";
import { html } from "../html.js";
import { get } from "../api.js";
import { useResource } from "../resource.js";
import { needNodes, nodes } from "../site.js";
import { clock, plural } from "../format.js";
import { lineOf, ticks } from "../chart.js";
import { Empty, Loaded } from "./basics.js";

const kPeers = 8, kWidth = 460, kHeight = 170, kLeft = 58, kRight = 8, kTop = 8, kBottom = 20;
const kHues = 4, kMostDots = 500, kMostNamed = 16;
/** @param {any} value */
const short = (value) => Number(Number(value).toPrecision(4)).toLocaleString("en-GB", { maximumFractionDigits: 6 });
/** @typedef {{at: string, numbers: Record<string, number>}} Measured */

/** "gpu.hbm/hbm_gb_s@3" → [check and number, unit]. @param {string} key */
const split = (key) => /** @type {[string, string]} */ ([key.replace(/@.*$/, ""), key.includes("@") ? key.replace(/^.*@/, "") : ""]);
const hueOf = (/** @type {number} */ i) => i % kHues + 1;
/** @param {number[]} values */
const median = (values) => { const sorted = [...values].sort((a, b) => a - b); return sorted.length > 0 ? sorted[sorted.length >> 1] : null; };

/** @param {{name: string, measured: Measured[], peers: Measured[][]}} p */
function Plot({ name, measured, peers }) {
  const units = [...new Set(measured.flatMap((each) => Object.keys(each.numbers)).filter((key) => split(key)[0] === name))].sort();
  const others = peers.flatMap((list) => list.slice(-3).flatMap((each) => Object.entries(each.numbers).filter(([key]) => split(key)[0] === name).map(([, value]) => value)));
  const middle = median(others);
  const last = units.map((key) => [split(key)[1], measured[measured.length - 1]?.numbers[key]]).filter((row) => row[1] !== undefined);
  const drawing = useMemo(() => {
    const times = measured.map((each) => Date.parse(each.at));
    const values = units.flatMap((key) => measured.map((each) => each.numbers[key])).filter(Number.isFinite);
    if (middle !== null) values.push(middle);
    let low = Math.min(...values), high = Math.max(...values);
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    low -= room;
    high += room;
    const begin = times[0], span = times[times.length - 1] - begin || 1;
    const x = (/** @type {number} */ at) => kLeft + (at - begin) / span * (kWidth - kLeft - kRight);
    const y = (/** @type {number} */ value) => kHeight - kBottom - (value - low) / (high - low) * (kHeight - kTop - kBottom);
    const xs = times.map(x);
    const days = Array.from({ length: 5 }, (_, i) => begin + span * (i + 0.5) / 5);
    const dots = units.length * measured.length <= kMostDots;
    return html`<svg viewBox=${`0 0 ${kWidth} ${kHeight}`} aria-hidden="true">
      ${ticks(low, high, 5).map((value) => html`<g key=${value}><line class="grid" x1=${kLeft} x2=${kWidth - kRight} y1=${y(value)} y2=${y(value)} /><text x=${kLeft - 6} y=${y(value) + 4} text-anchor="end">${short(value)}</text></g>`)}
      ${days.map((at) => html`<text key=${at} x=${x(at)} y=${kHeight - 5} text-anchor="middle">${new Date(at).toISOString().slice(5, 10)}</text>`)}
      ${middle !== null && html`<line class="peers" x1=${kLeft} x2=${kWidth - kRight} y1=${y(middle)} y2=${y(middle)} />`}
      ${units.map((key, i) => html`<g key=${key} data-hue=${hueOf(i)} data-second=${i >= kHues ? "" : undefined}><path d=${lineOf(measured.map((each) => each.numbers[key]), xs, y)} />
        ${dots && measured.map((each, at) => Number.isFinite(each.numbers[key]) && html`<circle key=${at} cx=${xs[at].toFixed(1)} cy=${y(each.numbers[key]).toFixed(1)} r="2.5"><title>${`${split(key)[1] || name}: ${short(each.numbers[key])}, ${clock(each.at)}`}</title></circle>`)}</g>`)}</svg>`;
  }, [measured, peers, name]);
  const told = last.map(([unit, value]) => (unit ? `${unit}: ${short(value)}` : short(value))).join(", ");
  const named = last.length > 1 && last.length <= kMostNamed; // each device's line by its colour, the second four dashed
  return html`<figure class="plot"><figcaption><b class="mono">${name}</b><span class="dim">${named ? "" : last.length > 1 ? `${last.length} values` : told}</span>
    ${named && html`<ul class="lines">${last.map(([unit, value]) => html`<li key=${unit} data-hue=${hueOf(units.findIndex((key) => split(key)[1] === unit))} data-second=${units.findIndex((key) => split(key)[1] === unit) >= kHues ? "" : undefined}>${unit} <b>${short(value)}</b></li>`)}</ul>`}
    ${middle !== null && html`<span class="middle">median of peers ${short(middle)}</span>`}</figcaption>
    <div role="img" aria-label=${`${name}: last ${told}${middle !== null ? `, median of peers ${short(middle)}` : ""}`}>${drawing}</div></figure>`;
}

/** @param {{node: import("../types.js").Node, check?: string}} p check: only what this one measures */
export function Measurements({ node, check }) {
  needNodes();
  const own = useResource(`/nodes/${encodeURIComponent(node.node)}/measurements`, { live: false });
  const [peers, setPeers] = useState(/** @type {Measured[][]} */ ([]));
  const names = (nodes.value || []).filter((each) => each.profile === node.profile && each.rack === node.rack && each.node !== node.node).slice(0, kPeers).map((each) => each.node);
  useEffect(() => {
    let ended = false;
    Promise.all(names.map((name) => get(`/nodes/${encodeURIComponent(name)}/measurements`).then((list) => list.items, () => [])))
      .then((lists) => { if (!ended) setPeers(lists); });
    return () => { ended = true; };
  }, [names.join(",")]);
  /** @type {Measured[]} */
  const measured = useMemo(() => [...(own.data?.items || [])].sort((a, b) => (a.at < b.at ? -1 : 1)), [own.data]);
  const series = [...new Set(measured.flatMap((each) => Object.keys(each.numbers || {}).map((key) => split(key)[0])))].filter((name) => !check || name.startsWith(`${check}/`)).sort();
  return html`<${Loaded} resource=${own}>${series.length === 0 ? html`<${Empty}>Nothing of this was measured here in the last 90 days.<//>` : html`
    <p class="dim">${measured.length} measurements, the last at ${clock(measured[measured.length - 1].at)}; ${names.length > 0 ? `the broad grey line: the median of ${plural(names.length, "other node")} of rack ${node.rack}` : "no other node of its profile in its rack"}</p>
    <div class="plots">${series.map((name) => html`<${Plot} key=${name} name=${name} measured=${measured} peers=${peers} />`)}</div>`}<//>`;
}
