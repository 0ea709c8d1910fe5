// Schema of the SQLite store: one list of statements a version. A published version never changes; a new one is appended.
#pragma once

#include <array>
#include <string_view>
#include <vector>

namespace muster::lifecycle {

inline constexpr int kApplicationId = 0x6d757374;  ///< "must", in the file's header

inline const std::vector<std::vector<std::string_view>> kMigrations{
    {
        "CREATE TABLE facts (subject TEXT NOT NULL, facet TEXT NOT NULL, value TEXT NOT NULL, observed_at_ms INTEGER NOT NULL,"
        " source TEXT NOT NULL, evidence TEXT NOT NULL, PRIMARY KEY (subject, facet)) WITHOUT ROWID",
        "CREATE TABLE intents (sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, plan_hash TEXT NOT NULL, inventory_digest TEXT NOT "
        "NULL,"
        " subject TEXT NOT NULL, action TEXT NOT NULL, operation TEXT NOT NULL, state TEXT NOT NULL, outcome TEXT NOT NULL,"
        " uses_wipe INTEGER NOT NULL, opened_at_ms INTEGER NOT NULL, closed_at_ms INTEGER NOT NULL)",
        "CREATE INDEX intents_open ON intents (sequence) WHERE state = 'open'",
        "CREATE INDEX intents_of ON intents (subject, sequence)",
        "CREATE TABLE events (sequence INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT "
        "NULL,"
        " action_id TEXT NOT NULL, text TEXT NOT NULL, fraction REAL NOT NULL)",
        "CREATE INDEX events_of ON events (subject, sequence)",
        "CREATE TABLE findings (sequence INTEGER PRIMARY KEY, subject TEXT NOT NULL, facet TEXT NOT NULL, severity INTEGER NOT NULL,"
        " text TEXT NOT NULL, evidence TEXT NOT NULL, what_to_do TEXT NOT NULL, at_ms INTEGER NOT NULL)",
        "CREATE INDEX findings_of ON findings (subject, facet)",
        "CREATE TABLE wipe_permissions (sequence INTEGER PRIMARY KEY, node TEXT NOT NULL, reason TEXT NOT NULL, allowed_at_ms INTEGER NOT "
        "NULL,"
        " used_by TEXT NOT NULL)",
        "CREATE UNIQUE INDEX wipe_permissions_open ON wipe_permissions (node) WHERE used_by = ''",
        "CREATE TABLE vals (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    },
};

}  // namespace muster::lifecycle
