// SPDX-License-Identifier: Apache-2.0
// Values by key, and permissions to wipe.
#pragma once

#include "lifecycle/store/sql/connection.h"
#include "lifecycle/store/sql/value_reader.h"

namespace muster::lifecycle::sql {

class ValueTable {
 public:
  explicit ValueTable(SqlConnection& db) : db_(db), reader_(db.backend()) {}

  Result<void> putValue(const std::string& key, const std::string& value);
  /// Outside a transaction by a connection of its own: it waits for nobody's write.
  Result<std::optional<std::string>> getValue(const std::string& key);
  Result<bool> exchangeValue(const std::string& key, const std::optional<std::string>& expected,
                             const std::string& value);

 private:
  SqlConnection& db_;
  ValueReader reader_;
};

class WipeTable {
 public:
  explicit WipeTable(SqlConnection& db) : db_(db) {}

  Result<void> grantWipe(const NodeName& node, const std::string& reason, WallTime at);
  Result<bool> revokeWipe(const NodeName& node, const std::string& reason);
  Result<std::vector<NodeName>> wipeGrants();

 private:
  SqlConnection& db_;
};

}  // namespace muster::lifecycle::sql
