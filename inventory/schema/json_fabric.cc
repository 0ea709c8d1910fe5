// SPDX-License-Identifier: Apache-2.0
// A fabric as JSON: for the digest of the inventory and for `muster inventory show`.
#include "inventory/schema/json.h"

#include "base/io/crypto.h"

#include <nlohmann/json.hpp>

#include <array>

namespace muster::inventory {

namespace {

using nlohmann::json;

std::string_view word(FabricShape shape) {
  constexpr std::array<std::string_view, 3> kWords = {"rail-optimized", "explicit", "fat-tree"};
  return kWords.at(static_cast<std::size_t>(shape));
}
std::string_view word(AttachedRole role) {
  constexpr std::array<std::string_view, 4> kWords = {"none", "storage", "ufm", "gateway"};
  return kWords.at(static_cast<std::size_t>(role));
}

json cableJson(const FabricCable& cable) {
  json out = {{"from", cable.from_node},
              {"from_port", cable.from_port},
              {"to", cable.to_node},
              {"to_port", cable.to_port}};
  if (cable.role != AttachedRole::None) out["role"] = word(cable.role);
  if (!cable.link.empty()) out["link"] = cable.link;
  return out;
}

json roceJson(const Roce& roce) {
  return {{"dscp", roce.dscp},
          {"priority", roce.priority},
          {"cnp_dscp", roce.cnp_dscp},
          {"cnp_priority", roce.cnp_priority},
          {"mtu", roce.mtu},
          {"gid_index", roce.gid_index},
          {"ecn_min_kib", roce.ecn_min_kib},
          {"ecn_max_kib", roce.ecn_max_kib},
          {"ecn_percent", roce.ecn_percent}};
}

}  // namespace

json fabricJson(const Fabric& fabric) {
  json partitions = json::object(), cables = json::array();
  for (const auto& partition : fabric.partitions)
    partitions[partition.name] = {{"pkey", partition.pkey},
                                  {"ipoib", partition.ipoib},
                                  {"full", partition.full_members},
                                  {"limited", partition.limited_members}};
  for (const auto& cable : fabric.cables) cables.push_back(cableJson(cable));
  json out = {{"shape", word(fabric.shape)},
              {"sus", fabric.sus},
              {"nodes_per_su", fabric.nodes_per_su},
              {"rails", fabric.rails},
              {"spines_per_su", fabric.spines_per_su},
              {"uplinks_per_leaf_spine", fabric.uplinks_per_leaf_spine},
              {"switch_ports", fabric.switch_ports},
              {"link", fabric.link},
              {"routing", fabric.routing},
              {"subnet_managers", fabric.subnet_managers},
              {"partitions", std::move(partitions)},
              {"cables", std::move(cables)}};
  // Only where declared: what is not there must not change the digest of inventories that never had
  // it.
  if (fabric.shape == FabricShape::FatTree) {
    out["leaves_per_su"] = fabric.leaves_per_su;
    out["leaf_down_ports"] = fabric.leaf_down_ports;
  }
  if (fabric.cores) {
    out["cores"] = fabric.cores;
    out["uplinks_per_spine_core"] = fabric.uplinks_per_spine_core;
  }
  if (!fabric.switch_firmware.empty()) out["switch_firmware"] = fabric.switch_firmware;
  if (!fabric.places.empty()) out["places"] = fabric.places;
  if (!fabric.topology.empty()) out["topology_sha256"] = io::sha256Hex(fabric.topology);
  for (const auto& group : fabric.switches) {
    json& entry = out["switches"].emplace_back(json{{"names", group.names},
                                                    {"rack", group.rack},
                                                    {"unit", group.unit},
                                                    {"units_apart", group.units_apart}});
    if (!group.firmware.empty()) entry["firmware"] = group.firmware;
  }
  for (const auto& one : fabric.exclude)
    out["exclude"].push_back({{"device", one.device}, {"port", one.port}, {"reason", one.reason}});
  if (fabric.roce) out["roce"] = roceJson(*fabric.roce);
  for (const auto& domain : fabric.nvlink_domains)
    out["nvlink_domains"][domain.name] = {{"nodes", domain.nodes}};
  return out;
}

json railsJson(const std::vector<Rail>& rails) {
  json out = json::array();
  for (const auto& rail : rails) {
    out.push_back({{"hca", rail.hca}});
    if (rail.gpu) out.back()["gpu"] = *rail.gpu;
    if (!rail.pci.empty()) out.back()["pci"] = rail.pci;
  }
  return out;
}

}  // namespace muster::inventory
