// SPDX-License-Identifier: Apache-2.0
// validate report and baseline: what the store's measurements say; no node is asked.
#pragma once

#include "app/site/options.h"
#include "validate/report/report.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace muster::app {

/// The newest isolation's document: every test between nodes; its name grows with its time. Empty:
/// there is none.
std::filesystem::path newestIsolation(const std::filesystem::path& state);

struct MeasurementsRequest {
  int days = 90;            ///< of history that count
  double false_alarms = 1;  ///< that the report may be expected to hold
};
/// The whole report.
struct MeasurementsReport {
  validate::history::Statistics statistics;
  validate::report::Subject subject;
  std::string left_out;  ///< why the newest isolation is not in it; empty: it is, or there is none
};
Result<MeasurementsReport> reportMeasurements(const Options& options,
                                              const MeasurementsRequest& request);

/// The report as people and programs keep it.
enum class ReportFormat { Html, Json, Junit };
std::string toText(const MeasurementsReport& report, ReportFormat format);

/// What a report says, without the values that its pictures are made of.
struct MeasuredFleet {
  struct Alarm {
    std::string kind;  ///< as toString(AlarmKind)
    std::string text;
    double sigmas = 0, limit = 0;  ///< of "bits" they say nothing
  };
  struct Typical {
    std::string sku, metric;
    std::size_t values = 0;
    double median = 0, sigma = 0;
  };
  std::size_t numbers = 0, nodes = 0, comparisons = 0;
  double false_alarms = 0;       ///< that are to be expected
  std::vector<Alarm> alarms;     ///< worst first
  std::vector<Typical> typical;  ///< by SKU, then metric
  std::string not_said;          ///< as validate::report::leftOutText
  std::string left_out;          ///< as MeasurementsReport's
  std::map<ReportFormat, std::string> documents;
};
MeasuredFleet fleetOf(const MeasurementsReport& report);
/// `formats`: what MeasuredFleet::documents is to hold.
Result<MeasuredFleet> measuredFleet(const Options& options, const MeasurementsRequest& request,
                                    const std::vector<ReportFormat>& formats);

}  // namespace muster::app
