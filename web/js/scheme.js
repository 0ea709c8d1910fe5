// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system says, or as chosen here.
import { signal } from "@preact/signals";

export const kSchemes = ["auto", "light", "dark"];
const kKey = "muster.scheme";

function remembered() {
  try { return localStorage.getItem(kKey) || "auto"; } catch { return "auto"; }
}

export const scheme = signal(remembered());
scheme.subscribe((word) => {
  document.documentElement.dataset.scheme = word;
  try { localStorage.setItem(kKey, word); } catch { /* a browser that keeps nothing */ }
});
