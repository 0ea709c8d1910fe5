// SPDX-License-Identifier: Apache-2.0
// Where one is: "#/nodes/gpu001?tab=facts". The whole state that a link shares is in it.
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);
addEventListener("hashchange", () => { hash.value = location.hash; });

/** @type {import("@preact/signals").ReadonlySignal<{path: string[], query: URLSearchParams}>} */
export const route = computed(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?");
  return {
    path: path.split("/").filter(Boolean).map((part) => {
      try { return decodeURIComponent(part); } catch { return part; }
    }).filter((part) => part !== "." && part !== ".."), // in a request's path they would lead elsewhere
    query: new URLSearchParams(query),
  };
});

/** @param {string[]} path @param {Record<string, string | undefined>} [query] */
export function link(path, query) {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(query || {})) if (value) words.set(key, value);
  const text = words.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** @param {string} target */
export function go(target) {
  location.hash = target;
}

/** Changes the query of where one is, without a step in the history.
 * @param {Record<string, string | undefined>} change */
export function setQuery(change) {
  const { path, query } = route.value;
  const now = { ...Object.fromEntries(query), ...change };
  history.replaceState(null, "", link(path, now));
  hash.value = location.hash;
}
