// SPDX-License-Identifier: Apache-2.0
#include "provision/parts.h"

#include "base/json_output.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/hardware.h"
#include "inventory/model/node.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace muster::provision {

using inventory::PartKind;
using inventory::PartRule;
using wire::Hardware;
using wire::Part;

namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

/// What a kind is called, and what is done about a wrong one. A new kind is a row.
struct KindRow {
  PartKind kind;
  std::string_view word;  ///< of agent::Part
  std::string_view one, many;
  std::string_view missing, wrong, firmware;
};
constexpr std::array<KindRow, 4> kKinds = {{
    {PartKind::Dimm, "dimm", "DIMM", "DIMMs",
     "reseat or replace the DIMM that is missing; the BMC's log says whether firmware has mapped "
     "one out",
     "replace the DIMM, or correct the profile", ""},
    {PartKind::Nvme, "nvme", "NVMe disk", "NVMe disks",
     "reseat or replace the disk that is missing, and look at its slot's cable and riser",
     "replace the disk, or correct the profile",
     "update its firmware (nvme fw-download), or correct the profile"},
    {PartKind::Nic, "nic", "NIC", "NICs",
     "reseat or replace the NIC that is missing; compare with a healthy machine of this kind",
     "replace the NIC, or correct the profile",
     "update its firmware (mstflint), or correct the profile"},
    {PartKind::Gpu, "gpu", "GPU", "GPUs",
     "compare the places with a healthy machine of this kind; reseat or replace the missing GPU or "
     "its riser",
     "replace the GPU, or give the node a profile of its own",
     "update the GPU's VBIOS, or correct the profile"},
}};

const KindRow& rowOf(PartKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(),
                       [&](const KindRow& row) { return row.kind == kind; });
}

bool fits(const std::string& glob, const std::string& text) {
  return glob.empty() || ::fnmatch(glob.c_str(), text.c_str(), FNM_CASEFOLD) == 0;
}

std::vector<Part> partsOfKind(PartKind kind, const Hardware& hardware) {
  std::vector<Part> out;
  if (kind == PartKind::Gpu) {
    for (const auto& gpu : hardware.gpus)
      out.push_back(
          {"gpu", gpu.pci.empty() ? gpu.uuid : gpu.pci, gpu.model, gpu.serial, gpu.vbios, 0});
    return out;
  }
  for (const auto& part : hardware.parts)
    if (part.kind == rowOf(kind).word) out.push_back(part);
  return out;
}

nlohmann::json listOf(const std::vector<Part>& parts) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& part : parts)
    out.push_back({{"at", part.place},
                   {"model", part.model},
                   {"serial", part.serial},
                   {"firmware", part.firmware},
                   {"size_bytes", part.size_bytes}});
  return out;
}

bool sizeFits(const PartRule& rule, const Part& part) {
  const auto gib = static_cast<double>(part.size_bytes) / kGib;
  return rule.kind == PartKind::Dimm ? std::llround(gib) == *rule.size_gib : gib >= *rule.size_gib;
}

/// "DIMM_A3 (M321R8GA0BB0, 32 GiB)"
std::string nameOf(const Part& part) {
  return fmt::format(
      "{} ({}{})", part.place.empty() ? "?" : part.place,
      part.model.empty() ? "no model" : part.model,
      part.size_bytes == 0
          ? ""
          : fmt::format(", {:.4g} GiB", static_cast<double>(part.size_bytes) / kGib));
}

void evaluateRule(const PartRule& rule, const Hardware& hardware, std::vector<Mismatch>& out) {
  const auto& row = rowOf(rule.kind);
  const auto all = partsOfKind(rule.kind, hardware);
  std::vector<Part> meant;
  for (const auto& part : all)
    if (fits(rule.model, part.model)) meant.push_back(part);
  const auto of = rule.model.empty() ? std::string() : fmt::format(" of model \"{}\"", rule.model);
  const auto seen = static_cast<int>(meant.size());
  if (rule.count ? seen != *rule.count : seen == 0)
    out.push_back({fmt::format("{} {}{} seen, {} expected", seen, seen == 1 ? row.one : row.many,
                               of, rule.count ? std::to_string(*rule.count) : "at least 1"),
                   jsonText(nlohmann::json{{"expected", rule.count.value_or(1)},
                                           {"model", rule.model},
                                           {"seen", seen},
                                           {"at", listOf(all)}}),
                   std::string(rule.count && seen > *rule.count ? row.wrong : row.missing)});
  for (const auto& part : meant) {
    if (rule.size_gib && !sizeFits(rule, part))
      out.push_back(
          {fmt::format("{} {}: {}{} GiB expected", row.one, nameOf(part),
                       rule.kind == PartKind::Dimm ? "" : "at least ", *rule.size_gib),
           jsonText(nlohmann::json{{"expected_gib", *rule.size_gib}, {"seen", listOf({part})}}),
           std::string(row.wrong)});
    if (!fits(rule.firmware, part.firmware))
      out.push_back(
          {fmt::format("{} {} runs firmware {}, expected is {}", row.one, nameOf(part),
                       part.firmware.empty() ? "of unknown version" : part.firmware, rule.firmware),
           jsonText(nlohmann::json{{"expected", rule.firmware}, {"seen", listOf({part})}}),
           std::string(row.firmware)});
  }
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Switches name themselves with or without their domain.
bool sameSwitch(const std::string& declared, const std::string& seen) {
  const auto a = lower(declared), b = lower(seen);
  return a == b || (a.find('.') == std::string::npos && b.substr(0, b.find('.')) == a &&
                    b.find(':') == std::string::npos);
}

const wire::Neighbour* bootNeighbour(const inventory::Node& node, const Hardware& hardware) {
  for (const auto& nic : hardware.nics) {
    const auto mac = Mac::parse(nic.mac);
    if (!mac || *mac != node.mac) continue;
    for (const auto& neighbour : hardware.neighbours)
      if (neighbour.nic == nic.name) return &neighbour;
  }
  return nullptr;
}

/// The MAC of a declared Ethernet on this machine; nothing: it is not known, or not there.
std::optional<Mac> macOf(const inventory::DeclaredEthernet& ethernet, const inventory::Node& node,
                         const Hardware& hardware) {
  using By = inventory::NicMatch::By;
  if (ethernet.match.by == By::Provisioning) return node.mac;
  if (ethernet.match.by == By::Mac) {
    const auto said = node.links->nics.find(ethernet.name);
    return said == node.links->nics.end() ? std::nullopt : std::optional(said->second);
  }
  for (const auto& part : hardware.parts)  // a NIC's serial is its MAC
    if (part.kind == "nic" && part.place == ethernet.match.pci)
      if (const auto mac = Mac::parse(part.serial)) return *mac;
  return std::nullopt;
}

/// What the other end of a declared Ethernet's cable says. In the RAM OS it goes by its MAC, in the
/// installed system by its name: members of a bond have one MAC there.
const wire::Neighbour* neighbourOf(const std::string& name, const inventory::Node& node,
                                   const inventory::Profile& profile, const Hardware& hardware) {
  for (const auto& neighbour : hardware.neighbours)
    if (neighbour.nic == name) return &neighbour;
  const auto& ethernets = profile.network->ethernets;
  const auto declared =
      std::ranges::find_if(ethernets.list(), [&](const auto& each) { return each.name == name; });
  if (declared == ethernets.end()) return nullptr;
  const auto mac = macOf(*declared, node, hardware);
  if (!mac) return nullptr;
  for (const auto& neighbour : hardware.neighbours)
    if (const auto own = Mac::parse(neighbour.mac); own && *own == *mac) return &neighbour;
  return nullptr;
}

bool isAt(const inventory::Node& node, const wire::Neighbour& seen) {
  return (node.switch_name.empty() || sameSwitch(node.switch_name, seen.switch_name)) &&
         (node.switch_port.empty() || lower(node.switch_port) == lower(seen.port));
}

std::string placeText(const std::string& name, const std::string& port) {
  return fmt::format("{}{}{}", name, name.empty() || port.empty() ? "" : " port ", port);
}

}  // namespace

std::map<std::string, std::string> partFacts(const Hardware& hardware) {
  struct Kind {
    std::string_view word;
    bool by_place;  ///< two that change places are a change
  };
  constexpr std::array kBound{Kind{"dimm", true}, Kind{"hca", false}, Kind{"nvme", false},
                              Kind{"nvswitch", false}, Kind{"bmc", false}};
  std::map<std::string, std::string> facts;
  for (const auto& kind : kBound) {
    std::set<std::string> names;  // both functions of a board have its serial
    bool known = false;
    for (const auto& part : hardware.parts) {
      if (part.kind != kind.word) continue;
      known = known || !part.serial.empty();
      const auto name = part.serial.empty() ? "without serial: " + part.model : part.serial;
      names.insert(kind.by_place ? part.place + "=" + name : name);
    }
    if (known)
      facts[fmt::format("hw.part.{}", kind.word)] = fmt::format("{}", fmt::join(names, ", "));
  }
  return facts;
}

std::vector<Mismatch> evaluateParts(const std::vector<PartRule>& rules, const Hardware& hardware) {
  std::vector<Mismatch> out;
  for (const auto& rule : rules) evaluateRule(rule, hardware, out);
  return out;
}

bool declaresCabling(const inventory::Node& node) {
  return !node.switch_name.empty() || !node.switch_port.empty() ||
         (node.links && !node.links->ports.empty());
}

bool needsNeighbour(const inventory::Node& node, const inventory::Profile& profile,
                    const Hardware& hardware) {
  if (!(node.switch_name.empty() && node.switch_port.empty()) && !bootNeighbour(node, hardware))
    return true;
  if (!node.links || !profile.network) return false;
  return std::ranges::any_of(node.links->ports, [&](const auto& port) {
    return !neighbourOf(port.first, node, profile, hardware);
  });
}

std::vector<Mismatch> evaluateFurtherCabling(const inventory::Node& node,
                                             const inventory::Profile& profile,
                                             const Hardware& hardware, bool listened) {
  std::vector<Mismatch> out;
  if (!node.links || !profile.network) return out;
  for (const auto& [name, port] : node.links->ports) {
    const auto wanted = placeText(port.switch_name, port.port);
    const auto* seen = neighbourOf(name, node, profile, hardware);
    if (!seen && !listened) continue;
    if (!seen) {
      out.push_back({fmt::format("{} receives no LLDP, declared is {}", name, wanted),
                     jsonText(nlohmann::json{{"expected", wanted}, {"seen", nullptr}}),
                     "check that its cable is there, that the switch sends LLDP on that port, and "
                     "that the NIC's own LLDP agent does not consume the frames"});
      continue;
    }
    if (sameSwitch(port.switch_name, seen->switch_name) && lower(port.port) == lower(seen->port))
      continue;
    const auto place = placeText(seen->switch_name, seen->port);
    out.push_back(
        {fmt::format("{} is cabled to {}, declared is {}", name, place, wanted),
         jsonText(nlohmann::json{{"expected", wanted}, {"seen", place}, {"nic", seen->nic}}),
         fmt::format("put the cable into {}, or correct ports of {}", wanted, node.name.str())});
  }
  return out;
}

std::vector<Mismatch> evaluateCabling(const inventory::Node& node, const Hardware& hardware,
                                      bool listened, const std::vector<inventory::Node>& others) {
  if (node.switch_name.empty() && node.switch_port.empty()) return {};
  const auto wanted = placeText(node.switch_name, node.switch_port);
  const auto* seen = bootNeighbour(node, hardware);
  if (!seen) {
    if (!listened) return {};
    return {{fmt::format("the NIC {} receives no LLDP, declared is {}", node.mac.str(), wanted),
             jsonText(nlohmann::json{{"expected", wanted}, {"seen", nullptr}}),
             "enable LLDP on that switch port, and check that the NIC's own LLDP agent does not "
             "consume the frames"}};
  }
  if (isAt(node, *seen)) return {};
  const auto place = placeText(seen->switch_name, seen->port);
  const auto owner = std::find_if(others.begin(), others.end(), [&](const auto& other) {
    return other.name != node.name && !(other.switch_name.empty() || other.switch_port.empty()) &&
           isAt(other, *seen);
  });
  const auto whose =
      owner == others.end() ? std::string() : fmt::format(", which is {}'s", owner->name.str());
  return {{fmt::format("the NIC {} is cabled to {}{}, declared is {}", node.mac.str(), place, whose,
                       wanted),
           jsonText(nlohmann::json{{"expected", wanted}, {"seen", place}, {"nic", seen->nic}}),
           owner == others.end()
               ? fmt::format("put the cable into {}, or correct switch and port of {}", wanted,
                             node.name.str())
               : fmt::format("swap the cables of {} and {}, or the machines if they stand in each "
                             "other's place",
                             node.name.str(), owner->name.str())}};
}

IdentityIndex::IdentityIndex(const std::vector<inventory::Node>& nodes)
    : first_(nodes.data()), count_(nodes.size()) {
  for (const auto& node : nodes) {
    if (!node.serial.empty()) by_serial_.emplace(node.serial, &node);
    by_mac_.emplace(node.mac, &node);
  }
}

namespace {

template <class Map, class Key>
std::vector<const inventory::Node*> nodesWith(const Map& map, const Key& key) {
  std::vector<const inventory::Node*> out;
  for (auto [at, end] = map.equal_range(key); at != end; ++at) out.push_back(at->second);
  return out;
}

}  // namespace

std::vector<const inventory::Node*> IdentityIndex::ofSerial(const std::string& serial) const {
  return nodesWith(by_serial_, serial);
}
std::vector<const inventory::Node*> IdentityIndex::ofMac(const Mac& mac) const {
  return nodesWith(by_mac_, mac);
}

std::vector<Mismatch> evaluateMixUp(const inventory::Node& node, const Hardware& hardware,
                                    const IdentityIndex& identity_index) {
  std::vector<Mismatch> out;
  for (const auto* other : identity_index.ofSerial(hardware.serial)) {
    if (other->name == node.name) continue;
    out.push_back({fmt::format("it has the serial of {}", other->name.str()),
                   jsonText(nlohmann::json{{"expected", node.serial}, {"seen", hardware.serial}}),
                   fmt::format("{} and {} were swapped in the rack, or a board was replaced "
                               "without writing its serial",
                               node.name.str(), other->name.str())});
  }
  for (const auto& nic : hardware.nics) {
    const auto mac = Mac::parse(nic.mac);
    for (const auto* other :
         mac ? identity_index.ofMac(*mac) : std::vector<const inventory::Node*>()) {
      if (other->name == node.name) continue;
      out.push_back(
          {fmt::format("its NIC {} has the MAC {} of {}", nic.name, mac->str(), other->name.str()),
           jsonText(nlohmann::json{
               {"expected", node.mac.str()}, {"seen", mac->str()}, {"nic", nic.name}}),
           "two nodes cannot have one MAC: find out which machine has that NIC, and correct the "
           "inventory"});
    }
  }
  return out;
}

}  // namespace muster::provision
