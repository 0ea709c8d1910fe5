// SPDX-License-Identifier: Apache-2.0
// What has happened, as a table.
import { html } from "../html.js";
import { link } from "../router.js";
import { clock, shortHashes } from "../format.js";
import { Empty, State } from "./basics.js";

/** @param {{events: import("../types.js").Event[], named?: boolean}} p */
export function Events({ events, named }) {
  if (events.length === 0) return html`<${Empty}>Nothing has happened.<//>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Events"><table class="events stack"><thead><tr><th>When</th>${named && html`<th>Subject</th>`}<th>Kind</th><th>What</th></tr></thead><tbody>
    ${events.map((event) => html`<tr key=${event.sequence}><td class="mono nowrap">${clock(event.at).slice(5, 19)}</td>${named && html`<td>${event.subject && !event.subject.startsWith("@") ? html`<a href=${link(["nodes", event.subject])}>${event.subject}</a>` : event.subject}</td>`}<td class="nowrap"><${State} state=${event.kind} tone=${/failed/.test(event.kind) ? "bad" : /finding|blocked|waiting/.test(event.kind) ? "warn" : /done|finished/.test(event.kind) ? "ok" : /started|progress/.test(event.kind) ? "busy" : "wait"} /></td><td class="wrap">${shortHashes(event.text || event.action)}${event.fraction !== undefined && event.fraction >= 0 ? html` <span class="dim">${Math.round(event.fraction * 100)} %</span>` : ""}</td></tr>`)}</tbody></table></div>`;
}
