// SPDX-License-Identifier: Apache-2.0
#include "cli/view/summary.h"

namespace muster::cli {

std::string stageTable(const std::vector<app::StageTimes>& stages) {
  if (stages.empty()) return {};
  std::string out = fmt::format("{:<10}", "seconds");
  for (const auto& [title, seconds] : stages.front().seconds) out += fmt::format("{:>9}", title);
  out += fmt::format("{:>9}\n", "total");
  for (const auto& row : stages) {
    double total = 0;
    out += fmt::format("{:<10}", row.subject.str());
    for (const auto& [title, seconds] : row.seconds) {
      total += seconds;
      out += seconds > 0 ? fmt::format("{:>9.1f}", seconds) : fmt::format("{:>9}", "-");
    }
    out += fmt::format("{:>9.1f}\n", total);
  }
  return out;
}

}  // namespace muster::cli
