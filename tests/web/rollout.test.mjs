// SPDX-License-Identifier: Apache-2.0
// Rollouts in the browser, carried out by the real executor, runner and gates over machines that do
// as they are told: with driver 580 each of them is slower (simulated_fleet.h).
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { ask, closeBrowser, goTo, open, settled, Site, violations } from "./harness.mjs";

const kNodes = "gpu[121-125]"; // 126 is broken, and the BMC of 127 does not answer
const kActMs = 1_000, kPatienceMs = 60_000;
const kAway = ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION", "ERR_SSL", "ERR_EMPTY", "404"];

let site, viewer, operator, fleet;
before(async () => {
  site = new Site(128);
  viewer = site.token("viewer");
  operator = site.token("operator");
  await site.start();
  fleet = site.serveRuns(kActMs);
});
after(async () => {
  fleet?.kill("SIGKILL");
  await closeBrowser();
  await site?.end();
});

const state = (page, word) => page.waitForSelector(`.heading .state:has-text("${word}")`, { timeout: kPatienceMs });
const order = async (page, label, act) => {
  await page.click(`.heading >> text=${label}`);
  await page.click(`dialog button.primary:text-is("${act}")`);
  await page.waitForSelector("dialog[open]", { state: "detached" });
};
const typed = async (page, label, word) => {
  await page.click(`.heading >> text=${label}`);
  await page.fill("dialog input[name=confirm]", word);
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog[open]", { state: "detached" });
};

/** From the list of rollouts to the page of the one that runs. Answers its id. */
async function start(page, driver, more = async () => {}) {
  await goTo(page, "#/rollouts");
  await page.click(".heading >> text=Start…");
  await page.fill("dialog input[name=driver]", driver);
  await page.fill("dialog input[name=nodes]", kNodes);
  await page.fill("dialog input[name=canaries]", "2");
  await more();
  await page.click(`dialog button.primary:text-is("Ask")`);
  await state(page, "needs-approval");
  await page.waitForSelector(`.changes >> text=driver.${driver}`);
  await page.waitForSelector(".domains >> text=debug");
  await typed(page, "Run…", "run");
  await state(page, "running");
  await page.click(".terms a[href*='#/rollouts/']");
  await page.waitForSelector(".waves li[data-current]", { timeout: kPatienceMs });
  return decodeURIComponent(new URL(page.url()).hash.split("/").pop());
}
const finished = (page) => page.waitForFunction(() => [...document.querySelectorAll(".waves progress")].some((bar) => bar.value > 0), null, { timeout: kPatienceMs });
const driverOf = async (node) => {
  const facts = JSON.parse((await ask(site.url, `/api/v1/nodes/${node}/facts`, { headers: { Authorization: `Bearer ${viewer}` } })).body);
  return facts.items.map((fact) => fact.facet).filter((facet) => facet.startsWith("driver.")).join();
};

describe("a rollout in the browser", () => {
  let first;

  test("start, watch its waves, pause, go on, lose the server, done: its gates with their numbers; a viewer may say nothing", async () => {
    const window = await open(site, { token: operator }), watcher = await open(site, { token: viewer });
    const { page } = window;
    first = await start(page, "nvidia-575");
    await goTo(watcher.page, `#/rollouts/${first}`);
    await state(watcher.page, "running");
    for (const label of ["Pause…", "Abort…", "Roll back…"])
      assert.equal(await watcher.page.locator(".heading button", { hasText: label }).getAttribute("aria-disabled"), "true", label);
    await finished(page);
    await order(page, "Pause…", "Pause");
    await state(page, "paused");
    await state(watcher.page, "paused");
    const done = await page.evaluate(() => [...document.querySelectorAll(".waves progress")].map((bar) => bar.value).join());
    assert.notEqual(await driverOf("gpu125"), "driver.nvidia-575", "paused before its last wave");
    await order(page, "Resume…", "Go on");
    await state(page, "running");

    await site.kill();
    await page.waitForSelector(".banner >> text=does not answer");
    await page.waitForSelector(".waves li");
    await site.start();
    await page.waitForSelector("[data-connection=live]", { timeout: 20_000 });
    await state(page, "done");
    await state(watcher.page, "done");
    assert.notEqual(await page.evaluate(() => [...document.querySelectorAll(".waves progress")].map((bar) => bar.value).join()), done);
    assert.equal(await page.evaluate(() => [...document.querySelectorAll(".waves progress")].every((bar) => bar.value === bar.max)), true);
    await page.waitForSelector(".gate .state:has-text('passed')");
    const row = page.locator(".gate >> nth=0").locator(".measured tr", { hasText: "hbm_gb_s" });
    assert.match(await row.textContent(), /holds.*0\.0 %.*5/s);
    await page.waitForSelector(".events >> text=gpu121");
    for (const node of ["gpu121", "gpu125"]) assert.equal(await driverOf(node), "driver.nvidia-575");
    window.clean(...kAway);
    await window.close();
    await watcher.close();
  });

  test("a gate finds that nodes have become slower, the rollout halts, and the page rolls it back", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    const id = await start(page, "nvidia-580");
    await state(page, "halted");
    const gate = page.locator(".gate >> nth=0");
    await gate.locator(".state:has-text('failed')").waitFor();
    assert.match(await gate.locator("tr", { hasText: "hbm_gb_s" }).textContent(), /slower-1[12]\.\d %/);
    assert.match(await gate.locator("tr", { hasText: "stream_gb_s" }).textContent(), /holds/);
    await goTo(page, "#/now");
    const waits = page.locator("main a.line", { hasText: "rollout nvidia-580" });
    await waits.locator(".state:has-text('paused')").waitFor(); // for a person
    assert.match(await waits.first().textContent(), /hbm_gb_s/);
    await goTo(page, `#/rollouts/${id}`);
    await page.click(".heading >> text=Resume…");
    await page.waitForSelector("dialog >> text=Although its gate failed");
    await page.keyboard.press("Escape");
    await shoot(page, `#/rollouts/${id}`, "rollout");

    await typed(page, "Roll back…", "roll back");
    await state(page, "needs-approval");
    await shoot(page, new URL(page.url()).hash, "run");
    await typed(page, "Run…", "run");
    await page.click(".terms a[href*='#/rollouts/']");
    await state(page, "rolled-back");
    assert.equal(await page.locator(".heading >> text=Roll back…").count(), 0);
    for (const node of ["gpu121", "gpu122"]) assert.equal(await driverOf(node), "driver.nvidia-575");
    window.clean();
    await window.close();
  });

  test("an abort: nodes under way are finished, the others stay as they were", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    await start(page, "nvidia-580", () => page.selectOption("dialog select[name=on_failure]", "roll-back"));
    await typed(page, "Abort…", "abort");
    await state(page, "aborted");
    assert.equal(await driverOf("gpu125"), "driver.nvidia-575");
    await goTo(page, "#/rollouts");
    await page.waitForSelector(".line .state:has-text('aborted')");
    window.clean();
    await window.close();
  });

  test("a driver that nobody declared is refused in words, and nothing is begun", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    await goTo(page, "#/rollouts");
    const before = await page.locator("a.line").count();
    await page.click(".heading >> text=Start…");
    await page.fill("dialog input[name=driver]", "nvidia-999");
    await page.fill("dialog input[name=nodes]", kNodes);
    await page.click(`dialog button.primary:text-is("Ask")`);
    await Promise.race([page.waitForSelector("dialog [role=alert] >> text=nvidia-999"), state(page, "failed")]);
    await page.waitForSelector("text=nvidia-999");
    await page.goto(`${site.url}/#/rollouts`);
    await settled(page);
    assert.equal(await page.locator("a.line").count(), before);
    window.clean("status of 400");
    await window.close();
  });
});

/** Light, dark and on a phone: nothing wider than the window, axe finds nothing; a picture where
 * WEB_SHOTS says where to. */
async function shoot(page, at, name) {
  const shots = process.env.WEB_SHOTS;
  for (const [kind, width, height, scheme] of [["light", 1360, 860, "light"], ["dark", 1360, 860, "dark"], ["phone", 360, 740, "light"]]) {
    const window = await open(site, { token: viewer, width, height, scheme, at });
    await goTo(window.page, at);
    await window.page.waitForSelector("main .panel");
    if (shots) {
      fs.mkdirSync(shots, { recursive: true });
      await window.page.screenshot({ path: path.join(shots, `${name}-${kind}.png`) });
    }
    assert.ok(await window.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}, ${kind}: wider than the window`);
    assert.deepEqual(await violations(window.page), [], `${name}, ${kind}`);
    window.clean();
    await window.close();
  }
}
