// SPDX-License-Identifier: Apache-2.0
// Logging in at a real provider of OpenID Connect, in a browser, and back to where one was.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import { closeBrowser, goTo, open, Site } from "./harness.mjs";

const provider_script = fileURLToPath(new URL("../api/oidc/provider.mjs", import.meta.url));
/** @type {Site} */
let site;
let provider;

before(async () => {
  site = new Site(16);
  site.access = path.join(site.folder, "access.conf");
  const [certificate, key] = ["sso.crt", "sso.key"].map((name) => path.join(site.folder, name));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", certificate,
    "-days", "3", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "extendedKeyUsage=serverAuth"], { stdio: "ignore" });
  await site.start();
  provider = spawn("node", [provider_script, process.env.OIDC_MODULES, certificate, key,
    JSON.stringify({ redirect: `${site.url}/login/callback`, groups_in: "id_token" })], { stdio: ["ignore", "pipe", "ignore"] });
  let said = "";
  for await (const piece of provider.stdout) {
    said += piece;
    if (said.includes("}\n")) break;
  }
  const { issuer } = JSON.parse(said);
  fs.writeFileSync(site.access, `oidc issuer=${issuer} client-id=muster name=preferred_username page=${site.url} ca=${certificate}\noidc-group hpc operator\n`, { mode: 0o644 });
});
after(async () => {
  provider?.kill();
  await closeBrowser();
  await site?.end();
});

async function atTheProvider(page, name) {
  await page.fill("input[name=login]", name);
  await page.fill("input[name=password]", "x");
  await page.click("button[type=submit]");
  await page.waitForSelector("text=Continue");
  await page.click("button[type=submit]");
}

describe("log in at a provider", () => {
  test("leads back to the page that was opened, as who one is there, until one logs out", async () => {
    const window = await open(site, { at: "#/racks/r001" });
    for (let i = 0; i < 20; ++i) { // the server looks at its file once a second
      if (await window.page.waitForSelector("text=Log in at localhost", { timeout: 1_000 }).catch(() => null)) break;
      await window.page.reload();
    }
    await window.page.click("text=Log in at localhost");
    await atTheProvider(window.page, "anna");
    await window.page.waitForSelector("[data-connection=live]");
    assert.equal(window.page.url(), `${site.url}/#/racks/r001`);
    const cookie = (await window.context.cookies()).find((each) => each.name === "__Host-muster");
    assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite], [true, true, "Strict"]);
    assert.match(await window.page.textContent(".top .who"), /oidc:anna\s+operator/);
    await window.page.reload();
    await window.page.waitForSelector("[data-connection=live]");
    await goTo(window.page, "#/settings");
    await window.page.click("text=Log out");
    await window.page.waitForSelector("text=Log in at localhost");
    await window.page.reload();
    await window.page.waitForSelector("input[name=token]");
    await window.close();
  });

  test("who may do nothing here is told so, and what to do", async () => {
    const window = await open(site);
    await window.page.click("text=Log in at localhost");
    await atTheProvider(window.page, "carla");
    await window.page.waitForSelector("text=may do nothing here");
    assert.match(await window.page.textContent("body"), /What to do: ask an administrator/);
    assert.equal((await window.context.cookies()).some((each) => each.name === "__Host-muster"), false);
    await window.close();
  });

  test("a page of another site cannot have somebody logged in", async () => {
    const window = await open(site);
    await window.page.goto(`${site.url}/login/callback?state=x&code=y`);
    await window.page.waitForSelector("text=belongs to no login that this browser has begun");
    await window.close();
  });
});
