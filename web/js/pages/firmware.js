// SPDX-License-Identifier: Apache-2.0
// Firmware: component by component, what each profile declares against what its nodes have.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { link, route, setQuery } from "../router.js";
import { number, plural } from "../format.js";
import { Empty, Heading, Loaded, NodeLink, Panel, State } from "../parts/basics.js";
import { Choice } from "../parts/choice.js";

/** @typedef {import("../types.js").FirmwareCell} Cell */
const kWords = /** @type {Record<string, string>} */ ({ "as-declared": "as declared", "to-update": "to update", left: "stays", unknown: "unknown" });
const kTones = /** @type {Record<string, any>} */ ({ "as-declared": "ok", "to-update": "busy", left: "held", unknown: "warn" });

/** @param {{cell: Cell}} p */
function Have({ cell }) {
  return html`<li class="have"><${State} state=${kWords[cell.state]} tone=${kTones[cell.state]} />
    <b class="mono">${cell.found || "?"}</b>
    ${cell.through.length > 0 && html`<span class="mono dim">→ ${cell.through.join(" → ")} → ${cell.declared}</span>`}
    ${cell.staged && html`<${State} state=${`${cell.staged} is staged`} tone="busy" />`}
    <span class="nodes">${cell.nodes_count === 1 ? html`<${NodeLink} name=${cell.nodes} />` : html`<a class="mono wrap" href=${link(["nodes"], { q: cell.nodes })}>${cell.nodes}</a> <span class="dim">${plural(cell.nodes_count, "node")}</span>`}</span>
    ${cell.why && html`<span class="dim why">${cell.why}</span>`}</li>`;
}

/** @param {{profile: string, cells: Cell[]}} p */
function Profile({ profile, cells }) {
  /** @type {Map<string, Cell[]>} */
  const rows = new Map();
  for (const cell of cells) rows.set(cell.component, [...(rows.get(cell.component) || []), cell]);
  return html`<${Panel} title=${html`<a href=${link(["nodes"], { profile })}>${profile}</a> <span class="dim">${cells[0].baseline}</span>`} count=${rows.size}>
    <div class="scroll" tabindex="0" role="region" aria-label=${`Firmware of ${profile}`}><table class="matrix"><thead><tr><th>Component</th><th>Declared</th><th>What its nodes have</th></tr></thead><tbody>
    ${[...rows].map(([component, list]) => html`<tr key=${component}><th scope="row" class="mono">${component}</th><td class="mono nowrap">${list[0].declared}</td><td><ul>${list.map((cell) => html`<${Have} key=${cell.state + cell.found + cell.staged + cell.why} cell=${cell} />`)}</ul></td></tr>`)}</tbody></table></div><//>`;
}

export default function Firmware() {
  const firmware = useResource("/firmware", { list: true, live: false, every_s: 10 });
  const { query } = route.value;
  const wanted = { q: query.get("q") || "", profile: query.get("profile") || "", state: query.get("state") || "" };
  /** @type {Cell[]} */
  const all = firmware.data?.items || [];
  const shown = all.filter((cell) => cell.component.toLowerCase().includes(wanted.q.toLowerCase()) && (!wanted.profile || cell.profile === wanted.profile) && (!wanted.state || cell.state === wanted.state));
  const profiles = [...new Set(shown.map((cell) => cell.profile))];
  /** @type {Record<string, number>} */
  const counts = {};
  for (const cell of all) counts[cell.state] = (counts[cell.state] || 0) + cell.nodes_count;
  return html`<${Heading} title="Firmware"><span class="grow"></span><a class="button quiet" href="#/plan">Plan</a><//>
    <div class="filters" role="group" aria-label="Filters"><label class="choice"><span>Component</span><input type="search" value=${wanted.q} placeholder="a part of its name" onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label>
      <${Choice} label="Profile" name="profile" value=${wanted.profile} choices=${[...new Set(all.map((cell) => cell.profile))]} />
      <div class="legend" role="group" aria-label="Show only">${Object.keys(kWords).filter((state) => counts[state]).map((state) => html`<button type="button" key=${state} class="quiet" aria-pressed=${wanted.state === state ? "true" : "false"} onClick=${() => setQuery({ state: wanted.state === state ? undefined : state })}><${State} state=${kWords[state]} tone=${kTones[state]} /> <b>${number(counts[state])}</b></button>`)}</div></div>
    <${Loaded} resource=${firmware}>${all.length === 0 ? html`<${Empty}>No profile declares a firmware baseline.<//>` : profiles.length === 0 ? html`<${Empty}>No component is so.<//>`
      : profiles.map((profile) => html`<${Profile} key=${profile} profile=${profile} cells=${shown.filter((cell) => cell.profile === profile)} />`)}<//>`;
}
