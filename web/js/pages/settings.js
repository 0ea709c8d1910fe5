// SPDX-License-Identifier: Apache-2.0
// Settings: who one is and may do; the tokens of the site.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { logOut, me, refusal } from "../api.js";
import { scheme } from "../scheme.js";
import { site } from "../site.js";
import { clock } from "../format.js";
import { Empty, Heading, Loaded, Panel, State, Terms } from "../parts/basics.js";
import { OrderButton } from "../parts/orders.js";

const kVerbs = ["look", "plan", "run", "approve", "hold", "power", "console", "validate", "wipe", "erase", "certify", "rotate", "admin"];
const words = (/** @type {string | undefined} */ text) => (text || "").split(/[\s,]+/).filter(Boolean);

export default function Settings() {
  const why = refusal("admin");
  const tokens = useResource(why ? null : "/tokens", { live: false });
  const [shown, setShown] = useState("");
  const who = me.value;
  const scope = who?.scope || {};
  const limits = [...(scope.pools || []).map((each) => `pool ${each}`), ...(scope.racks || []).map((each) => `rack ${each}`), ...(scope.nodes ? [scope.nodes] : [])];
  const create = {
    title: "Create a token", verb: "admin", path: "/tokens", act: "Create", done: "created",
    text: "Who has the token has its role. It is shown once.",
    fields: [{ label: "Name", name: "name", hint: "of what will use it: ci, wallboard" }, { label: "Role", name: "role", choices: ["viewer", "operator", "approver", "robot", "admin"], value: "viewer" },
      { label: "Ends after (hours)", name: "hours", value: "720", kind: "number" }, { label: "Only pools", name: "pools", optional: true, hint: "empty: the whole site" }, { label: "Only racks", name: "racks", optional: true }, { label: "Only nodes", name: "nodes", optional: true, hint: "a hostlist" }],
    shape: (/** @type {any} */ body) => ({ name: body.name, role: body.role, hours: Number(body.hours), ...(body.pools ? { pools: words(body.pools) } : {}), ...(body.racks ? { racks: words(body.racks) } : {}), ...(body.nodes ? { nodes: body.nodes } : {}) }),
    then: (/** @type {any} */ answer) => setShown(answer?.token || answer?.items?.[0]?.token || ""),
  };
  return html`<${Heading} title="Settings" />
    <div class="two"><${Panel} title="You" side=${who?.way !== "unix" && html`<button type="button" class="quiet" onClick=${logOut}>Log out</button>`}>
      <${Terms} rows=${[["name", who?.principal], ["known by", who?.way === "unix" ? "the Unix socket" : who?.way], ["role", who?.role], ["ends", who?.expires_at && clock(who.expires_at)], ["limited to", limits.length > 0 ? limits.join(", ") : "nothing: the whole site"]]} />
      <ul class="verbs" aria-label="What you may do">${kVerbs.map((verb) => html`<li key=${verb}><${State} state=${verb} tone=${who?.verbs.includes(verb) ? "ok" : "wait"} /><span class="sr">${who?.verbs.includes(verb) ? "yes" : "no"}</span></li>`)}</ul><//>
    <${Panel} title="This page"><fieldset><legend>Colours</legend>${["auto", "light", "dark"].map((each) => html`<label class="check" key=${each}><input type="radio" name="scheme" checked=${scheme.value === each} onChange=${() => { scheme.value = each; }} /> ${each === "auto" ? "as the system" : each}</label>`)}</fieldset>
      <${Terms} rows=${[["muster", site.value?.version], ["controller", site.value?.host]]} />
      <h3>Keys</h3><p><kbd>/</kbd> find a node or hostlist · <kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd> choose and open in a table · <kbd>Esc</kbd> closes a dialog</p><//></div>
    <${Panel} title="Tokens" side=${html`<${OrderButton} quiet order=${create}>Create…<//>`}>
      ${shown && html`<div class="note" data-tone="held" role="alert"><i class="mark" aria-hidden="true"></i><div><b>The new token, shown this once:</b><div class="mono wrap" data-token>${shown}</div><button type="button" class="quiet" onClick=${() => setShown("")}>I have it</button></div></div>`}
      ${why ? html`<${Empty}>Tokens are shown to admins. ${why}<//>` : html`<${Loaded} resource=${tokens}>${(tokens.data?.items || []).length === 0 ? html`<${Empty}>There are no tokens.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Tokens"><table><thead><tr><th>Name</th><th>Role</th><th>State</th><th>Created</th><th>Ends</th><th><span class="sr">Orders</span></th></tr></thead><tbody>${tokens.data.items.map((/** @type {any} */ token) => html`<tr key=${token.id}><td><b>${token.name}</b></td><td>${token.role}</td><td><${State} state=${token.revoked ? "revoked" : "in force"} tone=${token.revoked ? "wait" : "ok"} /></td><td class="nowrap">${clock(token.created_at)} <span class="dim">${token.created_by}</span></td><td class="nowrap">${clock(token.expires_at)}</td><td>${!token.revoked && html`<${OrderButton} quiet order=${{ title: `Revoke ${token.name}`, text: "Who uses it is refused from now on.", verb: "admin", method: "DELETE", path: `/tokens/${encodeURIComponent(token.id)}`, act: "Revoke", word: token.name, done: "revoked" }}>Revoke…<//>`}</td></tr>`)}</tbody></table></div>`}<//>`}<//>`;
}
