// SPDX-License-Identifier: Apache-2.0
// bmc power, bmc boot. A disruptive command is shown first and done only with the node's name once
// more.
#include "app/nodes/bmc_power.h"

#include "app/site/site_records.h"
#include "base/printable.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/bmc.h"
#include "cli/commands/print_done.h"

#include <fmt/ranges.h>

#include <iostream>

namespace muster::cli {
namespace {

std::string powerWord(bmc::PowerState power) {
  return power == bmc::PowerState::On ? "on" : power == bmc::PowerState::Off ? "off" : "unknown";
}

std::string_view bootWord(bmc::BootTarget target) {
  switch (target) {
    case bmc::BootTarget::Pxe:
      return "network";
    case bmc::BootTarget::UefiHttp:
      return "http";
    case bmc::BootTarget::Disk:
      return "disk";
    case bmc::BootTarget::Cd:
      return "cd";
    case bmc::BootTarget::Usb:
      return "usb";
    case bmc::BootTarget::None:
      break;
  }
  return "-";
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
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto done =
      (*site)->records().power({NodeName(args.node), *command, args.reason, args.ipmi, args.force,
                                !args.confirm.empty(), args.override_inventory},
                               [](const std::string& text) { std::cerr << text << '\n'; });
  if (!done) return report(done.error());
  nlohmann::json out = {{"node", args.node},
                        {"action", args.action},
                        {"done", done->after.has_value()},
                        {"before", powerWord(done->before)}};
  if (!done->after) return printDone(options, out, checkedText(args, app::rowOf(*command), *done));
  const auto& after = *done->after;
  out["power"] = after ? powerWord(*after) : "unknown";
  if (!after) out["text"] = after.error().str();
  return printDone(options, out,
                   fmt::format("{}: power was {}, is {}\n", args.node, powerWord(done->before),
                               after ? powerWord(*after) : after.error().str()));
}

int bmcBoot(const app::Options& options, const BmcBootArgs& args) {
  app::BootRequest request{NodeName(args.node), {}};
  request.boot.target = args.from == "pxe"    ? bmc::BootTarget::Pxe
                        : args.from == "disk" ? bmc::BootTarget::Disk
                        : args.from == "http" ? bmc::BootTarget::UefiHttp
                        : args.from == "cd"   ? bmc::BootTarget::Cd
                                              : bmc::BootTarget::None;
  request.boot.persistent = args.persistent;
  request.boot.http_uri = args.uri;
  if (const auto set = app::setBootDevice(options, request); !set) return report(set.error());
  const bool own_order = args.from == "none";
  return printDone(options,
                   {{"node", args.node}, {"from", args.from}, {"persistent", args.persistent}},
                   fmt::format("{} boots from {} {}\n", args.node,
                               own_order ? "what its own order says," : args.from,
                               args.persistent || own_order ? "from now on" : "the next time"));
}

int bmcBootOrder(const app::Options& options, const BmcBootOrderArgs& args) {
  const auto done = app::bootOrder(options, {NodeName(args.node), args.first});
  if (!done) return report(done.error());
  const auto& staged = done->order.staged;
  std::string text;
  auto listed = nlohmann::json::array();
  for (const auto& option : done->order.options) {
    text += fmt::format(
        "{:10} {:8} {}\n", printable(option.reference), bootWord(option.starts_from),
        option.name.empty() ? "(the BMC does not describe it)" : printable(option.name));
    listed.push_back({{"reference", option.reference},
                      {"starts_from", bootWord(option.starts_from)},
                      {"name", option.name}});
  }
  if (!staged.empty())
    text += fmt::format("The next boot brings: {}\n",
                        printable(fmt::format("{}", fmt::join(staged, ", "))));
  if (!args.first.empty() && !done->changed) text += "The order was so already.\n";
  return printDone(options,
                   {{"node", args.node},
                    {"options", std::move(listed)},
                    {"staged", staged},
                    {"changed", done->changed}},
                   text);
}

int bmcMedia(const app::Options& options, const BmcMediaArgs& args) {
  const auto media = app::virtualMedia(options, {NodeName(args.node), args.insert, args.eject});
  if (!media) return report(media.error());
  std::string text;
  auto all = nlohmann::json::array();
  for (const auto& drive : *media) {
    text += fmt::format("{:16} {}\n", printable(drive.id),
                        !drive.inserted       ? "-"
                        : drive.image.empty() ? "an image"
                                              : printable(drive.image));
    all.push_back({{"drive", drive.id}, {"inserted", drive.inserted}, {"image", drive.image}});
  }
  return printDone(options, all, text);
}

int bmcLocate(const app::Options& options, const BmcLocateArgs& args) {
  const auto wanted = args.state.empty() ? std::nullopt : std::optional(args.state == "on");
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto on = (*site)->records().locate(NodeName(args.node), wanted);
  if (!on) return report(on.error());
  const std::string led = *on ? "on" : "off";
  return printDone(options, {{"node", args.node}, {"led", led}},
                   fmt::format("{}: its locate LED is {}\n", args.node, led));
}

}  // namespace muster::cli
