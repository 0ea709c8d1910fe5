// SPDX-License-Identifier: Apache-2.0
// `dcgmi diag`, read fail-closed: JSON (-j) of DCGM 2, 3 and 4, and the table that it prints
// without -j. A test that was skipped, or a GPU without a result, has not passed.
#pragma once

#include "base/result.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::collective {

enum class DcgmStatus { Pass, Warn, Fail, Skip, Missing };
std::string_view said(DcgmStatus status);  ///< "was skipped"

struct DcgmFinding {
  std::string test, entity, serial;  ///< entity: "GPU 3"; "": the node as a whole
  DcgmStatus status = DcgmStatus::Missing;
  std::string text;
  int error_id = 0,
      severity = 0;  ///< 0 none, 1 monitor, 2 isolate, 3 unknown, 4 triage, 5 config, 6 reset
  std::string_view action() const;  ///< what the severity asks for
};
/// One test's result of one entity.
struct DcgmResult {
  std::string test;        ///< DCGM 4's name: "memory_bandwidth" also for "Memory Bandwidth"
  std::optional<int> gpu;  ///< none: of the node as a whole, or of something that is no GPU
  DcgmStatus status = DcgmStatus::Missing;
};
struct DcgmReport {
  std::string version, driver;
  std::set<int> gpus;       ///< that the report names anywhere
  std::size_t devices = 0;  ///< GPUs of its list of device ids; 0: it has none
  int passed = 0;           ///< results
  std::vector<DcgmResult> results;
  std::vector<DcgmFinding> findings;  ///< all that have not passed, without skipped optional tests
  std::set<std::string> skipped;      ///< optional tests that did not run
};

struct DcgmExpected {
  int level = 1;                   ///< of `dcgmi diag -r`
  std::size_t gpus = 0;            ///< that the machine has
  std::set<std::string> may_skip;  ///< tests that the site says this machine cannot have
};
/// What did not pass, or is not there at all: each expected test must have passed on each GPU.
/// Empty: the diagnostic passed.
std::vector<std::string> shortcomings(const DcgmReport& report, const DcgmExpected& expected);

/// What did not run: optional tests, and "memory on GPU 1" of those that the site allows to be
/// skipped.
std::set<std::string> notRun(const DcgmReport& report, const DcgmExpected& expected);

/// DCGM 4's name of a test of any release: "GPU Memory" is "memory".
std::string dcgmTestName(std::string_view printed);
/// Tests that only some GPU models, or only hosts with another package, have.
bool isOptionalDcgmTest(std::string_view test);
/// Files the result, and a finding when it is none that passed.
void addDcgmResult(DcgmReport& report, DcgmResult result, DcgmFinding finding);

/// Errors: Corrupt when it is not such a report, or names no test at all; Unavailable with DCGM's
/// own words when it could not run
/// Source: DCGM's testing/python3/dcgm_diag_schema.json, dcgmi/Diag.cpp,
/// nvvs/include/NvvsJsonStrings.h (4.6); outputs of DCGM 2.4 to 4.5 in public issues
Result<DcgmReport> parseDcgmDiag(std::string_view output);

}  // namespace muster::collective
