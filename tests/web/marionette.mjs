// SPDX-License-Identifier: Apache-2.0
// Firefox by its own remote protocol, Marionette: "LENGTH:[0, id, command, parameters]" over TCP,
// with the commands of WebDriver. Debian's Firefox is not one that Playwright drives.
// Source: https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";

const kStartMs = 60_000, kPollMs = 100;
const kElement = "element-6066-11e4-a52e-4f735466cecf"; // WebDriver's name of a reference

export class Firefox {
  static async start(program) {
    const firefox = new Firefox();
    firefox.profile = fs.mkdtempSync(path.join(os.tmpdir(), "muster-firefox-"));
    fs.writeFileSync(path.join(firefox.profile, "user.js"), `user_pref("marionette.port", 0);\nuser_pref("browser.shell.checkDefaultBrowser", false);\nuser_pref("datareporting.policy.dataSubmissionEnabled", false);\nuser_pref("app.update.disabledForTesting", true);\n`);
    firefox.child = spawn(program, ["--headless", "--no-remote", "--marionette", "--profile", firefox.profile, "about:blank"], { stdio: "ignore", env: { ...process.env, HOME: firefox.profile, MOZ_HEADLESS: "1" } });
    const until = Date.now() + kStartMs, file = path.join(firefox.profile, "MarionetteActivePort");
    let port = 0;
    while (!port) {
      if (firefox.child.exitCode !== null || Date.now() > until) throw new Error("Firefox did not start");
      port = fs.existsSync(file) ? Number(fs.readFileSync(file, "utf8")) : 0;
      if (!port) await new Promise((done) => setTimeout(done, kPollMs));
    }
    firefox.socket = net.connect(port, "127.0.0.1");
    firefox.socket.on("data", (piece) => firefox.take(piece));
    await new Promise((done, failed) => { firefox.greeted = done; firefox.socket.on("error", failed); });
    await firefox.ask("WebDriver:NewSession", { acceptInsecureCerts: true });
    return firefox;
  }
  rest = Buffer.alloc(0);
  waiting = new Map();
  last = 0;
  take(piece) {
    this.rest = Buffer.concat([this.rest, piece]);
    for (;;) {
      const colon = this.rest.indexOf(":");
      if (colon < 0) return;
      const length = Number(this.rest.subarray(0, colon)), end = colon + 1 + length;
      if (this.rest.length < end) return;
      const message = JSON.parse(this.rest.subarray(colon + 1, end).toString());
      this.rest = this.rest.subarray(end);
      if (!Array.isArray(message)) this.greeted();
      else {
        const [, id, error, result] = message, { done, failed } = this.waiting.get(id);
        this.waiting.delete(id);
        if (error) failed(new Error(`${error.error}: ${error.message}`));
        else done(result && "value" in result ? result.value : result);
      }
    }
  }
  ask(command, parameters = {}) {
    const id = ++this.last, text = Buffer.from(JSON.stringify([0, id, command, parameters]));
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed });
      this.socket.write(Buffer.concat([Buffer.from(`${text.length}:`), text]));
    });
  }
  goTo(url) { return this.ask("WebDriver:Navigate", { url }); }
  run(script, ...args) { return this.ask("WebDriver:ExecuteScript", { script, args, newSandbox: false }); }
  /** Until the expression is true in the page. */
  async until(expression, ms = 30_000) {
    const end = Date.now() + ms;
    while (!(await this.run(`return !!(${expression});`))) {
      if (Date.now() > end) throw new Error(`never: ${expression}`);
      await new Promise((done) => setTimeout(done, kPollMs));
    }
  }
  async find(selector) {
    const found = await this.ask("WebDriver:FindElement", { using: selector.startsWith("//") ? "xpath" : "css selector", value: selector });
    return found[kElement];
  }
  async click(selector) { return this.ask("WebDriver:ElementClick", { id: await this.find(selector) }); }
  async type(selector, text) { return this.ask("WebDriver:ElementSendKeys", { id: await this.find(selector), text }); }
  size(width, height) { return this.ask("WebDriver:SetWindowRect", { width, height }); }
  async shoot(file) { fs.writeFileSync(file, Buffer.from(await this.ask("WebDriver:TakeScreenshot", { full: false }), "base64")); }
  async end() {
    this.socket?.destroy();
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.kill("SIGKILL");
    if (this.child.exitCode === null) await ended;
    fs.rmSync(this.profile, { recursive: true, force: true });
  }
}
