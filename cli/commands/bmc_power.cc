// SPDX-License-Identifier: Apache-2.0
// bmc power, bmc boot. A disruptive command is shown first and done only with the node's name once
// more.
#include "app/bmc_power.h"

#include "cli/commands/bmc.h"

#include <iostream>

namespace muster::cli {
namespace {

std::string powerWord(bmc::PowerState power) {
  return power == bmc::PowerState::On ? "on" : power == bmc::PowerState::Off ? "off" : "unknown";
}

std::string checkedText(const BmcPowerArgs& args, const app::PowerCommandRow& command,
                        const app::PowerResult& checked) {
  return fmt::format(
      "{0} ({1}): power is {2}; it {3}.\nNothing was done. To do it: muster bmc power {0} "
      "{4}{5}{6} "
      "--reason … --confirm {0}\n",
      args.node, checked.address, powerWord(checked.before), command.effect, command.word,
      args.ipmi ? " --ipmi" : "", args.force ? " --force" : "");
}

}  // namespace

int bmcPower(const app::Options& options, const BmcPowerArgs& args) {
  const auto command = app::parsePowerCommand(args.action);
  if (!command) return report(command.error());
  if (!args.confirm.empty() && args.confirm != args.node)
    return report(
        Error(ErrorCode::InvalidInput,
              fmt::format("--confirm {} is not the name of the node, {}; nothing was done",
                          args.confirm, args.node)));
  const auto done = app::powerNode(
      options,
      {NodeName(args.node), *command, args.reason, args.ipmi, args.force, !args.confirm.empty()},
      [](const std::string& text) { std::cerr << text << '\n'; });
  if (!done) return report(done.error());
  if (!done->after)
    std::cout << checkedText(args, app::rowOf(*command), *done);
  else
    std::cout << fmt::format("{}: power was {}, is {}\n", args.node, powerWord(done->before),
                             *done->after ? powerWord(**done->after) : done->after->error().str());
  return kOk;
}

int bmcBoot(const app::Options& options, const BmcBootArgs& args) {
  app::BootRequest request{NodeName(args.node), {}};
  request.boot.target = args.from == "pxe"    ? bmc::BootTarget::Pxe
                        : args.from == "disk" ? bmc::BootTarget::Disk
                        : args.from == "http" ? bmc::BootTarget::UefiHttp
                                              : bmc::BootTarget::None;
  request.boot.persistent = args.persistent;
  request.boot.http_uri = args.uri;
  if (const auto set = app::setBootDevice(options, request); !set) return report(set.error());
  const bool own_order = args.from == "none";
  std::cout << fmt::format("{} boots from {} {}\n", args.node,
                           own_order ? "what its own order says," : args.from,
                           args.persistent || own_order ? "from now on" : "the next time");
  return kOk;
}

}  // namespace muster::cli
