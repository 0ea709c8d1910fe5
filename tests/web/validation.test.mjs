// SPDX-License-Identifier: Apache-2.0
// Validations in the browser. The answers of checks are the real agent's of this machine, which has
// no GPU: a report with passes, and with a check that could not look. Then gates that the real
// executor carries out, watched while they run.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { ask, closeBrowser, goTo, open, settled, Site, violations } from "./harness.mjs";

const kPatienceMs = 60_000, kActMs = 1_500;
let site, viewer, operator, said, answers, fleet;
before(async () => {
  site = new Site(128);
  viewer = site.token("viewer");
  operator = site.token("operator");
  said = site.realChecks();
  answers = new Map(JSON.parse(said).results.map((each) => [each.id, each]));
  await site.start();
});
after(async () => {
  fleet?.kill("SIGKILL");
  await closeBrowser();
  await site?.end();
});

async function askFor(nodes) {
  const answer = await ask(site.url, "/api/v1/validations", { method: "POST", headers: { Authorization: `Bearer ${operator}`, "Content-Type": "application/json" }, body: JSON.stringify({ nodes }) });
  assert.equal(answer.status, 202, answer.body.toString());
  return JSON.parse(answer.body).id;
}
const row = (page, node) => page.locator(".big-table .rows [role=row]", { hasText: node });
const has = (page, node, word) => row(page, node).locator(`.state:text-is("${word}")`).waitFor({ timeout: kPatienceMs });

describe("a report of the real agent", () => {
  let id;

  test("a verdict comes while one looks, and each check is opened down to its evidence, by keyboard", async () => {
    id = await askFor("gpu[004-006]");
    const window = await open(site, { token: viewer });
    const { page } = window;
    await goTo(page, "#/validation");
    await page.locator("a.line", { hasText: "gpu[004-006]" }).click();
    for (const node of ["gpu004", "gpu005", "gpu006"]) await has(page, node, "pending");
    await page.evaluate(() => { window.not_reloaded = true; });
    site.gate("gpu005", "burn-in", said);
    await has(page, "gpu005", "fail"); // gpu.count has no NVML to ask: no data is no pass
    assert.ok(await page.evaluate(() => window.not_reloaded));
    assert.match(await page.textContent("main .terms"), /1 of 3[^]*did not pass\s*gpu005/);
    await page.locator(".finding", { hasText: "gpu.count" }).waitFor();

    await page.focus(".big-table .rows");
    await page.keyboard.press("ArrowDown"); // what failed is first
    await page.keyboard.press("Enter");
    await page.waitForSelector("#gate .answered");
    assert.equal(await page.locator("#gate .answered").count(), answers.size);
    for (const [name, each] of answers) {
      const check = page.locator(`[data-check="${name}"]`);
      assert.equal((await check.locator("summary .state").textContent()).trim(), each.status);
      assert.ok((await check.locator("summary").textContent()).includes(each.text), name);
      const measured = await check.locator("tbody tr").allTextContents();
      assert.equal(measured.length, Object.keys(each.values).length, name);
      for (const value of Object.keys(each.values)) assert.ok(measured.some((text) => text.startsWith(value)), value);
    }
    const count = page.locator('[data-check="gpu.count"]');
    assert.match(await count.locator(".terms").textContent(), /expected by\s*the profile's expect[^]*what to do\s*reseat the missing GPU/);
    const raw = answers.get("host.memory").evidence;
    assert.ok(raw, "the agent has sent evidence");
    const shown = await page.locator('[data-check="host.memory"] pre').textContent();
    assert.deepEqual(JSON.parse(shown), JSON.parse(raw));
    window.clean("404");
    await window.close();
  });

  test("a link opens the same check of the same node, with the plots of its peers, and holds filters", async () => {
    site.gate("gpu003", "burn-in", said);
    const window = await open(site, { token: viewer, at: `#/validation/${id}?result=fail&node=gpu005&gate=burn-in` });
    const { page } = window;
    await goTo(page, `#/validation/${id}?result=fail&node=gpu005&gate=burn-in`);
    await page.waitForSelector('#gate [data-check="gpu.count"]');
    assert.equal(await row(page, "gpu").count(), 1);
    await page.click(".legend >> text=pending");
    await page.waitForFunction(() => location.hash.includes("result=pending"));
    assert.equal(await row(page, "gpu").count(), 2);
    await page.reload();
    await settled(page);
    assert.equal(await row(page, "gpu").count(), 2);
    await page.waitForSelector('#gate [data-check="host.memory"]');
    await goTo(page, "#/nodes/gpu001?tab=gates&check=host.stream");
    await page.waitForSelector('[data-check="host.stream"] .plot path');
    assert.equal(await page.locator(".plot").count(), 1, "of this check alone");
    await goTo(page, `#/validation/${id}?node=gpu077&gate=burn-in`);
    await page.waitForSelector("#gate >> text=no part of this validation");
    await goTo(page, "#/validation/no-such-run");
    await page.waitForSelector("main [role=alert]");
    window.clean("404");
    await window.close();
  });

  test("what stands out among all measurements, and where expected values come from", async () => {
    const window = await open(site, { token: viewer });
    const { page } = window;
    await goTo(page, "#/validation");
    await page.waitForSelector(".alarms tbody tr");
    await page.fill(".filters input[type=search]", "gpu013");
    await page.waitForFunction(() => location.hash.includes("q=gpu013") && [...document.querySelectorAll(".alarms tbody tr")].every((each) => each.textContent.includes("gpu013")));
    assert.match(await page.textContent(".alarms tbody tr"), /gpu\.burn|hbm_gb_s/);
    await page.click(".alarms a >> nth=0");
    await page.waitForSelector(".plot path");
    assert.match(page.url(), /nodes\/gpu013\?tab=measurements/);
    window.clean("404");
    await window.close();
  });

  test("light, dark and on a phone: nothing wider than the window, axe finds nothing", async () => {
    const shots = process.env.WEB_SHOTS;
    const pages = { validation: "#/validation", "validation-run": `#/validation/${id}?node=gpu005&gate=burn-in` };
    for (const [kind, width, height, scheme] of [["light", 1360, 860, "light"], ["dark", 1360, 860, "dark"], ["phone", 360, 740, "light"]])
      for (const [name, at] of Object.entries(pages)) {
        const window = await open(site, { token: viewer, width, height, scheme, at });
        await goTo(window.page, at);
        await window.page.waitForSelector(name === "validation" ? ".alarms tbody tr" : "#gate .answered");
        if (shots) {
          fs.mkdirSync(shots, { recursive: true });
          await window.page.screenshot({ path: path.join(shots, `${name}-${kind}.png`) });
        }
        assert.ok(await window.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}, ${kind}: wider than the window`);
        assert.deepEqual(await violations(window.page), [], `${name}, ${kind}`);
        window.clean("404");
        await window.close();
      }
  });
});

describe("gates that run", () => {
  test("asked for in the page, carried out by the real executor, watched until each node has its verdict", async () => {
    const window = await open(site, { token: operator }), watcher = await open(site, { token: viewer });
    const { page } = window;
    await goTo(watcher.page, "#/validation");
    assert.equal(await watcher.page.locator(".heading button", { hasText: "Validate…" }).getAttribute("aria-disabled"), "true");
    await goTo(page, "#/validation");
    await page.click(".heading >> text=Validate…");
    await page.fill("dialog input[name=nodes]", "gpu121");
    await page.fill("dialog input[name=gates]", "no-such-gate");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog [role=alert] >> text=no-such-gate");
    await page.fill("dialog input[name=gates]", "burn-in");
    await page.keyboard.press("Enter");
    await has(page, "gpu121", "pending");
    const at = new URL(page.url()).hash;
    assert.match(at, /^#\/validation\//);
    await goTo(watcher.page, at);
    fleet = site.serveRuns(kActMs);
    for (const node of ["gpu121"]) await has(watcher.page, node, "pass");
    await watcher.page.waitForSelector('.heading .state:has-text("done")', { timeout: kPatienceMs });
    await row(watcher.page, "gpu121").click();
    await watcher.page.waitForSelector('#gate [data-check="gpu.burn"]');
    assert.match(await watcher.page.textContent("#gate p"), /2 of 2 checks passed/);
    window.clean("status of 400");
    watcher.clean("404");
    await window.close();
    await watcher.close();
  });
});
