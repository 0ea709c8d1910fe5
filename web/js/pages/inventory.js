// SPDX-License-Identifier: Apache-2.0
// Inventory: what the server works with, images, certificates that are over soon, wipe grants.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { clock, digest, number, shortHashes } from "../format.js";
import { fold } from "../hostlist.js";
import { Age, Empty, Heading, Loaded, NodeLink, Panel, State, Terms } from "../parts/basics.js";
import { grantWipe, OrderButton, reloadInventory } from "../parts/orders.js";
import { now } from "../site.js";

const kSoonMs = 14 * 86_400_000, kShown = 60;

/** What is read from the disk and sent to nodes. @param {number} bytes */
const size = (bytes) => (bytes >= 0 ? `${(bytes / 2 ** 20).toFixed(0)} MiB` : "-");
/** @param {any} image */
const usedBy = (image) => (image.profiles || []).join(", ") || (image.declared ? "no profile" : html`<span class="dim">not declared any more</span>`);

export default function Inventory() {
  const inventory = useResource("/inventory"), images = useResource("/images");
  const certificates = useResource("/certificates", { list: true }), revoked = useResource("/revocations");
  const grants = useResource("/wipe-grants");
  const file = inventory.data;
  /** @type {Map<string, {first: any, names: string[]}>} the same reason of many nodes is one line */
  const soon = new Map();
  for (const each of certificates.data?.items || []) {
    if (each.valid && !(Date.parse(each.expires_at) - now.value < kSoonMs)) continue;
    const why = each.valid ? `ends ${(each.expires_at || "").slice(0, 10)}` : String(each.void_because || "").split(each.node).join("the node");
    const group = soon.get(why);
    if (group) group.names.push(each.node);
    else soon.set(why, { first: each, names: [each.node] });
  }
  /** @type {string[]} */
  const missing = images.data?.not_built || [];
  const groups = [...soon].sort((a, b) => b[1].names.length - a[1].names.length);
  return html`<${Heading} title="Inventory"><span class="grow"></span><${OrderButton} order=${reloadInventory()}>Reload…<//><//>
    <${Loaded} resource=${inventory}>${file && html`<${Panel} title=${file.name || "Inventory"} side=${html`<${State} state=${file.file_differs ? "the file differs" : "as the file"} tone=${file.file_differs ? "warn" : "ok"} />`}>
      <${Terms} rows=${[["file", html`<span class="mono wrap">${file.file}</span>`], ["digest", html`<span class="mono wrap">${digest(file.digest)}</span>`], ["nodes", number(file.nodes)], ["in use since", clock(file.in_use_since)]]} />
      ${(file.diagnostics || []).map((/** @type {any} */ each) => html`<div class="note" data-tone=${each.severity === "error" ? "bad" : "warn"}><i class="mark" aria-hidden="true"></i><div><span class="mono">${[each.file, each.line, each.column].filter(Boolean).join(":")}</span> ${each.text}${each.what_to_do && html` <span class="dim">→ ${each.what_to_do}</span>`}</div></div>`)}<//>`}<//>
    <div class="two"><${Panel} title="Images" count=${(images.data?.items || []).length}><${Loaded} resource=${images}>${(images.data?.items || []).length === 0 ? html`<${Empty}>No image has been built: <span class="mono">muster image build</span>.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Images"><table><thead><tr><th>Image</th><th>Digest</th><th>Size</th><th>Used by</th></tr></thead><tbody>${images.data.items.map((/** @type {any} */ image) => html`<tr key=${image.image + image.digest + image.key}><td><b>${image.image}</b>${image.fault && html`<div><${State} state="cannot be used" tone="bad" /> ${image.fault}</div>`}</td><td class="mono">${digest(image.digest)}</td><td class="nowrap">${size(image.pack_bytes)}</td><td class="wrap">${usedBy(image)}</td></tr>`)}</tbody></table></div>`}
      ${missing.length > 0 && html`<p><${State} state="not built" tone="warn" /> <span class="mono wrap">${missing.join(", ")}</span></p>`}<//><//>
    <${Panel} title="Wipe grants" count=${(grants.data?.items || []).length} side=${html`<${OrderButton} quiet order=${{ ...grantWipe(""), title: "Permit one wipe", word: "wipe", fields: [{ label: "Nodes", name: "nodes", hint: "a hostlist" }, { label: "Why", name: "reason" }], body: { data: false } }}>Permit…<//>`}><${Loaded} resource=${grants}>${(grants.data?.items || []).length === 0 ? html`<${Empty}>No node may be wiped.<//>` : html`<p>${grants.data.items.map((/** @type {any} */ each) => html`<${NodeLink} key=${each.node} name=${each.node} /> `)}</p>`}<//><//></div>
    <${Panel} title="Certificates that are void or end within 14 days" count=${groups.reduce((sum, row) => sum + row[1].names.length, 0)}><${Loaded} resource=${certificates}>${groups.length === 0 ? html`<${Empty}>None.<//>` : groups.slice(0, kShown).map(([why, { first, names }]) => html`<div class="line" key=${why}><${State} state=${first.valid ? "valid" : "void"} tone=${first.valid ? "warn" : "bad"} /><span class="what">${shortHashes(why)}${first.override_by ? ` override by ${first.override_by}` : ""} <span class="mono wrap dim">${fold(names)}</span></span><span class="since">${number(names.length)}</span></div>`)}<//><//>
    <${Panel} title="Revocations" count=${(revoked.data?.items || []).length}><${Loaded} resource=${revoked}>${(revoked.data?.items || []).map((/** @type {any} */ each) => html`<div class="line" key=${each.certificate}><span class="what"><${NodeLink} name=${each.node} /> ${each.reason} <span class="dim">${each.by}</span></span><span class="since"><${Age} at=${each.at} /></span></div>`)}${(revoked.data?.items || []).length === 0 && html`<${Empty}>No certificate has been revoked.<//>`}<//><//>`;
}
