// SPDX-License-Identifier: Apache-2.0
// Reports on the fleet's measurements: HTML for people (one file, nothing fetched), JSON for
// programs, JUnit for whoever shows test results.
#pragma once

#include "validate/history/statistics.h"

#include <map>
#include <optional>
#include <string>

namespace muster::validate::report {

/// What tests between nodes reached, as shares of what is typical: of the newest isolation.
struct Matrix {
  std::string title;
  std::vector<std::string> names;  ///< rows and columns
  std::vector<double> shares;      ///< names × names; negative: not tested
};
/// From the evidence that `muster validate isolate` leaves. Many nodes are gathered: the least of
/// their tests counts. Errors: Corrupt
Result<Matrix> matrixOf(std::string_view isolation_json);

struct Subject {
  std::string cluster;
  WallTime at{};
  std::optional<Matrix> matrix;
  std::map<std::string, std::string>
      expected;  ///< SKU → where its gates' expected values come from
};

std::string toHtml(const history::Statistics& statistics, const Subject& subject);
std::string toJson(const history::Statistics& statistics, const Subject& subject);
/// A test case a node and SKU; a failure an alarm. Nodes without any evaluated value are skipped
/// cases, never passed ones.
std::string toJunit(const history::Statistics& statistics, const Subject& subject);

/// What the report says nothing of, and why; empty: there is no such thing.
std::string leftOutText(const history::Statistics& statistics);
/// "gpu007 is 8.1 % below what is typical".
std::string sentence(const history::Alarm& alarm);
/// Four digits that matter: "391.2", "0.01342".
std::string shortNumber(double value);

}  // namespace muster::validate::report
