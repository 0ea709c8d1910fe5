// SPDX-License-Identifier: Apache-2.0
// Log: events as they come; who has asked for what, and where the audit chain ends.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { pathOf } from "../api.js";
import { onEvent } from "../live.js";
import { route, setQuery } from "../router.js";
import { clock, number } from "../format.js";
import { Empty, Heading, Loaded, Terms } from "../parts/basics.js";
import { Choice } from "../parts/choice.js";
import { Events } from "../parts/events.js";

/** @typedef {import("../types.js").Event} Event */
const kKept = 1_000, kFirst = 200;
const kKinds = ["plan-started", "plan-finished", "action-started", "action-progress", "action-waiting", "action-done", "action-failed", "action-blocked", "observed", "finding", "note"];

/** Who has asked for what, and what came of it. @param {{words: string}} p */
function Asked({ words }) {
  const [count, setCount] = useState(kFirst);
  const history = useResource(`/history?limit=${count}`);
  const all = history.data?.requests || [];
  const shown = all.filter((/** @type {any} */ each) => `${each.user} ${each.host} ${each.command} ${each.outcome}`.toLowerCase().includes(words));
  return html`<${Loaded} resource=${history}>${shown.length === 0 ? html`<${Empty}>${words ? "Nobody has asked for that." : "Nobody has asked for a change yet."}<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Requests"><table class="stack"><thead><tr><th>When</th><th>Who</th><th>Command</th><th>Outcome</th></tr></thead><tbody>
    ${shown.map((/** @type {any} */ each) => html`<tr key=${each.id}><td class="mono nowrap">${clock(each.at)}</td><td>${each.user}@${each.host}</td><td class="mono wrap">${each.command}</td><td class="wrap">${each.outcome}</td></tr>`)}</tbody></table></div>`}
    ${all.length >= count && count < 10_000 && html`<button type="button" class="quiet" onClick=${() => setCount(count * 4)}>Older</button>`}<//>`;
}

export default function Log() {
  const asked = route.value.query.get("as") === "asked";
  const { query } = route.value;
  const subject = query.get("subject") || "", kind = query.get("kind") || "", words = (query.get("q") || "").toLowerCase();
  const [count, setCount] = useState(kFirst);
  const before = useResource(pathOf("/events", { limit: count, subject }), { live: false, every_s: 3600 });
  const audit = useResource("/audit/head");
  const [came, setCame] = useState(/** @type {Event[]} */ ([]));
  const [paused, setPaused] = useState(false);
  useEffect(() => {
    if (paused) return;
    /** @type {Event[]} */
    let gathered = [];
    let timer = 0;
    const end = onEvent((event) => {
      gathered.push(event);
      timer ||= setTimeout(() => {
        timer = 0;
        const batch = gathered;
        gathered = [];
        setCame((now) => [...now, ...batch].slice(-kKept));
      }, 200);
    });
    return () => { end(); clearTimeout(timer); };
  }, [paused]);
  /** @type {Map<number, Event>} */
  const by_sequence = new Map();
  for (const event of [...(before.data?.items || []), ...came]) by_sequence.set(event.sequence, event);
  const shown = [...by_sequence.values()].sort((a, b) => b.sequence - a.sequence)
    .filter((event) => (!subject || event.subject === subject) && (kind ? event.kind === kind : event.kind !== "action-progress") && (!words || `${event.subject} ${event.text} ${event.action}`.toLowerCase().includes(words))).slice(0, kKept);
  return html`<${Heading} title="Log"><div class="legend" role="group" aria-label="Show"><button type="button" class="quiet" aria-pressed=${asked ? "false" : "true"} onClick=${() => setQuery({ as: undefined })}>What happened</button><button type="button" class="quiet" aria-pressed=${asked ? "true" : "false"} onClick=${() => setQuery({ as: "asked" })}>Who asked</button></div><span class="dim">newest first</span><span class="grow"></span>${!asked && html`<button type="button" class="quiet" aria-pressed=${paused ? "true" : "false"} onClick=${() => setPaused(!paused)}>${paused ? "Go on" : "Hold still"}</button>`}<//>
    <${Loaded} resource=${audit}>${audit.data && html`<${Terms} rows=${[["audit chain ends at", number(audit.data.sequence)], ["hash", html`<span class="mono wrap">${audit.data.hash}</span>`]]} />`}<//>
    <div class="filters" role="group" aria-label="Filters"><label class="choice grow"><span>Words</span><input type="search" value=${query.get("q") || ""} onInput=${(/** @type {any} */ e) => setQuery({ q: e.target.value || undefined })} /></label>
      ${!asked && html`<label class="choice"><span>Node</span><input value=${subject} placeholder="gpu001" autocomplete="off" onChange=${(/** @type {any} */ e) => setQuery({ subject: e.target.value.trim() || undefined })} /></label>
      <${Choice} label="Kind" name="kind" value=${kind} choices=${kKinds} />`}</div>
    ${asked ? html`<${Asked} words=${words} />` : html`<${Loaded} resource=${before}><${Events} events=${shown} named=${true} />
      ${(before.data?.items || []).length >= count && count < 5000 && html`<button type="button" class="quiet" onClick=${() => setCount(count * 4)}>Older</button>`}<//>`}`;
}
