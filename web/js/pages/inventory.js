// SPDX-License-Identifier: Apache-2.0
// Inventory: what the server works with, images, certificates that are over soon, wipe grants.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { clock, digest, number } from "../format.js";
import { Age, Empty, Heading, Loaded, NodeLink, Panel, State, Terms } from "../parts/basics.js";
import { grantWipe, OrderButton, reloadInventory } from "../parts/orders.js";
import { now } from "../site.js";

const kSoonMs = 14 * 86_400_000, kShown = 60;

export default function Inventory() {
  const inventory = useResource("/inventory"), images = useResource("/images", { list: true });
  const certificates = useResource("/certificates", { list: true }), revoked = useResource("/revocations");
  const grants = useResource("/wipe-grants", { list: true });
  const file = inventory.data;
  const soon = (certificates.data?.items || []).filter((/** @type {any} */ each) => !each.valid || Date.parse(each.expires_at) - now.value < kSoonMs)
    .sort((/** @type {any} */ a, /** @type {any} */ b) => ((a.expires_at || "") < (b.expires_at || "") ? -1 : 1));
  return html`<${Heading} title="Inventory"><span class="grow"></span><${OrderButton} order=${reloadInventory()}>Reload…<//><//>
    <${Loaded} resource=${inventory}>${file && html`<${Panel} title=${file.name || "Inventory"} side=${html`<${State} state=${file.file_differs ? "the file differs" : "as the file"} tone=${file.file_differs ? "warn" : "ok"} />`}>
      <${Terms} rows=${[["file", html`<span class="mono wrap">${file.file}</span>`], ["digest", html`<span class="mono wrap">${digest(file.digest)}</span>`], ["nodes", number(file.nodes)], ["in use since", clock(file.in_use_since)]]} />
      ${(file.diagnostics || []).map((/** @type {any} */ each) => html`<div class="note" data-tone=${each.severity === "error" ? "bad" : "warn"}><i class="mark" aria-hidden="true"></i><div><span class="mono">${[each.file, each.line, each.column].filter(Boolean).join(":")}</span> ${each.text}${each.what_to_do && html` <span class="dim">→ ${each.what_to_do}</span>`}</div></div>`)}<//>`}<//>
    <div class="two"><${Panel} title="Images" count=${(images.data?.items || []).length}><${Loaded} resource=${images}>${(images.data?.items || []).length === 0 ? html`<${Empty}>No image has been built: <span class="mono">muster image build</span>.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Images"><table><thead><tr><th>Image</th><th>Digest</th><th>Built</th></tr></thead><tbody>${images.data.items.map((/** @type {any} */ image) => html`<tr key=${image.image + image.digest}><td><b>${image.image}</b></td><td class="mono">${digest(image.digest)}</td><td class="nowrap"><${Age} at=${image.built_at} /></td></tr>`)}</tbody></table></div>`}<//><//>
    <${Panel} title="Wipe grants" count=${(grants.data?.items || []).length} side=${html`<${OrderButton} quiet order=${{ ...grantWipe(""), title: "Permit one wipe", word: "wipe", fields: [{ label: "Nodes", name: "nodes", hint: "a hostlist" }, { label: "Why", name: "reason" }], body: { data: false } }}>Permit…<//>`}><${Loaded} resource=${grants}>${(grants.data?.items || []).length === 0 ? html`<${Empty}>No node may be wiped.<//>` : html`<p>${grants.data.items.map((/** @type {any} */ each) => html`<${NodeLink} key=${each.node} name=${each.node} /> `)}</p>`}<//><//></div>
    <${Panel} title="Certificates that are void or end within 14 days" count=${soon.length}><${Loaded} resource=${certificates}>${soon.length === 0 ? html`<${Empty}>None.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Certificates"><table><thead><tr><th>Node</th><th>State</th><th>Ends</th><th>Why</th></tr></thead><tbody>${soon.slice(0, kShown).map((/** @type {any} */ each) => html`<tr key=${each.node + each.certificate}><td><${NodeLink} name=${each.node} /></td><td><${State} state=${each.valid ? "valid" : "void"} tone=${each.valid ? "warn" : "bad"} /></td><td class="nowrap">${clock(each.expires_at)}</td><td class="wrap">${each.void_because}${each.override_by ? ` override by ${each.override_by}` : ""}</td></tr>`)}</tbody></table></div>${soon.length > kShown && html`<p class="dim">and ${number(soon.length - kShown)} more</p>`}`}<//><//>
    <${Panel} title="Revocations" count=${(revoked.data?.items || []).length}><${Loaded} resource=${revoked}>${(revoked.data?.items || []).map((/** @type {any} */ each) => html`<div class="line" key=${each.certificate}><span class="what"><${NodeLink} name=${each.node} /> ${each.reason} <span class="dim">${each.by}</span></span><span class="since"><${Age} at=${each.at} /></span></div>`)}${(revoked.data?.items || []).length === 0 && html`<${Empty}>No certificate has been revoked.<//>`}<//><//>`;
}
