// SPDX-License-Identifier: Apache-2.0
// Pools: what the schedulers get, and what keeps nodes out; profiles beside them.
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { link } from "../router.js";
import { number } from "../format.js";
import { Age, Counts, Empty, Heading, Loaded, NodeLink, Panel, State, Terms } from "../parts/basics.js";
import { acknowledgeBreakers, OrderButton, overrideHold } from "../parts/orders.js";

export default function Pools() {
  const pools = useResource("/pools"), profiles = useResource("/profiles");
  const holds = useResource("/holds");
  const items = pools.data?.items || [], held = holds.data?.items || [];
  return html`<${Heading} title="Pools" />
    <${Loaded} resource=${pools}>${items.length === 0 && html`<${Empty}>The inventory declares no pools.<//>`}
      <div class="cards">${items.map((/** @type {import("../types.js").Group} */ pool) => {
        const breaker = pool.breaker && typeof pool.breaker === "object" ? pool.breaker : null;
        const is_open = breaker ? breaker.open !== false : !!pool.breaker && pool.breaker !== "closed";
        return html`<${Panel} key=${pool.pool} title=${html`<a href=${link(["nodes"], { pool: pool.pool })}>${pool.pool}</a>`} count=${pool.nodes} side=${is_open ? html`<${State} state="breaker open" tone="bad" />` : html`<${State} state="breaker closed" tone="ok" />`}>
          <${Counts} states=${pool.states} query=${{ pool: pool.pool || "" }} />
          ${is_open && html`<div class="note" data-tone="bad"><i class="mark" aria-hidden="true"></i><div>${breaker?.reason || "Too many nodes left at once."} <${OrderButton} quiet order=${acknowledgeBreakers()}>Acknowledge…<//></div></div>`}
          <${Terms} rows=${[["scheduler", [pool.scheduler, pool.partition].filter(Boolean).join(", partition ")], ["nodes", html`<span class="mono wrap">${pool.hostlist}</span>`], ["with findings", number(pool.with_findings)], ["stale", number(pool.stale)]]} /><//>`;
      })}</div><//>
    <${Panel} title="Holds" count=${held.length}>${held.length === 0 ? html`<${Empty}>Nobody holds a node in a scheduler.<//>` : held.map((/** @type {any} */ each) => html`<div class="line" key=${each.node}><${State} state=${each.overridden ? "overridden" : "hold"} tone=${each.overridden ? "wait" : "held"} /><span class="what"><${NodeLink} name=${each.node} /> ${each.hold} ${each.overridden_by && html`<span class="dim">overridden by ${each.overridden_by}</span>`}</span><span class="since"><${Age} at=${each.seen_at} /></span>${!each.overridden && html`<${OrderButton} quiet order=${overrideHold(each.node)}>Override…<//>`}</div>`)}<//>
    <h2 class="section">Profiles</h2>
    <${Loaded} resource=${profiles}><div class="cards">${(profiles.data?.items || []).map((/** @type {import("../types.js").Group} */ profile) => html`<${Panel} key=${profile.profile} title=${html`<a href=${link(["nodes"], { profile: profile.profile })}>${profile.profile}</a>`} count=${profile.nodes}>
      <${Counts} states=${profile.states} query=${{ profile: profile.profile || "" }} />
      <${Terms} rows=${[["image", profile.image], ["drivers", (profile.drivers || []).join(", ")], ["firmware", profile.firmware], ["gates", (profile.gates || []).join(", ")], ["pool", profile.pool], ["fabric", [profile.fabric, ...(profile.other_fabrics || [])].filter(Boolean).join(", ")]]} /><//>`)}</div><//>`;
}
