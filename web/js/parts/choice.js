// SPDX-License-Identifier: Apache-2.0
// One of several values, kept in the page's address.
import { html } from "../html.js";
import { setQuery } from "../router.js";

/** @param {{label: string, name: string, value: string, choices: string[]}} p */
export function Choice({ label, name, value, choices }) {
  const all = value && !choices.includes(value) ? [value, ...choices] : choices;
  return html`<label class="choice"><span>${label}</span><select value=${value} onChange=${(/** @type {any} */ e) => setQuery({ [name]: e.target.value || undefined })}>
    <option value="">all</option>${all.map((choice) => html`<option key=${choice} value=${choice}>${choice}</option>`)}</select></label>`;
}
