// SPDX-License-Identifier: Apache-2.0
// The page with 10,000 nodes: what it costs, beside the bars of docs/benchmarks.md.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { closeBrowser, figure, goTo, open, settled, Site, theBrowser } from "./harness.mjs";

// Wide: this machine is shared. The figures are what counts, and they are printed.
const kPaintMs = 5_000, kChangeMs = 500, kLeastFrames = 20, kMemoryMib = 150;

const kHourOfEvents = 18_000, kEventsAtOnce = 1_000;

/** Private memory of the page's own process: the browser's other processes are as with any page. */
async function processMib(page) {
  const browser = await (await theBrowser()).newBrowserCDPSession();
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  await browser.detach();
  const sizes = processInfo.filter((each) => each.type === "renderer").map((each) => {
    const text = fs.readFileSync(`/proc/${each.id}/smaps_rollup`, "utf8");
    return [...text.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+)/gm)].reduce((sum, found) => sum + Number(found[1]), 0);
  });
  assert.ok(sizes.length > 0);
  return Math.round(Math.max(...sizes) / 1024);
}

let site, viewer;
before(async () => {
  site = new Site(10_000);
  viewer = site.token("viewer");
  await site.start();
});
after(async () => {
  await closeBrowser();
  await site.end();
});

test("10,000 nodes: first paint, scrolling, a change, memory", async () => {
  const window = await open(site, { token: viewer });
  const { page } = window;
  await goTo(page, "#/nodes");
  await page.reload();
  await page.waitForSelector("main h1");
  const paint = await page.evaluate(() => Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime || 0));
  await settled(page);
  const listed = await page.evaluate(() => Math.round(performance.now()));
  figure("10,000 nodes: first paint", `${paint} ms; the table stands after ${listed} ms`, "1,000 ms");
  assert.ok(paint > 0 && paint < kPaintMs);
  assert.match(await page.textContent(".heading"), /10,000/);
  assert.ok(await page.locator(".big-table [role=row]").count() < 120);

  const cpu = await page.context().newCDPSession(page);
  await cpu.send("Performance.enable", { timeDomain: "threadTicks" });
  const taskSeconds = async () => (await cpu.send("Performance.getMetrics")).metrics.find((each) => each.name === "TaskDuration").value;
  const before = await taskSeconds();
  const frames = await page.evaluate(async () => {
    const box = document.querySelector(".big-table .rows");
    const gaps = [];
    let last = performance.now();
    const began = last;
    let bottom = 0;
    while (performance.now() - began < 3_000) {
      await new Promise((done) => requestAnimationFrame(done));
      const now = performance.now();
      gaps.push(now - last);
      last = now;
      bottom += 900;
      box.scrollTop = bottom % (box.scrollHeight - box.clientHeight);
    }
    gaps.sort((a, b) => a - b);
    return { count: gaps.length, per_second: gaps.length / ((last - began) / 1000), p95: gaps[Math.floor(gaps.length * 0.95)], worst: gaps[gaps.length - 1] };
  });
  figure("10,000 nodes: scrolling 30 rows a frame", `${frames.per_second.toFixed(0)} frames/s, 95 % of them within ${frames.p95.toFixed(0)} ms, the slowest ${frames.worst.toFixed(0)} ms`, "60 frames/s");
  // What the page itself costs, whoever else has the machine: a frame of 60 a second has 16.7 ms.
  const cost = ((await taskSeconds()) - before) / frames.count * 1000;
  figure("10,000 nodes: CPU of the page for a frame of scrolling", `${cost.toFixed(1)} ms`, "16.7 ms");
  assert.ok(frames.per_second >= kLeastFrames);
  await page.evaluate(() => { document.querySelector(".big-table .rows").scrollTop = 0; });

  // The page's own work for one changed node: from the answer's arrival to the frame that shows it.
  const work = await page.evaluate(async () => {
    const { nodes } = await import("/js/site.js");
    const times = [];
    for (let i = 0; i < 40; ++i) {
      const copy = nodes.value.slice();
      copy[i % 10] = { ...copy[i % 10], state: i % 2 ? "failed" : "draining" };
      const began = performance.now();
      nodes.value = copy;
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      times.push(performance.now() - began);
    }
    times.sort((a, b) => a - b);
    return { median: times[20], p95: times[37] };
  });
  figure("10,000 nodes: a changed state, until the frame is drawn", `median ${work.median.toFixed(0)} ms, 95 % ${work.p95.toFixed(0)} ms`, "50 ms");
  assert.ok(work.median < kChangeMs);

  await page.reload();
  await settled(page);
  await page.waitForSelector("[data-connection=live]");
  const began = Date.now();
  site.change("gpu00005", "pool", "drained", "drained by hand");
  await page.waitForSelector(".rows >> text=maintenance", { timeout: 30_000 });
  figure("10,000 nodes: from the store's change to the screen", `${Date.now() - began} ms`);

  // An hour at a site where five things happen every second, replayed as fast as it goes.
  await goTo(page, "#/log");
  const replayed = Date.now();
  for (let i = 0; i < kHourOfEvents / kEventsAtOnce; ++i) {
    site.events(kEventsAtOnce);
    for (const at of ["#/now", "#/nodes?q=gpu00", "#/log"]) await goTo(page, at); // somebody looks around
    await page.waitForSelector(`text=event ${kEventsAtOnce - 1} of many`, { timeout: 60_000 });
  }
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  figure("10,000 nodes: heap after an hour of events", `${Math.round(usedSize / 2 ** 20)} MiB; ${kHourOfEvents.toLocaleString("en")} events in ${Math.round((Date.now() - replayed) / 1000)} s`, "150 MiB");
  assert.ok(usedSize / 2 ** 20 < kMemoryMib);
  figure("10,000 nodes: the page's process after an hour of events", `${await processMib(page)} MiB, private`, "150 MiB");
  figure("10,000 nodes: the server's memory", `${site.memoryMib()} MiB`);

  for (const at of ["#/racks", "#/now", "#/findings?as=list"]) {
    const start = Date.now();
    await goTo(page, at);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));
    figure(`10,000 nodes: ${at} opens`, `${Date.now() - start} ms`);
  }
  window.clean("404");
  await window.close();
});
