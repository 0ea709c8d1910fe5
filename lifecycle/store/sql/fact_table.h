// SPDX-License-Identifier: Apache-2.0
// The facts of every subject.
#pragma once

#include "lifecycle/store/sql/claim_table.h"

namespace muster::lifecycle::sql {

class FactTable {
 public:
  FactTable(SqlConnection& db, ClaimTable& claims) : db_(db), claims_(claims) {}

  Result<FactSet> facts();
  Result<std::vector<Fact>> factsOf(const Subject& subject);
  /// Facts of subjects that others hold are left out.
  Result<void> putFacts(const std::vector<Fact>& facts);
  Result<void> forgetFacts(const Subject& subject, const std::vector<FacetName>& facets);

 private:
  Result<FactSet> readFacts(const Subject* wanted);

  SqlConnection& db_;
  ClaimTable& claims_;
};

}  // namespace muster::lifecycle::sql
