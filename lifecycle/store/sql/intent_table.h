// SPDX-License-Identifier: Apache-2.0
// The journal: intents, from their opening to their end.
#pragma once

#include "lifecycle/store/sql/claim_table.h"

namespace muster::lifecycle::sql {

class IntentTable {
 public:
  IntentTable(SqlConnection& db, ClaimTable& claims) : db_(db), claims_(claims) {}

  Result<void> openIntent(const Intent& intent);
  Result<void> recordOperation(const std::string& intent_id, const std::string& operation);
  Result<void> closeIntent(const std::string& intent_id, IntentState state,
                           const std::string& outcome, WallTime at);
  Result<std::vector<Intent>> openIntents();
  Result<std::vector<Intent>> openIntentsOf(const Subject& subject);
  Result<std::vector<Intent>> intentsOf(const Subject& subject, std::size_t limit);
  Result<std::vector<Intent>> intentsOfPlan(const std::string& hash_prefix, std::size_t limit);

 private:
  /// `where_and_order` uses :s, the text to compare with.
  Result<std::vector<Intent>> readIntents(const std::string& where_and_order,
                                          const std::string& text, std::size_t limit);

  SqlConnection& db_;
  ClaimTable& claims_;
};

}  // namespace muster::lifecycle::sql
