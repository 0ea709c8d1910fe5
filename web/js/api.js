// SPDX-License-Identifier: Apache-2.0
// Requests to the API of the server that served this page, and to nobody else.
import { signal } from "@preact/signals";

const kRoot = "/api/v1";

/** Who is asking; null until the server has said so.
 * @type {import("@preact/signals").Signal<import("./types.js").Me | null>} */
export const me = signal(null);
/** Whether one sees the whole site, and not a part of it. */
export function seesSite() {
  const scope = me.value?.scope;
  return !!me.value && !scope?.pools?.length && !scope?.racks?.length && !scope?.nodes;
}
/** Set where the server knows nobody: the page shows the log-in form. */
export const loggedOut = signal(false);
/** Whether somebody was logged in before, and did not log out. */
export const sessionEnded = signal(false);
function endSession() {
  if (me.value) sessionEnded.value = true;
  me.value = null;
  loggedOut.value = true;
}
/** Grows with each order that succeeded: what is shown is read again. */
export const ordersDone = signal(0);

/** Held in memory alone, and only where the server keeps no sessions. */
let bearer = "";

/** A refusal in the server's own words (RFC 9457), or that it cannot be reached. */
export class Problem extends Error {
  /** @param {any} body @param {number} status */
  constructor(body, status) {
    super(body.detail || body.title || `the server answered ${status}`);
    this.status = status;
    this.code = String(body.code || "internal");
    this.what_to_do = String(body.what_to_do || "");
    /** @type {string[]} */
    this.roles = body.roles || [];
    /** @type {{severity: string, file?: string, line?: number, text: string, what_to_do?: string}[]} */
    this.diagnostics = body.diagnostics || [];
    this.request_id = String(body.request_id || "");
  }
}

/** @param {Record<string, string | number | boolean | undefined>} [query] */
export function pathOf(/** @type {string} */ path, query) {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(query || {}))
    if (value !== undefined && value !== "" && value !== false) words.set(key, String(value));
  const text = words.toString();
  return text ? `${path}${path.includes("?") ? "&" : "?"}${text}` : path;
}

/** @param {string} path @param {RequestInit} [init] @returns {Promise<Response>} */
export async function send(path, init = {}) {
  const headers = new Headers(init.headers);
  if (bearer) headers.set("Authorization", `Bearer ${bearer}`);
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(kRoot + path,
      { ...init, headers, credentials: "same-origin", cache: "no-cache", redirect: "error" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem({ code: "unreachable", detail: "the server does not answer",
      what_to_do: "the page tries again by itself" }, 0);
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) endSession();
  if (answer.status === 403 && path !== "/me") void whoAmI().catch(() => {}); // another tab may have logged in as somebody else
  throw new Problem(body, answer.status);
}

/** @param {string} path @param {Record<string, string | number | boolean | undefined>} [query]
 * @param {AbortSignal} [abort] @returns {Promise<any>} */
export async function get(path, query, abort) {
  const answer = await send(pathOf(path, query), { signal: abort });
  const body = await answer.json(), as_of = answer.headers.get("Muster-As-Of");
  if (as_of && body.as_of) body.as_of = as_of; // a body that the browser has kept says when it came
  return body;
}

/** All pages of a list. @param {string} path
 * @param {Record<string, string | number | boolean | undefined>} [query] @param {AbortSignal} [abort]
 * @returns {Promise<import("./types.js").List<any>>} */
export async function all(path, query, abort) {
  const first = await get(path, { limit: 20000, ...query }, abort);
  let next = first.next;
  for (let pages = 1; next && pages < 20; ++pages) {
    const more = await get(path, { limit: 20000, ...query, cursor: next }, abort);
    first.items.push(...more.items);
    next = more.next;
  }
  return first;
}

/** What an order is known by: sent again under it, it is done once. */
export const orderKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)),
  (byte) => byte.toString(16).padStart(2, "0")).join("");

/** An order. Without an answer nobody knows whether it has arrived; the same key does it once.
 * @param {"POST" | "DELETE"} method @param {string} path @param {any} body @param {string} key
 * @returns {Promise<any>} */
export async function order(method, path, body, key) {
  const answer = await send(path, {
    method,
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: method === "POST" ? JSON.stringify(body ?? {}) : undefined,
  }).catch((error) => {
    if (error.code === "unreachable") error.what_to_do = "whether the order has arrived is not known: give it again when the server is back, it is done once";
    throw error;
  });
  ordersDone.value += 1;
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

export async function whoAmI() {
  me.value = await get("/me");
  loggedOut.value = sessionEnded.value = false;
}

/** By which provider of OpenID Connect one can log in; null: by none, or the server does not say.
 * @returns {Promise<{provider: string, page: boolean} | null>} */
export async function providerOfLogins() {
  try {
    return (await get("/login")).oidc || null;
  } catch {
    return null;
  }
}

/** Where the server begins such a login; it leads back to where one is. */
export function loginAddress() {
  return location.hash.startsWith("#/") ? `/login?to=${encodeURIComponent(location.hash)}` : "/login";
}

/** A token becomes a session: a cookie that no script can read.
 * @param {string} token */
export async function logIn(token) {
  bearer = "";
  try {
    await send("/session", {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
      body: "{}",
    });
  } catch (error) {
    if (!(error instanceof Problem) || ![404, 405].includes(error.status)) throw error;
    bearer = token;
  }
  await whoAmI();
}

export async function logOut() {
  bearer = "";
  try {
    await send("/session", { method: "DELETE", headers: { "Content-Type": "application/json" } });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
  me.value = null;
  loggedOut.value = true;
}

/** What each verb needs, in the words of docs/api.md. @type {Record<string, string>} */
const kWhoMay = {
  run: "operator, robot or admin", hold: "operator or admin", wipe: "admin", admin: "admin",
  approve: "approver or admin", plan: "operator, approver, robot or admin",
  console: "operator or admin", power: "operator or admin",
};

/** Why this identity may not; "" when it may. @param {string} verb */
export function refusal(verb) {
  const who = me.value;
  if (!who) return "nobody is logged in";
  if (who.verbs.includes(verb)) return "";
  return `${who.principal} (${who.role}) may not: ask somebody with the role ${kWhoMay[verb] || "admin"}`;
}
