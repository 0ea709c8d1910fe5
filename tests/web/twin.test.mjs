// SPDX-License-Identifier: Apache-2.0
// The page against the virtual twin: while the demo takes its rack from power-off to a Slurm pool,
// a browser watches, by `muster ui`, and sees each node on its way and in its pool, without a reload.
//   tests/web/run-tests build/bin twin           starts the demo itself: root, libvirt, 7 to 40 min
//   TWIN_PAGE='http://127.0.0.1:PORT/?ticket=…' TWIN_NODES=gpu001,gpu002 tests/web/run-tests build/bin twin
//                                                watches a rack that somebody else brings up
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { bin, closeBrowser, figure, goTo, open, violations } from "./harness.mjs";

const kRackMs = 60 * 60_000, kServerMs = 60_000, kLookMs = 500;
const programs = path.resolve(bin), root = path.resolve(programs, "../..");
const names = (process.env.TWIN_NODES || "gpu001,gpu002").split(",");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "muster-twin-"));
const children = [];
let page_at = process.env.TWIN_PAGE || "", demo_ended = null;

const environment = {
  ...process.env,
  MUSTER_INVENTORY: path.join(root, "build/demo/cluster.yaml"), MUSTER_STATE: path.join(root, "build/demo/state"),
  MUSTER_LAB: process.env.MUSTER_DEMO_LAB || "/run/muster-lab/demo", MUSTER_CACHE: process.env.MUSTER_CACHE || path.join(os.homedir(), ".cache/muster"), MUSTER_KEEP: "",
};

/** Waits until the program has said so. Its output stays in a file. */
function says(name, command, words, pattern, limit_ms) {
  const child = spawn(command, words, { env: environment, cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  const log = fs.createWriteStream(path.join(folder, `${name}.log`));
  let text = "";
  const ended = new Promise((done) => child.once("exit", (code) => done(code)));
  const said = new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`${name} did not say ${pattern} within ${limit_ms} ms:\n${text.slice(-3000)}`)), limit_ms);
    const take = (piece) => {
      log.write(piece);
      text = (text + piece).slice(-200_000);
      const found = pattern.exec(text);
      if (found) clearTimeout(timer), done(found);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    ended.then((code) => { clearTimeout(timer); failed(new Error(`${name} ended with ${code}:\n${text.slice(-3000)}`)); });
  });
  return { child, ended, said, text: () => text };
}

before(async () => {
  if (page_at) return;
  const demo = says("demo", path.join(root, "tools/demo"), [], /== muster plan/, kRackMs); // its rack is up
  demo_ended = demo.ended.then((code) => ({ code, text: demo.text() }));
  await demo.said;
  const socket = path.join(folder, "api.sock"), muster = path.join(programs, "muster");
  const server = says("server", muster, ["server", "--api-only", "--socket", socket], /answers on/, kServerMs);
  await server.said;
  page_at = (await says("ui", muster, ["ui", "--socket", socket], /http:\/\/\S+\?ticket=\S+/, kServerMs).said)[0];
}, { timeout: kRackMs });
after(async () => {
  await closeBrowser();
  for (const child of children.reverse()) if (child.exitCode === null) child.kill("SIGTERM");
  if (demo_ended) await demo_ended; // it takes its rack down
});

test(`${names.join(" and ")} are seen on their way and in their pool`, { timeout: 2 * kRackMs }, async () => {
  const { origin, search } = new URL(page_at);
  const window = await open({ url: origin }, { at: search });
  const { page } = window;
  await page.waitForSelector("[data-connection=live]");
  await goTo(page, "#/nodes");
  await page.evaluate(() => { window.not_reloaded = true; });
  const stateOf = (name) => page.evaluate((wanted) => {
    const row = [...document.querySelectorAll(".big-table .rows [role=row]")].find((each) => each.textContent.includes(wanted));
    return row?.querySelector(".state")?.textContent.trim() || "";
  }, name);
  const seen = new Map(names.map((name) => [name, []]));
  const began = Date.now();
  const isThere = (name) => seen.get(name).length > 1 && seen.get(name).at(-1) === "in pool"; // it was not, and is
  while (!names.every(isThere)) {
    assert.ok(Date.now() - began < kRackMs, `not all reached their pool: ${JSON.stringify([...seen])}`);
    for (const name of names) {
      const state = await stateOf(name), states = seen.get(name);
      if (state && states.at(-1) !== state) {
        states.push(state);
        console.log(`${Math.round((Date.now() - began) / 1000)} s: ${name} ${state}`);
      }
    }
    await page.waitForTimeout(kLookMs);
  }
  figure("the page saw both nodes in their pool after", `${Math.round((Date.now() - began) / 1000)} s`);
  for (const name of names) assert.ok(seen.get(name).length >= 3, `${name} was only seen as ${seen.get(name)}`);
  assert.ok(await page.evaluate(() => window.not_reloaded));
  await goTo(page, `#/nodes/${names[0]}?tab=certificate`);
  await page.waitForSelector("main .state:has-text('valid')");
  await goTo(page, `#/nodes/${names[0]}?tab=gates`);
  await page.waitForSelector(".answered .state:has-text('pass')"); // the checks of the machine's own agent
  assert.deepEqual(await violations(page), []);
  if (process.env.WEB_SHOTS) {
    fs.mkdirSync(process.env.WEB_SHOTS, { recursive: true });
    await page.screenshot({ path: path.join(process.env.WEB_SHOTS, "twin-gates.png") });
  }
  window.clean("404");
  await window.close();
  if (!demo_ended) return;
  const { code, text } = await demo_ended;
  assert.equal(code, 0, text.slice(-3000));
});
