// SPDX-License-Identifier: Apache-2.0
// `dcgmi diag -j`, read fail-closed: a test that was skipped, or an entity without a result, has
// not passed.
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::collective {

enum class DcgmStatus { Pass, Warn, Fail, Skip, Missing };
struct DcgmFinding {
  std::string test, entity, serial;  ///< entity: "GPU 3"
  DcgmStatus status = DcgmStatus::Missing;
  std::string text;
  int error_id = 0,
      severity = 0;  ///< 0 none, 1 monitor, 2 isolate, 3 unknown, 4 triage, 5 config, 6 reset
  std::string_view action() const;  ///< what the severity asks for
};
struct DcgmReport {
  std::string version, driver;
  int passed = 0;                     ///< results
  std::vector<DcgmFinding> findings;  ///< all that have not passed
  bool good() const { return passed > 0 && findings.empty(); }
};

/// Errors: Corrupt when it is not such a report, or names no test at all
Result<DcgmReport> parseDcgmDiag(std::string_view json);

}  // namespace muster::collective
