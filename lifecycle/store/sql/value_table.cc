// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/value_table.h"

#include <algorithm>

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

Result<void> ValueTable::putValue(const std::string& key, const std::string& value) {
  return db_.write("storing a value", [&]() -> Result<void> {
    const auto kept = storable(value);
    db_.sql()
        << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO UPDATE SET value = "
           "excluded.value",
        use(key), use(kept);
    return {};
  });
}

Result<std::optional<std::string>> ValueTable::getValue(const std::string& key) {
  if (!db_.isWritingHere()) return reader_.get(key);
  std::string value;
  if (!db_.ask("SELECT value FROM vals WHERE key = :k", std::tie(value), key))
    return std::optional<std::string>();
  return std::optional(std::move(value));
}

Result<bool> ValueTable::exchangeValue(const std::string& key,
                                       const std::optional<std::string>& expected,
                                       const std::string& value) {
  return db_.write("exchanging a value", [&]() -> Result<bool> {
    const auto was = storable(expected.value_or("")), kept = storable(value);
    soci::statement change =
        expected
            ? (db_.sql().prepare << "UPDATE vals SET value = :v WHERE key = :k AND value = :e",
               use(kept), use(key), use(was))
            : (db_.sql().prepare
                   << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO NOTHING",
               use(key), use(kept));
    change.execute(true);
    return change.get_affected_rows() == 1;
  });
}

Result<void> WipeTable::grantWipe(const NodeName& node, const std::string& reason, WallTime at) {
  return db_.write("allowing a wipe", [&]() -> Result<void> {
    const long long allowed = toMillis(at);
    const auto why = storable(reason);
    db_.sql()
        << "INSERT INTO wipe_permissions (node, reason, allowed_at_ms, used_by) VALUES (:n, :r, "
           ":a, '') ON CONFLICT DO NOTHING",
        use(node.str()), use(why), use(allowed);
    return {};
  });
}

Result<bool> WipeTable::revokeWipe(const NodeName& node, const std::string& reason) {
  return db_.write("taking a wipe permission back", [&]() -> Result<bool> {
    const auto why = storable(reason);
    soci::statement gone =
        (db_.sql().prepare
             << "DELETE FROM wipe_permissions WHERE node = :n AND reason = :r AND used_by = ''",
         use(node.str()), use(why));
    gone.execute(true);
    return gone.get_affected_rows() > 0;
  });
}

Result<std::vector<NodeName>> WipeTable::wipeGrants() {
  return db_.read("reading wipe permissions", [&]() -> Result<std::vector<NodeName>> {
    std::vector<NodeName> out;
    std::string name;
    soci::statement rows =
        (db_.sql().prepare << "SELECT node FROM wipe_permissions WHERE used_by = ''", into(name));
    rows.execute();
    while (rows.fetch()) out.emplace_back(name);
    std::sort(out.begin(), out.end());  // not by the database: each has an order of its own
    return out;
  });
}

}  // namespace muster::lifecycle::sql
