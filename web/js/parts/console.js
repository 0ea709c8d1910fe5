// SPDX-License-Identifier: Apache-2.0
// A node's console as it was recorded, boot by boot; the boot that is under way is followed.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { Problem, refusal, send } from "../api.js";
import { useResource } from "../resource.js";
import { link, route } from "../router.js";
import { clock } from "../format.js";
import { Age, Empty, Loaded, Trouble } from "./basics.js";

const kFollowMs = 1_000, kAwayMs = 4_000;
const kColumns = 100, kRows = 32, kKeptLines = 20_000;

/** @type {Promise<any> | null} */
let library = null;
/** xterm.js is fetched when the first console is looked at, and only there.
 * @returns {Promise<any>} */
function terminalLibrary() {
  if (!document.querySelector('link[href="/vendor/xterm.css"]')) {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = "/vendor/xterm.css";
    document.head.append(style);
  }
  const file = "/vendor/xterm.mjs"; // by a name that tsc does not follow: it is not ours
  library ||= import(file).catch((error) => { library = null; throw error; });
  return library;
}

/** Opens a terminal in a place. It writes its colours and sizes into <style> elements, which the
 * page's policy refuses; they become style sheets of the document instead, which it allows.
 * @param {any} terminal @param {HTMLElement} place @returns {() => void} what takes them away */
function openWithSheets(terminal, place) {
  /** @type {CSSStyleSheet[]} */
  const sheets = [];
  const make = document.createElement;
  document.createElement = /** @type {any} */ ((/** @type {string} */ name, /** @type {any} */ options) => {
    if (name !== "style") return make.call(document, name, options);
    const sheet = new CSSStyleSheet(), stand_in = make.call(document, "span");
    stand_in.hidden = true;
    sheets.push(sheet);
    document.adoptedStyleSheets.push(sheet);
    Object.defineProperty(stand_in, "textContent", { set: (/** @type {string} */ text) => sheet.replaceSync(text) });
    return stand_in;
  });
  try {
    terminal.open(place);
  } finally {
    document.createElement = make;
  }
  return () => { document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet)); };
}

const ofToken = (/** @type {string} */ name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {{at: string, boot: number, live: boolean}} p */
function Terminal({ at, boot, live }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const following = useRef(live);
  following.current = live;
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  const [bytes, setBytes] = useState(0);
  useEffect(() => {
    let ended = false, terminal = /** @type {any} */ (null), close = () => {}, next = 0;
    /** @type {ReturnType<typeof setTimeout> | 0} */
    let timer = 0;
    const follow = async () => {
      timer = 0;
      try {
        for (;;) {
          const answer = await send(`${at}/boots/${boot}/output?after=${next}`);
          const part = new Uint8Array(await answer.arrayBuffer());
          if (ended) return;
          const from = Number(answer.headers.get("Muster-From") || next);
          if (from > next && next > 0) terminal.write("\r\n\x1b[7m what came between is not kept \x1b[0m\r\n");
          next = Number(answer.headers.get("Muster-Next") || next + part.length);
          terminal.write(part);
          if (part.length === 0) break;
        }
        setProblem(null);
        setBytes(next);
      } catch (error) {
        if (ended) return;
        setProblem(error instanceof Problem ? error : new Problem({ detail: String(error) }, 0));
      }
      if (following.current && !ended) timer = setTimeout(follow, document.hidden ? kAwayMs : kFollowMs);
    };
    terminalLibrary().then(({ Terminal: Xterm }) => {
      if (ended || !place.current) return;
      terminal = new Xterm({ cols: kColumns, rows: kRows, scrollback: kKeptLines, disableStdin: true, convertEol: false,
        cursorBlink: false, screenReaderMode: true, linkHandler: { activate: () => {} }, // what a machine prints opens nothing
        fontSize: 12, fontFamily: ofToken("--mono"),
        theme: { background: "#0c1016", foreground: "#dfe4ea", cursor: "#0c1016" } });
      close = openWithSheets(terminal, place.current);
      void follow();
    }, () => setProblem(new Problem({ detail: "the terminal's program did not come" }, 0)));
    return () => {
      ended = true;
      if (timer) clearTimeout(timer);
      terminal?.dispose();
      close();
    };
  }, [at, boot]);
  return html`<${Trouble} problem=${problem?.code === "unreachable" ? null : problem} />
    <div class="tty" data-boot=${boot} data-bytes=${bytes}><div ref=${place}></div></div>`;
}

/** @param {{name: string, on: any}} p */
export default function Console({ name, on }) {
  const why = refusal("console");
  const at = `/nodes/${encodeURIComponent(name)}`;
  const boots = useResource(why ? null : `${at}/boots`, { on, every_s: 5 });
  if (why) return html`<div class="note" data-tone="held"><i class="mark" aria-hidden="true"></i><div>Consoles show passwords. ${why}.</div></div>`;
  const items = [...(boots.data?.items || [])].reverse();
  const newest = items[0]?.boot;
  const chosen = Number(route.value.query.get("boot")) || newest;
  const live = chosen === newest;
  const about = items.find((/** @type {any} */ each) => each.boot === chosen);
  return html`<${Loaded} resource=${boots}>${items.length === 0 ? html`<${Empty}>No boot of ${name} is recorded: muster records those that it begins itself, where the profile declares a console.<//>` : html`
    <div class="boots" role="group" aria-label="Recorded boots">${items.map((/** @type {any} */ each) => html`<a class="button quiet" key=${each.boot} aria-current=${each.boot === chosen ? "true" : undefined} href=${link(["nodes", name], { tab: "console", boot: each.boot === newest ? undefined : String(each.boot) })}>${each.boot === newest ? "Newest" : `Boot ${each.boot}`} <span class="dim">${each.why}, <${Age} at=${each.began} /></span></a>`)}</div>
    <p class="dim">${about ? `Boot ${chosen}, ${about.why}, began ${clock(about.began)}. ` : ""}${live ? "It is followed as it goes on. " : ""}To type into the console: <code>muster console ${name}</code></p>
    ${about ? html`<${Terminal} at=${at} boot=${chosen} live=${live} />` : html`<${Empty}>No boot ${chosen} of ${name} is recorded.<//>`}`}<//>`;
}
