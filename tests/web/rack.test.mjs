// SPDX-License-Identifier: Apache-2.0
// With a phone at the rack: find what a label says, what to do there, the locate LED of a virtual
// BMC, and mark it done. And what the settings say of windows and users.
import assert from "node:assert/strict";
import fs from "node:fs";
import https from "node:https";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { ask, closeBrowser, goTo, open, Site, violations } from "./harness.mjs";

const kPhone = { width: 360, height: 740 }, kWithLed = "gpu044";

let site, operator, viewer, admin, bmc;
before(async () => {
  site = new Site(128);
  bmc = await site.virtualBmc(kWithLed);
  site.access = path.join(site.folder, "access.conf");
  fs.writeFileSync(site.access, "user root admin\ngroup root operator pools=batch\nuser daemon king\n", { mode: 0o644 });
  operator = site.token("operator");
  viewer = site.token("viewer");
  admin = site.token("admin");
  await site.start();
});
after(async () => {
  bmc?.child.kill("SIGKILL");
  await closeBrowser();
  await site?.end();
});

/** The LED as the BMC itself says it, asked by curl's means and not by muster. */
async function ledOf(url) {
  const get = (target) => new Promise((done, failed) => https.get(url + target, { rejectUnauthorized: false, auth: "admin:calvin" }, (answer) => {
    let text = "";
    answer.on("data", (piece) => { text += piece; });
    answer.on("end", () => done(JSON.parse(text)));
  }).on("error", failed));
  const systems = await get("/redfish/v1/Systems");
  const system = await get(systems.Members[0]["@odata.id"]);
  return system.LocationIndicatorActive ?? system.IndicatorLED !== "Off";
}

const look = async (page, text) => {
  await page.fill(".finder input", text);
  await page.keyboard.press("Enter");
};

describe("at the rack, on a phone", () => {
  test("the locate LED goes on, and off again", async () => {
    const window = await open(site, { ...kPhone, token: operator });
    const { page } = window;
    await goTo(page, "#/rack-side");
    await look(page, kWithLed);
    await page.waitForSelector(`.machine h2 >> text=${kWithLed}`);
    assert.equal(await ledOf(bmc.url), false);
    for (const [label, act, word, is_on] of [["On…", "Switch on", "on", true], ["Off…", "Switch off", "off", false]]) {
      await page.click(`.locator >> text=${label}`);
      await page.click(`dialog button.primary:text-is("${act}")`);
      await page.waitForSelector(`.locator .state:text-is("${word}")`, { timeout: 60_000 });
      assert.equal(await ledOf(bmc.url), is_on);
    }
    window.clean();
    await window.close();
  });

  test("a serial number leads to its node, a cable's end and a transceiver to their cable", async () => {
    const window = await open(site, { ...kPhone, token: viewer });
    const { page } = window;
    await goTo(page, "#/rack-side");
    await look(page, "S0000085");
    await page.waitForSelector(".machine h2 >> text=gpu085");
    assert.match(page.url(), /#\/rack-side\/gpu085$/);
    await look(page, "gpu020 mlx5_0:1");
    await page.waitForSelector(".task .big >> text=clean both ends");
    assert.match(decodeURIComponent(page.url()), /cable=gpu020/);
    await page.reload();
    await page.waitForSelector(".task .big >> text=clean both ends");
    await page.waitForSelector(".place >> text=r003"); // where the node's end is
    await goTo(page, "#/rack-side");
    await look(page, "MT2231FT01234");
    await page.waitForSelector("main b.mono >> text=MT2231FT01234");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    assert.deepEqual(await violations(page), []);
    if (process.env.WEB_SHOTS) await page.screenshot({ path: path.join(process.env.WEB_SHOTS, "rack-side-cable-phone.png") });
    await look(page, "nobody-has-this");
    await page.waitForSelector("main >> text=no label of a node or cable is that");
    window.clean();
    await window.close();
  });

  test("what is done is marked done, and a viewer may not", async () => {
    const seen = await open(site, { ...kPhone, token: viewer });
    await goTo(seen.page, "#/rack-side/gpu003");
    assert.equal(await seen.page.locator(".task button", { hasText: "Done…" }).getAttribute("aria-disabled"), "true");
    const window = await open(site, { ...kPhone, token: operator });
    const { page } = window;
    await goTo(page, "#/rack-side/gpu003");
    await page.waitForSelector(".task .big >> text=reseat GPU 3");
    await page.click(".task >> text=Done…");
    await page.fill("dialog input[name=reason]", "GPU 3 reseated, ticket 77");
    await page.keyboard.press("Enter");
    for (const each of [page, seen.page]) await each.waitForSelector("main >> text=No finding");
    assert.match(site.muster("events", "gpu003"), /ticket 77/);
    const left = JSON.parse((await ask(site.url, "/api/v1/nodes/gpu003/findings", { headers: { Authorization: `Bearer ${viewer}` } })).body);
    assert.equal(left.items.length, 0);
    await goTo(page, "#/rack-side/gpu085"); // what the monitor has said, it takes back itself
    await page.waitForSelector(".task >> text=the monitor sees it");
    assert.equal(await page.locator(".task button").count(), 0);
    window.clean();
    seen.clean();
    await window.close();
    await seen.close();
  });

  test("a label in front of the camera; where there is no camera one is told to type", async () => {
    const window = await open(site, { ...kPhone, token: viewer });
    const { page } = window;
    await goTo(page, "#/rack-side");
    assert.equal(await page.evaluate(() => "BarcodeDetector" in globalThis), false);
    assert.equal(await page.locator("button:text-is('Scan')").count(), 0, "this browser knows no bar codes");
    // A phone's browser: bar codes are its own; the camera here is a drawing.
    await page.addInitScript(() => {
      let looks = 0;
      globalThis.BarcodeDetector = class {
        async detect(picture) {
          if (!(picture instanceof HTMLVideoElement) || picture.videoWidth === 0) throw new DOMException("no picture", "InvalidStateError");
          return ++looks < 3 ? [] : [{ rawValue: "S0000044\n", format: "code_128" }];
        }
      };
      navigator.mediaDevices.getUserMedia = async () => {
        if (sessionStorage.camera === "refused") throw new DOMException("refused", "NotAllowedError");
        const canvas = document.createElement("canvas");
        const drawing = canvas.getContext("2d");
        setInterval(() => drawing.fillRect(0, 0, Math.random() * 99, 99), 50);
        globalThis.given = canvas.captureStream(10);
        return globalThis.given;
      };
    });
    await page.reload();
    await page.click("button:text-is('Scan')");
    await page.waitForSelector(".machine h2 >> text=gpu044");
    assert.equal(await page.locator("video").count(), 0);
    assert.ok(await page.evaluate(() => globalThis.given.getTracks().every((track) => track.readyState === "ended")), "the camera is off again");
    await page.evaluate(() => { sessionStorage.camera = "refused"; });
    await page.click("button:text-is('Scan')");
    await page.waitForSelector("[role=status] >> text=Type what the label says");
    window.clean();
    await window.close();
  });
});

test("a rack's power against what it may draw", async () => {
  const window = await open(site, { token: viewer });
  await goTo(window.page, "#/racks");
  const draw = (rack) => window.page.locator(`section[aria-label="rack ${rack}"] .draw`);
  await draw("r001").waitFor();
  assert.match(await draw("r001").textContent(), /^at least 46\.0 kW of 60\.0 kW$/, "seven of eight were read");
  assert.match(await draw("r002").textContent(), / of 90\.0 kW$/);
  assert.doesNotMatch(await draw("r003").textContent(), / of /, "its power is not declared");
  await goTo(window.page, "#/racks/r001");
  await window.page.waitForSelector("meter");
  const said = await window.page.textContent(".panel:has(meter)");
  assert.match(said, /it may draw60\.0 kW/);
  assert.match(said, /nodes take turns under load/);
  assert.match(said, /drawn now\s*at least 46\.0 kW[^]*7 of 8 machines, the oldest reading/, "seven were read, one did not answer");
  assert.match(said, /unknown\s*gpu004/);
  await window.page.click("summary >> text=each machine");
  assert.match(await window.page.locator(".draws tr", { hasText: "gpu003" }).textContent(), /6\.5 kW6 power supplies(\d+ \w+ ago|just now)/);
  site.change("gpu003", "health.bmc", "ok", "its BMC was read again"); // and says no power any more
  await window.page.locator(".panel:has(meter)", { hasText: "gpu[003-004]" }).waitFor({ timeout: 40_000 });
  await goTo(window.page, "#/racks/r002");
  await window.page.waitForSelector("main >> text=all may be under load");
  await goTo(window.page, "#/racks/r003");
  assert.equal(await window.page.locator("meter").count(), 0, "its power is not declared");
  await window.page.waitForSelector("text=not declared");
  window.clean();
  await window.close();
});

test("settings: when windows open, and who may do what; the latter for admins", async () => {
  const window = await open(site, { token: admin });
  await goTo(window.page, "#/settings");
  await window.page.waitForSelector("main >> text=sat, sun from 22:00 for 4 h, Europe/Berlin");
  const row = window.page.locator("[aria-label='Maintenance windows'] tbody tr");
  assert.match(await row.textContent(), /login(open|closed).*20\d\d-/s);
  const users = window.page.locator("[aria-label=Users] tbody tr");
  assert.equal(await users.count(), 3);
  assert.match(await users.nth(1).textContent(), /rootgroupoperatorpool batch/);
  assert.match(await users.nth(2).textContent(), /nobody.*king/);
  assert.deepEqual(await violations(window.page), []);
  window.clean();
  await window.close();
  const other = await open(site, { token: viewer });
  await goTo(other.page, "#/settings");
  await other.page.waitForSelector("main >> text=Users are shown to admins");
  other.clean();
  await other.close();
});
