// SPDX-License-Identifier: Apache-2.0
// Findings, by facet and source.
#pragma once

#include "lifecycle/store/sql/claim_table.h"

namespace muster::lifecycle::sql {

class FindingTable {
 public:
  FindingTable(SqlConnection& db, ClaimTable& claims) : db_(db), claims_(claims) {}

  Result<void> addFinding(const Finding& finding);
  Result<std::vector<Finding>> findings(const Subject* subject);
  Result<void> clearFindings(const FacetRef& facet);
  Result<void> clearFindingsOf(const FacetRef& facet, const std::string& source);

 private:
  SqlConnection& db_;
  ClaimTable& claims_;
};

}  // namespace muster::lifecycle::sql
