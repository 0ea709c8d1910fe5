// SPDX-License-Identifier: Apache-2.0
#include "cli/view/summary.h"

#include <algorithm>

namespace muster::cli {

namespace {

constexpr std::size_t kMaxRows = 16;

/// Of many subjects: the fastest, the median and the slowest of each stage that was done.
std::vector<app::StageTimes> spreadOf(const std::vector<app::StageTimes>& stages) {
  std::vector<app::StageTimes> out;
  for (const auto* name : {"fastest", "median", "slowest"})
    out.push_back({lifecycle::Subject::parse(name), stages.front().seconds});
  for (std::size_t stage = 0; stage < stages.front().seconds.size(); ++stage) {
    std::vector<double> took;
    for (const auto& row : stages)
      if (row.seconds[stage].second > 0) took.push_back(row.seconds[stage].second);
    std::ranges::sort(took);
    out[0].seconds[stage].second = took.empty() ? 0 : took.front();
    out[1].seconds[stage].second = took.empty() ? 0 : took[took.size() / 2];
    out[2].seconds[stage].second = took.empty() ? 0 : took.back();
  }
  return out;
}

}  // namespace

std::string stageTable(const std::vector<app::StageTimes>& stages) {
  if (stages.empty()) return {};
  if (stages.size() > kMaxRows)
    return fmt::format("of {} subjects, each stage for itself:\n", stages.size()) +
           stageTable(spreadOf(stages));
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
