// SPDX-License-Identifier: Apache-2.0
// Plans for people: the same change of many nodes is one line; what it disturbs.
import { html } from "../html.js";
import { link } from "../router.js";
import { digest, duration, number, plural } from "../format.js";
import { fold } from "../hostlist.js";
import { Empty, NodeLink, State, Terms } from "./basics.js";
import { useWindows, windowWords } from "./windows.js";

/** @typedef {import("../types.js").Change} Change */

const kShown = 60, kFirstDomains = 6;
const kTones = /** @type {Record<string, any>} */ ({ wipe: "bad", reset: "warn", drain: "busy" });
const kWeight = ["wipe", "reset", "drain", "none"];

/** Actions of a plan (muster-plan/1), grouped as GET /plan groups them.
 * @param {any[]} actions @returns {Change[]} */
export function groupedActions(actions) {
  /** @type {Map<string, {action: any, names: string[]}>} */
  const groups = new Map();
  for (const action of actions) {
    const key = [action.facet, action.from, action.to, action.disruption, action.blocked].join("|");
    const group = groups.get(key);
    if (group) group.names.push(action.subject);
    else groups.set(key, { action, names: [action.subject] });
  }
  return [...groups.values()]
    .sort((a, b) => Number(!!a.action.blocked) - Number(!!b.action.blocked) || kWeight.indexOf(a.action.disruption) - kWeight.indexOf(b.action.disruption) || b.names.length - a.names.length)
    .map(({ action, names }) => ({ facet: action.facet, from: action.from || "", to: action.to, disruption: action.disruption, reason: action.reason || "", blocked: action.blocked || "", expected_s: action.expected_s, nodes: fold(names), nodes_count: names.length }));
}

/** @param {{groups: Change[], more?: number}} p */
export function Changes({ groups, more = 0 }) {
  if (groups.length === 0) return html`<${Empty}>Nothing is to be done: all is as declared.<//>`;
  const left = more + Math.max(0, groups.length - kShown);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Changes"><table class="changes"><thead><tr><th>Disturbs</th><th>What</th><th>From → to</th><th>Nodes</th><th>Usually</th></tr></thead><tbody>
    ${groups.slice(0, kShown).map((each) => html`<tr key=${[each.facet, each.from, each.to, each.blocked, each.nodes].join("|")}><td class="nowrap"><${State} state=${each.blocked ? "blocked" : each.disruption} tone=${each.blocked ? "held" : kTones[each.disruption] || "wait"} /></td><td class="mono">${each.facet}</td>
      <td class="wrap">${digest(each.from).replace(/^-$/, "unknown")} → ${digest(each.to)}<div class="dim">${each.blocked || each.reason}</div></td>
      <td class="wrap">${each.nodes_count === 1 ? html`<${NodeLink} name=${each.nodes} />` : html`<a class="mono" href=${link(["nodes"], { q: each.nodes })}>${each.nodes}</a> <span class="dim">${plural(each.nodes_count, "node")}</span>`}</td><td class="nowrap">${duration(each.expected_s)}</td></tr>`)}</tbody></table></div>
    ${left > 0 && html`<p class="dim">and ${number(left)} more</p>`}`;
}

/** @typedef {import("../types.js").Disturbed["domains"][0]} Domain */
/** @param {{domains: Domain[], label: string}} p */
function Domains({ domains, label }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="domains"><thead><tr><th>Pool, rack, switch</th><th>Leave now</th><th>Out already</th><th>Of</th><th>May be out</th></tr></thead><tbody>
      ${domains.map((each) => html`<tr key=${each.kind + each.name}><td><span class="dim">${each.kind}</span> <b>${each.name}</b></td><td>${number(each.taken_out)}</td><td>${number(each.already_out)}</td><td>${number(each.size)}</td>
        <td>${each.limit >= each.size ? html`<span class="dim">no limit</span>` : html`<${State} state=${number(each.limit)} tone=${each.taken_out + each.already_out > each.limit ? "bad" : "ok"} />`}</td></tr>`)}</tbody></table></div>`;
}

/** What a plan takes from pools and racks, and how long it takes at least.
 * @param {{impact: import("../types.js").Disturbed, exceeded?: string[]}} p */
export function Impact({ impact, exceeded = [] }) {
  const [first, rest] = [/** @type {Domain[]} */ ([]), /** @type {Domain[]} */ ([])];
  const windows = useWindows(impact);
  for (const each of impact.domains) (first.length < kFirstDomains || each.taken_out + each.already_out > each.limit ? first : rest).push(each);
  return html`<${Terms} rows=${[["changes", html`${number(impact.actions)} on ${plural(impact.subjects, "subject")}${impact.blocked > 0 ? html`, <b>${number(impact.blocked)} blocked</b>` : ""}`],
      ["takes at least", duration(impact.at_least_s)], ["may begin", windows.map(windowWords).join("; ")],
      ["leave their pool", impact.taken_out_count > 0 && html`<span class="mono wrap">${impact.taken_out}</span> <span class="dim">${plural(impact.taken_out_count, "node")}</span>`],
      ["wiped", impact.wiped && html`<span class="mono wrap">${impact.wiped}</span>`], ["reset", impact.reset && html`<span class="mono wrap">${impact.reset}</span>`]]} />
    ${exceeded.map((line) => html`<div class="note" data-tone="bad" key=${line}><i class="mark" aria-hidden="true"></i><div>${line}</div></div>`)}
    ${impact.domains.length > 0 && html`<${Domains} domains=${first} label="Pools and racks" />
      ${rest.length > 0 && html`<details><summary>${plural(rest.length, "rack, unit or switch", "racks, units and switches")} more, without a limit that is exceeded</summary><${Domains} domains=${rest} label="More racks, units and switches" /></details>`}`}`;
}
