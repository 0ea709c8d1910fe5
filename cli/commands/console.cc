// SPDX-License-Identifier: Apache-2.0
// console: a node's serial line, live or as it was kept.
#include "app/consoles.h"
#include "app/state_folder.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "bmc/console/ansi_strip.h"
#include "bmc/console/boot_log.h"
#include "cli/commands/commands.h"
#include "cli/terminal.h"
#include "lifecycle/store/store.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kAllLines = 100'000;

/// The boot that is asked for: a number, or the newest.
Result<bmc::KeptBoot> chosen(const std::vector<bmc::KeptBoot>& boots, const std::string& node,
                             const ConsoleFlags& flags) {
  if (boots.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("no boot of {} is kept: muster keeps those that it begins itself, "
                            "where a console is declared (docs/console.md)",
                            node));
  if (!flags.boot) return boots.back();
  for (const auto& boot : boots)
    if (boot.number == *flags.boot) return boot;
  return fail(
      ErrorCode::NotFound,
      fmt::format("boot {} of {} is not kept; `muster console {} --list` names those that are",
                  *flags.boot, node, node));
}

int showKept(const app::Options& options, const std::string& node, const ConsoleFlags& flags) {
  const bmc::BootLogArchive shelf(bmc::keptConsoles(options.state), NodeName(node));
  const auto boots = shelf.boots();
  if (!boots) return report(boots.error());
  if (flags.list) {
    auto list = nlohmann::json::array();
    for (const auto& boot : *boots) {
      list.push_back(
          {{"boot", boot.number}, {"began", muster::toString(boot.began)}, {"why", boot.why}});
      if (!options.json)
        std::cout << fmt::format("{:>4}  {}  {}\n", boot.number, muster::toString(boot.began),
                                 boot.why);
    }
    if (options.json) std::cout << jsonText(list, 2) << '\n';
    return kOk;
  }
  const auto boot = chosen(*boots, node, flags);
  if (!boot) return report(boot.error());
  const auto said = shelf.read(boot->number);
  if (!said) return report(said.error());
  if (flags.raw) {
    writeRaw(std::cout, *said);
    return kOk;
  }
  std::cerr << fmt::format("boot {} of {}, begun {} ({})\n", boot->number, node,
                           muster::toString(boot->began), boot->why);
  for (const auto& line : bmc::plainLines(*said, kAllLines)) std::cout << line << '\n';
  return kOk;
}

Async<void> attach(bmc::ConsoleSource& source, bool take, bmc::BmcFleet& bmcs) {
  if (take) {
    CO_TRY_OK(co_await source.evict());
  }
  auto line = co_await source.open();
  (void)co_await bmcs
      .close();  // best effort: whoever was asked where the console is, is not asked again
  if (!line) co_return std::unexpected(std::move(line).error());
  writeRaw(std::cerr, printable(source.name()) + "; Ctrl-] leaves\r\n");
  co_return co_await talk(std::move(*line));
}

Result<void> live(const app::Options& options, const std::string& node, bool take) {
  TRY(cluster, app::loadCluster(options));
  if (!cluster.findNode(NodeName(node)))
    return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", node));
  TRY(found, lab::find(options.labFolder(cluster)));
  TRY_OK(app::prepareStateFolder(options.state));
  if (found) TRY_OK(lab::enter(*found));  // before a thread is started
  TRY(store, lifecycle::openStore(options.storeUrl()));
  SystemClock clock;
  asio::io_context context;
  Workers workers(1);  // gone first: what they still do answers to the loop
  const auto bmcs = bmc::makeBmcFleet(cluster, *store, clock, workers);
  const auto source =
      app::consoleFinder(options, found, {cluster, *store, clock, workers, *bmcs})(NodeName(node));
  if (!source)
    return fail(
        ErrorCode::NotFound,
        fmt::format(
            "profile {} declares no console; add console: {{via: sol}} where its BMCs have one",
            cluster.findNode(NodeName(node))->profile));
  std::optional<Result<void>> answer;
  asio::co_spawn(context, attach(*source, take, *bmcs),
                 [&](std::exception_ptr broken, Result<void> result) {
                   if (broken) std::rethrow_exception(broken);
                   answer.emplace(std::move(result));
                   context.stop();
                 });
  context.run();
  return std::move(*answer);
}

}  // namespace

int console(const app::Options& options, const std::string& node, const ConsoleFlags& flags) {
  if (flags.boot || flags.last || flags.list) return showKept(options, node, flags);
  const auto ended = live(options, node, flags.take);
  return ended ? int{kOk} : report(ended.error());
}

}  // namespace muster::cli
