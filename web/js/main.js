// SPDX-License-Identifier: Apache-2.0
// The page's frame: who is asking, where one is, whether the server answers.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { html } from "./html.js";
import { loggedOut, logIn, loginAddress, me, Problem, providerOfLogins, sessionEnded, whoAmI } from "./api.js";
import { connection, follow, lostAt, resync, retryNow } from "./live.js";
import { begin, clockError, forget, hasRuns, now, site } from "./site.js";
import { go, link, route } from "./router.js";
import { kSchemes, scheme } from "./scheme.js";
import { forgetKept } from "./resource.js";
import { duration, number } from "./format.js";
import { Trouble } from "./parts/basics.js";
import { OrderDialog, Said } from "./parts/orders.js";

/** @typedef {{key: string, title: string, load: () => Promise<any>, hidden?: () => boolean}} Page */
/** @type {Page[]} */
const kPages = [
  { key: "now", title: "Now", load: () => import("./pages/now.js") },
  { key: "racks", title: "Racks", load: () => import("./pages/racks.js") },
  { key: "nodes", title: "Nodes", load: () => import("./pages/nodes.js") },
  { key: "pools", title: "Pools", load: () => import("./pages/pools.js") },
  { key: "findings", title: "Findings", load: () => import("./pages/findings.js") },
  { key: "plan", title: "Plan", load: () => import("./pages/plan.js") },
  { key: "runs", title: "Runs", load: () => import("./pages/runs.js"), hidden: () => !hasRuns.value },
  { key: "rollouts", title: "Rollouts", load: () => import("./pages/rollouts.js") },
  { key: "firmware", title: "Firmware", load: () => import("./pages/firmware.js") },
  { key: "fabric", title: "Fabric", load: () => import("./pages/fabric.js") },
  { key: "validation", title: "Validation", load: () => import("./pages/validation.js"), hidden: () => !hasRuns.value },
  { key: "inventory", title: "Inventory", load: () => import("./pages/inventory.js") },
  { key: "log", title: "Log", load: () => import("./pages/log.js") },
  { key: "rack-side", title: "At the rack", load: () => import("./pages/rack_side.js") },
  { key: "settings", title: "Settings", load: () => import("./pages/settings.js") },
];
/** @type {Page} */
const kNodePage = { key: "nodes", title: "Node", load: () => import("./pages/node.js") };

/** @type {Map<string, any>} */
const loaded = new Map();
const arrived = signal(0);

function LogIn() {
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [provider, setProvider] = useState("");
  useEffect(() => { providerOfLogins().then((found) => setProvider(found?.page ? found.provider : "")); }, []);
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    setBusy(true);
    setProblem(null);
    try {
      await logIn(String(new FormData(form).get("token") || "").trim());
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem({ detail: String(error) }, 0));
      setBusy(false);
    }
  };
  return html`<main class="login" id="main"><form onSubmit=${submit}>
    <img src="/icon.svg" alt="" width="40" height="40" /><h1>muster</h1>
    ${sessionEnded.value && html`<div class="note" data-tone="warn" role="status"><i class="mark" aria-hidden="true"></i><div>The session has ended. An order that was not sent was not given.</div></div>`}
    ${provider && html`<a class="button primary" href=${loginAddress()}>Log in at ${provider}</a>`}
    <p class="dim">${provider ? "Or by a token" : "A token opens this page"}: <code>muster token create --role viewer</code> on the controller prints one. Or run <code>muster ui</code>, which needs none.</p>
    <label><span>Token</span><input name="token" type="password" autocomplete="current-password" required autofocus placeholder="muster_…" /></label>
    <${Trouble} problem=${problem} />
    <button class="primary" type="submit" aria-disabled=${busy ? "true" : undefined}>Open</button></form></main>`;
}

function Banner() {
  if (connection.value !== "lost") return clockError.value === 0 ? null : html`<div class="banner" role="status"><i class="mark" aria-hidden="true"></i><span>The clock of this computer is ${duration(Math.abs(clockError.value) / 1000)} ${clockError.value > 0 ? "behind" : "ahead of"} the server's. Ages are by the server's.</span></div>`;
  now.value; // drawn again as it goes on
  const seconds = Math.max(0, (Date.now() - lostAt.value) / 1000);
  if (seconds < 0.9) return null;
  return html`<div class="banner" role="status"><i class="mark" aria-hidden="true"></i>
    <span>The server does not answer${seconds > 5 ? ` since ${duration(seconds)}` : ""}. What you see is from before; the page goes on by itself when it is back.</span>
    <button type="button" class="quiet" onClick=${retryNow}>Try now</button></div>`;
}

/** Which site, who asks, and the colours: in the line at the top, and on a phone in the menu. */
function Site() {
  return html`<span class="site"><b>${site.value?.name || "…"}</b>${site.value && html` <span class="dim">${number(site.value.nodes)} nodes</span>`}</span>`;
}
function Self() {
  const next = kSchemes[(kSchemes.indexOf(scheme.value) + 1) % kSchemes.length];
  return html`<button type="button" class="quiet scheme" onClick=${() => { scheme.value = next; }} aria-label=${`Colours: ${scheme.value}. Change to ${next}`}>${{ auto: "◐", light: "○", dark: "●" }[scheme.value]}</button>
    ${me.value && html`<a class="who" href="#/settings" title=${`${me.value.principal}: ${me.value.verbs.join(", ")}`}>${me.value.principal} <span class="dim">${me.value.role}</span></a>`}`;
}

/** @param {{active: string}} p */
function Navigation({ active }) {
  const [open, setOpen] = useState(false);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const here = route.value; // read where it is drawn: a change within a page draws it, too
  useEffect(() => setOpen(false), [here]);
  useEffect(() => { // the menu of a phone lies over the page: whatever happens outside of it closes it
    if (!open) return;
    const outside = (/** @type {Event} */ event) => { if (!place.current?.contains(/** @type {Node} */ (event.target))) setOpen(false); };
    const escape = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      /** @type {HTMLElement | null} */ (place.current?.querySelector(".menu"))?.focus();
    };
    addEventListener("pointerdown", outside);
    addEventListener("focusin", outside);
    addEventListener("keydown", escape);
    return () => { removeEventListener("pointerdown", outside); removeEventListener("focusin", outside); removeEventListener("keydown", escape); };
  }, [open]);
  const problems = site.value?.findings || 0;
  return html`<nav aria-label="Pages" ref=${place} data-open=${open ? "" : undefined}>
    <a class="brand" href="#/now"><img src="/icon.svg" alt="" width="20" height="20" /><b>muster</b></a>
    <button type="button" class="menu quiet" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>Menu</button>
    <div class="pages" onClick=${(/** @type {any} */ event) => { if (event.target.closest("a")) setOpen(false); }}><div class="self"><${Site} /><${Self} /></div><ul>${kPages.filter((page) => !page.hidden?.()).map((page) => html`<li key=${page.key}><a href=${link([page.key])} aria-current=${page.key === active ? "page" : undefined}>${page.title}${page.key === "findings" && problems > 0 ? html` <span class="count">${number(problems)}</span>` : ""}</a></li>`)}</ul></div></nav>`;
}

function Top() {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.key !== "/" || event.ctrlKey || event.metaKey || target.matches?.("input, textarea, select")) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const find = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const text = input.current?.value.trim() || "";
    if (!text) return;
    go(/^[\w.-]+$/.test(text) && !text.endsWith("-") && /\d/.test(text) ? link(["nodes", text]) : link(["nodes"], { q: text }));
    if (input.current) input.current.value = "";
  };
  const words = { connecting: "connecting", live: "live", lost: "no answer" };
  const tones = { connecting: "busy", live: "ok", lost: "warn" };
  return html`<header class="top">
    <${Site} />
    <form role="search" onSubmit=${find}><input ref=${input} type="search" aria-label="Node or hostlist" placeholder="node or hostlist   /" autocomplete="off" autocapitalize="off" /></form>
    <span class="state" data-tone=${tones[connection.value]} data-connection=${connection.value}><i class="mark" aria-hidden="true"></i><span>${words[connection.value]}</span></span>
    <${Self} />
  </header>`;
}

function Body() {
  arrived.value;
  const { path } = route.value;
  const key = path[0] || "now";
  const page = key === "nodes" && path[1] ? kNodePage : kPages.find((each) => each.key === key);
  const id = page ? page.title : "";
  useEffect(() => {
    document.title = `${path[1] ? `${path[1]} · ` : ""}${page?.title || "Nothing here"} · ${site.value?.name || "muster"}`;
    if (page && !loaded.has(id))
      page.load().then((module) => { loaded.set(id, module.default); arrived.value += 1; });
  }, [id, path[1], site.value?.name]);
  const here = path.slice(0, 2).join("/");
  const before = useRef(here);
  useEffect(() => {
    if (before.current === here || !loaded.has(id)) return;
    before.current = here;
    scrollTo(0, 0);
    /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
  }, [here, loaded.has(id)]);
  const View = loaded.get(id);
  return html`<main id="main" data-page=${key}>${!page
    ? html`<h1 tabindex="-1">Nothing here</h1><p>There is no page “${key}”. <a href="#/now">Now</a> shows what is wrong, what runs and what waits.</p>`
    : View ? html`<${View} path=${path} />` : html`<p class="dim" aria-busy="true">reading…</p>`}</main>`;
}

function App() {
  if (loggedOut.value) return html`<${LogIn} />`;
  if (!me.value) return html`<${FirstTry} />`;
  return html`<${Frame} />`;
}

/** Nobody is known yet: ask, and ask again while the server is away. */
function FirstTry() {
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  useEffect(() => {
    let ended = false;
    const ask = async () => {
      try {
        await whoAmI();
      } catch (error) {
        if (ended || loggedOut.value) return;
        setProblem(error instanceof Problem ? error : new Problem({ detail: String(error) }, 0));
        setTimeout(ask, 2_000);
      }
    };
    void ask();
    return () => { ended = true; };
  }, []);
  return html`<main class="login" id="main"><h1 class="sr">muster</h1>${problem ? html`<${Trouble} problem=${problem} />` : html`<p class="dim" aria-busy="true">connecting…</p>`}</main>`;
}

function Frame() {
  useEffect(() => {
    forgetKept();
    begin().then(follow, () => follow());
    return () => forget();
  }, []);
  const who = me.value?.principal || "", before = useRef(who);
  useEffect(() => { // another tab has logged in as somebody else: nothing stays of what the one before saw
    if (before.current === who) return;
    before.current = who;
    forgetKept();
    resync.value += 1;
  }, [who]);
  const key = route.value.path[0] || "now";
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus(); }}>Skip to the page</a>
    <${Navigation} active=${key} /><div class="page"><${Top} /><${Banner} /><${Body} /></div><${OrderDialog} /><${Said} />`;
}

const place = document.getElementById("app");
if (place) {
  place.textContent = "";
  render(html`<${App} />`, place);
}
