// SPDX-License-Identifier: Apache-2.0
// console: a node's serial console, live or as it was recorded.
#include "app/nodes/console.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "bmc/console/ansi_strip.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/monitor.h"
#include "cli/commands/print_done.h"
#include "cli/terminal.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kAllLines = 100'000;

int listBoots(const app::Options& options, const ConsoleArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto boots = (*site)->records().recordedBoots(NodeName(args.node));
  if (!boots) return report(boots.error());
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

int showBoot(const app::Options& options, const ConsoleArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto recorded = (*site)->records().recordedBoot(NodeName(args.node), args.boot);
  if (!recorded) return report(recorded.error());
  if (args.raw) {
    writeRaw(std::cout, recorded->output);
    return kOk;
  }
  const auto& boot = recorded->boot;
  if (options.json)
    return printDone(options,
                     {{"node", args.node},
                      {"boot", boot.number},
                      {"began", muster::toString(boot.began)},
                      {"why", boot.why},
                      {"lines", bmc::plainLines(recorded->output, kAllLines)}},
                     "");
  std::cerr << fmt::format("boot {} of {}, begun {} ({})\n", boot.number, args.node,
                           muster::toString(boot.began), boot.why);
  for (const auto& line : bmc::plainLines(recorded->output, kAllLines)) std::cout << line << '\n';
  return kOk;
}

Async<void> talkAt(std::unique_ptr<io::Dialogue> line, std::string name) {
  writeRaw(std::cerr, printable(name) + "; Ctrl-] leaves\r\n");
  co_return co_await talk(std::move(line));
}

}  // namespace

int console(const app::Options& options, const ConsoleArgs& args) {
  if (args.list) return listBoots(options, args);
  if (args.boot || args.last) return showBoot(options, args);
  if (const auto here = requireNoServer(
          options,
          "a server shows what consoles have said (--list, --last, --boot N), and nobody "
          "types into them through it");
      !here)
    return report(here.error());
  const auto ended = app::attachConsole(options, NodeName(args.node), args.force, talkAt);
  return ended ? int{kOk} : report(ended.error());
}

}  // namespace muster::cli
