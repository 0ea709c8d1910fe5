// SPDX-License-Identifier: Apache-2.0
// Racks: elevations as one sees them in the hall, top unit first.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { needNodes, nodes, nodesByRack } from "../site.js";
import { link, route, setQuery } from "../router.js";
import { get } from "../api.js";
import { number } from "../format.js";
import { kToneOrder, kToneWords, toneOf } from "../states.js";
import { Counts, Empty, Heading, Loaded, NodeLink, Panel, State, Terms } from "../parts/basics.js";
import { OrderButton, putIntoQuarantine } from "../parts/orders.js";

/** @typedef {import("../types.js").Node} Node */
const kLeastUnits = 42, kMostAsked = 64;

/** Units are declared; where the list has none, each node is asked once. @type {Map<string, number>} */
const units = new Map();

/** @param {Node[]} list @returns {Node[]} */
function fromTheTop(list) {
  const known = list.filter((node) => node.unit);
  return known.length > 0 ? [...list].sort((a, b) => (b.unit || 0) - (a.unit || 0)) : list;
}

/** @param {{rack: string, list: Node[], dim: (node: Node) => boolean}} p */
function Small({ rack, list, dim }) {
  return html`<section class="rack" aria-label=${`rack ${rack}`}><h2><a href=${link(["racks", rack])}>${rack || "no rack"}</a> <span class="dim">${number(list.length)}</span></h2>
    <ul>${fromTheTop(list).map((node) => html`<li key=${node.node}><a href=${link(["nodes", node.node])} data-tone=${toneOf(node.state)} data-dim=${dim(node) ? "" : undefined} title=${`${node.node}: ${node.state}${node.findings > 0 ? `, ${node.findings} findings` : ""}`}><i class="mark" aria-hidden="true"></i><span>${node.node}</span><small>${node.state}</small></a></li>`)}</ul></section>`;
}

/** Full load of all nodes beside what the rack may draw. @param {{power: any}} p */
function Power({ power }) {
  const kw = (/** @type {number} */ watts) => `${(watts / 1000).toFixed(1)} kW`;
  const over = power.full_load_watts > power.limit_watts;
  return html`<meter min="0" max=${Math.max(power.limit_watts, power.full_load_watts)} high=${power.limit_watts} value=${power.full_load_watts} aria-label=${`${kw(power.full_load_watts)} of ${kw(power.limit_watts)}`}></meter>
    <${Terms} rows=${[["under full load", html`<b>${kw(power.full_load_watts)}</b>${power.estimated_nodes > 0 ? html` <span class="dim">an estimate for ${number(power.estimated_nodes)} nodes</span>` : ""}`], ["it may draw", html`<b>${kw(power.limit_watts)}</b>`],
      ["so", over ? html`<${State} state="too little" tone="warn" /> nodes take turns under load` : html`<${State} state="enough" tone="ok" /> all may be under load`]]} />`;
}

/** @param {{rack: string}} p */
function Elevation({ rack }) {
  const group = useResource("/racks");
  const list = nodesByRack.value.get(rack) || [];
  const [, setRead] = useState(0);
  const unknown = list.filter((node) => !node.unit && !units.has(node.node)).slice(0, kMostAsked).map((node) => node.node);
  useEffect(() => {
    let ended = false;
    Promise.all(unknown.map((name) => get(`/nodes/${encodeURIComponent(name)}`).then((node) => units.set(name, node.unit || 0), () => {})))
      .then(() => { if (!ended && unknown.length > 0) setRead((count) => count + 1); });
    return () => { ended = true; };
  }, [unknown.join(",")]);
  const unitOf = (/** @type {Node} */ node) => node.unit || units.get(node.node) || 0;
  const placed = new Map(list.filter(unitOf).map((node) => [unitOf(node), node]));
  const top = Math.max(kLeastUnits, ...placed.keys());
  const mine = (group.data?.items || []).find((/** @type {any} */ each) => each.rack === rack);
  return html`<${Heading} title=${`Rack ${rack}`}><span class="dim">${number(list.length)} nodes</span><span class="grow"></span><a class="button quiet" href=${link(["nodes"], { rack })}>As a table</a>${mine && html`<${OrderButton} quiet order=${putIntoQuarantine(mine.hostlist)}>Quarantine…<//>`}<//>
    ${nodes.value !== null && list.length === 0 ? html`<${Empty}>There is no rack “${rack}”.<//>` : html`<div class="two">
    <${Panel} title="Elevation">${placed.size > 0 ? html`<ol class="elevation" reversed>${Array.from({ length: top }, (_, i) => top - i).map((unit) => {
      const node = placed.get(unit);
      return html`<li key=${unit} value=${unit}><span class="unit">${unit}</span>${node ? html`<a href=${link(["nodes", node.node])} data-tone=${toneOf(node.state)}><i class="mark" aria-hidden="true"></i><b>${node.node}</b><span>${node.state}</span>${node.findings > 0 && html`<small>${number(node.findings)} findings</small>`}</a>` : html`<span class="free"></span>`}</li>`;
    })}</ol>` : html`<p class="dim">The inventory names no units for this rack.</p><ul class="elevation">${list.map((node) => html`<li key=${node.node}><a href=${link(["nodes", node.node])} data-tone=${toneOf(node.state)}><i class="mark" aria-hidden="true"></i><b>${node.node}</b><span>${node.state}</span></a></li>`)}</ul>`}<//>
    <div><${Panel} title="States"><${Loaded} resource=${group}>${mine && html`<${Counts} states=${mine.states} query=${{ rack }} />`}<//><//>
    ${mine?.power && html`<${Panel} title="Power"><${Power} power=${mine.power} /><//>`}
    <${Panel} title="Not in use"><ul class="plain">${[...list].filter((node) => toneOf(node.state) !== "ok").sort((a, b) => kToneOrder.indexOf(toneOf(a.state)) - kToneOrder.indexOf(toneOf(b.state))).map((node) => html`<li class="line" key=${node.node}><${State} state=${node.state} /><span class="what"><${NodeLink} name=${node.node} /></span><span class="dim">${unitOf(node) ? `unit ${unitOf(node)}` : ""}</span></li>`)}</ul><//></div></div>`}`;
}

/** @param {{path: string[]}} p */
export default function Racks({ path }) {
  needNodes();
  if (path[1] !== undefined) return html`<${Elevation} rack=${path[1]} />`;
  const { query } = route.value;
  const tone = query.get("tone") || "", wanted = query.get("q") || "";
  const racks = [...nodesByRack.value].filter(([rack]) => rack.includes(wanted));
  /** @type {Record<string, number>} */
  const tones = {};
  for (const node of nodes.value || []) tones[toneOf(node.state)] = (tones[toneOf(node.state)] || 0) + 1;
  const dim = (/** @type {Node} */ node) => tone !== "" && toneOf(node.state) !== tone;
  return html`<${Heading} title="Racks"><span class="dim">${number(racks.length)}</span><//>
    <div class="filters" role="group" aria-label="Filters"><label class="choice"><span>Rack</span><input type="search" placeholder="a part of its name" value=${wanted} onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label>
      <div class="legend" role="group" aria-label="Show only">${kToneOrder.filter((each) => tones[each]).map((each) => html`<button type="button" key=${each} class="quiet" aria-pressed=${tone === each ? "true" : "false"} onClick=${() => setQuery({ tone: tone === each ? undefined : each })}><${State} state=${kToneWords[each]} tone=${each} /> <b>${number(tones[each])}</b></button>`)}</div></div>
    ${nodes.value === null ? html`<p class="dim" aria-busy="true">reading…</p>` : racks.length === 0 ? html`<${Empty}>No rack is called so.<//>` : html`<div class="racks">${racks.map(([rack, list]) => html`<${Small} key=${rack} rack=${rack} list=${list} dim=${dim} />`)}</div>`}`;
}
