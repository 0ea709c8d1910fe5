// SPDX-License-Identifier: Apache-2.0
// Racks: elevations as one sees them in the hall, top unit first.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { needNodes, nodes, nodesByRack } from "../site.js";
import { link, route, setQuery } from "../router.js";
import { get, seesSite } from "../api.js";
import { number, plural } from "../format.js";
import { fold } from "../hostlist.js";
import { kToneOrder, kToneWords, toneOf } from "../states.js";
import { Age, Counts, Empty, Heading, Loaded, NodeLink, Panel, State, Terms } from "../parts/basics.js";
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

const kw = (/** @type {number} */ watts) => `${(watts / 1000).toFixed(1)} kW`;

/** In one line: what a rack's machines draw of what it may. @param {{power: any, of: number}} p */
function Draw({ power, of }) {
  const { drawn_watts: drawn, read_nodes: read, limit_watts: limit } = power;
  const words = read === 0 ? "unknown" : `${read < of ? "at least " : ""}${kw(drawn)}`;
  return html`<p class="draw">${limit && read > 0 ? html`<meter min="0" max=${Math.max(limit, drawn)} high=${limit} value=${drawn} aria-hidden="true"></meter>` : ""}<span class="dim">${words}${limit ? ` of ${kw(limit)}` : ""}</span>${limit && drawn > limit ? html` <${State} state="more than it may" tone="bad" />` : ""}</p>`;
}

/** @param {{rack: string, list: Node[], dim: (node: Node) => boolean, power?: any}} p */
function Small({ rack, list, dim, power }) {
  return html`<section class="rack" aria-label=${`rack ${rack}`}><h2><a href=${link(["racks", rack])}>${rack || "no rack"}</a> <span class="dim">${number(list.length)}</span></h2>
    ${power && html`<${Draw} power=${power} of=${list.length} />`}
    <ul>${fromTheTop(list).map((node) => html`<li key=${node.node}><a href=${link(["nodes", node.node])} data-tone=${toneOf(node.state)} data-dim=${dim(node) ? "" : undefined} title=${`${node.node}: ${node.state}${node.findings > 0 ? `, ${plural(node.findings, "finding")}` : ""}`}><i class="mark" aria-hidden="true"></i><span>${node.node}</span><small>${node.state}</small></a></li>`)}</ul></section>`;
}

/** What its machines draw now, as their BMCs say, beside what the rack may draw and what all would
 * draw under full load. Of a machine that nobody reads nothing is known. @param {{rack: string}} p */
function Power({ rack }) {
  const addressed = !rack.includes("/"); // the server refuses an encoded "/" in any path
  const resource = useResource(addressed ? `/racks/${encodeURIComponent(rack)}/power` : null, { live: false, every_s: 30 });
  if (!addressed) return html`<p class="dim">A rack with “/” in its name has no address of its own: <a href=${link(["racks"], { q: rack })}>all racks</a> shows what it draws.</p>`;
  const power = resource.data;
  const limit = power?.limit_watts || 0, read = power?.readings.length || 0, drawn = power?.drawn_watts || 0;
  const over = limit > 0 && power.full_load_watts > limit, too_much = limit > 0 && drawn > limit;
  return html`<${Loaded} resource=${resource}>${power && html`
    ${limit > 0 && read > 0 && html`<meter min="0" max=${Math.max(limit, drawn)} high=${limit} value=${drawn} aria-label=${`drawn now: ${kw(drawn)} of ${kw(limit)}`}></meter>`}
    <${Terms} rows=${[["drawn now", read === 0 ? html`<${State} state="unknown" tone="warn" /> no BMC was read in the last 15 minutes: <code>muster monitor</code> reads them`
        : html`<b>${power.unread.length > 0 ? "at least " : ""}${kw(drawn)}</b> ${too_much ? html`<${State} state="more than it may" tone="bad" />` : ""} <span class="dim">${number(read)} of ${number(power.nodes)} machines, the oldest reading <${Age} at=${power.oldest_at} /></span>`],
      ["unknown", read > 0 && power.unread.length > 0 && html`<span class="mono wrap">${fold(power.unread)}</span>`],
      ["under full load", limit > 0 && html`<b>${kw(power.full_load_watts)}</b>${power.estimated_nodes > 0 ? html` <span class="dim">an estimate for ${number(power.estimated_nodes)} nodes</span>` : ""}`], ["it may draw", limit > 0 ? html`<b>${kw(limit)}</b>` : "not declared"],
      ["so", limit > 0 && (over ? html`<${State} state="too little" tone="warn" /> nodes take turns under load` : html`<${State} state="enough" tone="ok" /> all may be under load`)]]} />
    ${read > 0 && html`<details><summary>each machine</summary><div class="scroll" tabindex="0" role="region" aria-label="Power of each machine"><table class="draws"><thead><tr><th>Node</th><th>Draws</th><th>Read from</th><th>When</th></tr></thead><tbody>
      ${power.readings.map((/** @type {any} */ each) => html`<tr key=${each.node}><td><${NodeLink} name=${each.node} /></td><td class="nowrap">${kw(each.watts)}</td><td>${each.of}</td><td class="nowrap"><${Age} at=${each.at} /></td></tr>`)}</tbody></table></div></details>`}`}<//>`;
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
  if (nodes.value !== null && list.length === 0) return html`<${Heading} title=${`Rack ${rack}`} /><${Empty}>No node of the inventory is in a rack ${rack}. <a href=${link(["racks"])}>All racks</a><//>`;
  return html`<${Heading} title=${`Rack ${rack}`}><span class="dim">${plural(list.length, "node")}</span><span class="grow"></span><a class="button quiet" href=${link(["nodes"], { rack })}>As a table</a>${mine && html`<${OrderButton} quiet order=${putIntoQuarantine(mine.hostlist)}>Quarantine…<//>`}<//>
    ${nodes.value !== null && list.length === 0 ? html`<${Empty}>There is no rack “${rack}”.<//>` : html`<div class="two">
    <${Panel} title="Elevation">${placed.size > 0 ? html`<ol class="elevation" reversed>${Array.from({ length: top }, (_, i) => top - i).map((unit) => {
      const node = placed.get(unit);
      return html`<li key=${unit} value=${unit}><span class="unit">${unit}</span>${node ? html`<a href=${link(["nodes", node.node])} data-tone=${toneOf(node.state)}><i class="mark" aria-hidden="true"></i><b>${node.node}</b><span>${node.state}</span>${node.findings > 0 && html`<small>${plural(node.findings, "finding")}</small>`}</a>` : html`<span class="free"></span>`}</li>`;
    })}</ol>` : html`<p class="dim">The inventory names no units for this rack.</p><ul class="elevation">${list.map((node) => html`<li key=${node.node}><a href=${link(["nodes", node.node])} data-tone=${toneOf(node.state)}><i class="mark" aria-hidden="true"></i><b>${node.node}</b><span>${node.state}</span></a></li>`)}</ul>`}<//>
    <div><${Panel} title="States"><${Loaded} resource=${group}>${mine && html`<${Counts} states=${mine.states} query=${{ rack }} />`}<//><//>
    ${list.length > 0 && seesSite() && html`<${Panel} title="Power"><${Power} rack=${rack} /><//>`}
    <${Panel} title="Not in use"><ul class="plain">${[...list].filter((node) => toneOf(node.state) !== "ok").sort((a, b) => kToneOrder.indexOf(toneOf(a.state)) - kToneOrder.indexOf(toneOf(b.state))).map((node) => html`<li class="line" key=${node.node}><${State} state=${node.state} /><span class="what"><${NodeLink} name=${node.node} /></span><span class="dim">${unitOf(node) ? `unit ${unitOf(node)}` : ""}</span></li>`)}</ul><//></div></div>`}`;
}

/** @param {{path: string[]}} p */
export default function Racks({ path }) {
  needNodes();
  return path[1] !== undefined ? html`<${Elevation} rack=${path[1]} />` : html`<${Overview} />`;
}

function Overview() {
  const groups = useResource("/racks", { live: false, every_s: 30 });
  const powers = new Map((groups.data?.items || []).map((/** @type {any} */ each) => [each.rack, each.power]));
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
    ${nodes.value === null ? html`<p class="dim" aria-busy="true">reading…</p>` : racks.length === 0 ? html`<${Empty}>No rack is called so.<//>` : html`<div class="racks">${racks.map(([rack, list]) => html`<${Small} key=${rack} rack=${rack} list=${list} dim=${dim} power=${powers.get(rack)} />`)}</div>`}`;
}
