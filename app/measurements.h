// SPDX-License-Identifier: Apache-2.0
// validate report and baseline: what the store's measurements say; no node is asked.
#pragma once

#include "app/options.h"
#include "validate/report/report.h"

#include <filesystem>
#include <string>

namespace muster::app {

/// The newest isolation's document: every test between nodes; its name grows with its time. Empty:
/// there is none.
std::filesystem::path newestIsolation(const std::filesystem::path& state);

struct MeasurementsRequest {
  int days = 90;            ///< of history that count
  double false_alarms = 1;  ///< that the report may be expected to hold
};
struct MeasurementsReport {
  validate::history::Statistics statistics;
  validate::report::Subject subject;
  std::string left_out;  ///< why the newest isolation is not in it; empty: it is, or there is none
};
Result<MeasurementsReport> reportMeasurements(const Options& options,
                                              const MeasurementsRequest& request);

}  // namespace muster::app
