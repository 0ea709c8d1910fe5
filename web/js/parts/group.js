// SPDX-License-Identifier: Apache-2.0
// Findings by cause: the same of many nodes is one line, and opens to why and what to do.
import { useState } from "preact/hooks";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { fold } from "../hostlist.js";
import { link } from "../router.js";
import { number } from "../format.js";
import { Age, Loaded, NodeLink, Severity, Why } from "./basics.js";

/** @typedef {import("../types.js").Finding} Finding */
const kNamed = 60;
const kWeight = /** @type {Record<string, number>} */ ({ error: 0, warning: 1, info: 2 });

/** The same finding of many nodes is one line. @param {Finding[]} findings */
export function grouped(findings) {
  /** @type {Map<string, {key: string, first: Finding, subjects: string[], since: string, alike: boolean}>} */
  const groups = new Map();
  for (const finding of findings) {
    const own = finding.text.split(finding.subject).join("NODE").replace(/\d+(\.\d+)?/g, "#");
    const key = [finding.severity, finding.facet, finding.source, own].join("|");
    const group = groups.get(key);
    if (!group) groups.set(key, { key, first: finding, subjects: [finding.subject], since: finding.at, alike: false });
    else {
      group.subjects.push(finding.subject);
      group.alike ||= finding.text !== group.first.text;
      if (finding.at < group.since) group.since = finding.at;
    }
  }
  return [...groups.values()].sort((a, b) =>
    (kWeight[a.first.severity] ?? 0) - (kWeight[b.first.severity] ?? 0) || b.subjects.length - a.subjects.length || (a.since < b.since ? -1 : 1));
}

/** @param {{subject: string}} p */
function WhyOf({ subject }) {
  const why = useResource(subject === "@cluster" ? "/cluster/why" : `/nodes/${encodeURIComponent(subject)}/why`,
    { on: (event) => event.subject === subject && event.kind !== "action-progress" });
  return html`<${Loaded} resource=${why}>${why.data && html`<${Why} why=${why.data} />`}<//>`;
}

/** @param {{group: ReturnType<typeof grouped>[0], open: boolean}} p */
export function Group({ group, open }) {
  const [shown, setShown] = useState(open);
  const { first, subjects } = group;
  return html`<details class="finding" open=${open} onToggle=${(/** @type {any} */ e) => setShown(e.currentTarget.open)}>
    <summary><${Severity} severity=${first.severity} />
      <span class="what"><b>${first.text}</b><span class="dim">${group.alike ? ", and alike" : ""} ${first.facet}</span></span>
      <span class="who">${subjects.length === 1 ? (first.subject === "@cluster" ? "the site" : first.subject) : `${number(subjects.length)} nodes`}</span>
      <span class="since"><${Age} at=${group.since} /></span></summary>
    <div class="inside">${first.what_to_do && html`<p class="todo"><span class="dim">what to do</span> ${first.what_to_do}</p>`}
      ${subjects.length > 1 && html`<p class="mono wrap">${fold(subjects)}</p>`}
      ${shown && html`<${WhyOf} subject=${first.subject} />`}
      <p class="links">${subjects.slice(0, kNamed).map((name) => html`<${NodeLink} key=${name} name=${name} /> `)}${subjects.length > kNamed && html`<a href=${link(["findings"], { facet: first.facet })}>all ${number(subjects.length)}</a>`}</p></div></details>`;
}
