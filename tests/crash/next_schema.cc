// SPDX-License-Identifier: Apache-2.0
// The schema of the next version: linked into a muster, it makes muster-next of it.
#include "lifecycle/store/sql/schema.h"

namespace muster::lifecycle::sql {

const std::vector<std::vector<std::string_view>>& migrations() {
  static const auto all = [] {
    auto out = kMigrations;
    out.push_back({"CREATE TABLE of_the_next_version (id TEXT PRIMARY KEY)"});
    return out;
  }();
  return all;
}

}  // namespace muster::lifecycle::sql
