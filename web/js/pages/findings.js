// SPDX-License-Identifier: Apache-2.0
// Findings: what is wrong, newest first or as groups.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { pathOf } from "../api.js";
import { route, setQuery } from "../router.js";
import { number } from "../format.js";
import { Empty, Heading, Loaded, NodeLink, Severity, Age } from "../parts/basics.js";
import { BigTable } from "../parts/table.js";
import { Choice } from "../parts/choice.js";
import { Group, grouped } from "../parts/group.js";
import { link, go } from "../router.js";

/** @typedef {import("../types.js").Finding} Finding */
const kColumns = [
  { key: "severity", title: "Severity", width: "100px", cell: (/** @type {Finding} */ f) => html`<${Severity} severity=${f.severity} />` },
  { key: "subject", title: "Node", width: "minmax(100px, .7fr)", cell: (/** @type {Finding} */ f) => html`<${NodeLink} name=${f.subject} />` },
  { key: "text", title: "What", width: "minmax(180px, 4fr)", cell: (/** @type {Finding} */ f) => html`<span title=${f.text}>${f.text}</span>` },
  { key: "facet", title: "Facet", width: "minmax(120px, 1.2fr)", wide: true, cell: (/** @type {Finding} */ f) => html`<span class="mono">${f.facet}</span>` },
  { key: "source", title: "Raised by", width: "minmax(90px, .8fr)", wide: true, cell: (/** @type {Finding} */ f) => f.source },
  { key: "at", title: "Since", width: "100px", wide: true, cell: (/** @type {Finding} */ f) => html`<${Age} at=${f.at} />` },
];

export default function Findings() {
  const { query } = route.value;
  const wanted = Object.fromEntries(query);
  const resource = useResource(pathOf("/findings", { nodes: wanted.nodes, severity: wanted.severity, source: wanted.source }), { list: true });
  /** @type {Finding[]} */
  const all = resource.data?.items || [];
  const text = (wanted.q || "").toLowerCase();
  const items = all.filter((f) => (!wanted.facet || f.facet === wanted.facet) && (!text || `${f.subject} ${f.text} ${f.facet} ${f.what_to_do}`.toLowerCase().includes(text)));
  const as_list = wanted.as === "list";
  return html`<${Heading} title="Findings"><span class="dim" role="status">${number(items.length)}${items.length !== all.length ? ` of ${number(all.length)}` : ""}</span><span class="grow"></span>
      <div class="legend" role="group" aria-label="Show as"><button type="button" class="quiet" aria-pressed=${as_list ? "false" : "true"} onClick=${() => setQuery({ as: undefined })}>Grouped</button><button type="button" class="quiet" aria-pressed=${as_list ? "true" : "false"} onClick=${() => setQuery({ as: "list" })}>Each</button></div><//>
    <div class="filters" role="group" aria-label="Filters">
      <label class="choice grow"><span>Words</span><input type="search" value=${wanted.q || ""} onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label>
      <label class="choice"><span>Nodes</span><input value=${wanted.nodes || ""} placeholder="gpu[001-016]" autocomplete="off" onChange=${(/** @type {any} */ e) => setQuery({ nodes: e.target.value.trim() || undefined })} /></label>
      <${Choice} label="Severity" name="severity" value=${wanted.severity || ""} choices=${["error", "warning", "info"]} />
      <${Choice} label="Raised by" name="source" value=${wanted.source || ""} choices=${[...new Set(all.map((f) => f.source))].filter(Boolean).sort()} />
      <${Choice} label="Facet" name="facet" value=${wanted.facet || ""} choices=${[...new Set(all.map((f) => f.facet))].sort()} /></div>
    <${Loaded} resource=${resource}>${items.length === 0 ? html`<${Empty}>Nothing is wrong here.<//>` : as_list
      ? html`<${BigTable} rows=${items} columns=${kColumns} label="findings" onOpen=${(/** @type {Finding} */ f) => { if (!f.subject.startsWith("@")) go(link(["nodes", f.subject], { tab: "findings" })); }} />`
      : html`<div class="panel">${grouped(items).slice(0, 200).map((group) => html`<${Group} key=${group.key} group=${group} open=${false} />`)}</div>`}<//>`;
}
