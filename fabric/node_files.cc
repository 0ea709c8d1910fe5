// SPDX-License-Identifier: Apache-2.0
// What a node gets and what it must answer. Pure.
#include "base/ip_address.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "fabric/node_services.h"

#include "base/io/crypto.h"
#include "fabric/exports/exports.h"
#include "fabric/exports/render.h"
#include "fabric/roce/roce.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::fabric {

namespace {

using nlohmann::json;

constexpr std::string_view kSeed = "guid2lid";
constexpr std::string_view kRoceUnit =
    R"(# Written by muster from the inventory: how RDMA is marked and queued here.
[Unit]
Description=RoCE marking
After=network-pre.target systemd-udev-settle.service
Before=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/etc/muster/roce.sh

[Install]
WantedBy=multi-user.target
)";

/// The switch port that an HCA is declared at.
const Port* peerOf(const Topology& declared, const Port& port) {
  for (const auto& link : declared.links) {
    if (link.a == port) return &link.b;
    if (link.b == port) return &link.a;
  }
  return nullptr;
}

std::vector<std::string> neighbourProblems(const Topology& declared, const std::string& hca,
                                           const json& row, int mtu) {
  const auto* wanted = peerOf(declared, {hca, 1});
  if (!wanted) return {};
  const auto neighbour = row.find("neighbour");
  if (neighbour == row.end())
    return {
        fmt::format("no LLDP neighbor was received (declared: {}); check that lldpd runs and that "
                    "the switch sends LLDP",
                    toString(*wanted))};
  const auto seen_switch = textOf(*neighbour, "switch"), seen_port = textOf(*neighbour, "port");
  if (seen_switch == wanted->node && isPortName(seen_port, wanted->number)) {
    const auto bytes = neighbour->find("frame_bytes");
    if (bytes == neighbour->end() || !bytes->is_number_integer() || bytes->get<int>() >= mtu)
      return {};
    return {
        fmt::format("{} {} accepts frames of {} bytes, hosts send {}: correct the MTU of that port",
                    seen_switch, seen_port, bytes->get<int>(), mtu)};
  }
  return {
      fmt::format("is cabled to {} {}, declared is {}", seen_switch, seen_port, toString(*wanted))};
}

/// What NCCL sends with is the GID that the declaration names. Link-local ones are not routed, and
/// version 1 has no DSCP.
bool isRouted(const json& row) {
  const auto gid = textOf(row, "gid");
  return textOf(row, "type") == "RoCE v2" && !gid.starts_with("fe80:");
}

std::vector<std::string> gidProblems(const json& gids, int declared) {
  const auto row = gids.find(std::to_string(declared));
  if (row != gids.end() && isRouted(*row)) return {};
  std::vector<std::string> fit;
  for (const auto& [index, other] : gids.items())
    if (isRouted(other)) fit.push_back(index);
  const auto instead = fit.empty() ? std::string(
                                         "none of its GIDs is RoCE v2 with a routable address; "
                                         "check that the interface has an address")
                                   : fmt::format("RoCE v2 of a routed address is {}: set gid_index",
                                                 fmt::join(fit, ", "));
  return {fmt::format("GID {} (gid_index, which NCCL uses) {}; {}", declared,
                      row == gids.end()
                          ? "is empty"
                          : fmt::format("is {} {}", textOf(*row, "type"), textOf(*row, "gid")),
                      instead)};
}

/// Congestion control, of what the driver shows.
std::vector<std::string> ecnProblems(const inventory::Roce& roce, const json& row) {
  std::vector<std::string> out;
  const auto told = row.find("ecn");
  const auto ecn = told != row.end() && told->is_object() ? *told : json::object();
  for (const auto& [side, what] :
       {std::pair("roce_np", "notification point"), std::pair("roce_rp", "reaction point")})
    if (const auto on = ecn.find(side);
        on != ecn.end() && on->is_array() &&
        std::find(on->begin(), on->end(), roce.priority) == on->end())
      out.push_back(fmt::format("ECN's {} ({}) is off for priority {}", what, side, roce.priority));
  if (const auto dscp = ecn.find("cnp_dscp"); dscp != ecn.end() && *dscp != roce.cnp_dscp)
    out.push_back(fmt::format("congestion notifications have DSCP {} instead of {}", dscp->dump(),
                              roce.cnp_dscp));
  return out;
}

std::vector<std::string> markingProblems(const inventory::Roce& roce, const json& row) {
  const auto app = row.value("app", json::object()), pfc = row.value("pfc", json::object());
  const int mtu = row.value("mtu", 0);
  if (const auto error = textOf(app, "error") + textOf(pfc, "error"); !error.empty()) {
    std::vector<std::string> out = {"dcb does not answer: " + error};
    if (mtu != roce.mtu) out.push_back(fmt::format("the MTU is {} instead of {}", mtu, roce.mtu));
    return out;
  }
  const auto marking = hostMarking(jsonText(app), jsonText(pfc), mtu);
  return marking ? disagreements(roce, *marking) : std::vector<std::string>{marking.error().str()};
}

}  // namespace

std::string ServiceFiles::digest() const {
  json parts = json::object();
  for (const auto& [name, text] : files)
    if (name != kSeed) parts[name] = text;
  if (!settings.empty()) parts["settings"] = settings;
  return io::sha256Hex(service + jsonText(parts));
}

const inventory::NvlinkDomain* domainOf(const inventory::Cluster& cluster, const NodeName& node) {
  for (const auto& [name, fabric] : cluster.fabrics)
    for (const auto& domain : fabric.nvlink_domains)
      if (std::find(domain.nodes.begin(), domain.nodes.end(), node.str()) != domain.nodes.end())
        return &domain;
  return nullptr;
}

Result<ServiceFiles> imexFiles(const inventory::Cluster& cluster,
                               const inventory::NvlinkDomain& domain) {
  std::string text;
  for (const auto& name : domain.nodes) {
    const auto* node = cluster.findNode(NodeName(name));
    if (!node)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("NVLink domain {}: the inventory has no node {}", domain.name, name));
    if (node->address == Ipv4())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("NVLink domain {}: {} has no address; IMEX needs one of each node",
                              domain.name, name));
    text += node->address.str() + "\n";
  }
  return ServiceFiles{"imex", {{"nodes_config.cfg", std::move(text)}}};
}

std::optional<ServiceFiles> managerFiles(const inventory::Cluster& cluster,
                                         const inventory::Profile& profile) {
  for (const auto& name : profile.drivers)
    if (const auto driver = cluster.drivers.find(name);
        driver != cluster.drivers.end() && !driver->second.fabric_manager.empty())
      return ServiceFiles{"fabric-manager", {}, driver->second.fabric_manager};
  return std::nullopt;
}

ServiceFiles roceFiles(const inventory::Profile& profile,
                       const std::vector<const inventory::Fabric*>& fabrics) {
  std::string script;
  for (const auto* fabric : fabrics)  // each is whole, so they may follow each other
    script += roceHostScript(*fabric->roce, rdmaDevices(profile, *fabric));
  return {"roce",
          {{"roce.sh", std::move(script)}, {"muster-roce.service", std::string(kRoceUnit)}}};
}

Result<ServiceFiles> opensmFiles(const inventory::Cluster& cluster, const inventory::Fabric& fabric,
                                 const Topology& declared, const KnownGuids& known,
                                 const std::string& node, const std::string& guid2lid) {
  TRY(rendered, renderManager(cluster, fabric, declared, known, node, guid2lid));
  ServiceFiles out{"opensm", {}};
  for (auto& file : rendered)
    out.files[file.path.substr(file.path.rfind('/') + 1)] = std::move(file.content);
  return out;
}

bool isPortName(std::string_view text, int port) {
  constexpr int kSonicLanes = 4;
  for (const auto& name :
       {fmt::format("{}", port), fmt::format("swp{}", port),
        fmt::format("Ethernet{}", (port - 1) * kSonicLanes), fmt::format("Eth1/{}", port),
        fmt::format("Ethernet1/{}", port), fmt::format("Ethernet{}/1", port)})
    if (text == name) return true;
  return false;
}

Result<std::vector<std::string>> roceProblems(const inventory::Cluster& cluster,
                                              const inventory::Fabric& fabric,
                                              const Topology& declared, const inventory::Node& node,
                                              std::string_view probe) {
  TRY(found, roceFindings(cluster, fabric, declared, node, probe));
  std::vector<std::string> out;
  for (auto& one : found) out.push_back(std::move(one.text));
  return out;
}

Result<std::vector<RoceProblem>> roceFindings(const inventory::Cluster& cluster,
                                              const inventory::Fabric& fabric,
                                              const Topology& declared, const inventory::Node& node,
                                              std::string_view probe) {
  const auto seen = jsonOrNone(probe, kAgentJson);
  if (!seen.is_object())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("the agent of {} did not report the RoCE settings of its interfaces: {}",
                    node.name.str(), probe.substr(0, 200)));
  std::vector<RoceProblem> out;
  for (const auto& device : rdmaDevices(cluster.profileOf(node), fabric)) {
    const auto row = seen.find(device);
    const auto say = [&](const std::string& text, bool is_marking = false) {
      out.push_back({fmt::format("{}: {}", device, text), is_marking});
    };
    if (row == seen.end() || !row->is_object()) {
      say("it does not exist, or is not an Ethernet device");
      continue;
    }
    for (const auto& text : markingProblems(*fabric.roce, *row)) say(text, true);
    for (const auto& text : ecnProblems(*fabric.roce, *row)) say(text, true);
    if (const auto traffic_class = row->value("traffic_class", fabric.roce->trafficClass());
        traffic_class != fabric.roce->trafficClass())
      say(fmt::format("RDMA has traffic class {} instead of {}", traffic_class,
                      fabric.roce->trafficClass()),
          true);
    if (const auto gids = row->find("gids"); gids != row->end() && gids->is_object())
      for (const auto& text : gidProblems(*gids, fabric.roce->gid_index)) say(text);
    for (const auto& text : neighbourProblems(
             declared, fmt::format("{} {}", node.name.str(), device), *row, fabric.roce->mtu))
      say(text);
  }
  return out;
}

}  // namespace muster::fabric
