// SPDX-License-Identifier: Apache-2.0
#include "fabric/inspection.h"

#include "base/log.h"
#include "fabric/compare/recognition.h"
#include "fabric/fabric_diff.h"
#include "fabric/kept_report.h"
#include "fabric/packet_paths/lost_pairs.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/opensm_routing.h"

#include <algorithm>

namespace muster::fabric {

namespace {

constexpr std::size_t kShownRepairs = 3;
// Tables that are read while OpenSM writes them lack entries: looked at again.
constexpr int kRouteLooks = 4;
constexpr std::chrono::milliseconds kRoutePause{500};
constexpr std::chrono::seconds kLeastRouteAge{5};
constexpr int kRouteShare = 10;  // reading tables takes at most a tenth of the time
constexpr std::chrono::minutes kExternalRouteAge{10};  // another's sweeps are not seen

Result<Declared> declaredFabric(const inventory::Cluster& cluster, const std::string& name) {
  TRY(fabric, chosenFabric(cluster, name));
  TRY_OK(checkSubnetManagers(*fabric));
  TRY(topology, declaredTopology(cluster, *fabric));
  TRY(partitions, declaredPartitions(cluster, *fabric, topology));
  return Declared{fabric, std::move(topology), std::move(partitions)};
}

bool lacksLids(const Topology& found) {
  return std::any_of(found.devices.begin(), found.devices.end(), [](const auto& entry) {
    return std::any_of(entry.second.addresses.begin(), entry.second.addresses.end(),
                       [](const auto& address) { return address.second.lid == 0; });
  });
}

std::size_t hashOf(const Topology& found) {
  std::string text;
  for (const auto& link : found.links)
    text += fmt::format("{} {} {} {}\n", link.a.node, link.a.number, link.b.node, link.b.number);
  for (const auto& [name, device] : found.devices)
    for (const auto& [port, address] : device.addresses)
      text += fmt::format("{} {} {} {}\n", name, port, address.lid, address.guid);
  return std::hash<std::string>()(text);
}

/// The device whose port fits; empty: none.
std::string deviceWith(const Topology& found, const std::function<bool(const PortAddress&)>& fits) {
  for (const auto& [name, device] : found.devices)
    for (const auto& [port, address] : device.addresses)
      if (fits(address)) return name;
  return {};
}

}  // namespace

std::string repairs(const std::vector<Deviation>& deviations) {
  std::vector<std::string> texts;
  std::size_t more = 0;
  for (bool firmware : {false, true})  // what a node waits for first
    for (const auto& one : deviations)
      if ((one.kind == DeviationKind::WrongFirmware) == firmware &&
          std::find(texts.begin(), texts.end(), one.repair) == texts.end())
        texts.size() < kShownRepairs ? texts.push_back(one.repair) : void(++more);
  return fmt::format("{}{}", fmt::join(texts, "; "),
                     more ? fmt::format("; and {} more", more) : "");
}

FabricInspection::FabricInspection(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                                   Clock& clock, FabricOptions options, const std::string& fabric)
    : cluster_(cluster),
      clock_(clock),
      options_(absolute(std::move(options))),
      tools_(processes, options_),
      manager_(processes, tools_, options_.run_folder, options_.opensm_unit,
               options_.other_folders),
      discovery_(tools_, manager_, clock),
      declared_(declaredFabric(cluster, fabric)) {}

Async<SharedPicture> FabricInspection::picture(std::chrono::milliseconds max_age) {
  if (clock_.steady() - last_at_ < max_age) {
    if (last_) co_return last_;
    if (last_error_)
      co_return fail(
          *last_error_);  // a fabric that does not answer is not asked again for each node
  }
  last_.reset();
  auto discovered = co_await discovery_.topology();
  last_at_ = clock_.steady();
  last_error_ = discovered ? std::nullopt : std::optional(discovered.error());
  if (last_error_) keepFailedLook(*last_error_);
  CO_TRY(found, std::move(discovered));
  found = recognize(declared_->topology, std::move(found)).found;
  CO_TRY(known, manager_.knownGuids());
  known.learn(declared_->topology, found);
  CO_TRY_OK(manager_.remember(known));
  auto now = std::make_shared<Picture>();
  now->found = std::move(found);
  auto compared = compare(declared_->topology, now->found, declared_->fabric->exclude);
  CO_TRY_OK(co_await addSwitchFirmware(tools_, clock_, *declared_->fabric, declared_->topology,
                                       now->found, firmware_, compared));
  last_at_ = clock_.steady();  // silent switches take seconds
  keepLook(now->found, compared);
  now->deviations = std::move(compared.deviations);
  now->rules = withGuids(declared_->partitions, known.hcas);
  if (managerIsExternal()) {
    const auto info = co_await tools_.smInfo();
    if (info && info->master) now->sm_guid = info->guid;
    last_ = now;
    co_return now;
  }
  if (auto own = known.hcas.find(seat()); own != known.hcas.end()) now->sm_guid = own->second;
  now->files = renderSm(*declared_->fabric, declared_->topology, declared_->partitions, known,
                        {now->sm_guid, manager_.servedFolder(), 0});
  last_ = now;
  co_return now;
}

void FabricInspection::keepLook(const Topology& found, const Comparison& compared) {
  DiffReport report;
  report.fabric = declared_->fabric->name;
  report.found = found;
  report.comparison = compared;
  if (const auto kept =
          keepReport(options_.run_folder, KeptReportKind::Diff, clock_.now(), toJson(report));
      !kept)
    logWarning("fabric", "what was seen cannot be kept: {}", kept.error().str());
}

void FabricInspection::keepFailedLook(const Error& error) {
  DiffReport report;
  if (declared_) report.fabric = declared_->fabric->name;
  report.error = error.str();
  if (const auto kept =
          keepReport(options_.run_folder, KeptReportKind::Diff, clock_.now(), toJson(report));
      !kept)
    logWarning("fabric", "what was seen cannot be kept: {}", kept.error().str());
}

std::vector<Deviation> FabricInspection::deviationsOf(const NodeName& node,
                                                      const Picture& now) const {
  std::vector<Deviation> own;
  for (const auto& link : declared_->topology.links) {
    bool a_is_own = link.a.node.starts_with(node.str() + " ");
    if (!a_is_own && !link.b.node.starts_with(node.str() + " ")) continue;
    const auto& hca = a_is_own ? link.a : link.b;
    const auto& peer = a_is_own ? link.b : link.a;
    if (excuses(declared_->fabric->exclude, hca) || excuses(declared_->fabric->exclude, peer))
      continue;
    if (std::binary_search(now.found.links.begin(), now.found.links.end(), link)) {
      auto address = now.found.devices.at(hca.node).addresses.find(hca.number);
      if (address == now.found.devices.at(hca.node).addresses.end() || address->second.lid == 0)
        own.push_back(
            {DeviationKind::MissingLink, hca, "a LID", "no LID",
             fmt::format("the subnet manager has not reached {}; see opensm.log", hca.node)});
      continue;
    }
    auto speaks_of_it = [&](const Deviation& one) {
      if (one.kind == DeviationKind::WrongFirmware) return false;  // runs no less over it
      return one.at == hca || one.at == peer || one.at.node == hca.node ||
             (one.at.node == peer.node && one.at.number == 0);
    };
    auto known = std::find_if(now.deviations.begin(), now.deviations.end(), speaks_of_it);
    own.push_back(known != now.deviations.end()
                      ? *known
                      : Deviation{DeviationKind::MissingLink, hca,
                                  fmt::format("{} port {}", peer.node, peer.number), "no cable",
                                  fmt::format("check the cable between {} and {} port {}", hca.node,
                                              peer.node, peer.number)});
  }
  return own;
}

Async<std::string> FabricInspection::portsProblem(NodeName node, Picture& now) {
  auto own = deviationsOf(node, now);
  if (!own.empty()) co_return fmt::format("{} deviations: {}", own.size(), repairs(own));
  if (!looksAtPartitions()) co_return std::string();
  CO_TRY(wrong, co_await readPkeys(now, node.str()));
  co_return wrong.empty() ? std::string() : wrong.front().str();
}

/// Of another's subnet manager nothing can be known but what it answers: no log, no routing engine,
/// no files.
Async<std::string> FabricInspection::externalSmProblem(const Picture& now) {
  if (const auto own = manager_.pid())
    co_return fmt::format(
        "muster's own OpenSM still runs on the controller: stop it (kill {}) when the other one is "
        "ready",
        *own);
  if (now.sm_guid.empty()) co_return "no subnet manager answers as master";
  auto strange = co_await strangeManager(now);
  if (!strange || !strange->empty()) co_return std::move(strange);
  co_return co_await routesProblem(now);
}

Async<std::string> FabricInspection::smProblem(const Picture& now) {
  if (managerIsExternal()) {
    co_return co_await externalSmProblem(now);
  }
  if (now.sm_guid.empty())
    co_return fmt::format("{} was never seen at its declared port; {}", seat(),
                          repairs(now.deviations));
  if (!options_.no_opensm.empty()) co_return options_.no_opensm;
  if (auto rival = manager_.rival(); !rival.empty()) co_return rival;
  if (!manager_.pid()) co_return "opensm does not run";
  if (!manager_.startedWith(now.files)) co_return "opensm runs with another configuration";
  if (!manager_.nodesAre(now.files))
    co_return "opensm routes for other nodes than those found at their declared ports";
  auto log = manager_.log();
  auto info = co_await tools_.smInfo();
  if (info && info->master && info->guid != now.sm_guid)
    co_return fmt::format(
        "another subnet manager is master: port GUID {}, ours is {}; stop it, or give it a lower "
        "priority",
        info->guid, now.sm_guid);
  if (!log.subnet_up) co_return "opensm has not brought the subnet up";
  if (!info || !info->master) co_return "no subnet manager answers";
  const auto routing = routingOf(*declared_->fabric, declared_->topology);
  if (!inventory::namesRouting(routing, log.routing_engine))
    co_return fmt::format("routing engine '{}' is in force, '{}' is declared{}{}",
                          log.routing_engine, routing, log.complaints.empty() ? "" : ": ",
                          fmt::join(log.complaints, " | "));
  for (const auto& complaint : log.complaints)
    if (complaint.find("ERR AB") != std::string::npos ||
        complaint.find("ERR 0D01") != std::string::npos)
      co_return complaint;
  auto strange = co_await strangeManager(now);
  if (!strange || !strange->empty()) co_return std::move(strange);
  co_return co_await routesProblem(now);
}

/// By what packets would meet, not by OpenSM's word: it reports ftree and SUBNET UP also where it
/// left pairs out.
Async<std::string> FabricInspection::routesProblem(const Picture& now) {
  const auto log = manager_.log();
  const auto seen = hashOf(now.found);
  const auto begin = clock_.steady();
  if (good_routes_ && good_routes_->fabric == seen &&
      (begin < good_routes_->until || (!managerIsExternal() && good_routes_->sweeps == log.sweeps)))
    co_return std::string();
  good_routes_.reset();
  Topology found = now.found;  // a picture from before the first sweep has no LIDs
  for (int look = 1;; ++look) {
    if (look > 1 || lacksLids(found)) {
      auto again = co_await discovery_.topology();
      if (!again) co_return fmt::format("routes cannot be checked: {}", again.error().str());
      found = recognize(declared_->topology, std::move(*again)).found;
    }
    const auto tables = co_await tools_.forwardingTables();
    if (!tables)
      co_return fmt::format("the forwarding tables cannot be read: {}", tables.error().str());
    const auto lost = lostPairs(found, *tables, declared_->topology);
    const auto took = clock_.steady() - begin;
    if (lost.lost == 0) {
      const auto age = managerIsExternal() ? std::chrono::steady_clock::duration(kExternalRouteAge)
                                           : std::max<std::chrono::steady_clock::duration>(
                                                 kLeastRouteAge, kRouteShare * took);
      good_routes_ = {hashOf(found), log.sweeps, clock_.steady() + age};
      co_return std::string();
    }
    if (look == kRouteLooks) {
      const RouteContext context{declared_->topology, found, log.routing_engine,
                                 managerIsExternal() ? nullptr : &now.files.root_guids,
                                 repairs(now.deviations)};
      co_return fmt::format("{}: {}", toString(lost), causeOf(lost, context));
    }
    co_await clock_.sleep(kRoutePause);
  }
}

/// Another's is on a UFM host where one is declared, else on a switch; on a node it is nobody's.
bool FabricInspection::mayManage(const std::string& device) const {
  const auto& devices = declared_->topology.devices;
  if (!managerIsExternal()) {
    const auto declared = managerHcas(cluster_, *declared_->fabric);
    return std::find(declared.begin(), declared.end(), device) != declared.end();
  }
  const auto isUfm = [](const Device& one) { return one.role == inventory::AttachedRole::Ufm; };
  const bool has_ufm = std::any_of(devices.begin(), devices.end(),
                                   [&](const auto& one) { return isUfm(one.second); });
  const auto at = devices.find(device);
  return at != devices.end() && (has_ufm ? isUfm(at->second) : at->second.is_switch);
}

Async<std::string> FabricInspection::strangeManager(const Picture& now) {
  auto lids = co_await tools_.managerLids();
  if (!lids) co_return fmt::format("the subnet managers cannot be listed: {}", lids.error().str());
  for (int lid : *lids) {
    auto name =
        deviceWith(now.found, [&](const PortAddress& address) { return address.lid == lid; });
    if (name.empty()) {  // the picture may be older than the LIDs
      auto info = co_await tools_.smInfoOf(lid);
      if (!info)
        co_return fmt::format("LID {} reports a subnet manager, but does not answer: {}", lid,
                              info.error().str());
      name = deviceWith(now.found,
                        [&](const PortAddress& address) { return address.guid == info->guid; });
      if (name.empty()) name = "port GUID " + info->guid;
    }
    if (!mayManage(name))
      co_return fmt::format(
          "{} (LID {}) runs a subnet manager that is not declared; stop it, or {}", name, lid,
          managerIsExternal() ? "declare its cable with the role ufm"
                              : "add its node to subnet_managers");
  }
  co_return std::string();
}

Async<std::string> FabricInspection::standbyProblem(const Picture& now) {
  for (const auto& hca : managerHcas(cluster_, *declared_->fabric)) {
    if (hca == seat()) continue;
    auto device = now.found.devices.find(hca);
    if (device == now.found.devices.end())
      co_return fmt::format("the standby's HCA {} is not seen", hca);
    auto info = co_await tools_.smInfoOf(device->second.addresses.begin()->second.lid);
    if (!info || !info->standby)
      co_return fmt::format("no standby subnet manager answers on {}", hca);
  }
  co_return std::string();
}

Async<std::vector<PkeyMismatch>> FabricInspection::readPkeys(const Picture& now, std::string node) {
  struct Wanted {
    std::string owner;
    Port port;
    PkeyPort table;
    PkeyTable keys;
  };
  std::vector<Wanted> wanted;
  std::vector<PkeyPort> ports;
  for (const auto& link : now.found.links)
    for (bool a_is_hca : {true, false}) {
      const auto& hca = a_is_hca ? link.a : link.b;
      const auto& peer = a_is_hca ? link.b : link.a;
      const auto& device = now.found.devices.at(hca.node);
      const auto& edge = now.found.devices.at(peer.node);
      auto address = device.addresses.find(hca.number);
      if (device.is_switch || address == device.addresses.end()) continue;
      if (!node.empty() && !hca.node.starts_with(node + " ")) continue;
      auto want = tableOf(now.rules, address->second.guid, address->second.guid == now.sm_guid);
      if (address->second.lid == 0)
        continue;  // cannot talk to anybody yet; its node is told so by deviationsOf
      wanted.push_back({hca.node, hca, {address->second.lid, hca.number}, want});
      if (edge.is_switch)
        wanted.push_back({hca.node, peer, {edge.addresses.at(0).lid, peer.number}, want});
    }
  for (const auto& one : wanted) ports.push_back(one.table);
  CO_TRY(tables, co_await tools_.pkeyTables(std::move(ports)));
  std::vector<PkeyMismatch> out;
  for (const auto& one : wanted)
    if (const auto& table = tables.at(one.table); table != one.keys)
      out.push_back(
          {one.owner, one.port, toString(one.keys), toString(table), isWider(table, one.keys)});
  co_return out;
}

Async<const std::vector<PkeyMismatch>*> FabricInspection::wrongPkeys(Picture& now) {
  if (!now.wrong_pkeys) {
    CO_TRY(wrong, co_await readPkeys(now, {}));
    now.wrong_pkeys = std::move(wrong);
    last_at_ =
        clock_.steady();  // reading a large fabric takes seconds; the next subject may use it
  }
  co_return &*now.wrong_pkeys;
}

Async<std::string> FabricInspection::partitionsProblem(Picture& now) {
  auto own = managerIsExternal()
                 ? std::string(now.sm_guid.empty() ? "no subnet manager answers as master" : "")
                 : ownPartitionsProblem(now);
  if (!own.empty()) co_return own;
  CO_TRY(wrong, co_await wrongPkeys(now));
  if (wrong->empty()) {
    if (!managerIsExternal()) CO_TRY_OK(manager_.provePartitions(now.files));
    co_return std::string();
  }
  co_return fmt::format("{} PKey tables differ: {}", wrong->size(), wrong->front().str());
}

/// What our own OpenSM made of its file. Empty: nothing is wrong with that.
std::string FabricInspection::ownPartitionsProblem(Picture& now) const {
  if (!manager_.pid()) return "no subnet manager";
  if (!manager_.partitionsAre(now.files)) return "partitions.conf is not the declared one";
  auto own = now.found.devices.find(seat());
  if (own == now.found.devices.end() || own->second.addresses[1].lid == 0)
    return "the subnet manager has assigned no LIDs yet";
  if (manager_.log().partitions_refused)
    return "opensm rejected partitions.conf and made every port a full member";
  return {};
}

}  // namespace muster::fabric
