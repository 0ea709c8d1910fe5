// SPDX-License-Identifier: Apache-2.0
// A real provider: npm's oidc-provider (certified for OpenID Connect). Prints its issuer as JSON when it answers.
//   node provider.mjs MODULES CERT KEY '{"port": 0, "redirect": "https://…", "secret": "…", "groups_in": "id_token"}'
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";
import https from "node:https";
import crypto from "node:crypto";

const [modules, certificate, key, text] = process.argv.slice(2);
const settings = JSON.parse(text);
const { default: Provider } = await import(
  pathToFileURL(createRequire(`${modules}/`).resolve("oidc-provider")).href);

const kPeople = {
  anna: { preferred_username: "anna", groups: ["hpc"] },
  ben: { preferred_username: "ben", groups: ["approvers", "hpc"] },
  carla: { preferred_username: "carla", groups: [] },
  renamed: { preferred_username: "zoe", groups: ["approvers"] },
};

const server = https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
await new Promise((listening) => server.listen(settings.port || 0, "127.0.0.1", listening));
const issuer = `https://localhost:${server.address().port}`;
const signing = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
const provider = new Provider(issuer, {
  clients: [{
    client_id: "muster",
    ...(settings.secret ? { client_secret: settings.secret } : { token_endpoint_auth_method: "none" }),
    redirect_uris: settings.redirect ? [settings.redirect] : [],
    response_types: settings.redirect ? ["code"] : [],
    grant_types: [...(settings.redirect ? ["authorization_code"] : []), "urn:ietf:params:oauth:grant-type:device_code"],
  }],
  jwks: { keys: [{ ...signing, kid: crypto.randomUUID(), use: "sig", alg: "RS256" }] },
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
  conformIdTokenClaims: settings.groups_in !== "id_token",
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
  cookies: { keys: ["test"] },
  pkce: { required: () => true },
  ttl: { IdToken: settings.life_s || 3600, AccessToken: 600, Session: 3600, Interaction: 600, Grant: 3600, DeviceCode: 300 },
  findAccount: (context, id) => ({
    accountId: settings.same_subject || id,
    claims: () => ({ sub: settings.same_subject || id, ...kPeople[id] }),
  }),
});
server.on("request", provider.callback());
console.log(JSON.stringify({ issuer })); // it ends with whoever started it
