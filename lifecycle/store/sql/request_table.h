// SPDX-License-Identifier: Apache-2.0
// Who asked for what, and how that ended.
#pragma once

#include "lifecycle/store/sql/connection.h"

namespace muster::lifecycle::sql {

class RequestTable {
 public:
  explicit RequestTable(SqlConnection& db) : db_(db) {}

  Result<void> openRequest(const Request& request);
  Result<void> closeRequest(const std::string& id, const std::string& outcome, WallTime at);
  Result<std::vector<Request>> requests(std::size_t limit);

 private:
  SqlConnection& db_;
};

}  // namespace muster::lifecycle::sql
