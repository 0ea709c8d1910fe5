// SPDX-License-Identifier: Apache-2.0
// Nodes: all of them, chosen by what the URL says.
import { useMemo } from "preact/hooks";
import { html } from "../html.js";
import { needNodes, nodes, nodesProblem, site } from "../site.js";
import { go, link, route, setQuery } from "../router.js";
import { matcher, fold } from "../hostlist.js";
import { digest, number } from "../format.js";
import { inOrder, kToneOrder, toneOf } from "../states.js";
import { Heading, State, Trouble } from "../parts/basics.js";
import { Choice } from "../parts/choice.js";
import { BigTable } from "../parts/table.js";
import { OrderButton, putIntoQuarantine, say } from "../parts/orders.js";

/** @typedef {import("../types.js").Node} Node */

const collator = new Intl.Collator("en", { numeric: true });
/** @param {(node: Node) => string} of */
const by = (of) => (/** @type {Node} */ a, /** @type {Node} */ b) => collator.compare(of(a), of(b));

/** @type {import("../parts/table.js").Column[]} */
const kColumns = [
  { key: "node", title: "Node", width: "minmax(110px, 1.2fr)", sort: by((n) => n.node), cell: (n) => html`<a class="name" tabindex="-1" href=${link(["nodes", n.node])}>${n.node}</a>` },
  { key: "state", title: "State", width: "minmax(130px, 1.5fr)", sort: (a, b) => kToneOrder.indexOf(toneOf(a.state)) - kToneOrder.indexOf(toneOf(b.state)) || (a.state < b.state ? -1 : a.state > b.state ? 1 : 0), cell: (n) => html`<${State} state=${n.state} />` },
  { key: "findings", title: "Findings", width: "80px", sort: (a, b) => a.findings - b.findings, cell: (n) => (n.findings > 0 ? html`<b>${n.findings}</b>` : html`<span class="dim">–</span>`) },
  { key: "rack", title: "Rack", width: "minmax(60px, .7fr)", wide: true, sort: by((n) => n.rack || ""), cell: (n) => n.rack },
  { key: "pool", title: "Pool", width: "minmax(70px, .8fr)", wide: true, sort: by((n) => n.pool_name || ""), cell: (n) => n.pool_name || "–" },
  { key: "profile", title: "Profile", width: "minmax(90px, 1fr)", wide: true, sort: by((n) => n.profile || ""), cell: (n) => n.profile },
  { key: "image", title: "Image", width: "minmax(110px, 1fr)", wide: true, sort: by((n) => n.image || ""), cell: (n) => html`<span class="mono">${digest(n.image).replace("sha256:", "")}</span>` },
  { key: "certificate", title: "Certificate", width: "minmax(90px, .8fr)", wide: true, sort: by((n) => n.certificate || ""), cell: (n) => n.certificate },
  { key: "stale", title: "Stale", width: "minmax(70px, .8fr)", wide: true, sort: (a, b) => (a.stale?.length || 0) - (b.stale?.length || 0), cell: (n) => (n.stale?.length > 0 ? html`<${State} state=${n.stale.map((/** @type {any} */ s) => s.what).join(", ")} tone="warn" />` : html`<span class="dim">–</span>`) },
];
const open = (/** @type {Node} */ node) => go(link(["nodes", node.node]));

/** @param {Node[]} list @param {(node: Node) => string | undefined} of */
const distinct = (list, of) => [...new Set(list.map(of))].filter((word) => word && word !== "-").sort((a, b) => collator.compare(String(a), String(b)));

export default function Nodes() {
  needNodes();
  const { query } = route.value;
  const wanted = Object.fromEntries(query);
  const list = nodes.value || [];
  const shown = useMemo(() => {
    const named = matcher(wanted.q || "");
    const out = list.filter((node) =>
      (!wanted.state || node.state === wanted.state) && (!wanted.rack || node.rack === wanted.rack) &&
      (!wanted.pool || node.pool_name === wanted.pool) && (!wanted.profile || node.profile === wanted.profile) &&
      (!wanted.findings || node.findings > 0) && (!wanted.stale || node.stale?.length > 0) && named(node.node));
    const column = kColumns.find((each) => each.key === (wanted.sort || "").replace(/^-/, ""));
    if (!column?.sort) return out;
    const sign = wanted.sort.startsWith("-") ? -1 : 1, sort = column.sort;
    return out.sort((a, b) => sign * sort(a, b));
  }, [list, query.toString()]);
  const choices = useMemo(() => ({ racks: distinct(list, (n) => n.rack), pools: distinct(list, (n) => n.pool_name), profiles: distinct(list, (n) => n.profile) }), [nodes.value === null, list.length]);
  const filtered = query.size > (query.has("sort") ? 1 : 0);
  const hostlist = () => fold(shown.map((node) => node.node));
  return html`<${Heading} title="Nodes"><span class="dim" role="status">${filtered ? `${number(shown.length)} of ${number(list.length)}` : number(list.length)}</span>
      <span class="grow"></span>
      <button type="button" class="quiet" onClick=${() => navigator.clipboard?.writeText(hostlist()).then(() => say("the hostlist is in the clipboard"), () => say("this browser gave no access to the clipboard", "warn"))}>Copy hostlist</button>
      <${OrderButton} quiet order=${putIntoQuarantine(filtered && shown.length > 0 && shown.length <= 512 ? hostlist() : "")}>Quarantine…<//><//>
    <${Trouble} problem=${nodesProblem.value?.code === "unreachable" ? null : nodesProblem.value} />
    <div class="filters" role="group" aria-label="Filters">
      <label class="choice grow"><span>Nodes</span><input type="search" value=${wanted.q || ""} placeholder="gpu[001-128], or a part of a name" autocomplete="off" autocapitalize="off" spellcheck=${false} onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label>
      <${Choice} label="State" name="state" value=${wanted.state || ""} choices=${inOrder(site.value?.states || {}).map((row) => row[0])} />
      <${Choice} label="Rack" name="rack" value=${wanted.rack || ""} choices=${choices.racks} />
      <${Choice} label="Pool" name="pool" value=${wanted.pool || ""} choices=${choices.pools} />
      <${Choice} label="Profile" name="profile" value=${wanted.profile || ""} choices=${choices.profiles} />
      <label class="check"><input type="checkbox" checked=${!!wanted.findings} onChange=${(/** @type {any} */ e) => setQuery({ findings: e.target.checked ? "true" : undefined })} /> with findings</label>
      <label class="check"><input type="checkbox" checked=${!!wanted.stale} onChange=${(/** @type {any} */ e) => setQuery({ stale: e.target.checked ? "true" : undefined })} /> stale</label>
      ${filtered && html`<button type="button" class="quiet" onClick=${() => go(link(["nodes"]))}>Clear</button>`}
    </div>
    ${nodes.value === null ? html`<p class="dim" aria-busy="true">reading…</p>`
      : shown.length === 0 ? html`<p class="empty" role="status">${list.length === 0 ? "The inventory has no nodes." : "No node is so."}</p>`
      : html`<${BigTable} rows=${shown} columns=${kColumns} label="nodes" sort=${wanted.sort || ""} onSort=${(/** @type {string} */ sort) => setQuery({ sort })} onOpen=${open} />`}`;
}
