// SPDX-License-Identifier: Apache-2.0
// When a plan may begin: the windows of the pools that it takes nodes from.
import { seesSite } from "../api.js";
import { useResource } from "../resource.js";
import { clock } from "../format.js";

/** Windows of the pools that a plan takes nodes from. @param {import("../types.js").Disturbed | undefined} impact */
export function useWindows(impact) {
  const pools = (impact?.domains || []).filter((each) => each.kind === "pool" && each.taken_out > 0).map((each) => each.name);
  const windows = useResource(pools.length > 0 && seesSite() ? "/windows" : null, { live: false, every_s: 60 });
  return (windows.data?.items || []).filter((/** @type {any} */ each) => pools.includes(each.pool));
}
/** @param {any} window */
export const windowWords = ({ pool, is_open, spans, problem }) => `${pool}: ${problem || (is_open ? `its window is open until ${clock(spans[0]?.closes)}` : spans[0] ? `in its window, from ${clock(spans[0].opens)}` : "its window is not open in the next 15 days")}`;
