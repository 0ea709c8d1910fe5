// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/discovery.h"

#include "base/ip_address.h"

#include "app/controller/run_async.h"
#include "app/nodes/nodes_csv.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "bmc/bmc.h"
#include "discovery/adopt.h"
#include "discovery/approvals.h"
#include "discovery/classify.h"
#include "discovery/findings.h"
#include "discovery/match.h"
#include "discovery/watch.h"
#include "inventory/inventory.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/discovery.h"
#include "inventory/model/networks.h"
#include "lab/lab.h"

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace muster::app {
namespace {

constexpr std::size_t kMaxListBytes = 16u << 20;
constexpr std::chrono::seconds kOdditiesInterval{60};  ///< while the network is watched
constexpr std::chrono::hours kWatchForever{24 * 365};

/// Inventory, store and BMCs, without a controller: nothing is changed that a controller holds.
struct Discovery {
  Loop loop;
  SystemClock clock;
  Workers workers{1};
  inventory::Cluster cluster;
  std::unique_ptr<lifecycle::Store> store;
  std::unique_ptr<bmc::BmcFleet> bmcs;

  /// The inventory may lack rows for nodes that it names. Enters the twin's network when there is
  /// one.
  static Result<std::unique_ptr<Discovery>> open(const Options& options) {
    auto loaded = inventory::load(options.inventory, {.texts = {}, .rows_may_miss = true});
    if (!loaded.cluster) {
      loaded.diagnostics.sort();
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} is not valid; nothing was done:{}", options.inventory.string(),
                              errorsOf(loaded)));
    }
    auto out = std::make_unique<Discovery>();
    out->cluster = std::move(*loaded.cluster);
    TRY(found, lab::find(options.labFolder(out->cluster)));
    if (found) trustTwinBmcs(out->cluster);
    if (found) TRY_OK(lab::enter(*found));
    TRY(store, openStoreForWriting(options));
    out->store = std::move(store);
    out->bmcs = bmc::makeBmcFleet(out->cluster, *out->store, out->clock, out->workers);
    return out;
  }
};

Result<Discovered> discoveredIn(Discovery& discovery) {
  return discoveredMachines(discovery.cluster, *discovery.store);
}

Result<void> storeOddities(Discovery& discovery) {
  TRY(book, discovery::MachineRegistry::read(*discovery.store));
  return discovery::updateFindings(*discovery.store,
                                   discovery::anomalies(book.machines(), discovery.cluster),
                                   discovery.clock.now());
}

/// By a list, by what was approved before, and by whoever reviews now. Errors: those of the list
Result<discovery::Approver> approverFor(Discovery& discovery, const ScanRequest& request,
                                        CertificateReviewer& reviewer) {
  discovery::ApprovedCertificates approved;
  if (!request.fingerprints.empty()) {
    TRY(text, io::readRegularFile(request.fingerprints, kMaxListBytes));
    TRY(parsed, discovery::ApprovedCertificates::parse(text, request.fingerprints.string()));
    approved = std::move(parsed);
  }
  for (const auto& fingerprint : request.trusted) TRY_OK(approved.add(fingerprint));
  TRY(book, discovery::MachineRegistry::read(*discovery.store));
  using Policy = CertificateReviewer::Policy;
  const auto policy = discovery.cluster.discovery->credentials.empty() ? Policy::NoPassword
                      : discovery.cluster.bmc_trust == inventory::BmcTrustPolicy::Declared
                          ? Policy::Refuse
                          : Policy::TrustFirstContact;
  return discovery::Approver([approved = std::move(approved), book = std::move(book), policy,
                              &reviewer](const std::vector<discovery::Contact>& met) {
    std::map<std::string, std::string> out;
    std::vector<discovery::Contact> open;
    for (const auto& contact : met) {
      const auto before =
          std::find_if(book.machines().begin(), book.machines().end(), [&](const auto& machine) {
            return machine.bmc == contact.bmc && machine.certificate == contact.certificate;
          });
      if (approved.covers(contact)) {
        out[contact.bmc] = userName();
      } else if (before != book.machines().end() && !before->certificate_approved_by.empty()) {
        out[contact.bmc] = before->certificate_approved_by;
      } else {
        open.push_back(contact);
      }
    }
    if (open.empty()) return out;
    if (reviewer.approve(open, policy) && policy == Policy::Refuse)
      for (const auto& contact : open) out[contact.bmc] = userName();
    return out;
  });
}

Result<discovery::ScanReport> scan(Discovery& discovery, const discovery::Ranges& ranges,
                                   std::uint16_t port, discovery::Approver approve) {
  discovery::ScanDeps deps{discovery.cluster,
                           *discovery.bmcs,
                           *discovery.store,
                           discovery.clock,
                           discovery.workers,
                           [](io::TlsTrust trust) { return io::makeHttpClient(std::move(trust)); },
                           port,
                           std::move(approve)};
  std::optional<Error> broken;
  auto seen = [&](discovery::Machine machine) {
    const auto kept = discovery::updateRegistry(
        *discovery.store, [&](discovery::MachineRegistry& book) -> Result<void> {
          TRY_OK(book.note(machine, discovery.clock.now()));
          discovery::applyRules(book, discovery.cluster);
          return {};
        });
    if (!kept && !broken) broken = kept.error();
  };
  auto report = discovery.loop.run(discovery::scan(std::move(deps), ranges, seen));
  (void)discovery.loop.run(discovery.bmcs->close());
  if (report && broken) return fail(*broken);
  if (report) TRY_OK(storeOddities(discovery));
  return report;
}

Result<void> addRows(const Options& options, Discovery& discovery,
                     const std::filesystem::path& file, const discovery::Rows& rows,
                     const discovery::MachineRegistry& book) {
  TRY(before, io::readRegularFile(file, kMaxCsvBytes));
  const bool pins_needed = discovery.cluster.bmc_trust == inventory::BmcTrustPolicy::Declared;
  TRY(after, discovery::withRows(
                 before, file.string(), rows.rows,
                 pins_needed ? std::vector<std::string>{"bmc_pin"} : std::vector<std::string>()));
  TRY_OK(replaceCsv(options, file, after));
  for (const auto& machine : book.machines())
    for (const auto& [bmc, node] : rows.adopted)
      if (machine.bmc == bmc && !machine.credential.empty())
        TRY_OK(bmc::inheritPin(*discovery.store,
                               discovery::undeclaredBmcKey(bmc, machine.credential),
                               NodeName(node)));
  return {};
}

}  // namespace

Result<Discovered> discoveredMachines(const inventory::Cluster& cluster, lifecycle::Store& store) {
  TRY(book, discovery::MachineRegistry::read(store));
  Discovered out;
  for (const auto& machine : book.machines()) {
    const auto* node = discovery::nodeOf(machine, cluster);
    out.machines.push_back({machine, node ? node->name.str() : ""});
  }
  out.anomalies = discovery::anomalies(book.machines(), cluster);
  return out;
}

nlohmann::json toJson(const DiscoveredMachine& seen) {
  auto out = discovery::toJson(seen.machine);
  out["known_as"] = seen.node;
  out["state"] = !seen.node.empty() ? "node" : seen.machine.approved() ? "approved" : "unknown";
  return out;
}

Result<Discovered> discoveredMachines(const Options& options) {
  TRY(discovery, Discovery::open(options));
  return discoveredIn(*discovery);
}

Result<ScanResult> scanForBmcs(const Options& options, const ScanRequest& request,
                               CertificateReviewer& reviewer) {
  TRY(discovery, Discovery::open(options));
  const auto& texts =
      request.ranges.empty() ? discovery->cluster.discovery->ranges : request.ranges;
  if (texts.empty())
    return fail(ErrorCode::InvalidInput,
                "no addresses are given: name ranges, or declare discovery.ranges in the "
                "inventory");
  TRY(ranges, discovery::Ranges::parse(texts));
  TRY(approve, approverFor(*discovery, request, reviewer));
  TRY(report, scan(*discovery, ranges, request.port, std::move(approve)));
  TRY(discovered, discoveredIn(*discovery));
  return ScanResult{std::move(report), std::move(discovered)};
}

Result<void> watchNetwork(const Options& options, const WatchRequest& request,
                          WatchListener& listener) {
  TRY(discovery, Discovery::open(options));
  const auto controller = discovery->cluster.provisioning().controller;
  TRY(interface, request.interface.empty() ? discovery::interfaceOf(controller)
                                           : Result<std::string>(request.interface));
  const auto address =
      request.interface.empty() ? Result<Ipv4>(controller) : discovery::addressOf(interface);
  const auto no_ssdp = [&listener](const Error& error) {
    listener.onNotice("SSDP is not listened to: " + error.str());
  };
  if (!address) no_ssdp(address.error());
  const std::chrono::milliseconds limit = request.limit.value_or(kWatchForever);
  std::set<std::string> seen;
  auto next_check = discovery->clock.steady();
  auto note = [&](const discovery::Machine& machine) {
    const auto kept =
        discovery::updateRegistry(*discovery->store, [&](discovery::MachineRegistry& book) {
          return book.note(machine, discovery->clock.now());
        });
    if (!kept) listener.onNotice(kept.error().str());
    if (discovery->clock.steady() >= next_check) {
      next_check = discovery->clock.steady() + kOdditiesInterval;
      if (const auto stored = storeOddities(*discovery); !stored)
        listener.onNotice(stored.error().str());
    }
    if (seen.size() < discovery::kMaxMachines &&
        seen.insert(machine.id() + " " + machine.note).second)
      listener.onMachine(machine);
  };
  if (address) {
    auto ssdp = discovery::watchSsdp(
        *address, limit, [&](discovery::SsdpService service) { note(sightingOf(service)); });
    asio::co_spawn(discovery->loop.context, std::move(ssdp),
                   [&no_ssdp](std::exception_ptr, Result<void> ended) {
                     if (!ended) no_ssdp(ended.error());
                   });
  }
  listener.onListening(interface, address.has_value());
  return discovery->loop.run(discovery::watchDhcp(
      interface, limit, [&](discovery::DhcpRequest request) { note(sightingOf(request)); }));
}

Result<std::vector<std::string>> approveMachines(const Options& options,
                                                 const ApproveRequest& request) {
  TRY(discovery, Discovery::open(options));
  std::map<std::string, std::string> globs;
  for (const auto& text : request.matches) {
    TRY(glob, discovery::parseMatch(text));
    globs.insert(glob);
  }
  if (request.machines.empty() == globs.empty())
    return fail(ErrorCode::InvalidInput, "say which: name machines, or --match FIELD=GLOB");
  std::string mac;
  if (!request.mac.empty()) {
    TRY(parsed, Mac::parse(request.mac));
    mac = parsed.str();
  }
  if (!(request.as.empty() && mac.empty()) && request.machines.size() != 1)
    return fail(ErrorCode::InvalidInput, "--as and --mac are for one machine, by its name");
  std::vector<std::string> approved;
  TRY_OK(discovery::updateRegistry(
      *discovery->store, [&](discovery::MachineRegistry& book) -> Result<void> {
        approved.clear();
        const discovery::Approval approval{request.profile, request.rack, request.as, mac,
                                           options.actor.empty() ? userName() : options.actor};
        std::vector<std::size_t> chosen;
        for (const auto& word : request.machines) {
          TRY(at, book.find(word));
          chosen.push_back(at);
        }
        for (std::size_t i = 0; i < book.machines().size() && !globs.empty(); ++i)
          if (matches(book.machines()[i], globs) &&
              !discovery::nodeOf(book.machines()[i], discovery->cluster))
            chosen.push_back(i);
        if (chosen.empty())
          return fail(ErrorCode::NotFound, "no machine that is not a node yet matches");
        for (const auto at : chosen) {
          TRY_OK(discovery::approve(book.machines()[at], approval, discovery->cluster));
          approved.push_back(book.machines()[at].id());
        }
        return {};
      }));
  return approved;
}

Result<void> forgetMachines(const Options& options, const std::vector<std::string>& machines) {
  TRY(discovery, Discovery::open(options));
  TRY_OK(discovery::updateRegistry(*discovery->store,
                                   [&](discovery::MachineRegistry& book) -> Result<void> {
                                     for (const auto& word : machines) {
                                       TRY_OK(book.find(word));
                                       book.forget(word);
                                     }
                                     return {};
                                   }));
  return {};
}

Result<void> forgetAllMachines(const Options& options) {
  TRY(discovery, Discovery::open(options));
  return discovery->store->putValue("discover.machines", "");
}

Result<Adopted> writeApprovedMachines(const Options& options, const AdoptRequest& request) {
  if (request.csv.empty()) return fail(ErrorCode::InvalidInput, "--adopt needs --write FILE.csv");
  TRY(discovery, Discovery::open(options));
  Adopted out;
  out.csv = csvPath(request.csv, discovery->cluster);
  std::vector<discovery::ListedRow> list;
  if (!request.adopt.empty()) {
    TRY(text, io::readRegularFile(request.adopt, kMaxListBytes));
    TRY(parsed, discovery::parseList(text, request.adopt.string()));
    list = std::move(parsed);
  }
  discovery::Rows rows;
  TRY(book, discovery::updateRegistry(
                *discovery->store, [&](discovery::MachineRegistry& book) -> Result<void> {
                  discovery::applyRules(book, discovery->cluster);
                  std::map<std::string, discovery::CsvFields> extras;
                  TRY(missing,
                      discovery::applyList(book, list, request.adopt.string(),
                                           {request.profile, request.rack, "", "", userName()},
                                           discovery->cluster, &extras));
                  out.not_seen = std::move(missing);
                  TRY(made, discovery::rowsFor(book, discovery->cluster, out.csv, extras));
                  rows = std::move(made);
                  return {};
                }));
  if (!rows.rows.empty()) TRY_OK(addRows(options, *discovery, out.csv, rows, book));
  out.rows = std::move(rows.rows);
  out.left_out = std::move(rows.left_out);
  return out;
}

}  // namespace muster::app
