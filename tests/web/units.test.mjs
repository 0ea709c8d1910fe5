// SPDX-License-Identifier: Apache-2.0
// Parts of the page that need no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answersOf, indented, rawLines, verdictOf, verdictTone } from "../../web/js/answers.js";
import { lineOf, ticks } from "../../web/js/chart.js";
import { fold, matcher } from "../../web/js/hostlist.js";
import { age, digest, duration } from "../../web/js/format.js";
import { inOrder, stageOf, toneOf } from "../../web/js/states.js";

test("names fold to a hostlist and back", () => {
  assert.equal(fold(["gpu001", "gpu002", "gpu003", "gpu007", "login1"]), "gpu[001-003,007],login1");
  assert.equal(fold(["a9", "a10", "a11"]), "a9,a[10-11]");
  assert.equal(fold(["n1-ib", "n2-ib"]), "n[1-2]-ib");
  assert.equal(fold(["controller"]), "controller");
  assert.equal(fold([]), "");
});

test("a hostlist chooses what it names, and no more", () => {
  const names = ["gpu001", "gpu010", "gpu0010", "gpu100", "cpu001"];
  const chosen = (text) => names.filter(matcher(text));
  assert.deepEqual(chosen("gpu[001-010]"), ["gpu001", "gpu010"]);
  assert.deepEqual(chosen("gpu[001,100],cpu001"), ["gpu001", "gpu100", "cpu001"]);
  assert.deepEqual(chosen("cpu"), ["cpu001"]);
  assert.deepEqual(chosen(""), names);
  assert.deepEqual(chosen("gpu[9"), []); // half typed: a range, not the whole site
  assert.deepEqual(chosen("]["), []);
  assert.deepEqual(chosen(`gpu[${"1,".repeat(5000)}]`), []);
});

test("every word of a state has a tone; one that nobody knows is unclear, never good", () => {
  assert.equal(toneOf("in pool"), "ok");
  assert.equal(toneOf("imaging"), "busy");
  assert.equal(toneOf("working on fabric.port.mlx5_0"), "busy");
  assert.equal(toneOf("quarantined"), "held");
  assert.equal(toneOf("unhealthy"), "bad");
  assert.equal(toneOf("certified"), "wait");
  assert.equal(toneOf("something new"), "warn");
  assert.deepEqual(inOrder({ "in pool": 5, failed: 1 }), [["failed", 1], ["in pool", 5]]);
});

test("facets belong to stages", () => {
  assert.equal(stageOf("driver.nvidia"), "drivers");
  assert.equal(stageOf("gate.burn-in"), "gates");
  assert.equal(stageOf("pool"), "pool");
  assert.equal(stageOf("pool.hold"), "");
  assert.equal(stageOf("health.gpu"), "");
});

test("ages and digests as people read them", () => {
  const now = Date.parse("2026-11-25T12:00:00Z");
  assert.equal(age("2026-11-25T11:59:57Z", now), "just now");
  assert.equal(age("2026-11-25T11:20:00Z", now), "40 min ago");
  assert.equal(age("2026-11-27T12:00:00Z", now), "in 2 days");
  assert.equal(age("soon", now), "-");
  assert.equal(age(undefined, now), "-");
  assert.equal(duration(90), "2 min");
  assert.equal(digest(`sha256:${"ab".repeat(32)}`), "sha256:abababababab…");
  assert.equal(digest("bookworm-gpu"), "bookworm-gpu");
});

test("a plot's numbers are round, few, and between its ends", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(2104, 2893, 5).map(Math.round), [2200, 2400, 2600, 2800]);
  assert.deepEqual(ticks(0.0012, 0.0019, 5).map((value) => value.toPrecision(2)), ["0.0012", "0.0014", "0.0016", "0.0018"]);
  assert.deepEqual(ticks(5, 5, 5), [5]);
  for (const [low, high] of [[-3, 7], [1e-9, 2e-9], [1e12, 9e12]]) {
    const all = ticks(low, high, 5);
    assert.ok(all.length >= 2 && all.length <= 12 && all.every((value) => value >= low - 1e-12 && value <= high * 1.000001), `${all}`);
  }
});

test("a measurement that is missing leaves a gap in its line", () => {
  const y = (value) => 100 - value;
  assert.equal(lineOf([1, 2, undefined, 4, NaN, 5, 6], [0, 10, 20, 30, 40, 50, 60], y), "M0.0 99.0L10.0 98.0M30.0 96.0M50.0 95.0L60.0 94.0");
  assert.equal(lineOf([], [], y), "");
});

test("the answers of a gate: what did not pass comes first, and no answer is no pass", () => {
  const results = [{ id: "b", status: "pass" }, { id: "a", status: "no-data" }, { id: "c", status: "fail" }, { status: "pass" }, null];
  assert.deepEqual(answersOf(JSON.stringify({ results })).map((each) => each.id), ["c", "a", "b"]);
  assert.deepEqual(answersOf({ results }).map((each) => each.id), ["c", "a", "b"]);
  for (const none of ["", undefined, null, "no JSON", "{}", [], { results: [] }, { results: "x" }]) assert.equal(answersOf(none), null);
  assert.deepEqual(["pass:c0ffee", "fail:c0ffee", "failed", "pending", ""].map((value) => verdictTone(verdictOf(value))), ["ok", "bad", "bad", "wait", "bad"]);
});

test("evidence stands as it was written, a member a line", () => {
  const text = String.raw`{"seed":18446744073709551615,"words":["a, b: {\"c\"}\\",1.50],"none":{},"empty":[ ],"on":true}`;
  const shown = indented(text);
  assert.ok(shown.includes('"seed": 18446744073709551615'), shown); // a number of JavaScript ends at 2^53
  assert.ok(shown.includes("1.50"));
  assert.deepEqual(JSON.parse(shown), JSON.parse(text));
  assert.equal(shown, indented(shown));
  assert.equal(shown.split("\n").length, 10);
  assert.equal(rawLines("[   12.5] NVRM: Xid"), "[   12.5] NVRM: Xid");
  assert.equal(rawLines('{"cut off'), '{"cut off');
  assert.equal(rawLines(undefined), "");
});
