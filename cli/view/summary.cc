// SPDX-License-Identifier: Apache-2.0
#include "cli/view/summary.h"

#include "lifecycle/model/facet_table.h"

#include <vector>

namespace muster::cli {
namespace {

constexpr std::size_t kIntentsPerSubject = 500;

using Row = std::vector<double>;  ///< by the rows of lifecycle::stageTable()

void add(Row& row, const lifecycle::Intent& intent) {
  const auto* stage = lifecycle::findStageRow(lifecycle::stageOf(intent.action.facet.facet));
  if (!stage) return;
  row[static_cast<std::size_t>(stage - lifecycle::stageTable().data())] +=
      std::chrono::duration<double>(intent.closed_at - intent.opened_at).count();
}

}  // namespace

Result<std::string> stageTable(const inventory::Cluster& cluster, lifecycle::Store& store,
                               WallTime since) {
  std::vector<lifecycle::Subject> subjects{lifecycle::Subject::cluster()};
  for (const auto& node : cluster.nodes) subjects.emplace_back(node.name);
  std::string out = fmt::format("{:<10}", "seconds");
  for (const auto& stage : lifecycle::stageTable()) out += fmt::format("{:>9}", stage.title);
  out += fmt::format("{:>9}\n", "total");
  double all = 0;
  for (const auto& subject : subjects) {
    TRY(intents, store.intentsOf(subject, kIntentsPerSubject));
    Row row(lifecycle::stageTable().size());
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
