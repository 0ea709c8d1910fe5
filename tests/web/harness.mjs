// SPDX-License-Identifier: Apache-2.0
// A real `muster server` on a state folder that the real store filled, and a real browser.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import https from "node:https";
import { createRequire } from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";

export const bin = process.env.MUSTER_BIN || path.resolve("build/bin");
const require = createRequire(path.join(process.env.WEB_MODULES || "", "x.js"));
const { chromium } = require("playwright-core");
const axe_source = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const kStartMs = 60_000;
/** WEB_FROM=web: the page's files come from there and not from the server, for work on the page
 * without a build. What a test says of the server's own answers stays about those. */
const from_disk = process.env.WEB_FROM || "";
const kTypes = { ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html" };

async function servedFromDisk(context, url) {
  await context.route((asked) => asked.href.startsWith(url) && !/^\/(api|login)\//.test(asked.pathname), async (route) => {
    const name = new URL(route.request().url()).pathname;
    const file = path.join(from_disk, name === "/" ? "index.html" : name);
    if (!fs.existsSync(file)) return route.fulfill({ status: 404, body: "" });
    const headers = name === "/" ? (await route.fetch()).headers() : {};
    for (const gone of ["content-encoding", "content-length", "etag"]) delete headers[gone];
    return route.fulfill({ status: 200, headers: { ...headers, "content-type": kTypes[path.extname(file)] || "text/plain" }, body: fs.readFileSync(file) });
  });
}

export function figure(name, value, bar = "") {
  console.log(`figure: ${name}: ${value}${bar ? ` (bar: ${bar})` : ""}`);
}

async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** A site in a folder of its own. */
export class Site {
  constructor(nodes) {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "muster-web-"));
    this.site = path.join(this.folder, "site");
    execFileSync(path.join(bin, "web_site_maker"), ["make", this.site, String(nodes)], { stdio: "inherit" });
  }
  /** Of this host's own images and settings nothing is seen. */
  get env() { return { ...process.env, MUSTER_CACHE: path.join(this.site, "cache"), MUSTER_CONF: "" }; }
  muster(...words) {
    return execFileSync(path.join(bin, "muster"), ["-f", path.join(this.site, "cluster.yaml"), "--state", path.join(this.site, "state"), ...words], { encoding: "utf8", env: this.env });
  }
  token(role, ...more) {
    const said = this.muster("token", "create", `${role}${++this.tokens}`, "--role", role, "--owner", role, ...more); // a person each: nobody approves his own
    return /muster_\S+/.exec(said)[0];
  }
  tokens = 0;
  change(node, facet, value, text) {
    execFileSync(path.join(bin, "web_site_maker"), ["change", this.site, node, facet, value, text]);
  }
  /** Real checks of the real agent on this machine: small, so that they take seconds. */
  realChecks() {
    const checks = [{ id: "host.memory", params: { mebibytes: 64, seconds: 1 } }, { id: "host.gemm", params: { n: 128, seconds: 1 } }, { id: "gpu.count", params: { count: 8 } }];
    return execFileSync(path.join(bin, "muster-agent"), ["tool", "checks"], { input: JSON.stringify({ checks: checks.map((check) => ({ ...check, deadline_seconds: 60 })) }), encoding: "utf8" });
  }
  /** The gate's checks have answered so. */
  gate(node, gate, answers) {
    execFileSync(path.join(bin, "web_site_maker"), ["gate", this.site, node, gate], { input: answers });
  }
  events(count) {
    execFileSync(path.join(bin, "web_site_maker"), ["events", this.site, String(count)]);
  }
  /** A machine that begins a boot; what is written to its stdin is on its console. */
  console(node) {
    return spawn(path.join(bin, "web_site_maker"), ["console", this.site, node], { stdio: ["pipe", "inherit", "inherit"] });
  }
  /** Carries the site's runs out on machines that do as they are told. */
  serveRuns(act_ms = 4_000) {
    return spawn(path.join(bin, "web_site_maker"), ["serve", this.site, String(act_ms)], { stdio: ["ignore", "inherit", "inherit"] });
  }
  /** A virtual BMC of muster's twin with a machine in memory, and the inventory says that it is this
   * node's. Before the server starts. */
  async virtualBmc(node) {
    const child = spawn(path.join(bin, "vbmc_alone"), ["muster", "0", "calvin"], { stdio: ["ignore", "pipe", "ignore"] });
    let said = "";
    for await (const piece of child.stdout) {
      said += piece;
      const found = /https:\/\/\S+(?=\s)/.exec(said);
      if (!found) continue;
      const file = path.join(this.site, "nodes.csv");
      const rows = fs.readFileSync(file, "utf8").split("\n").map((row) => (row.startsWith(`${node},`) ? row.replace(/https:[^,]+/, found[0]) : row));
      fs.writeFileSync(file, rows.join("\n"));
      return { child, url: found[0] };
    }
    throw new Error(`the virtual BMC ended: ${said}`);
  }
  get socket() { return path.join(this.folder, "api.sock"); }
  async start() {
    this.port ||= await freePort();
    this.url = `https://localhost:${this.port}`;
    const log = fs.openSync(path.join(this.folder, "server.log"), "a");
    this.child = spawn(path.join(bin, "muster"), ["-f", path.join(this.site, "cluster.yaml"), "--state", path.join(this.site, "state"),
      "server", "--api-only", "--socket", this.socket, "--listen", `127.0.0.1:${this.port}`, ...(this.access ? ["--access", this.access] : [])], { stdio: ["ignore", log, log], env: this.env });
    const until = Date.now() + kStartMs;
    for (;;) {
      const answer = await ask(this.url, "/readyz").catch(() => null);
      if (answer?.status === 200) return;
      if (this.child.exitCode !== null || Date.now() > until) throw new Error(`the server did not start: ${fs.readFileSync(path.join(this.folder, "server.log"), "utf8")}`);
      await new Promise((done) => setTimeout(done, 100));
    }
  }
  async kill(signal = "SIGKILL") {
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.kill(signal);
    await ended;
  }
  /** `muster ui`: the address that it prints. */
  async ui() {
    const child = spawn(path.join(bin, "muster"), ["-f", path.join(this.site, "cluster.yaml"), "--state", path.join(this.site, "state"), "ui", "--socket", this.socket], { stdio: ["ignore", "pipe", "inherit"], env: this.env });
    let said = "";
    for await (const piece of child.stdout) {
      said += piece;
      const found = /(http:\/\/\S+)\/(\?ticket=\S+)/.exec(said);
      if (found) return { child, url: found[1], ticket: found[2] };
    }
    throw new Error(`muster ui ended: ${said}`);
  }
  memoryMib() {
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${this.child.pid}/status`, "utf8"))[1]) / 1024);
  }
  async end() {
    if (this.child?.exitCode === null) await this.kill("SIGTERM");
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

/** One HTTPS request, without a browser. */
export function ask(url, target, { method = "GET", headers = {}, body } = {}) {
  return new Promise((done, failed) => {
    const request = https.request(url + target, { method, headers, rejectUnauthorized: false }, (answer) => {
      const pieces = [];
      answer.on("data", (piece) => pieces.push(piece));
      answer.on("end", () => done({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(pieces) }));
    });
    request.on("error", failed);
    request.end(body);
  });
}

let browser = null;
export async function theBrowser() {
  browser ||= await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
  return browser;
}
export async function closeBrowser() {
  await browser?.close();
  browser = null;
}

/** A window that is watched: what it says on its console, whom it asks. */
export async function open(site, { token, width = 1360, height = 860, scheme = "light", at = "", quiet = [] } = {}) {
  const context = await (await theBrowser()).newContext({ viewport: { width, height }, colorScheme: scheme, ignoreHTTPSErrors: true });
  if (from_disk && site.url.startsWith("https:")) await servedFromDisk(context, site.url); // `muster ui` has a name that the browser alone resolves
  const page = await context.newPage();
  const told = [], asked_elsewhere = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) told.push(message.text()); });
  page.on("pageerror", (error) => told.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(site.url) && !request.url().startsWith("data:")) asked_elsewhere.push(request.url()); });
  await page.goto(`${site.url}/${at}`);
  if (token) await logIn(page, token);
  return {
    context, page, told, asked_elsewhere,
    /** Nothing on the console but what was expected; nobody else was asked. Chromium itself writes a
     * line for each answer of 400 and more: who one is before the log-in, runs and certificates
     * that are not there. */
    clean(...expected) {
      const rest = told.filter((text) => ![...quiet, ...expected, "status of 401", "status of 404"].some((part) => text.includes(part)));
      assert.deepEqual(rest, []);
      assert.deepEqual(asked_elsewhere, []);
    },
    close: () => context.close(),
  };
}

export async function logIn(page, token) {
  await page.fill("input[name=token]", token);
  await page.keyboard.press("Enter");
  await page.waitForSelector("main h1");
  await page.waitForSelector("[data-connection=live]");
}

export async function goTo(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await settled(page);
}
export async function settled(page) {
  await page.waitForSelector("main h1", { state: "attached" });
  await page.waitForFunction(() => !document.querySelector("main [aria-busy]"), null, { timeout: 20_000 });
}

/** axe-core by the debugger's door, which the page's policy does not close. */
export async function violations(page) {
  const session = await page.context().newCDPSession(page);
  const answer = await session.send("Runtime.evaluate", {
    expression: `${axe_source};axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 2).map((n) => n.html.slice(0, 200)).join(" ; "))))`,
    awaitPromise: true, returnByValue: true,
  });
  await session.detach();
  return JSON.parse(answer.result.value);
}

export const kPages = {
  now: "#/now", racks: "#/racks", rack: "#/racks/r001", nodes: "#/nodes", node: "#/nodes/gpu003",
  facts: "#/nodes/gpu001?tab=facts", "node-plan": "#/nodes/gpu007?tab=plan", "node-firmware": "#/nodes/gpu007?tab=firmware", "node-findings": "#/nodes/gpu003?tab=findings", events: "#/nodes/gpu001?tab=events",
  gates: "#/nodes/gpu001?tab=gates", history: "#/nodes/gpu001?tab=history", certificate: "#/nodes/gpu001?tab=certificate", measurements: "#/nodes/gpu003?tab=measurements",
  console: "#/nodes/gpu003?tab=console", pools: "#/pools", plan: "#/plan", firmware: "#/firmware", fabric: "#/fabric",
  validation: "#/validation",
  "fabric-all": "#/fabric?all=true&q=gpu001", findings: "#/findings", "findings-each": "#/findings?as=list", rollouts: "#/rollouts", inventory: "#/inventory",
  log: "#/log", asked: "#/log?as=asked", "rack-side": "#/rack-side", "rack-side-node": "#/rack-side/gpu003", settings: "#/settings",
};
