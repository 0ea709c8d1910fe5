// SPDX-License-Identifier: Apache-2.0
// Fabric: levels and cables as declared, what the newest look has found, what counters say, and
// what tests between nodes have measured.
import { useMemo } from "preact/hooks";
import { html } from "../html.js";
import { pathOf } from "../api.js";
import { useResource } from "../resource.js";
import { link, route, setQuery } from "../router.js";
import { number, plural } from "../format.js";
import { fold } from "../hostlist.js";
import { Age, Empty, Heading, Loaded, NodeLink, Panel, State, Terms } from "../parts/basics.js";
import { BigTable } from "../parts/table.js";
import { cableEnd, cableKey, cableTones, hostOf, sentence } from "../parts/cable.js";

/** @typedef {import("../types.js").Cable} Cable */
const kLevels = ["other switches", "leaves", "spines", "cores"];
const kWorstPairs = 10;

const isFaulty = (/** @type {Cable} */ cable) => cable.state === "deviates" || (cable.health && cable.health.grade !== "good");

/** @type {import("../parts/table.js").Column[]} */
const kColumns = [
  { key: "state", title: "State", width: "minmax(110px, .8fr)", cell: (c) => html`<${State} state=${c.faults[0]?.kind || c.state.replace("-", " ")} tone=${cableTones[c.state]} />` },
  { key: "a", title: "From", width: "minmax(120px, 1.2fr)", cell: (c) => html`<span class="mono">${cableEnd(c.a, c.a_port)}</span>` },
  { key: "b", title: "To", width: "minmax(120px, 1.2fr)", cell: (c) => html`<span class="mono">${c.b ? cableEnd(c.b, c.b_port) : "not declared"}</span>` },
  { key: "errors", title: "Errors", width: "90px", wide: true, cell: (c) => (c.health ? html`<${State} state=${c.health.grade} tone=${cableTones[c.health.grade] || "warn"} />` : html`<span class="dim">–</span>`) },
  { key: "what", title: "What to do", width: "minmax(160px, 2fr)", wide: true, cell: (c) => (isFaulty(c) ? sentence(c) : "") },
];

/** @param {{cable: Cable}} p */
function One({ cable }) {
  const hosts = [...new Set([cable.a, cable.b].filter((device) => device.includes(" ")).map(hostOf))];
  return html`<${Panel} title="This cable" id="cable" side=${html`<button type="button" class="quiet" onClick=${() => setQuery({ cable: undefined })}>Close</button>`}>
    <p class="big">${sentence(cable)}</p>
    <${Terms} rows=${[["from", html`<span class="mono">${cableEnd(cable.a, cable.a_port)}</span>`], ["to", cable.b ? html`<span class="mono">${cableEnd(cable.b, cable.b_port)}</span>` : "it is not declared"], ["declared as", cable.width_speed],
      ...cable.faults.flatMap((fault) => /** @type {[string, any][]} */ ([["deviation", html`<${State} state=${fault.kind} tone=${cableTones[cable.state]} />`], ["expected", fault.declared], ["found", fault.found]])),
      ["errors", cable.health && html`<${State} state=${cable.health.grade} tone=${cableTones[cable.health.grade] || "warn"} /> ${cable.health.complaints.join("; ")}`], ["transceiver", cable.health?.transceiver && html`<span class="mono">${cable.health.transceiver}</span>`],
      ["nodes", hosts.length > 0 && hosts.map((host) => html`<${NodeLink} key=${host} name=${host} /> <a href=${link(["rack-side", host])}>at the rack</a> `)]]} /><p><a class="button quiet" href=${link(["rack-side"], { cable: cableKey(cable) })}>For who stands there</a></p><//>`;
}

/** Shares of what is typical, in four steps. @param {number} share */
const heat = (share) => (share < 0 ? "none" : share >= 0.95 ? "ok" : share >= 0.85 ? "low" : share >= 0.6 ? "bad" : "worst");

/** @param {{pairs: {names: string[], shares: number[]}}} p */
function Pairs({ pairs }) {
  const { names, shares } = pairs, size = names.length;
  const drawing = useMemo(() => html`<svg class="heat" viewBox=${`0 0 ${size} ${size}`} role="img" aria-label=${`Measured pairs of ${size}: the worst are listed beside`}>
    ${names.flatMap((a, i) => names.map((b, j) => i !== j && html`<rect key=${i * size + j} x=${j + 0.03} y=${i + 0.03} width=".94" height=".94" data-heat=${heat(shares[i * size + j])}><title>${shares[i * size + j] < 0 ? `${a} with ${b}: not tested` : `${a} with ${b}: ${Math.round(shares[i * size + j] * 100)} % of what is typical`}</title></rect>`))}</svg>`, [pairs]);
  const worst = useMemo(() => names.flatMap((a, i) => names.slice(i + 1).map((b, j) => ({ a, b, share: shares[i * size + i + 1 + j] }))).filter((each) => each.share >= 0).sort((a, b) => a.share - b.share).slice(0, kWorstPairs), [pairs]);
  return html`<div class="two"><div>${drawing}<ul class="heat-legend"><li data-heat="ok">95 % and more</li><li data-heat="low">85 to 95 %</li><li data-heat="bad">60 to 85 %</li><li data-heat="worst">less</li><li data-heat="none">not tested</li></ul></div>
    <div><h3>The slowest</h3><ol class="plain">${worst.map((each) => html`<li class="line" key=${each.a + each.b}><${State} state=${`${Math.round(each.share * 100)} %`} tone=${each.share >= 0.95 ? "ok" : each.share >= 0.85 ? "warn" : "bad"} /><span class="what mono">${each.a} – ${each.b}</span></li>`)}</ol></div></div>`;
}

export default function Fabric() {
  const { query } = route.value;
  const which = query.get("fabric") || undefined;
  const fabric = useResource(pathOf("/fabric", { fabric: which }), { live: false, every_s: 15 });
  const q = query.get("q") || "", only = query.get("all") !== "true", chosen = query.get("cable") || "";
  const cables = useResource(fabric.data ? pathOf("/fabric/cables", { fabric: which, faulty: only ? "true" : undefined }) : null, { list: true, live: false, every_s: 15 });
  const data = fabric.data;
  /** @type {Cable[]} */
  const list = cables.data?.items || [];
  const shown = useMemo(() => list.filter((cable) => `${cableEnd(cable.a, cable.a_port)} ${cableEnd(cable.b, cable.b_port)}`.includes(q)), [list, q]);
  const is_there = list.find((each) => cableKey(each) === chosen);
  const other = useResource(chosen && cables.data && !is_there ? pathOf("/fabric/cables", { fabric: which, device: chosen.replace(/:\d+$/, "") }) : null, { list: true, live: false, every_s: 15 });
  const cable = is_there || (other.data?.items || []).find((/** @type {Cable} */ each) => cableKey(each) === chosen);
  if (fabric.problem?.status === 404) return html`<${Heading} title="Fabric" /><${Empty}>${which ? `The inventory has no fabric ${which}.` : "The inventory declares no fabric."}<//>`;
  return html`<${Heading} title="Fabric">${data && (data.fabrics.length > 1
    ? html`<label class="choice"><span>Fabric</span><select value=${data.name} onChange=${(/** @type {any} */ e) => setQuery({ fabric: e.target.value, cable: undefined, q: undefined })}>${data.fabrics.map((/** @type {string} */ name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>`
    : html`<span class="dim">${data.name}</span>`)}<//>
    <${Loaded} resource=${fabric}>${data && html`
      <div class="two"><div><${Panel} title="Levels"><div class="scroll" tabindex="0" role="region" aria-label="Levels"><table><thead><tr><th>Level</th><th>Switches</th><th>Cables up and to HCAs</th><th>Deviating</th><th>Bad</th></tr></thead><tbody>
        ${[...data.levels].reverse().map((/** @type {any} */ level) => html`<tr key=${level.level}><td>${kLevels[level.level] || `level ${level.level}`}</td><td><span class="mono wrap">${level.switches}</span> <span class="dim">${number(level.switches_count)}</span></td><td>${number(level.cables)}</td><td>${level.deviating > 0 ? html`<${State} state=${number(level.deviating)} tone="bad" />` : "0"}</td><td>${level.bad > 0 ? html`<${State} state=${number(level.bad)} tone="bad" />` : "0"}</td></tr>`)}</tbody></table></div>
        <p class="dim">${plural(data.hcas, "HCA")}, ${plural(data.cables, "cable")}</p><//>
      ${data.health && html`<${Panel} title="Errors by cable"><${Terms} rows=${[["looked at", html`<${Age} at=${data.health.looked_at} />`], ["over", `${Math.round(data.health.window_s)} s`], ["cables", Object.entries(data.health.grades).map(([grade, count]) => html`<${State} key=${grade} state=${`${number(Number(count))} ${grade}`} tone=${cableTones[grade] || "warn"} /> `)]]} />
        ${data.health.hints.map((/** @type {string} */ text) => html`<p key=${text}>${text}</p>`)}<//>`}</div>
      <${Panel} title="Declared against found">${!data.found ? html`<${Empty}>Nobody has looked yet: <code>muster fabric diff</code>, or a monitor.<//>` : html`
        ${data.found.error ? html`<div class="note" data-tone="warn"><i class="mark" aria-hidden="true"></i><div>The last look gave no answer: ${data.found.error}</div></div>`
          : html`<p><${State} state=${data.found.deviations > 0 ? `${number(data.found.deviations)} deviations` : "as declared"} tone=${data.found.deviations > 0 ? "bad" : "ok"} /></p>`}
        <${Terms} rows=${[["looked at", html`<${Age} at=${data.found.looked_at} />`], ["found", `${plural(data.found.devices, "device")}, ${plural(data.found.links, "cable")}`], ["excused", data.found.excluded], ["note", data.found.note]]} />
        ${data.found.repairs.length > 0 && html`<h3>To do</h3><ol class="jobs">${data.found.repairs.map((/** @type {string} */ text) => html`<li key=${text}>${text}</li>`)}</ol>`}`}<//></div>
      ${cable && html`<${One} cable=${cable} />`}
      <h2 class="section">Cables <span class="count">${number(shown.length)}</span></h2>
      <div class="filters" role="group" aria-label="Filters"><label class="choice grow"><span>Switch, HCA or node</span><input type="search" value=${q} placeholder="leaf-su1-r0, or gpu001" autocomplete="off" autocapitalize="off" spellcheck=${false} onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label>
        <label class="check"><input type="checkbox" checked=${only} onChange=${(/** @type {any} */ e) => setQuery({ all: e.target.checked ? undefined : "true" })} /> only what is wrong</label>
        ${shown.length > 0 && shown.length <= 200 && html`<a class="button quiet" href=${link(["nodes"], { q: fold([...new Set(shown.flatMap((each) => [each.a, each.b]).filter((device) => device.includes(" ")).map(hostOf))]) })}>Their nodes</a>`}</div>
      <${Loaded} resource=${cables}>${shown.length === 0 ? html`<${Empty}>${only && !q ? "No cable deviates or has errors, as far as anybody has looked." : "No cable is so."}<//>` : html`<div class="short"><${BigTable} rows=${shown} columns=${kColumns} label="cables" narrow="minmax(0, 1fr) minmax(0, 1.2fr) minmax(0, 1.2fr)" onOpen=${(/** @type {Cable} */ each) => setQuery({ cable: cableKey(each) })} /></div>`}<//>
      ${data.pairs && html`<${Panel} title="Measured pairs"><${Pairs} pairs=${data.pairs} /><//>`}`}<//>`;
}
