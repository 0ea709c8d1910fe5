// SPDX-License-Identifier: Apache-2.0
// One resource of the API as a part of the page sees it: kept while it is read again, read again
// when an event of its subject, an order or a server that came back says so.
import { useEffect, useRef, useState } from "preact/hooks";
import { all, get, ordersDone, Problem } from "./api.js";
import { onEvent, resync } from "./live.js";

const kGatherMs = 300, kLeastMs = 1_000, kMostKept = 60;
/** What was shown last, so that a page one comes back to stands at once. @type {Map<string, any>} */
const kept = new Map();

/**
 * @param {string | null} path null: not needed now
 * @param {{list?: boolean, on?: (event: import("./types.js").Event) => boolean, every_s?: number,
 *   live?: boolean}} [how]
 *   list: all pages of it; on: which events concern it (none given: every one but progress)
 * @returns {{data: any, problem: Problem | null, reading: boolean, again: () => void}}
 */
export function useResource(path, how = {}) {
  const [state, setState] = useState({ path, data: path ? kept.get(path) : undefined, problem: /** @type {Problem | null} */ (null), reading: true });
  const options = useRef(how);
  options.current = how;
  const read_ref = useRef(() => {});
  useEffect(() => {
    if (!path) return;
    const wanted = path;
    let ended = false, last_at = 0;
    /** @type {AbortController | null} */
    let abort = null;
    /** @type {ReturnType<typeof setTimeout> | 0} */
    let timer = 0;
    setState({ path, data: kept.get(path), problem: null, reading: true });
    async function read() {
      timer = 0;
      if (abort) return later();
      last_at = Date.now();
      abort = new AbortController();
      try {
        const data = await (options.current.list ? all : get)(wanted, undefined, abort.signal);
        if (ended) return;
        if (kept.size >= kMostKept) kept.delete(kept.keys().next().value || "");
        kept.set(wanted, data);
        setState({ path, data, problem: null, reading: false });
      } catch (error) {
        if (ended) return;
        const problem = error instanceof Problem ? error : new Problem({ detail: String(error) }, 0);
        setState((before) => ({ ...before, problem, reading: false }));
      } finally {
        abort = null;
      }
    }
    function later() {
      if (!timer && !ended) timer = setTimeout(read, Math.max(kGatherMs, kLeastMs - (Date.now() - last_at)));
    }
    read_ref.current = () => void read();
    void read();
    const ends = [
      onEvent((event) => {
        if (options.current.live === false) return;
        if (options.current.on ? options.current.on(event) : event.kind !== "action-progress") later();
      }),
    ];
    let orders = ordersDone.value, back = resync.value;
    ends.push(ordersDone.subscribe((count) => { if (count !== orders) orders = count, later(); }));
    ends.push(resync.subscribe((count) => { if (count !== back) back = count, later(); }));
    const clock = setInterval(() => { if (!document.hidden) later(); }, (how.every_s || 60) * 1000);
    return () => {
      ended = true;
      abort?.abort();
      if (timer) clearTimeout(timer);
      clearInterval(clock);
      ends.forEach((end) => end());
    };
  }, [path]);
  const same = state.path === path;
  return {
    data: same ? state.data : path ? kept.get(path) : undefined,
    problem: same ? state.problem : null,
    reading: same ? state.reading : true,
    again: () => read_ref.current(),
  };
}

/** What an earlier identity saw. */
export function forgetKept() {
  kept.clear();
}
