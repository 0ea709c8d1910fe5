// SPDX-License-Identifier: Apache-2.0
// Small parts that every page uses.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { now } from "../site.js";
import { age, clock, number, shortHashes } from "../format.js";
import { inOrder, toneOf } from "../states.js";
import { link } from "../router.js";

/** Colour, shape and word of a state. @param {{state: string, tone?: string}} p */
export function State({ state, tone }) {
  return html`<span class="state" data-tone=${tone || toneOf(state)}><i class="mark" aria-hidden="true"></i>${state}</span>`;
}

const kSeverityTones = /** @type {Record<string, string>} */ ({ error: "bad", warning: "warn", info: "wait" });
/** @param {{severity: string}} p */
export function Severity({ severity }) {
  return html`<${State} state=${severity} tone=${kSeverityTones[severity] || "warn"} />`;
}

/** An age that goes on by itself; the moment is in its title. @param {{at?: string}} p */
export function Age({ at }) {
  return html`<time datetime=${at} title=${clock(at)}>${age(at, now.value)}</time>`;
}

/** @param {{name: string}} p */
export function NodeLink({ name }) {
  if (!name || name.startsWith("@")) return html`<span>${name === "@cluster" ? "the site" : name}</span>`;
  return html`<a class="name" href=${link(["nodes", name])}>${name}</a>`;
}

/** How many nodes are in which state: a bar, and the words. @param {{states: Record<string, number>,
 *  query?: Record<string, string>}} p */
export function Counts({ states, query }) {
  const rows = inOrder(states);
  const sum = rows.reduce((all, row) => all + row[1], 0) || 1;
  return html`<div class="counts">
    <div class="bar" aria-hidden="true">${rows.map(([word, count]) => html`<i key=${word} data-tone=${toneOf(word)} style=${{ flexGrow: count / sum }}></i>`)}</div>
    <ul>${rows.map(([word, count]) => html`<li key=${word}><a href=${link(["nodes"], { ...query, state: word })}><${State} state=${word} /> <b>${number(count)}</b></a></li>`)}</ul>
  </div>`;
}

/** What a server refused, or that it is away. @param {{problem: import("../api.js").Problem | null}} p */
export function Trouble({ problem }) {
  if (!problem) return null;
  return html`<div class="note" data-tone="bad" role="alert"><i class="mark" aria-hidden="true"></i><div>
    <b>${problem.message}</b>
    ${problem.what_to_do && html`<div>${problem.what_to_do}</div>`}
    ${problem.diagnostics.map((each) => html`<div class="mono">${[each.file, each.line].filter(Boolean).join(":")} ${each.text}${each.what_to_do ? ` → ${each.what_to_do}` : ""}</div>`)}
    ${problem.request_id && html`<div class="dim">request ${problem.request_id}</div>`}
  </div></div>`;
}

/** @param {{resource: {data: any, problem: any, reading: boolean}, children: any}} p */
export function Loaded({ resource, children }) {
  if (resource.data === undefined) {
    if (resource.problem) return html`<${Trouble} problem=${resource.problem} />`;
    return html`<p class="dim" aria-busy="true">reading…</p>`;
  }
  return html`${resource.problem && resource.problem.code !== "unreachable" && html`<${Trouble} problem=${resource.problem} />`}${children}`;
}

/** @param {{children: any}} p */
export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

/** A term and what it is. @param {{rows: [string, any][]}} p */
export function Terms({ rows }) {
  return html`<dl class="terms">${rows.filter((row) => row[1] || row[1] === 0).map(([term, value]) => html`<div key=${term}><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** @param {{title: any, count?: number, side?: any, children: any, id?: string}} p */
export function Panel({ title, count, side, children, id }) {
  return html`<section class="panel" id=${id}><header><h2>${title}${count !== undefined && html` <span class="count">${number(count)}</span>`}</h2>${side}</header>${children}</section>`;
}

/** The heading of a page. @param {{title: any, children?: any}} p */
export function Heading({ title, children }) {
  return html`<div class="heading"><h1 tabindex="-1">${title}</h1>${children}</div>`;
}

/** The same facts of an explanation everywhere.
 * @param {{why: import("../types.js").Explanation}} p */
export function Why({ why }) {
  return html`<${Terms} rows=${[["expected", shortHashes(why.expected)], ["observed", shortHashes(why.observed)],
    ["last evidence", why.last_evidence], ["next step", why.next_step && html`<b>${why.next_step}</b>`],
    ["rollout", why.rollout]]} />
    ${why.console?.length > 0 && html`<pre class="console" tabindex="0" aria-label="console">${why.console.join("\n")}</pre>`}`;
}

/** A part that is fetched when it is looked at. @param {{load: () => Promise<any>, p: any}} p */
export function Later({ load, p }) {
  const [part, setPart] = useState(/** @type {any} */ (null));
  useEffect(() => { load().then((view) => setPart({ view }), () => setPart({})); }, [load]);
  if (part && !part.view) return html`<p class="empty">This part of the page did not come. Load the page again.</p>`;
  return part ? html`<${part.view} ...${p} />` : html`<p class="dim" aria-busy="true">reading…</p>`;
}
