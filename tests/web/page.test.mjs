// SPDX-License-Identifier: Apache-2.0
// The page against a real server of 128 nodes.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import zlib from "node:zlib";
import { ask, closeBrowser, figure, goTo, kPages, open, settled, Site, theBrowser, violations } from "./harness.mjs";

let site, viewer, operator, approver, admin;
/** A maintenance window of pool debug that opens three days from now. */
const kWindowDay = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"][(new Date().getUTCDay() + 3) % 7];
before(async () => {
  site = new Site(128);
  const inventory = path.join(site.site, "cluster.yaml"), declared = fs.readFileSync(inventory, "utf8");
  const windowed = declared.replace("slurm: {partition: debug}", `slurm: {partition: debug}, maintenance: [{days: [${kWindowDay}], from: "03:00", minutes: 60}]`);
  assert.notEqual(windowed, declared);
  fs.writeFileSync(inventory, windowed);
  viewer = site.token("viewer");
  operator = site.token("operator");
  approver = site.token("approver");
  admin = site.token("admin");
  await site.start();
});
after(async () => {
  await closeBrowser();
  await site.end();
});

describe("what is served", () => {
  test("with a policy that lets nothing in, and unchanged files are not sent again", async () => {
    const index = await ask(site.url, "/");
    const policy = index.headers["content-security-policy"];
    assert.match(policy, /default-src '(self|none)'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.equal(index.headers["x-content-type-options"], "nosniff");
    assert.equal((await ask(site.url, "/", { headers: { "If-None-Match": index.headers.etag } })).status, 304);
  });

  test("each page weighs at most 60 kB, gzip, all that it loads counted; the console's terminal alone does not", async () => {
    const heaviest = { name: "", bytes: 0 };
    for (const [name, at] of Object.entries(kPages)) {
      const window = await open(site, { token: admin, at });
      await goTo(window.page, at);
      if (name === "measurements") await window.page.waitForSelector(".plot path");
      if (name === "console") await window.page.waitForSelector(".xterm-rows");
      const files = await window.page.evaluate(() => [location.pathname, ...performance.getEntriesByType("resource").map((entry) => new URL(entry.name).pathname)].filter((file) => !file.startsWith("/api/")));
      let sum = 0, terminal = 0;
      for (const file of new Set(files)) {
        const bytes = await weight(file);
        sum += bytes;
        if (file.includes("xterm")) terminal += bytes;
      }
      assert.ok(sum - terminal <= 60_000, `${name}: ${sum - terminal} bytes`);
      assert.equal(terminal > 0, name === "console", name);
      if (sum - terminal > heaviest.bytes) Object.assign(heaviest, { name, bytes: sum - terminal });
      if (["now", "node", "measurements"].includes(name)) figure(`weight of the page ${name}, gzip`, `${(sum / 1000).toFixed(1)} kB`, "60 kB");
      if (terminal > 0) figure("weight of the console's terminal, gzip", `${(terminal / 1000).toFixed(1)} kB`);
      await window.close();
    }
    figure("weight of the heaviest page, gzip", `${heaviest.name}, ${(heaviest.bytes / 1000).toFixed(1)} kB`, "60 kB");
  });

  const weights = new Map();
  async function weight(file) {
    if (!weights.has(file)) {
      const answer = await ask(site.url, file, { headers: { "Accept-Encoding": "gzip" } });
      assert.equal(answer.status, 200, file);
      if (answer.body.length > 1000) assert.equal(answer.headers["content-encoding"], "gzip", file);
      weights.set(file, answer.body.length);
    }
    return weights.get(file);
  }
});

describe("log in", () => {
  test("a wrong token is refused in words, a right one becomes a cookie that no script reads", async () => {
    const window = await open(site);
    await window.page.fill("input[name=token]", "muster_wrong");
    await window.page.keyboard.press("Enter");
    await window.page.waitForSelector("[role=alert]");
    await window.page.fill("input[name=token]", viewer);
    await window.page.keyboard.press("Enter");
    await window.page.waitForSelector("[data-connection=live]");
    const cookie = (await window.context.cookies())[0];
    assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite], [true, true, "Strict"]);
    assert.equal(await window.page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })).then((text) => text.includes("muster_")), false);
    await window.page.reload();
    await window.page.waitForSelector("[data-connection=live]");
    await goTo(window.page, "#/settings");
    await window.page.click("text=Log out");
    await window.page.waitForSelector("input[name=token]");
    await window.page.reload();
    await window.page.waitForSelector("input[name=token]");
    window.clean("401");
    await window.close();
  });

  test("an order with the cookie from another site's page is refused", async () => {
    const headers = { Cookie: `__Host-muster=${admin}`, "Content-Type": "application/json" };
    const body = JSON.stringify({ nodes: "gpu001", reason: "test" });
    for (const more of [{}, { Origin: "https://evil.example" }, { "Sec-Fetch-Site": "cross-site", Origin: site.url }, { "Sec-Fetch-Site": "same-site" }])
      assert.equal((await ask(site.url, "/api/v1/quarantine", { method: "POST", headers: { ...headers, ...more }, body })).status, 403, JSON.stringify(more));
    assert.equal((await ask(site.url, "/api/v1/me", { headers })).status, 200);
    assert.equal((await ask(site.url, "/api/v1/me", { headers: { Cookie: "__Host-muster=muster_x" } })).status, 401);
  });

  test("who may not is told so beside each order", async () => {
    for (const [role, token, holds, wipes] of [["viewer", viewer, false, false], ["approver", approver, false, false], ["robot", site.token("robot"), false, false], ["operator", operator, true, false], ["admin", admin, true, true]]) {
      const window = await open(site, { token, at: "#/nodes/gpu001" });
      await goTo(window.page, "#/nodes/gpu001");
      for (const [label, may] of [["Quarantine…", holds], ["Permit a wipe…", wipes]]) {
        const button = window.page.locator(".heading button", { hasText: label });
        assert.equal(await button.getAttribute("aria-disabled"), may ? null : "true", `${role}: ${label}`);
        if (may) continue;
        assert.match(await button.getAttribute("title"), new RegExp(`\\(${role}\\) may not: ask somebody with the role .*admin`));
        await button.click({ force: true }); // a browser clicks what is aria-disabled, Playwright would wait
        assert.equal(await window.page.locator("dialog[open]").count(), 0);
        await window.page.waitForSelector(".said >> text=may not");
      }
      window.clean();
      await window.close();
    }
  });
});

describe("pages", () => {
  const shots = process.env.WEB_SHOTS;
  for (const [kind, size, scheme] of [["light", [1360, 860], "light"], ["dark", [1360, 860], "dark"], ["phone", [360, 740], "light"]])
    test(`each opens by its link, ${kind}: no error, nothing wider than the window, axe finds nothing`, async () => {
      const window = await open(site, { token: admin, width: size[0], height: size[1], scheme });
      for (const [name, at] of Object.entries(kPages)) {
        await window.page.goto("about:blank");
        await window.page.goto(`${site.url}/${at}`);
        await window.page.waitForSelector("[data-connection=live]");
        await settled(window.page);
        if (name === "measurements") await window.page.waitForSelector(".plot path");
        if (name === "console") await window.page.waitForSelector(".tty[data-bytes]:not([data-bytes='0'])");
        if (shots) {
          fs.mkdirSync(shots, { recursive: true });
          await window.page.screenshot({ path: path.join(shots, `${name}-${kind}.png`) });
        }
        assert.equal(await window.page.locator("main h1").count(), 1, name);
        assert.ok(await window.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}: wider than the window`);
        assert.deepEqual(await violations(window.page), [], name);
        const alerts = await window.page.locator("main [role=alert]").allTextContents();
        assert.deepEqual(alerts, [], name);
      }
      window.clean(name404(window));
      await window.close();
    });
  /** What the page asks for without knowing whether it is there: runs, a certificate. */
  const name404 = () => "status of 404";

  test("on a phone the frame is one line; its menu has every page, who asks and the colours, and closes", async () => {
    const window = await open(site, { token: admin, width: 360, height: 740, at: "#/nodes" });
    const { page } = window, menu = page.locator("nav .menu"), pages = page.locator("nav .pages");
    const closed = () => pages.waitFor({ state: "hidden" });
    for (const width of [360, 320, 240]) {
      await page.setViewportSize({ width, height: 740 });
      assert.ok(await page.evaluate(() => document.querySelector("main").getBoundingClientRect().top) <= 56, `${width}`);
      assert.equal(await pages.isVisible(), false);
      await menu.click();
      await pages.waitFor();
      assert.deepEqual(await violations(page), [], `${width}`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}: wider than the window`);
      await page.keyboard.press("Escape");
      await closed();
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Menu");
    }
    // The first tap after a step within a page opens it, too.
    await page.fill(".filters input[type=search]", "gpu001");
    await page.waitForFunction(() => location.hash.includes("q=gpu001"));
    await menu.click();
    await pages.waitFor();
    assert.match(await pages.textContent(), /hall-2.*token:admin\d+/);
    await page.mouse.click(180, 720);
    await closed();
    await menu.focus();
    await page.keyboard.press("Enter");
    await pages.waitFor();
    await pages.locator("a", { hasText: "Racks" }).click();
    await page.waitForSelector("main[data-page=racks]");
    await closed();
    await menu.focus();
    await page.keyboard.press("Enter");
    await pages.waitFor();
    for (let step = 0; step < 30 && (await pages.isVisible()); step += 1) await page.keyboard.press("Tab");
    await closed(); // the focus has left it
    await goTo(page, "#/settings");
    await menu.click();
    await pages.locator(".who").click(); // where one is already
    await closed();
    window.clean();
    await window.close();
  });

  test("filters are in the URL, and the URL makes them", async () => {
    const window = await open(site, { token: viewer, at: "#/nodes" });
    await goTo(window.page, "#/nodes?state=quarantined");
    const rows = window.page.locator(".big-table .rows [role=row]");
    const count = await rows.count();
    assert.ok(count >= 2 && count < 20, `${count}`);
    await goTo(window.page, "#/nodes");
    await window.page.fill(".filters input[type=search]", "gpu[010-019,100]");
    await window.page.waitForFunction(() => document.querySelectorAll(".big-table .rows [role=row]").length === 11);
    assert.match(window.page.url(), /q=gpu%5B010-019%2C100%5D/);
    await window.page.click("text=Node >> nth=-1").catch(() => {});
    await window.page.goto("about:blank");
    await window.page.goto(`${site.url}/#/nodes?q=gpu%5B010-019%5D&sort=-node`);
    await settled(window.page);
    assert.match(await rows.first().textContent(), /gpu019/);
    window.clean("404");
    await window.close();
  });

  test("a node that is not there, and a page that is not there, say so", async () => {
    const window = await open(site, { token: viewer, at: "#/nodes/nothere" });
    await goTo(window.page, "#/nodes/nothere");
    await window.page.waitForSelector("main [role=alert]");
    await goTo(window.page, "#/somewhere");
    await window.page.waitForSelector("text=Nothing here");
    await window.close();
  });

  test("words of others are text, never markup", async () => {
    site.change("gpu050", "hw.note", "<img src=x onerror=alert(1)>", "<b>bold</b> <script>alert(1)</script>");
    const window = await open(site, { token: viewer, at: "#/log" });
    await goTo(window.page, "#/log");
    await window.page.waitForSelector("text=<b>bold</b>");
    await goTo(window.page, "#/nodes/gpu050?tab=facts");
    await window.page.waitForSelector("text=<img src=x");
    assert.equal(await window.page.locator("main img, main script").count(), 0);
    window.clean("404");
    await window.close();
  });
});

describe("live", () => {
  test("an order in one window is seen in another, without a reload", async () => {
    const one = await open(site, { token: operator, at: "#/nodes/gpu021" }), two = await open(site, { token: viewer });
    await goTo(two.page, "#/nodes?q=gpu021");
    await two.page.waitForSelector(".rows >> text=in pool");
    await two.page.evaluate(() => { window.not_reloaded = true; });
    await goTo(one.page, "#/nodes/gpu021");
    await one.page.click(".heading >> text=Quarantine…");
    await one.page.fill("dialog input[name=reason]", "coolant, ticket 12");
    const began = Date.now();
    await one.page.keyboard.press("Enter");
    await one.page.waitForSelector(".said >> text=in quarantine");
    await two.page.waitForFunction(() => !document.querySelector(".rows [role=row]").textContent.includes("in pool") || document.querySelector(".rows [role=row]").textContent.match(/1/), null, { timeout: 10_000 });
    await goTo(two.page, "#/now");
    await two.page.waitForSelector("text=coolant, ticket 12");
    figure("an order is seen in another window", `${Date.now() - began} ms`);
    assert.ok(await two.page.evaluate(() => window.not_reloaded));
    await goTo(one.page, "#/nodes/gpu021");
    await one.page.click(".heading >> text=Take out of quarantine…");
    await one.page.fill("dialog input[name=reason]", "dry again");
    await one.page.keyboard.press("Enter");
    await two.page.waitForSelector("text=coolant, ticket 12", { state: "detached" });
    one.clean("404");
    two.clean("404");
    await one.close();
    await two.close();
  });

  test("a state that changes in the store is shown", async () => {
    const window = await open(site, { token: viewer });
    await goTo(window.page, "#/nodes?q=gpu030");
    await window.page.waitForSelector(".rows >> text=in pool");
    const began = Date.now();
    site.change("gpu030", "pool", "drained", "drained by hand");
    await window.page.waitForSelector(".rows >> text=maintenance");
    figure("a change of the store is shown", `${Date.now() - began} ms, of it the change itself about 100 ms`);
    await window.close();
  });

  test("after a sleep, and after a while without a network, what has changed meanwhile is shown", async () => {
    const window = await open(site, { token: viewer });
    const { page, context } = window;
    await goTo(page, "#/nodes?q=gpu[032-033]");
    await page.waitForFunction(() => document.querySelector(".rows").textContent.split("in pool").length === 3);
    await page.evaluate(() => { window.not_reloaded = true; });
    const session = await context.newCDPSession(page);
    await session.send("Page.setWebLifecycleState", { state: "frozen" });
    site.change("gpu032", "pool", "drained", "while it slept");
    await session.send("Page.setWebLifecycleState", { state: "active" });
    await page.waitForFunction(() => document.querySelector(".rows").textContent.split("in pool").length === 2, null, { timeout: 20_000 });
    await context.setOffline(true);
    site.change("gpu033", "pool", "drained", "while it was alone");
    await context.setOffline(false);
    await page.waitForFunction(() => !document.querySelector(".rows").textContent.includes("in pool"), null, { timeout: 20_000 });
    await page.waitForSelector("[data-connection=live]");
    await goTo(page, "#/log");
    for (const text of ["while it slept", "while it was alone"]) assert.equal(await page.locator("td", { hasText: text }).count(), 1, text);
    assert.ok(await page.evaluate(() => window.not_reloaded));
    window.clean("ERR_INTERNET_DISCONNECTED", "ERR_NETWORK_CHANGED", "ERR_INCOMPLETE_CHUNKED");
    await window.close();
  });

  test("the server is killed, the page says so calmly, and goes on by itself", async () => {
    const window = await open(site, { token: viewer });
    await goTo(window.page, "#/nodes?q=gpu031");
    await window.page.waitForSelector(".rows >> text=in pool");
    await window.page.evaluate(() => { window.not_reloaded = true; });
    await site.kill();
    await window.page.waitForSelector(".banner >> text=does not answer");
    await window.page.waitForSelector(".rows >> text=in pool");
    site.change("gpu031", "pool", "drained", "while the server was away");
    await site.start();
    const back = Date.now();
    await window.page.waitForSelector("[data-connection=live]", { timeout: 20_000 });
    await window.page.waitForSelector(".rows >> text=maintenance");
    figure("right again after the server is back", `${Date.now() - back} ms`);
    assert.equal(await window.page.locator(".banner").count(), 0);
    assert.ok(await window.page.evaluate(() => window.not_reloaded));
    await goTo(window.page, "#/log");
    await window.page.waitForSelector("text=while the server was away");
    window.clean("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION", "ERR_SSL", "ERR_EMPTY", "404");
    await window.close();
  });
});

describe("by keyboard alone", () => {
  test("find a node, choose in the table, give and leave an order", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the page");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
    await page.keyboard.press("/");
    await page.keyboard.type("gpu[001-008]");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".big-table");
    await page.focus(".big-table .rows");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector("main h1 >> text=gpu002");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
    await page.waitForSelector("button >> text=Quarantine…"); // drawn when the node is known
    const isThere = () => page.evaluate(() => document.activeElement.textContent === "Quarantine…");
    for (let i = 0; i < 12 && !(await isThere()); ++i) await page.keyboard.press("Tab");
    assert.ok(await isThere());
    assert.ok(await page.evaluate(() => document.activeElement.matches(":focus-visible")));
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog[open]");
    assert.equal(await page.evaluate(() => document.activeElement.name), "nodes");
    assert.deepEqual(await violations(page), []);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog[open]", { state: "detached" });
    window.clean("404");
    await window.close();
  });

  test("what is lost needs the word typed", async () => {
    const window = await open(site, { token: admin });
    await goTo(window.page, "#/nodes/gpu040");
    await window.page.click(".heading >> text=Permit a wipe…");
    await window.page.fill("dialog input[name=reason]", "new image");
    await window.page.keyboard.press("Enter");
    assert.equal(await window.page.locator("dialog[open]").count(), 1);
    await window.page.fill("dialog input[name=confirm]", "gpu04");
    await window.page.keyboard.press("Enter");
    assert.equal(await window.page.locator("dialog[open]").count(), 1);
    await window.page.fill("dialog input[name=confirm]", "gpu040");
    await window.page.keyboard.press("Enter");
    await window.page.waitForSelector(".said >> text=permitted once");
    const grants = await ask(site.url, "/api/v1/wipe-grants", { headers: { Authorization: `Bearer ${admin}` } });
    assert.match(grants.body.toString(), /gpu040/);
    await window.close();
  });
});

describe("plan, firmware, fabric, console", () => {
  test("a look ahead says what it would disturb, and a link says for which nodes", async () => {
    const window = await open(site, { token: operator });
    await goTo(window.page, "#/plan");
    await window.page.waitForSelector(".changes >> text=firmware.BMC");
    const all = await window.page.locator(".changes tbody tr").count();
    await window.page.fill("form.filters input[name=nodes]", "gpu007");
    await window.page.keyboard.press("Enter");
    await window.page.waitForFunction((before) => location.hash.includes("nodes=gpu007") && document.querySelectorAll(".changes tbody tr").length < before, all);
    await window.page.waitForSelector(".domains >> text=batch");
    await window.page.reload();
    await settled(window.page);
    assert.equal(await window.page.inputValue("form.filters input[name=nodes]"), "gpu007");
    await window.page.click("text=Ask for a run…");
    assert.equal(await window.page.inputValue("dialog input[name=nodes]"), "gpu007");
    await window.page.keyboard.press("Escape");
    window.clean();
    await window.close();
  });

  test("a node's own plan, the way of its firmware, and who asked for what", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    await goTo(page, "#/nodes/gpu007?tab=plan");
    const change = page.locator('.changes tr:has(td:text-is("firmware.BMC"))');
    assert.match(await change.textContent(), /reset[^]*2\.9 → 3\.2/);
    await page.click("main .panel >> text=Ask for a run…");
    assert.equal(await page.inputValue("dialog input[name=nodes]"), "gpu007");
    await page.keyboard.press("Escape");
    await page.click("role=tab[name=Firmware]");
    await page.waitForSelector("main h3 >> text=bmc-reset");
    assert.match(await page.textContent("main"), /BMC\s*2\.9 → 3\.0[^]*BMC\s*3\.0 → 3\.2[^]*CPLD\s*0x12 → 0x14/, "the version between comes first");
    assert.match(await page.locator("main tr", { hasText: "CPLD" }).textContent(), /0x12/);
    await goTo(page, "#/nodes/gpu001?tab=firmware");
    await page.waitForSelector("text=Every component is as declared.");
    await goTo(page, "#/nodes/gpu121?tab=firmware");
    await page.waitForSelector("text=Its profile declares no firmware baseline.");
    await goTo(page, "#/log");
    await page.click(".legend >> text=Who asked");
    await page.waitForSelector("main tr:has-text('anna@ctl1') >> text=muster apply");
    await page.fill(".filters input[type=search]", "nobody-has-typed-this");
    await page.waitForSelector("text=Nobody has asked for that.");
    window.clean();
    await window.close();
    const watcher = await open(site, { token: viewer });
    await goTo(watcher.page, "#/nodes/gpu007?tab=plan");
    await watcher.page.waitForSelector("main >> text=may not: ask somebody with the role operator, approver, robot or admin");
    watcher.clean();
    await watcher.close();
  });

  test("firmware as a table: what differs, what lies between, why something stays", async () => {
    const window = await open(site, { token: viewer });
    await goTo(window.page, "#/firmware");
    const bmc = window.page.locator(".matrix tr", { hasText: "BMC" });
    await bmc.locator("text=2.9").waitFor();
    assert.match(await bmc.textContent(), /→ 3\.0 → 3\.2/);
    await window.page.click(".legend >> text=to update");
    await window.page.waitForFunction(() => location.hash.includes("state=to-update"));
    assert.equal(await window.page.locator(".matrix .have >> text=as declared").count(), 0);
    await window.page.click(".matrix .have a >> nth=0");
    await window.page.waitForSelector(".big-table");
    assert.match(decodeURIComponent(new URL(window.page.url()).hash), /q=gpu/);
    window.clean();
    await window.close();
  });

  test("a cable's link says to the technician what to do", async () => {
    const window = await open(site, { token: viewer });
    await goTo(window.page, "#/fabric");
    await window.page.waitForSelector(".jobs li");
    await window.page.focus(".big-table .rows");
    await window.page.keyboard.press("ArrowDown");
    await window.page.keyboard.press("Enter");
    const told = await window.page.textContent("#cable .big");
    assert.match(told, /gpu0|leaf/);
    await window.page.reload();
    await window.page.waitForSelector("#cable .big");
    assert.equal(await window.page.textContent("#cable .big"), told);
    await window.page.fill(".filters input[type=search]", "gpu020");
    await window.page.waitForFunction(() => document.querySelectorAll(".big-table .rows [role=row]").length === 1);
    assert.match(await window.page.textContent(".big-table .rows [role=row]"), /bad.*clean both ends/);
    await window.page.waitForSelector(".heat rect[data-heat=worst]");
    assert.match(await window.page.textContent("text=The slowest >> xpath=.. >> ol"), /gpu013/);
    window.clean();
    await window.close();
  });

  test("a console: earlier boots, and the one that goes on", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    await goTo(page, "#/nodes/gpu003?tab=console");
    await page.waitForFunction(() => document.querySelector(".xterm-rows")?.textContent.includes("GPU has fallen off the bus"));
    const green = await page.evaluate(() => [...document.querySelectorAll(".xterm-rows span")].some((span) => span.textContent.includes("OK") && getComputedStyle(span).color !== getComputedStyle(document.querySelector(".xterm-rows")).color));
    assert.ok(green, "its colours are drawn although the policy refuses <style>");
    await page.click(".boots >> text=installation");
    await page.waitForSelector(".tty[data-boot='1']");
    const machine = site.console("gpu003");
    await page.waitForSelector(".boots >> text=restart", { timeout: 20_000 });
    await page.click(".boots >> text=restart");
    machine.stdin.write("the first line of this boot\n");
    await page.waitForFunction(() => document.querySelector(".xterm-rows")?.textContent.includes("the first line of this boot"), null, { timeout: 20_000 });
    const said = Date.now();
    machine.stdin.write("and the second\n");
    await page.waitForFunction(() => document.querySelector(".xterm-rows")?.textContent.includes("and the second"), null, { timeout: 20_000 });
    figure("a line of a console is on the screen after", `${Date.now() - said} ms`);
    machine.stdin.end();
    window.clean();
    await window.close();
  });

  test("what a viewer may not see is said, and not asked for", async () => {
    const window = await open(site, { token: viewer });
    await goTo(window.page, "#/nodes/gpu003?tab=console");
    await window.page.waitForSelector("main >> text=may not: ask somebody with the role operator or admin");
    assert.equal(await window.page.locator(".tty").count(), 0);
    await goTo(window.page, "#/plan");
    await window.page.waitForSelector("main >> text=may not: ask somebody with the role operator, approver, robot or admin");
    await goTo(window.page, "#/rack-side/gpu003");
    assert.equal(await window.page.locator(".locator button").first().getAttribute("aria-disabled"), "true");
    window.clean();
    await window.close();
  });

  test("a machine's power needs its name typed, and says what came of it", async () => {
    const window = await open(site, { token: operator });
    await goTo(window.page, "#/nodes/gpu022");
    await window.page.click(".power >> text=Power…");
    assert.equal(await window.page.locator("dialog select[name=override]").count(), 0, "an admin's");
    await window.page.selectOption("dialog select[name=action]", "restart");
    await window.page.fill("dialog input[name=reason]", "loose cable");
    await window.page.fill("dialog input[name=confirm]", "gpu02");
    await window.page.keyboard.press("Enter");
    assert.equal(await window.page.locator("dialog[open]").count(), 1);
    await window.page.fill("dialog input[name=confirm]", "gpu022");
    await window.page.keyboard.press("Enter");
    await window.page.waitForSelector("dialog [role=alert] >> text=may be running jobs");
    await window.page.selectOption("dialog select[name=force]", "yes");
    await window.page.keyboard.press("Enter");
    await window.page.waitForSelector(".power .state:has-text('failed')", { timeout: 60_000 });
    assert.match(await window.page.textContent(".power p"), /10\.21\.|BMC/);
    window.clean("409");
    await window.close();
  });

  test("the locate LED: the BMC is asked, and what it does not answer is said", async () => {
    const window = await open(site, { token: operator });
    await goTo(window.page, "#/rack-side/gpu003");
    await window.page.click(".locator >> text=On…");
    await window.page.click(`dialog button.primary:text-is("Switch on")`);
    await window.page.waitForSelector(".locator .state:has-text('failed')", { timeout: 60_000 });
    assert.match(await window.page.textContent(".locator p"), /10\.21\.|BMC/);
    window.clean();
    await window.close();
  });
});

describe("a run in the browser, carried out by the real executor", () => {
  let fleet;
  before(() => { fleet = site.serveRuns(); });
  after(() => fleet.kill("SIGKILL"));
  const state = (page, word) => page.waitForSelector(`.heading .state:has-text("${word}")`, { timeout: 60_000 });

  test("ask, look, run, watch, pause, go on, done; a viewer watches and may say nothing", async () => {
    const window = await open(site, { token: operator }), watcher = await open(site, { token: viewer });
    const { page } = window;
    await goTo(page, "#/plan?nodes=gpu[007-008]");
    await page.click("text=Ask for a run…");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Enter");
    await state(page, "needs-approval");
    await page.waitForSelector(".domains >> text=batch");
    await page.waitForSelector(".changes >> text=firmware.BMC");
    const at = new URL(page.url()).hash;
    await goTo(watcher.page, at);
    await state(watcher.page, "needs-approval");
    const discard = watcher.page.locator(".heading button", { hasText: "Discard…" });
    assert.equal(await discard.getAttribute("aria-disabled"), "true");
    await goTo(watcher.page, "#/plan");
    await watcher.page.waitForSelector("main .card >> text=the word of");
    await goTo(watcher.page, at);

    await page.click(".heading >> text=Run…");
    await page.fill("dialog input[name=confirm]", "run");
    await page.keyboard.press("Enter");
    await state(page, "running");
    await state(watcher.page, "running");
    await page.click(".heading >> text=Pause…");
    await page.click(`dialog button.primary:text-is("Pause")`);
    await state(page, "paused");
    await state(watcher.page, "paused");
    await page.click(".heading >> text=Resume…");
    await page.click(`dialog button.primary:text-is("Go on")`);
    await state(page, "running");

    await site.kill();
    await page.waitForSelector(".banner >> text=does not answer");
    await site.start();
    await page.waitForSelector("[data-connection=live]", { timeout: 20_000 });
    await state(page, "done");
    await state(watcher.page, "done");
    await goTo(watcher.page, "#/firmware?q=BMC");
    await watcher.page.waitForFunction(() => !/2\.9[^]*gpu007/.test(document.querySelector(".matrix").textContent), null, { timeout: 20_000 });
    window.clean("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION", "ERR_SSL", "ERR_EMPTY", "404");
    await window.close();
    await watcher.close();
  });

  test("somebody else approves a plan: the list of what waits leads there, and it runs", async () => {
    const asks = await open(site, { token: operator }), says_yes = await open(site, { token: approver });
    await goTo(asks.page, "#/plan?nodes=gpu087");
    await asks.page.click("text=Ask for a run…");
    await asks.page.waitForSelector("dialog[open]");
    await asks.page.keyboard.press("Enter");
    await state(asks.page, "needs-approval");
    assert.equal(await asks.page.locator(".heading >> text=Approve…").count(), 0, "nobody approves his own");
    const { page } = says_yes;
    await goTo(page, "#/now");
    await page.waitForSelector("main >> text=gpu087");
    await goTo(page, "#/plan");
    const card = page.locator("main .card", { hasText: "gpu087" });
    await card.locator(".domains >> text=batch").waitFor();
    assert.equal(await card.locator("button", { hasText: "Discard…" }).getAttribute("aria-disabled"), "true");
    await card.locator("text=Approve…").click();
    await page.fill("dialog input[name=confirm]", "approve");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".said >> text=approved");
    await state(asks.page, "done");
    asks.clean();
    says_yes.clean();
    await asks.close();
    await says_yes.close();
  });

  test("outside its window a plan waits for it; overridden it runs, and says so until somebody else has seen it", async () => {
    site.change("gpu123", "driver.nvidia-570", "none", "somebody has removed it");
    const asks = await open(site, { token: operator }), overrides = await open(site, { token: admin }), knows = await open(site, { token: approver });
    const { page } = asks;
    await goTo(page, "#/plan?nodes=gpu123");
    await page.click(".heading >> text=Ask for a run…");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Enter");
    await state(page, "needs-approval");
    await page.waitForSelector("main dd >> text=/debug: in its window, from .* 03:00:00 UTC/");
    await page.click(".heading >> text=Run in window…");
    await page.waitForSelector("dialog >> text=It begins in the window");
    await page.fill("dialog input[name=confirm]", "run");
    await page.keyboard.press("Enter");
    await state(page, "waiting");
    await page.waitForSelector("main .terms >> text=/waits until.*03:00:00 UTC/");
    assert.equal(await page.locator(".heading >> text=Override…").count(), 0, "an admin's");
    const at = new URL(page.url()).hash;
    await goTo(overrides.page, at);
    await overrides.page.click(".heading >> text=Override…");
    await overrides.page.fill("dialog input[name=reason]", "nobody works there today");
    await overrides.page.fill("dialog input[name=confirm]", "override");
    await overrides.page.keyboard.press("Enter");
    await state(page, "done");
    assert.equal(await overrides.page.locator(".heading >> text=Acknowledge override…").count(), 0, "nobody acknowledges their own");
    await goTo(knows.page, "#/now");
    await knows.page.click("main a.line:has-text('nobody works there today')");
    await knows.page.click(".heading >> text=Acknowledge override…");
    await knows.page.click(`dialog button.primary:text-is("Acknowledge")`);
    await knows.page.waitForSelector("main dd >> text=acknowledged by token:approver");
    await goTo(knows.page, "#/now");
    await knows.page.waitForSelector("main a.line:has-text('nobody works there today')", { state: "detached" });
    for (const each of [asks, overrides, knows]) {
      each.clean();
      await each.close();
    }
  });

  test("a plan is discarded, and nothing was done", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    await goTo(page, "#/plan?nodes=gpu047");
    await page.click("text=Ask for a run…");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Enter");
    await state(page, "needs-approval");
    await page.click(".heading >> text=Discard…");
    await page.click(`dialog button.primary:text-is("Discard")`);
    await state(page, "cancelled");
    await goTo(page, "#/firmware?q=BMC");
    await page.waitForSelector(".matrix >> text=2.9");
    window.clean();
    await window.close();
  });
});

describe("what goes wrong around the page", () => {
  const get = async (path, token) => JSON.parse((await ask(site.url, `/api/v1${path}`, { headers: { Authorization: `Bearer ${token}` } })).body);

  test("an order that arrived and whose answer was lost is given again and done once", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    await goTo(page, "#/plan?nodes=gpu048");
    const before = (await get("/runs?limit=1000", operator)).items.length;
    let lost = false;
    await page.route("**/api/v1/runs", async (route) => {
      if (route.request().method() !== "POST" || lost) return route.continue();
      lost = true;
      await route.fetch();
      return route.abort("connectionreset");
    });
    await page.click(".heading >> text=Ask for a run…");
    await page.click(`dialog button.primary:text-is("Ask")`);
    await page.waitForSelector("dialog [role=alert] >> text=it is done once");
    await page.click(`dialog button.primary:text-is("Ask")`);
    await page.waitForFunction(() => location.hash.startsWith("#/runs/"));
    assert.equal((await get("/runs?limit=1000", operator)).items.length, before + 1);
    await settled(page);
    await page.click(".heading >> text=Discard…");
    await page.click(`dialog button.primary:text-is("Discard")`);
    await page.waitForSelector("dialog[open]", { state: "detached" });
    window.clean("ERR_CONNECTION_RESET");
    await window.close();
  });

  test("a session that ends under an open dialog says so, and the next one does not find the dialog", async () => {
    const short = site.token("operator");
    const window = await open(site, { token: short });
    const { page } = window;
    await goTo(page, "#/nodes/gpu061");
    await page.click(".heading >> text=Quarantine…");
    await page.fill("dialog input[name=reason]", "half typed");
    const mine = (await get("/me", short)).principal.replace("token:", "");
    const token = (await get("/tokens", admin)).items.find((each) => each.name === mine);
    assert.equal((await ask(site.url, `/api/v1/tokens/${token.id}`, { method: "DELETE", headers: { Authorization: `Bearer ${admin}`, "Content-Type": "application/json" } })).status, 204);
    const until = Date.now() + 10_000; // the server looks at its tokens once a second
    while ((await ask(site.url, "/api/v1/me", { headers: { Authorization: `Bearer ${short}` } })).status !== 401) assert.ok(Date.now() < until);
    await page.keyboard.press("Enter");
    await page.waitForSelector("main >> text=The session has ended.");
    assert.equal((await get("/quarantine", viewer)).items.filter((each) => each.node === "gpu061").length, 0);
    await page.fill("input[name=token]", viewer);
    await page.keyboard.press("Enter");
    await page.waitForSelector("main h1:text-is('gpu061')");
    assert.equal(await page.locator("dialog[open]").count(), 0);
    await window.close();
  });

  test("another tab logs in as somebody else: an order of this one is refused, and it shows who one is now", async () => {
    const window = await open(site, { token: admin });
    const { page } = window;
    await goTo(page, "#/nodes/gpu062");
    const tab = await window.context.newPage();
    await tab.goto(`${site.url}/#/settings`);
    await tab.click("text=Log out");
    await tab.fill("input[name=token]", viewer);
    await tab.keyboard.press("Enter");
    await tab.waitForSelector("[data-connection=live]");
    await page.click(".heading >> text=Quarantine…");
    await page.fill("dialog input[name=reason]", "by the tab of before");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog [role=alert] >> text=may not");
    await page.waitForSelector(".top .who >> text=viewer");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".heading button", { hasText: "Quarantine…" }).getAttribute("aria-disabled"), "true");
    await window.close();
  });

  test("a computer whose clock is wrong is told so, and ages are the server's", async () => {
    const window = await open(site, {});
    const { page } = window;
    await page.addInitScript(() => {
      const Real = Date, error = -3 * 3_600_000;
      globalThis.Date = class extends Real {
        constructor(...given) { super(...(given.length > 0 ? given : [Real.now() + error])); }
        static now() { return Real.now() + error; }
      };
    });
    await page.reload();
    await page.fill("input[name=token]", viewer);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".banner >> text=/clock of this computer is 3 h behind/");
    await goTo(page, "#/now");
    assert.match(await page.locator(".finding", { hasText: "two subnet managers" }).textContent(), /\d+ (min|h) ago|just now/);
    await window.close();
  });

  test("addresses that nobody wrote for it end in words", async () => {
    const window = await open(site, { token: admin });
    for (const [at, words] of [["#/racks/nowhere", "No node of the inventory is in a rack nowhere."], ["#/nodes/gpu003?tab=constructor", "Declared and observed"], ["#/nodes/gpu003?tab=console&boot=1e99", "No boot 1e+99 of gpu003 is recorded."],
      ["#/nodes/../gpu001", "Declared and observed"], ["#/nodes?q=%3Cimg%20src=x%20onerror=alert(1)%3E", "No node is so."], ["#javascript:alert(1)", "Nothing here"], ["#/plan?nodes=gpu[000000001-999999999]", "is no hostlist"]]) {
      await goTo(window.page, at);
      await window.page.locator("main", { hasText: words }).waitFor();
      assert.equal(await window.page.locator("main img, main script").count(), 0, at);
    }
    window.clean("status of 400");
    await window.close();
  });

  test("magnified fourfold nothing is cut", async () => {
    const window = await open(site, { token: admin, width: 340, height: 215 });
    const { page } = window;
    await goTo(page, "#/nodes/gpu022");
    await page.click(".power >> text=Power…");
    await page.locator(`dialog button.primary:text-is("Order")`).scrollIntoViewIfNeeded();
    const box = await page.locator(`dialog button.primary:text-is("Order")`).boundingBox();
    assert.ok(box && box.y >= 0 && box.y + box.height <= 215, JSON.stringify(box));
    await page.keyboard.press("Escape");
    for (const at of Object.values(kPages)) {
      await goTo(page, at);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), at);
    }
    await window.close();
  });
});

test("a token is created, shown once, used, and revoked", async () => {
  const window = await open(site, { token: admin });
  await goTo(window.page, "#/settings");
  await window.page.click("text=Create…");
  await window.page.fill("dialog input[name=name]", "wallboard");
  await window.page.click(`dialog button.primary:text-is("Create")`);
  const token = await window.page.textContent("[data-token]");
  assert.match(token, /^muster_/);
  const asks = () => ask(site.url, "/api/v1/me", { headers: { Authorization: `Bearer ${token}` } });
  const until = Date.now() + 10_000; // the server looks at its tokens once a second
  while ((await asks()).status !== 200) assert.ok(Date.now() < until);
  await window.page.locator("tr", { hasText: "wallboard" }).locator("text=Revoke…").click();
  await window.page.fill("dialog input[name=confirm]", "wallboard");
  await window.page.keyboard.press("Enter");
  await window.page.locator("tr", { hasText: "wallboard" }).locator("text=revoked").waitFor();
  await window.close();
});

test("muster ui: one browser of this host, without a token, as who typed it", async () => {
  const ui = await site.ui();
  const window = await open({ url: ui.url }, { at: ui.ticket });
  await window.page.waitForSelector("[data-connection=live]");
  assert.equal(new URL(window.page.url()).search, "");
  await goTo(window.page, "#/settings");
  await window.page.waitForSelector("text=the Unix socket");
  await goTo(window.page, "#/nodes/gpu060");
  await window.page.click(".heading >> text=Quarantine…");
  await window.page.fill("dialog input[name=reason]", "by muster ui");
  await window.page.keyboard.press("Enter");
  await window.page.waitForSelector(".said >> text=in quarantine");
  assert.match(site.muster("quarantine", "list"), /gpu060.*by muster ui/s);
  const other = await (await theBrowser()).newContext();
  const second = await other.newPage();
  assert.equal((await second.goto(`${ui.url}/${ui.ticket}`)).status(), 403);
  assert.equal((await second.goto(`${ui.url}/api/v1/me`)).status(), 403);
  await other.close();
  window.clean();
  await window.close();
  ui.child.kill("SIGTERM");
});
