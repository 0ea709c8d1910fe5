// SPDX-License-Identifier: Apache-2.0
// The page in Debian's Firefox: each page opens, orders are given, what changes is shown.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { kPages, Site } from "./harness.mjs";
import { Firefox } from "./marionette.mjs";

const kKeyEnter = "\uE007";
function program() {
  for (const name of [process.env.FIREFOX, "firefox-esr", "firefox"].filter(Boolean))
    try {
      return execFileSync("sh", ["-c", `command -v "${name}"`], { encoding: "utf8" }).trim();
    } catch {
      // not that one
    }
  return "";
}
const found = program();

describe("in Firefox", { skip: found ? false : "no Firefox is installed (apt-get install firefox-esr)" }, () => {
  let site, firefox, admin, axe;
  before(async () => {
    axe = fs.readFileSync(createRequire(path.join(process.env.WEB_MODULES || "", "x.js")).resolve("axe-core/axe.min.js"), "utf8");
    site = new Site(128);
    admin = site.token("admin");
    await site.start();
    firefox = await Firefox.start(found);
    await firefox.size(1360, 940);
  });
  after(async () => {
    await firefox?.end();
    await site?.end();
  });

  test("log in, and each page opens by its link: nothing wider than the window, axe finds nothing", async () => {
    await firefox.goTo(`${site.url}/`);
    await firefox.until("document.querySelector('input[name=token]')");
    await firefox.type("input[name=token]", admin + kKeyEnter);
    await firefox.until("document.querySelector('[data-connection=live]')");
    // What a page throws, also in promises, is kept for the end.
    for (const [name, at] of Object.entries(kPages)) {
      await firefox.goTo("about:blank");
      await firefox.goTo(`${site.url}/${at}`);
      await firefox.run("window.thrown = []; addEventListener('error', (e) => window.thrown.push(String(e.message))); addEventListener('unhandledrejection', (e) => window.thrown.push(String(e.reason)));");
      await firefox.until("document.querySelector('main h1') && document.querySelector('[data-connection=live]') && !document.querySelector('main [aria-busy]')");
      if (name === "console") await firefox.until("[...document.querySelectorAll('.xterm-rows span')].some((span) => span.textContent.includes('OK') && getComputedStyle(span).color !== getComputedStyle(document.querySelector('.xterm-rows')).color)");
      if (name === "measurements") await firefox.until("document.querySelector('.plot path')");
      assert.ok(await firefox.run("return document.documentElement.scrollWidth <= innerWidth"), `${name}: wider than the window`);
      assert.deepEqual(await firefox.run("return [...document.querySelectorAll('main [role=alert]')].map((each) => each.textContent)"), [], name);
      assert.deepEqual(await firefox.run("return window.thrown"), [], name);
      const violations = await firefox.ask("WebDriver:ExecuteAsyncScript", { script: `const done = arguments[arguments.length - 1]; ${axe}; axe.run(document, {resultTypes: ["violations"]}).then((r) => done(r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 2).map((n) => n.html.slice(0, 200)).join(" ; "))), (e) => done([String(e)]));`, args: [] });
      assert.deepEqual(violations, [], name);
    }
    if (process.env.WEB_SHOTS) await firefox.shoot(path.join(process.env.WEB_SHOTS, "firefox.png"));
  });

  test("an order is given, and a change of the store is shown without a reload", async () => {
    await firefox.goTo(`${site.url}/#/nodes/gpu021`);
    await firefox.until("[...document.querySelectorAll('.heading button')].some((b) => b.textContent === 'Quarantine…')");
    await firefox.click("//button[text()='Quarantine…']");
    await firefox.type("dialog input[name=reason]", "in Firefox" + kKeyEnter);
    await firefox.until("document.querySelector('.said')?.textContent.includes('in quarantine')");
    assert.match(site.muster("quarantine", "list"), /gpu021.*in Firefox/s);
    await firefox.goTo(`${site.url}/#/nodes?q=gpu030`);
    await firefox.until("document.querySelector('.rows')?.textContent.includes('in pool')");
    await firefox.run("window.not_reloaded = true");
    site.change("gpu030", "pool", "drained", "drained by hand");
    await firefox.until("document.querySelector('.rows').textContent.includes('maintenance')");
    assert.ok(await firefox.run("return window.not_reloaded"));
  });
});
