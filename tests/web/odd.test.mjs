// SPDX-License-Identifier: Apache-2.0
// The page of a site whose names are as odd as the inventory lets them be, and in hands that are not
// careful: what is pressed twice, left half-way, or meets a server that is started again.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { ask, closeBrowser, goTo, kPages, open, settled, Site } from "./harness.mjs";

const kMarkup = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">";
const kRacks = ["<script>r</script>", "a/b", "%2e%2e", "__proto__", "W".repeat(63), "constructor", "hall 2 row 7", "x' onload='y", "ünïcödé-機架"];
/** Words that mean something to a program, and the longest name. */
const kNodes = ["constructor", "0", "1e5", "l".repeat(63), "tostring", "undefined", "null", "nan", "x--y"];
const kLong = "p".repeat(63);

let site, operator, admin;
before(async () => {
  site = new Site(128);
  const file = path.join(site.site, "nodes.csv");
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const rows = fs.readFileSync(file, "utf8").trim().split("\n").map((row) => row.split(","));
  const column = Object.fromEntries(rows[0].map((name, at) => [name, at]));
  rows.slice(17, 17 + 8 * kRacks.length).forEach((row, i) => { row[column.rack] = quoted(kRacks[Math.floor(i / 8)]); });
  rows[3][column.serial] = quoted(kMarkup);
  rows[5][column.serial] = "S".repeat(250);
  kNodes.forEach((name, i) => rows.push(Object.assign([...rows[1]], { [column.name]: name, [column.rack]: "odd", [column.unit]: String(1 + 2 * i), [column.mac]: `52:54:00:99:00:${10 + i}`, [column.address]: `10.9.9.${i + 1}`, [column.bmc]: `https://10.8.8.${i + 1}`, [column.serial]: `O${i}` })));
  fs.writeFileSync(file, `${rows.map((row) => row.join(",")).join("\n")}\n`);
  const inventory = path.join(site.site, "cluster.yaml");
  let text = fs.readFileSync(inventory, "utf8");
  for (const [old, now] of [
    ["gpu_model: H100", `gpu_model: '${kMarkup.replaceAll("'", "''")}'`],
    ["pools:\n", `pools:\n  ${kLong}: {slurm: {partition: ${kLong}}}\n  constructor: {slurm: {partition: x}}\n`],
    ["profiles:\n", `profiles:\n  constructor: {image: bookworm-gpu, gates: [burn-in], pool: constructor}\n  ${kLong}: {image: bookworm-gpu, gates: [burn-in], pool: ${kLong}}\n`],
    ["nodes:\n", `nodes:\n  - {names: "${kNodes.slice(0, 5).join(",")}", profile: constructor, from: nodes.csv}\n  - {names: "${kNodes.slice(5).join(",")}", profile: ${kLong}, from: nodes.csv}\n`],
    ['version: "0x14"', 'version: "0x14<script>v</script>"'],
  ]) {
    assert.ok(text.includes(old), old);
    text = text.replace(old, () => now);
  }
  fs.writeFileSync(inventory, text);
  operator = site.token("operator");
  admin = site.token("admin");
  for (const [node, facet] of [["gpu004", "bmc.note"], ["constructor", "driver.nvidia"], ["gpu006", "image"], ["gpu006", "firmware.BMC"]]) site.change(node, facet, kMarkup, `${kMarkup} ${"W".repeat(400)}`);
  await site.start();
  const answer = await order("POST", "/quarantine", { nodes: "gpu020,constructor", reason: kMarkup + "W".repeat(300) });
  assert.equal(answer.status, 200, String(answer.body));
});
after(async () => {
  await closeBrowser();
  await site.end();
});
const order = (method, at, body) => ask(site.url, `/api/v1${at}`, { method, headers: { Authorization: `Bearer ${operator}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
const held = async () => JSON.parse((await order("GET", "/quarantine")).body).items.map((each) => each.node);

describe("odd names", () => {
  const places = Object.values(kPages);
  for (const name of kNodes) places.push(`#/nodes/${name}`, `#/nodes/${name}?tab=facts`, `#/nodes/${name}?tab=plan`, `#/rack-side/${name}`);
  for (const name of kRacks) places.push(`#/racks/${encodeURIComponent(name)}`);
  places.push("#/nodes?pool=constructor", `#/nodes?profile=${kLong}`, "#/nodes?q=constructor,0,1e5", "#/plan?nodes=constructor", "#/nodes/gpu004?tab=facts", "#/nodes/gpu006", "#/nodes/gpu006?tab=firmware");
  for (const [width, height] of [[1360, 860], [240, 320]])
    test(`every page stands at ${width} × ${height}: nothing is run, nothing is wider than the window, nothing fails`, async () => {
      const window = await open(site, { token: admin, width, height });
      for (const at of places) {
        await goTo(window.page, at);
        const seen = await window.page.evaluate(() => ({
          title: document.title,
          markup: document.querySelectorAll("main script, main img").length,
          wide: document.documentElement.scrollWidth > innerWidth,
          alerts: [...document.querySelectorAll("main [role=alert]")].map((each) => each.textContent),
          empty: !document.querySelector("main h1")?.textContent,
          unsaid: /\[object |\bNaN\b|function \w*\(/.exec(document.querySelector("main").innerText)?.[0] || "",
        }));
        assert.doesNotMatch(seen.title, /^taken$/, at);
        assert.deepEqual({ ...seen, title: "" }, { title: "", markup: 0, wide: false, alerts: [], empty: false, unsaid: "" }, at);
      }
      window.clean();
      await window.close();
    });
});

describe("careless hands", () => {
  test("an order that is pressed twice and thrice is given once", async () => {
    const window = await open(site, { token: operator });
    const { page } = window;
    let sent = 0;
    page.on("request", (request) => { if (request.method() === "POST" && request.url().endsWith("/quarantine")) sent += 1; });
    await page.route("**/api/v1/quarantine", async (route) => { // slow enough that whoever presses waits
      if (route.request().method() === "POST") await new Promise((done) => setTimeout(done, 700));
      await route.continue();
    });
    await goTo(page, "#/nodes/gpu051");
    await page.locator(".heading >> text=Quarantine…").dblclick();
    await page.waitForSelector("dialog[open]");
    assert.equal(await page.locator("dialog[open]").count(), 1);
    await page.fill("dialog input[name=reason]", "pressed twice");
    await page.locator("dialog button.primary").dblclick();
    await page.keyboard.press("Enter");
    await page.waitForSelector(".said >> text=in quarantine");
    assert.equal(sent, 1);
    assert.equal((await held()).filter((node) => node === "gpu051").length, 1);
    window.clean();
    await window.close();
  });

  test("back, amid an order: the dialog goes with its page, and nothing was ordered", async () => {
    const window = await open(site, { token: operator, at: "#/nodes" });
    const { page } = window;
    await goTo(page, "#/nodes/gpu052");
    await goTo(page, "#/nodes/gpu053");
    await page.click(".heading >> text=Quarantine…");
    await page.fill("dialog input[name=reason]", "half typed");
    await page.goBack();
    await page.waitForFunction(() => document.querySelector("main h1")?.textContent.includes("gpu052"));
    await settled(page);
    await page.waitForFunction(() => !document.querySelector("dialog[open]"));
    await page.keyboard.press("Enter");
    await page.goForward();
    await page.waitForFunction(() => document.querySelector("main h1")?.textContent.includes("gpu053"));
    assert.equal(await page.locator("dialog[open]").count(), 0);
    const nodes = await held();
    assert.deepEqual(["gpu052", "gpu053"].filter((node) => nodes.includes(node)), []);
    window.clean();
    await window.close();
  });

  test("a server that is started again under an open dialog: what was typed stays, and the order is given", async () => {
    const window = await open(site, { token: operator, quiet: ["Failed to load resource", "ERR_", "net::"] });
    const { page } = window;
    await goTo(page, "#/nodes/gpu054");
    await page.click(".heading >> text=Quarantine…");
    await page.fill("dialog input[name=reason]", "typed before");
    await site.kill();
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog [role=alert]");
    assert.equal(await page.inputValue("dialog input[name=reason]"), "typed before");
    await site.start();
    await page.waitForSelector("[data-connection=live]", { timeout: 30_000 });
    assert.equal(await page.inputValue("dialog input[name=reason]"), "typed before");
    await page.click("dialog button.primary");
    await page.waitForSelector(".said >> text=in quarantine");
    assert.equal((await held()).filter((node) => node === "gpu054").length, 1);
    window.clean();
    await window.close();
  });
});

/** Each the longest there is, or digits alone, or as many hyphens as may stand there. */
const oddName = (/** @type {number} */ i) => { const n = String(i).padStart(5, "0"); return [`${"l".repeat(58)}${n}`, n, `x${"-".repeat(30)}${n}`, `script-${n}-alert-1`][i % 4]; };

describe("10,000 nodes with odd names", () => {
  let large, viewer;
  before(async () => {
    large = new Site(10_000);
    const file = path.join(large.site, "nodes.csv"), inventory = path.join(large.site, "cluster.yaml");
    const rows = fs.readFileSync(file, "utf8").trim().split("\n");
    fs.writeFileSync(file, `${rows.map((row, i) => { const cells = row.split(","); return i === 0 ? row : [oddName(i), `"<script>${cells[1]}</script>"`, ...cells.slice(2, -1), `"<script>${i}</script>"`].join(","); }).join("\n")}\n`);
    const text = fs.readFileSync(inventory, "utf8"), groups = /^nodes:\n(?: +- .*\n)+/m;
    assert.match(text, groups);
    const declare = (/** @type {string} */ more) => fs.writeFileSync(inventory, text.replace(groups, `nodes:\n  - {profile: hgx-h100, from: nodes.csv}\n${more}`));
    declare('  - {names: "knoten-ü", profile: hgx-h100, mac: "52:54:00:99:00:10", address: 10.9.9.1, bmc: "https://10.8.8.1"}\n');
    assert.throws(() => large.muster("inventory", "check"), (error) => { const said = String(error.stderr) + String(error.stdout); assert.match(said, /knoten-ü/); return true; });
    declare("");
    viewer = large.token("viewer");
    await large.start();
  });
  after(() => large?.end());

  test("are listed, found, opened and folded, and nothing of them is run", async () => {
    const window = await open(large, { token: viewer });
    const { page } = window;
    for (const at of ["#/nodes", "#/racks", "#/now", `#/nodes/${oddName(4)}`, `#/nodes/${oddName(5)}`, `#/nodes/${oddName(7)}?tab=facts`, "#/nodes?q=script-", "#/findings", "#/plan"]) {
      await goTo(page, at);
      await settled(page);
      const seen = await page.evaluate(() => ({ title: document.title, markup: document.querySelectorAll("main script, main img").length, wide: document.documentElement.scrollWidth > innerWidth, heading: Boolean(document.querySelector("main h1")?.textContent) }));
      assert.doesNotMatch(seen.title, /^taken$/, at);
      assert.deepEqual({ ...seen, title: "" }, { title: "", markup: 0, wide: false, heading: true }, at);
    }
    await goTo(page, "#/nodes");
    assert.match(await page.textContent(".heading"), /10,000/);
    await goTo(page, `#/nodes?q=${oddName(9_999)},${oddName(9_998)}`);
    await page.waitForFunction(() => document.querySelectorAll(".big-table .rows [role=row]").length === 2);
    window.clean();
    await window.close();
  });
});
