// SPDX-License-Identifier: Apache-2.0
// What the gates measured, over time, against the nodes of the same rack.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { get } from "../api.js";
import { useResource } from "../resource.js";
import { needNodes, nodes } from "../site.js";
import { clock } from "../format.js";
import { Empty, Loaded } from "./basics.js";

const kPeers = 8, kWidthPx = 460, kHeightPx = 170;
/** @param {any} value */
const short = (value) => Number(Number(value).toPrecision(4)).toLocaleString("en-GB", { maximumFractionDigits: 6 });
/** @typedef {{at: string, numbers: Record<string, number>}} Measured */

/** @type {Promise<any> | null} */
let library = null;
/** uPlot is fetched when the first plot is looked at. @returns {Promise<any>} */
function plotLibrary() {
  library ||= new Promise((done, failed) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = "/vendor/uplot.css";
    const script = document.createElement("script");
    script.src = "/vendor/uplot.js";
    script.onload = () => done(/** @type {any} */ (window).uPlot);
    script.onerror = () => { library = null; failed(new Error("the plots' program did not come")); };
    document.head.append(style, script);
  });
  return library;
}

/** "gpu.hbm/hbm_gb_s@3" → [check and number, unit]. @param {string} key */
const split = (key) => /** @type {[string, string]} */ ([key.replace(/@.*$/, ""), key.includes("@") ? key.replace(/^.*@/, "") : ""]);
const ofToken = (/** @type {string} */ name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** @param {number[]} values */
const median = (values) => { const sorted = [...values].sort((a, b) => a - b); return sorted.length > 0 ? sorted[sorted.length >> 1] : null; };

/** @param {{name: string, measured: Measured[], peers: Measured[][]}} p */
function Plot({ name, measured, peers }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const units = [...new Set(measured.flatMap((each) => Object.keys(each.numbers)).filter((key) => split(key)[0] === name))].sort();
  const times = measured.map((each) => Date.parse(each.at) / 1000);
  const others = peers.flatMap((list) => list.slice(-3).flatMap((each) => Object.entries(each.numbers).filter(([key]) => split(key)[0] === name).map(([, value]) => value)));
  const middle = median(others);
  const last = units.map((key) => [split(key)[1], measured[measured.length - 1]?.numbers[key]]).filter((row) => row[1] !== undefined);
  useEffect(() => {
    let ended = false, chart = /** @type {any} */ (null);
    plotLibrary().then((uPlot) => {
      if (ended || !place.current) return;
      const hues = ["--plot-1", "--plot-2", "--plot-3", "--plot-4"].map(ofToken);
      const axis = { stroke: ofToken("--dim"), grid: { stroke: ofToken("--line"), width: 1 }, ticks: { stroke: ofToken("--line") }, font: "11px system-ui" };
      chart = new uPlot({
        width: place.current.clientWidth || kWidthPx, height: kHeightPx, legend: { show: false }, cursor: { y: false },
        axes: [{ ...axis, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((second) => new Date(second * 1000).toISOString().slice(5, 10)) }, { ...axis, size: 62 }],
        series: [{}, ...units.map((key, i) => ({ label: split(key)[1] || name, stroke: hues[i % hues.length], width: 1.5, points: { size: 5 } })),
          ...(middle !== null ? [{ label: "peers", stroke: ofToken("--dim"), dash: [4, 4], width: 1.5, points: { show: false } }] : [])],
      }, [times, ...units.map((key) => measured.map((each) => each.numbers[key] ?? null)), ...(middle !== null ? [times.map(() => middle)] : [])], place.current);
    }, () => {});
    return () => { ended = true; chart?.destroy(); };
  }, [measured, peers, name]);
  const told = last.map(([unit, value]) => (unit ? `${unit}: ${short(value)}` : short(value))).join(", ");
  return html`<figure class="plot"><figcaption><b class="mono">${name}</b><span class="dim">${told.length > 90 ? `${last.length} values` : told}${middle !== null ? ` · median of peers ${short(middle)}` : ""}</span></figcaption>
    <div ref=${place} role="img" aria-label=${`${name}: last ${told}${middle !== null ? `, median of peers ${short(middle)}` : ""}`}></div></figure>`;
}

/** @param {{node: import("../types.js").Node}} p */
export function Measurements({ node }) {
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
  const measured = [...(own.data?.items || [])].sort((a, b) => (a.at < b.at ? -1 : 1));
  const series = [...new Set(measured.flatMap((each) => Object.keys(each.numbers || {}).map((key) => split(key)[0])))].sort();
  return html`<${Loaded} resource=${own}>${measured.length === 0 ? html`<${Empty}>Nothing was measured here in the last 90 days.<//>` : html`
    <p class="dim">${measured.length} measurements, the last at ${clock(measured[measured.length - 1].at)}; ${names.length > 0 ? `dashed: the median of ${names.length} other nodes of rack ${node.rack}` : "no other node of its profile in its rack"}</p>
    <div class="plots">${series.map((name) => html`<${Plot} key=${name} name=${name} measured=${measured} peers=${peers} />`)}</div>`}<//>`;
}
