// SPDX-License-Identifier: Apache-2.0
// The schema, shared by all databases: one list of statements a version. A published version never
// changes; a new one is appended. Words that start with '%' are the database's own
// (Backend::dialect).
#pragma once

#include <string_view>
#include <vector>

namespace muster::lifecycle::sql {

// NOLINTBEGIN(bugprone-suspicious-missing-comma): statements that are longer than a line
inline const std::vector<std::vector<std::string_view>> kMigrations{
    {
        "CREATE TABLE facts (subject TEXT NOT NULL, facet TEXT NOT NULL, value TEXT NOT NULL, "
        "observed_at_ms %int NOT NULL,"
        " source TEXT NOT NULL, evidence TEXT NOT NULL, PRIMARY KEY (subject, facet)) %clustered",
        "CREATE TABLE intents (sequence %serial, id TEXT NOT NULL UNIQUE, plan_hash TEXT NOT NULL, "
        "inventory_digest TEXT NOT NULL,"
        " subject TEXT NOT NULL, action TEXT NOT NULL, operation TEXT NOT NULL, state TEXT NOT "
        "NULL, outcome TEXT NOT NULL,"
        " uses_wipe %int NOT NULL, opened_at_ms %int NOT NULL, closed_at_ms %int NOT NULL)",
        "CREATE INDEX intents_open ON intents (sequence) WHERE state = 'open'",
        "CREATE INDEX intents_of ON intents (subject, sequence)",
        "CREATE TABLE events (sequence %log_serial, at_ms %int NOT NULL, kind TEXT NOT NULL, "
        "subject TEXT NOT NULL,"
        " action_id TEXT NOT NULL, text TEXT NOT NULL, fraction %real NOT NULL)",
        "CREATE INDEX events_of ON events (subject, sequence)",
        "CREATE TABLE findings (sequence %serial, subject TEXT NOT NULL, facet TEXT NOT NULL, "
        "severity %int NOT NULL,"
        " text TEXT NOT NULL, evidence TEXT NOT NULL, what_to_do TEXT NOT NULL, at_ms %int NOT "
        "NULL)",
        "CREATE INDEX findings_of ON findings (subject, facet)",
        "CREATE TABLE wipe_permissions (sequence %serial, node TEXT NOT NULL, reason TEXT NOT "
        "NULL, allowed_at_ms %int NOT NULL,"
        " used_by TEXT NOT NULL)",
        "CREATE UNIQUE INDEX wipe_permissions_open ON wipe_permissions (node) WHERE used_by = ''",
        "CREATE TABLE vals (key TEXT PRIMARY KEY, value TEXT NOT NULL) %clustered",
    },
    {
        // 2: who asked, and a log that shows when it was tampered with.
        "CREATE TABLE requests (sequence %serial, id TEXT NOT NULL UNIQUE, at_ms %int NOT NULL, "
        "asked_by TEXT NOT NULL, host TEXT NOT "
        "NULL,"
        " command TEXT NOT NULL, plan_hash TEXT NOT NULL, outcome TEXT NOT NULL, ended_at_ms %int "
        "NOT NULL)",
        "ALTER TABLE intents ADD COLUMN request TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE events ADD COLUMN link %int NOT NULL DEFAULT 0",
        "ALTER TABLE events ADD COLUMN hash TEXT NOT NULL DEFAULT ''",
        "CREATE TABLE audit_head (one %int PRIMARY KEY, begins_after %int NOT NULL, link %int NOT "
        "NULL, hash TEXT NOT NULL)",
        "INSERT INTO audit_head (one, begins_after, link, hash) SELECT 1, COALESCE(max(sequence), "
        "0), 0, '' FROM events",
    },
    {
        // 3: several controllers.
        "CREATE TABLE controllers (session TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at_ms "
        "%int NOT NULL)",
        "CREATE TABLE claims (subject TEXT PRIMARY KEY, holder TEXT NOT NULL, session TEXT NOT "
        "NULL, token %int NOT NULL)",
        "ALTER TABLE intents ADD COLUMN fence %int NOT NULL DEFAULT 0",
    },
    {
        // 4: what was measured (measurements.h).
        "CREATE TABLE measured (sequence %serial, at_ms %int NOT NULL, node TEXT NOT NULL, origin "
        "TEXT NOT NULL, sku TEXT NOT NULL,"
        " rack TEXT NOT NULL, numbers TEXT NOT NULL)",
        "CREATE INDEX measured_at ON measured (at_ms, sequence)",
    },
    {
        // 5: who raised a finding; '': nobody knows.
        "ALTER TABLE findings ADD COLUMN source TEXT NOT NULL DEFAULT ''",
    },
    {
        // 6: certificates and revocations are values (validate/revocations.h). Nothing to create;
        // but a muster that looks for them in its state folder must not work here any more.
    },
    {
        // 7: `keep` is called monitor.
        "UPDATE findings SET source = 'monitor' WHERE source = 'keep'",
        "UPDATE findings SET facet = 'monitor.breaker.' || substr(facet, 14) WHERE facet LIKE "
        "'keep.breaker.%'",
        "UPDATE vals SET key = 'monitor.breakers' WHERE key = 'keep.breakers'",
        "UPDATE vals SET key = 'monitor.heartbeat' WHERE key = 'keep.heartbeat'",
    },
    {
        // 8: an action that was blocked has a state of its own.
        "UPDATE intents SET state = 'blocked', outcome = substr(outcome, 10) WHERE state = "
        "'failed' AND outcome LIKE 'blocked: %'",
    },
    {
        // 9: runs (runs.h).
        "CREATE TABLE IF NOT EXISTS runs (sequence %serial, id TEXT NOT NULL UNIQUE, request_key "
        "TEXT NOT NULL, "
        "kind TEXT NOT NULL, state TEXT NOT NULL,"
        " is_open %int NOT NULL, asked_at_ms %int NOT NULL, first_event %int NOT NULL, revision "
        "%int NOT NULL, record TEXT NOT NULL)",
        "CREATE UNIQUE INDEX IF NOT EXISTS runs_key ON runs (request_key) WHERE request_key <> ''",
        "CREATE INDEX IF NOT EXISTS runs_open ON runs (sequence) WHERE is_open = 1",
        "CREATE TABLE IF NOT EXISTS run_plans (id TEXT PRIMARY KEY, hash TEXT NOT NULL, plan TEXT "
        "NOT NULL) "
        "%clustered",
    },
};
// NOLINTEND(bugprone-suspicious-missing-comma)

/// All of them: kMigrations. A test's program that stands for the next version defines it anew,
/// with one more (tests/crash/next_schema.cc).
const std::vector<std::vector<std::string_view>>& migrations();

inline constexpr std::string_view kTooNew =
    "{} was written by a newer muster (schema {}, this one knows {}); use that muster, or give "
    "this one a store of its own (--store)";
/// Who would be left working with a schema that is no longer there.
inline constexpr std::string_view kInUse =
    "{0} has the schema of an older muster ({1}; this one makes {2} of it), and {3} works with it: "
    "nothing was changed. Stop that one first (systemctl stop muster-server, on every host of the "
    "site; docs/upgrade.md), or use the older muster until then";

}  // namespace muster::lifecycle::sql
