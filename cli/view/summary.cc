// SPDX-License-Identifier: Apache-2.0
#include "cli/view/summary.h"

#include <algorithm>
#include <array>

namespace muster::cli {
namespace {

constexpr std::size_t kIntentsPerSubject = 500;

/// Stages in the order of the road, and the facets that belong to them.
struct Stage {
  std::string_view title, prefix;
};
constexpr std::array kStages{Stage{"enrol", "enrolled"},
                             Stage{"firmware", "firmware."},
                             Stage{"inspect", "inspected"},
                             Stage{"image", "image"},
                             Stage{"boot", "os"},
                             Stage{"drivers", "driver."},
                             Stage{"fabric", "fabric."},
                             Stage{"gates", "gate."},
                             Stage{"certify", "certificate"},
                             Stage{"pool", "pool"}};

using Row = std::array<double, kStages.size()>;

void add(Row& row, const lifecycle::Intent& intent) {
  const auto& facet = intent.action.facet.facet.str();
  const auto stage = std::find_if(kStages.begin(), kStages.end(), [&](const Stage& each) {
    return facet.starts_with(each.prefix);
  });
  if (stage == kStages.end()) return;
  row[static_cast<std::size_t>(stage - kStages.begin())] +=
      std::chrono::duration<double>(intent.closed_at - intent.opened_at).count();
}

}  // namespace

Result<std::string> stageTable(const inventory::Cluster& cluster, lifecycle::Store& store,
                               WallTime since) {
  std::vector<lifecycle::Subject> subjects{lifecycle::Subject::cluster()};
  for (const auto& node : cluster.nodes) subjects.emplace_back(node.name);
  std::string out = fmt::format("{:<10}", "seconds");
  for (const auto& stage : kStages) out += fmt::format("{:>9}", stage.title);
  out += fmt::format("{:>9}\n", "total");
  double all = 0;
  for (const auto& subject : subjects) {
    TRY(intents, store.intentsOf(subject, kIntentsPerSubject));
    Row row{};
    for (const auto& intent : intents)
      if (intent.state == lifecycle::IntentState::Done && intent.opened_at >= since)
        add(row, intent);
    double total = 0;
    out += fmt::format("{:<10}", subject.str());
    for (const double seconds : row) {
      total += seconds;
      out += seconds > 0 ? fmt::format("{:>9.1f}", seconds) : fmt::format("{:>9}", "-");
    }
    out += fmt::format("{:>9.1f}\n", total);
    all += total;
  }
  return all > 0 ? out : std::string();  // a run that did nothing needs no table
}

}  // namespace muster::cli
