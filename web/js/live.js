// SPDX-License-Identifier: Apache-2.0
// The event stream: read by fetch (a browser's EventSource sends no token and says no status),
// resumed by Last-Event-ID, watched by the heartbeat.
import { signal } from "@preact/signals";
import { loggedOut, send, Problem } from "./api.js";

/** @typedef {import("./types.js").Event} Event */

const kSilenceMs = 40_000; // the server's heartbeat comes every 15 s
const kFirstRetryMs = 500, kLastRetryMs = 8_000;

/** @type {import("@preact/signals").Signal<"connecting" | "live" | "lost">} */
export const connection = signal("connecting");
/** When it was lost. @type {import("@preact/signals").Signal<number>} */
export const lostAt = signal(0);
/** Grows when the server is back after a gap: everything shown is read again. */
export const resync = signal(0);

/** @type {Set<(event: Event) => void>} */
const listeners = new Set();
let last_id = "";
/** @type {AbortController | null} */
let reading = null;
let last_byte_at = 0;
/** @type {(() => void) | null} */
let wake = null;

/** @param {(event: Event) => void} listener @returns {() => void} what ends it */
export function onEvent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Splits text/event-stream into blocks. @param {(event: Event) => void} deliver */
export function parser(deliver) {
  let rest = "";
  return (/** @type {string} */ piece) => {
    rest += piece;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const block = rest.slice(0, end);
      rest = rest.slice(end + 2);
      let data = "", id = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("data:")) data += line.slice(5).trimStart();
        else if (line.startsWith("id:")) id = line.slice(3).trim();
      }
      if (id) last_id = id;
      if (!data) continue;
      try {
        deliver(JSON.parse(data));
      } catch {
        // A line that is no JSON is not an event; the next one stands for itself.
      }
    }
  };
}

async function readOnce() {
  reading = new AbortController();
  const abort = reading.signal;
  const answer = await send("/events/stream",
    { headers: last_id ? { "Last-Event-ID": last_id } : {}, signal: abort });
  if (!answer.body) throw new Problem({ detail: "no stream" }, 0);
  if (connection.value === "lost") resync.value += 1;
  connection.value = "live";
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  const take = parser((event) => listeners.forEach((listener) => listener(event)));
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    last_byte_at = Date.now();
    take(decoder.decode(value, { stream: true }));
  }
}

/** @param {number} ms */
const pause = (ms) => new Promise((/** @type {(v?: any) => void} */ done) => {
  const timer = setTimeout(done, ms);
  wake = () => { clearTimeout(timer); done(); };
});

/** Where the stream begins: behind what has been read already. @param {number} sequence */
export function beginAfter(sequence) {
  if (!last_id) last_id = String(sequence);
}

let started = false;
export async function follow() {
  if (started) return;
  started = true;
  const hurry = () => {
    if (document.hidden) return;
    if (connection.value === "live" && Date.now() - last_byte_at > kSilenceMs) reading?.abort();
    wake?.();
  };
  document.addEventListener("visibilitychange", hurry);
  addEventListener("online", hurry);
  setInterval(() => {
    if (connection.value === "live" && Date.now() - last_byte_at > kSilenceMs) reading?.abort();
  }, 5_000);
  let wait = kFirstRetryMs;
  for (;;) {
    last_byte_at = Date.now();
    try {
      await readOnce();
      wait = kFirstRetryMs;
    } catch {
      wait = connection.value === "live" ? kFirstRetryMs : Math.min(wait * 2, kLastRetryMs);
    }
    if (connection.value !== "lost") {
      connection.value = "lost";
      lostAt.value = Date.now();
    }
    if (loggedOut.value) {
      started = false;
      connection.value = "connecting";
      return;
    }
    await pause(wait * (0.8 + 0.4 * Math.random()));
  }
}

/** The person asks for it now. */
export function retryNow() {
  wake?.();
}
