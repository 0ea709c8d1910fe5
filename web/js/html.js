// SPDX-License-Identifier: Apache-2.0
// What every part of the page draws with.
import { h } from "preact";
import htm from "htm";

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);
