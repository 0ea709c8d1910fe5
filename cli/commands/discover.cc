// SPDX-License-Identifier: Apache-2.0
// discover: what was seen, and looking for more.
#include "base/json_output.h"
#include "cli/commands/commands.h"
#include "cli/commands/discovery.h"
#include "discovery/adopt.h"
#include "discovery/classify.h"
#include "discovery/findings.h"
#include "discovery/match.h"
#include "discovery/scanner.h"
#include "discovery/watch.h"

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <set>

namespace muster::cli {
namespace {

std::string stateOf(const discovery::Machine& machine, const inventory::Cluster& cluster) {
  if (const auto* node = discovery::nodeOf(machine, cluster)) return "node " + node->name.str();
  if (machine.approved())
    return "approved" + (machine.node.empty() ? "" : " as " + machine.node) + ", by " +
           machine.approved_by;
  return "unknown";
}

constexpr std::chrono::seconds kOdditiesEvery{60};  ///< while it is watched

std::string orDash(const std::string& text) { return text.empty() ? "-" : text; }

void printList(const discovery::MachineRegistry& book, const inventory::Cluster& cluster) {
  if (book.machines().empty())
    std::cout << "nothing was seen yet: muster discover scan, or muster discover watch\n";
  for (const auto& machine : book.machines()) {
    std::cout << fmt::format("{:<20} {:<28} {:<16} {:<24} {}\n", machine.id(), orDash(machine.bmc),
                             orDash(machine.vendor), orDash(machine.model),
                             stateOf(machine, cluster));
    if (!machine.macs.empty() || !machine.gpus.empty())
      std::cout << fmt::format("    {}{}{}\n", fmt::join(machine.macs, " "),
                               machine.gpus.empty() ? "" : "  ", machine.gpuText());
    if (!machine.note.empty()) std::cout << "    " << machine.note << "\n";
  }
  for (const auto& odd : discovery::anomalies(book.machines(), cluster))
    std::cout << fmt::format("finding: {} ({}): {}\n", odd.what, odd.where, odd.what_to_do);
}

void printJson(const discovery::MachineRegistry& book, const inventory::Cluster& cluster) {
  nlohmann::json out{{"machines", nlohmann::json::array()}, {"findings", nlohmann::json::array()}};
  for (const auto& machine : book.machines()) {
    auto json = toJson(machine);
    const auto* node = discovery::nodeOf(machine, cluster);
    json["known_as"] = node ? node->name.str() : "";
    json["state"] = node ? "node" : machine.approved() ? "approved" : "unknown";
    out["machines"].push_back(std::move(json));
  }
  for (const auto& odd : discovery::anomalies(book.machines(), cluster))
    out["findings"].push_back(
        {{"what", odd.what}, {"where", odd.where}, {"what_to_do", odd.what_to_do}});
  std::cout << jsonText(out, 2) << "\n";
}

Result<void> keepOddities(Discovery& home) {
  TRY(book, discovery::MachineRegistry::read(*home.store));
  return discovery::updateFindings(*home.store, discovery::anomalies(book.machines(), home.cluster),
                                   home.clock.now());
}

/// Scans and keeps what was seen, each machine at once: an interrupted scan has not been for
/// nothing.
Result<discovery::ScanReport> runScan(Discovery& home, const discovery::Ranges& ranges,
                                      std::uint16_t port, discovery::Approver approve) {
  discovery::ScanDeps deps{
      home.cluster, *home.bmcs,
      *home.store,  home.clock,
      home.workers, [](io::TlsTrust trust) { return io::makeHttpClient(std::move(trust)); },
      port,         std::move(approve)};
  std::optional<Error> broken;
  auto seen = [&](discovery::Machine machine) {
    const auto kept = discovery::updateRegistry(
        *home.store, [&](discovery::MachineRegistry& book) -> Result<void> {
          TRY_OK(book.note(machine, home.clock.now()));
          discovery::applyRules(book, home.cluster);
          return {};
        });
    if (!kept && !broken) broken = kept.error();
  };
  auto report = home.run(discovery::scan(std::move(deps), ranges, seen));
  (void)home.run(home.bmcs->close());
  if (report && broken) return fail(*broken);
  if (report) TRY_OK(keepOddities(home));
  return report;
}

}  // namespace

int discoverList(const app::Options& options, const DiscoverFlags&) {
  auto home = Discovery::open(options);
  if (!home) return report(home.error());
  const auto book = discovery::MachineRegistry::read(*(*home)->store);
  if (!book) return report(book.error());
  options.json ? printJson(*book, (*home)->cluster) : printList(*book, (*home)->cluster);
  return kOk;
}

int discoverScan(const app::Options& options, const DiscoverFlags& flags) {
  auto home = Discovery::open(options);
  if (!home) return report(home.error());
  const auto& texts = flags.words.empty() ? (*home)->cluster.discovery.ranges : flags.words;
  if (texts.empty())
    return report(Error(
        ErrorCode::InvalidInput,
        "nothing says where to look: name ranges, or write discovery.ranges into the inventory"));
  const auto ranges = discovery::Ranges::parse(texts);
  if (!ranges) return report(ranges.error());
  auto approve = certificateApprover(**home, options, flags);
  if (!approve) return report(approve.error());
  const auto done =
      runScan(**home, *ranges, static_cast<std::uint16_t>(flags.port), std::move(*approve));
  if (!done) return report(done.error());
  const auto book = discovery::MachineRegistry::read(*(*home)->store);
  if (!book) return report(book.error());
  if (options.json) {
    printJson(*book, (*home)->cluster);
  } else {
    printList(*book, (*home)->cluster);
    std::cout << fmt::format("{} addresses asked, {} Redfish services, {} machines surveyed\n",
                             done->addresses, done->services, done->surveyed);
    if (done->unapproved > 0)
      std::cout << fmt::format(
          "{} BMC{} got no password: compare the fingerprints above, keep the lines that are right "
          "in a file, and scan again with --fingerprints FILE\n",
          done->unapproved, done->unapproved == 1 ? "" : "s");
  }
  return done->unapproved > 0 ? kWorkLeft : kOk;
}

int discoverWatch(const app::Options& options, const DiscoverFlags& flags) {
  constexpr std::chrono::hours kForever{24 * 365};
  auto opened = Discovery::open(options);
  if (!opened) return report(opened.error());
  auto& home = **opened;
  const auto controller = home.cluster.provisioning().controller;
  auto interface = flags.interface.empty() ? discovery::interfaceOf(controller)
                                           : Result<std::string>(flags.interface);
  if (!interface) return report(interface.error());
  const auto address =
      flags.interface.empty() ? Result<Ipv4>(controller) : discovery::addressOf(*interface);
  if (!address) std::cerr << "muster: SSDP is not listened to: " << address.error().str() << "\n";
  const std::chrono::milliseconds limit =
      flags.seconds > 0 ? std::chrono::seconds(flags.seconds) : kForever;
  std::set<std::string> said;
  auto look_again = home.clock.steady();
  auto note = [&](const discovery::Machine& machine) {
    const auto kept = discovery::updateRegistry(*home.store, [&](discovery::MachineRegistry& book) {
      return book.note(machine, home.clock.now());
    });
    if (!kept) std::cerr << "muster: " << kept.error().str() << "\n";
    if (home.clock.steady() >= look_again) {
      look_again = home.clock.steady() + kOdditiesEvery;
      if (const auto told = keepOddities(home); !told)
        std::cerr << "muster: " << told.error().str() << "\n";
    }
    const auto line = fmt::format("{:<20} {}", machine.id(), machine.note);
    if (said.size() < discovery::kMaxMachines && said.insert(line).second)
      std::cout << line << std::endl;
  };
  if (address) {
    auto ssdp = discovery::watchSsdp(
        *address, limit, [&](discovery::SsdpService service) { note(sightingOf(service)); });
    asio::co_spawn(home.context, std::move(ssdp), [](std::exception_ptr, Result<void> ended) {
      if (!ended) std::cerr << "muster: SSDP is not listened to: " << ended.error().str() << "\n";
    });
  }
  std::cout << "listening on " << *interface << " to DHCP" << (address ? " and SSDP" : "")
            << "; nothing is answered" << std::endl;
  const auto ended = home.run(discovery::watchDhcp(
      *interface, limit, [&](discovery::DhcpRequest request) { note(sightingOf(request)); }));
  return ended ? kOk : report(ended.error());
}

}  // namespace muster::cli
