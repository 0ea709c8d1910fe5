// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/console.h"

#include "app/controller/consoles.h"
#include "app/controller/run_async.h"
#include "app/site/effective_cluster.h"
#include "bmc/bmc.h"
#include "inventory/model/cluster.h"

namespace muster::app {
namespace {

Async<void> attach(bmc::ConsoleSource& source, bool force, bmc::BmcFleet& bmcs, ConsoleUser user) {
  if (force) {
    CO_TRY_OK(co_await source.evict());
  }
  auto line = co_await source.open();
  (void)co_await bmcs
      .close();  // best effort: whoever was asked where the console is, is not asked again
  if (!line) co_return std::unexpected(std::move(line).error());
  co_return co_await user(std::move(*line), source.name());
}

}  // namespace

Result<std::vector<bmc::KeptBoot>> recordedBoots(const Options& options, const NodeName& node) {
  return bmc::BootLogArchive(bmc::keptConsoles(options.state), node).boots();
}

Error noRecordedBoot(const NodeName& node, std::optional<int> number) {
  return {ErrorCode::NotFound,
          number ? fmt::format("boot {} of {} is not kept; `muster console {} --list` names those "
                               "that are",
                               *number, node.str(), node.str())
                 : fmt::format("no boot of {} is recorded: muster records those that it begins "
                               "itself, where a console is declared (docs/console.md)",
                               node.str())};
}

Result<RecordedBoot> recordedBoot(const Options& options, const NodeName& node,
                                  std::optional<int> number) {
  const bmc::BootLogArchive shelf(bmc::keptConsoles(options.state), node);
  TRY(boots, shelf.boots());
  if (boots.empty()) return fail(noRecordedBoot(node, std::nullopt));
  const bmc::KeptBoot* chosen = number ? nullptr : &boots.back();
  for (const auto& boot : boots)
    if (number && boot.number == *number) chosen = &boot;
  if (!chosen) return fail(noRecordedBoot(node, number));
  TRY(output, shelf.read(chosen->number));
  return RecordedBoot{*chosen, std::move(output)};
}

Result<bmc::BootPart> recordedPart(const Options& options, const NodeName& node, int number,
                                   std::uint64_t from, std::size_t limit) {
  return bmc::BootLogArchive(bmc::keptConsoles(options.state), node).readFrom(number, from, limit);
}

Result<void> attachConsole(const Options& options, const NodeName& node, bool force,
                           ConsoleUser user) {
  TRY(cluster, loadCluster(options));
  TRY(declared, requireNode(cluster, node.str()));
  TRY(found, lab::find(options.labFolder(cluster)));
  if (found) TRY_OK(lab::enter(*found));  // before a thread is started
  TRY(store, openStoreForWriting(options));
  SystemClock clock;
  Loop loop;
  Workers workers(1);  // gone first: what they still do answers to the loop
  const auto bmcs = bmc::makeBmcFleet(cluster, *store, clock, workers);
  const auto source = consoleFinder(options, found, {cluster, *store, clock, workers, *bmcs})(node);
  if (!source)
    return fail(
        ErrorCode::NotFound,
        fmt::format(
            "profile {} declares no console; add console: {{via: sol}} where its BMCs have one",
            declared->profile));
  return loop.run(attach(*source, force, *bmcs, std::move(user)));
}

}  // namespace muster::app
