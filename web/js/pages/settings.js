// SPDX-License-Identifier: Apache-2.0
// Settings: who one is and may do; windows, users and tokens of the site.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { logOut, me, refusal } from "../api.js";
import { scheme } from "../scheme.js";
import { site } from "../site.js";
import { clock, duration } from "../format.js";
import { Empty, Heading, Loaded, Panel, State, Terms } from "../parts/basics.js";
import { OrderButton } from "../parts/orders.js";

const kVerbs = ["look", "plan", "run", "approve", "hold", "power", "console", "validate", "wipe", "erase", "certify", "rotate", "admin"];
const words = (/** @type {string | undefined} */ text) => (text || "").split(/[\s,]+/).filter(Boolean);

const kDays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/** @param {any} window */
function opens(window) {
  const days = kDays.filter((day) => window.days.includes(day)).join(", ") || "every day";
  return `${days} from ${window.from} for ${duration(window.minutes * 60)}, ${window.time_zone}`;
}

function Windows() {
  const windows = useResource("/windows", { live: false, every_s: 60 });
  return html`<${Panel} title="Maintenance windows"><${Loaded} resource=${windows}>${(windows.data?.items || []).length === 0 ? html`<${Empty}>No pool has one: runs may take nodes out of work at any time.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Maintenance windows"><table><thead><tr><th>Pool</th><th>Now</th><th>Opens</th><th>Next</th></tr></thead><tbody>
    ${windows.data.items.map((/** @type {any} */ each) => html`<tr key=${each.pool}><td><b>${each.pool}</b></td><td><${State} state=${each.is_open ? "open" : "closed"} tone=${each.is_open ? "ok" : "wait"} /></td><td>${each.windows.map((/** @type {any} */ window) => html`<div key=${opens(window)}>${opens(window)}</div>`)}</td>
      <td>${each.problem || each.spans.slice(0, 3).map((/** @type {any} */ span) => html`<div class="nowrap" key=${span.opens}>${clock(span.opens)} <span class="dim">to ${clock(span.closes)}</span></div>`)}</td></tr>`)}</tbody></table></div>`}<//>
    <p class="dim">They are the inventory's: <code>maintenance</code> of a pool.</p><//>`;
}

const scopeOf = (/** @type {any} */ scope) => [...scope.pools.map((/** @type {string} */ each) => `pool ${each}`), ...scope.racks.map((/** @type {string} */ each) => `rack ${each}`), ...(scope.nodes ? [scope.nodes] : [])].join(", ") || "the whole site";

function Users() {
  const why = refusal("admin");
  const users = useResource(why ? null : "/users", { live: false, every_s: 60 });
  return html`<${Panel} title="Users">${why ? html`<${Empty}>Users are shown to admins. ${why}<//>` : html`<${Loaded} resource=${users}>${users.data && html`
    ${users.data.items.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Users"><table><thead><tr><th>Who</th><th>Known by</th><th>Role</th><th>For</th></tr></thead><tbody>${users.data.items.map((/** @type {any} */ row, /** @type {number} */ i) => html`<tr key=${i}><td><b class="mono wrap">${row.who || "whoever it may be about"}</b></td><td>${row.kind}</td><td>${row.wrong ? html`<${State} state="nobody" tone="bad" /> <span class="dim">${row.wrong}</span>` : row.role}</td><td>${scopeOf(row.scope)}</td></tr>`)}</tbody></table></div>`}
    <p class="dim">root is admin, and so is the user that the server runs as. Others: rows of <code>${users.data.file}</code>, of each kind the first that fits.${users.data.provider && html` Logins at ${users.data.provider}.`}</p>`}<//>`}<//>`;
}

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
    <${Windows} /><${Users} />
    <${Panel} title="Tokens" side=${html`<${OrderButton} quiet order=${create}>Create…<//>`}>
      ${shown && html`<div class="note" data-tone="held" role="alert"><i class="mark" aria-hidden="true"></i><div><b>The new token, shown this once:</b><div class="mono wrap" data-token>${shown}</div><button type="button" class="quiet" onClick=${() => setShown("")}>I have it</button></div></div>`}
      ${why ? html`<${Empty}>Tokens are shown to admins. ${why}<//>` : html`<${Loaded} resource=${tokens}>${(tokens.data?.items || []).length === 0 ? html`<${Empty}>There are no tokens.<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Tokens"><table><thead><tr><th>Name</th><th>Role</th><th>State</th><th>Created</th><th>Ends</th><th><span class="sr">Orders</span></th></tr></thead><tbody>${tokens.data.items.map((/** @type {any} */ token) => html`<tr key=${token.id}><td><b>${token.name}</b></td><td>${token.role}</td><td><${State} state=${token.revoked ? "revoked" : "in force"} tone=${token.revoked ? "wait" : "ok"} /></td><td class="nowrap">${clock(token.created_at)} <span class="dim">${token.created_by}</span></td><td class="nowrap">${clock(token.expires_at)}</td><td>${!token.revoked && html`<${OrderButton} quiet order=${{ title: `Revoke ${token.name}`, text: "Who uses it is refused from now on.", verb: "admin", method: "DELETE", path: `/tokens/${encodeURIComponent(token.id)}`, act: "Revoke", word: token.name, done: "revoked" }}>Revoke…<//>`}</td></tr>`)}</tbody></table></div>`}<//>`}<//>`;
}
