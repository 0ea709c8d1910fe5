// SPDX-License-Identifier: Apache-2.0
#include "discovery/adopt.h"

#include "base/ip_address.h"

#include "discovery/classify.h"
#include "discovery/match.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/discovery.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::discovery {
namespace {

bool holds(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Free addresses of the provisioning network's parts, in each after the last one that a node has.
class Addresses {
 public:
  explicit Addresses(const inventory::Cluster& cluster) : network_(cluster.provisioning()) {
    for (const auto& node : cluster.nodes) {
      used_.insert(node.address.value());
      auto& last = last_[inventory::subnetOf(network_, node.address)];
      last = std::max(last, node.address.value());
      const auto host = node.bmc.url.starts_with("https://")
                            ? node.bmc.url.substr(8, node.bmc.url.find(':', 8) - 8)
                            : std::string();
      if (const auto bmc = Ipv4::parse(host)) used_.insert(bmc->value());
    }
    for (const auto& server : network_.boot_servers)
      if (server.tftp) used_.insert(server.tftp->value());
    for (const auto controller : inventory::controllersOf(network_))
      last_[nullptr] = std::max(last_[nullptr], controller.value());
  }
  void reserve(Ipv4 address) { used_.insert(address.value()); }
  /// Where the machine's NIC is: in the subnet of its rack, else where its packets came from.
  /// Errors: NotFound (neither is known)
  Result<const inventory::Subnet*> partOf(const Machine& machine) const {
    const auto& subnets = network_.subnets;
    const auto found = std::find_if(subnets.begin(), subnets.end(), [&](const auto& subnet) {
      return !machine.rack.empty() && holds(subnet.racks, machine.rack);
    });
    if (found != subnets.end()) return &*found;
    if (const auto relay = Ipv4::parse(machine.relay))
      return relay->value() == 0 ? nullptr : inventory::subnetOf(network_, *relay);
    const bool all_named = std::all_of(subnets.begin(), subnets.end(),
                                       [](const auto& subnet) { return !subnet.racks.empty(); });
    if (subnets.empty() || (all_named && !machine.rack.empty())) return nullptr;
    return fail(
        ErrorCode::NotFound,
        "its subnet is not known: approve it with --rack where subnets name their racks, start it "
        "once while `muster discover watch` runs, or give its address in a list (--adopt)");
  }
  std::optional<Ipv4> next(const inventory::Subnet* subnet) {
    const auto& cidr = subnet ? subnet->cidr : network_.cidr;
    const auto first = cidr.network.value() + 1,
               last = (cidr.network.value() | ~cidr.netmask().value()) - 1;
    auto& at = last_[subnet];
    for (std::uint64_t tried = 0; tried <= std::uint64_t(last) - first; ++tried) {
      at = at >= last || at < first ? first : at + 1;
      if (free(at, subnet)) return Ipv4((used_.insert(at), at));
    }
    return std::nullopt;
  }

 private:
  bool free(std::uint32_t value, const inventory::Subnet* subnet) const {
    const Ipv4 address(value);
    const auto& range = subnet ? subnet->dhcp_range : network_.dhcp_range;
    const auto gateway = subnet ? std::optional(subnet->gateway) : network_.gateway;
    const bool ranged = range && range->first <= address && address <= range->second;
    return !used_.contains(value) && !ranged && !inventory::isController(network_, address) &&
           address != gateway && inventory::subnetOf(network_, address) == subnet;
  }
  const inventory::Network& network_;
  std::set<std::uint32_t> used_;
  std::map<const inventory::Subnet*, std::uint32_t> last_;
};

/// Names that the inventory or a rule has prepared and nobody has.
std::string nextName(const std::vector<std::string>& prepared, const std::set<std::string>& taken) {
  const auto found = std::find_if(prepared.begin(), prepared.end(),
                                  [&](const auto& name) { return !taken.contains(name); });
  return found == prepared.end() ? std::string() : *found;
}

std::string onlyProfileOf(const inventory::Cluster& cluster, const std::filesystem::path& file) {
  std::set<std::string> profiles;
  for (const auto& group : cluster.node_files)
    if (group.path == file) profiles.insert(group.profile);
  return profiles.size() == 1 ? *profiles.begin() : std::string();
}

std::vector<std::string> preparedNames(const Machine& machine, const std::string& profile,
                                       const inventory::Cluster& cluster,
                                       const std::filesystem::path& file) {
  if (const auto* rule = ruleFor(machine, cluster.discovery);
      rule && rule->profile == profile && !rule->names.empty())
    if (auto names = inventory::expandHostlist(rule->names)) return *names;
  std::vector<std::string> out;
  for (const auto& group : cluster.node_files)
    if (group.path == file && group.profile == profile)
      out.insert(out.end(), group.names.begin(), group.names.end());
  return out;
}

std::string bootMac(const Machine& machine) {
  if (!machine.boot_mac.empty()) return machine.boot_mac;
  return machine.macs.size() == 1 ? machine.macs.front() : std::string();
}

/// By address, so that names follow the order of the rack's BMCs.
std::vector<Machine*> inOrder(MachineRegistry& registry) {
  std::vector<Machine*> out;
  for (auto& machine : registry.machines())
    if (machine.approved()) out.push_back(&machine);
  auto key = [](const Machine* machine) {
    const auto host = machine->bmc.size() > 8
                          ? machine->bmc.substr(8, machine->bmc.find(':', 8) - 8)
                          : std::string();
    const auto address = Ipv4::parse(host);
    return std::pair(address ? address->value() : 0u, machine->id());
  };
  std::sort(out.begin(), out.end(),
            [&](const Machine* a, const Machine* b) { return key(a) < key(b); });
  return out;
}

}  // namespace

Result<void> approve(Machine& machine, const Approval& approval,
                     const inventory::Cluster& cluster) {
  if (const auto* node = nodeOf(machine, cluster))
    return fail(ErrorCode::Conflict,
                fmt::format("{} is node {} already", machine.id(), node->name.str()));
  if (!approval.profile.empty() && !cluster.profiles.contains(approval.profile))
    return fail(ErrorCode::InvalidInput,
                fmt::format("the inventory has no profile {}", approval.profile));
  if (!approval.node.empty() && cluster.findNode(NodeName(approval.node)))
    return fail(ErrorCode::Conflict,
                fmt::format("node {} has a row already, with another machine", approval.node));
  if (!approval.boot_mac.empty() && !holds(machine.macs, approval.boot_mac))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} has no NIC with the MAC {}", machine.id(), approval.boot_mac));
  const auto* rule = ruleFor(machine, cluster.discovery);
  machine.approved_by = approval.by;
  machine.profile = !approval.profile.empty() ? approval.profile
                    : rule                    ? rule->profile
                                              : machine.profile;
  machine.rack = !approval.rack.empty()        ? approval.rack
                 : rule && !rule->rack.empty() ? rule->rack
                                               : machine.rack;
  if (!approval.node.empty()) machine.node = approval.node;
  if (!approval.boot_mac.empty()) machine.boot_mac = approval.boot_mac;
  return {};
}

std::size_t applyRules(MachineRegistry& registry, const inventory::Cluster& cluster) {
  std::size_t count = 0;
  for (auto& machine : registry.machines()) {
    const auto* rule = ruleFor(machine, cluster.discovery);
    // Only what its own BMC has told: anybody can send a DHCP packet or an announcement.
    if (!rule || !rule->approve || machine.approved() || machine.credential.empty()) continue;
    count += approve(machine, {.by = "rule " + rule->name}, cluster).has_value();
  }
  return count;
}

Result<std::vector<std::string>> applyList(MachineRegistry& registry,
                                           const std::vector<ListedRow>& list,
                                           const std::string& file, const Approval& approval,
                                           const inventory::Cluster& cluster,
                                           std::map<std::string, CsvFields>* extras) {
  std::vector<std::string> unseen;
  std::map<std::size_t, int> taken;
  for (const auto& row : list) {
    auto field = [&](const char* key) {
      const auto found = row.fields.find(key);
      return found == row.fields.end() ? std::string() : found->second;
    };
    const auto at = fmt::format("{}:{}", file, row.line);
    const auto bmc_mac = Mac::parse(field("bmc_mac")), mac = Mac::parse(field("mac"));
    if ((!field("bmc_mac").empty() && !bmc_mac) || (!field("mac").empty() && !mac))
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("{}: \"{}\" is no MAC address", at,
                      bmc_mac || field("bmc_mac").empty() ? field("mac") : field("bmc_mac")));
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < registry.machines().size(); ++i) {
      const auto& machine = registry.machines()[i];
      const bool fits = (field("serial").empty() || machine.serial == field("serial")) &&
                        (!bmc_mac || holds(machine.bmc_macs, bmc_mac->str())) &&
                        (!mac || field("serial").size() + field("bmc_mac").size() > 0 ||
                         holds(machine.macs, mac->str()));
      if (fits && !machine.bmc.empty()) found.push_back(i);
    }
    const auto named = !field("serial").empty() ? "serial " + field("serial")
                                                : "MAC " + (bmc_mac ? bmc_mac->str() : mac->str());
    if (found.size() != 1) {
      unseen.push_back(found.empty()
                           ? fmt::format("{}: {} was not seen", at, named)
                           : fmt::format("{}: {} machines have the {}", at, found.size(), named));
      continue;
    }
    if (const auto [first, fresh] = taken.emplace(found.front(), row.line); !fresh)
      return fail(ErrorCode::Conflict,
                  fmt::format("{}: the machine of line {} again ({})", at, first->second, named));
    auto& machine = registry.machines()[found.front()];
    if (const auto* node = nodeOf(machine, cluster)) {
      unseen.push_back(fmt::format("{}: {} is node {} already", at, named, node->name.str()));
      continue;
    }
    auto wanted = approval;
    wanted.node = field("name");
    if (!field("rack").empty()) wanted.rack = field("rack");
    if (mac) wanted.boot_mac = mac->str();
    if (auto good = approve(machine, wanted, cluster); !good)
      return fail(std::move(good.error()).within(at));
    if (extras) (*extras)[machine.bmc] = row.fields;
  }
  return unseen;
}

Result<Rows> rowsFor(MachineRegistry& registry, const inventory::Cluster& cluster,
                     const std::filesystem::path& file,
                     const std::map<std::string, CsvFields>& extras) {
  const bool read = std::any_of(cluster.node_files.begin(), cluster.node_files.end(),
                                [&](const auto& group) { return group.path == file; });
  if (!read)
    return fail(ErrorCode::InvalidInput,
                fmt::format("no entry of nodes reads {}; add {{profile: …, from: {}}}",
                            file.string(), file.filename().string()));
  const auto only = onlyProfileOf(cluster, file);
  Rows out;
  Addresses addresses(cluster);
  std::set<std::string> taken;
  for (const auto& node : cluster.nodes) taken.insert(node.name.str());
  for (const auto& machine : registry.machines())
    if (machine.approved() && !machine.node.empty()) taken.insert(machine.node);
  for (const auto& [bmc, fields] : extras)
    if (const auto given = fields.find("address"); given != fields.end())
      if (const auto address = Ipv4::parse(given->second)) addresses.reserve(*address);
  for (auto* machine : inOrder(registry)) {
    if (nodeOf(*machine, cluster)) continue;
    auto leave = [&](std::string why) {
      out.left_out.push_back(machine->id() + ": " + std::move(why));
    };
    const auto profile = machine->profile.empty() ? only : machine->profile;
    const bool here = std::any_of(
        cluster.node_files.begin(), cluster.node_files.end(),
        [&](const auto& group) { return group.path == file && group.profile == profile; });
    if (profile.empty()) {
      leave("several profiles read this file; say --profile when it is approved");
      continue;
    }
    if (!here) {
      leave(fmt::format("profile {} is not read from this file", profile));
      continue;
    }
    if (cluster.bmc_trust == inventory::BmcTrustPolicy::Declared &&
        machine->certificate_approved_by.empty()) {
      leave(
          "nobody has approved its BMC's certificate; muster discover scan shows it and how to "
          "approve it");
      continue;
    }
    const auto mac = bootMac(*machine);
    if (machine->bmc.empty() || mac.empty()) {
      leave(machine->bmc.empty()
                ? "its BMC is not known; scan the range that it is in"
                : fmt::format("it has {} NICs and none was heard booting; start it once while "
                              "`muster discover watch` runs, or say --mac",
                              machine->macs.size()));
      continue;
    }
    const auto name = machine->node.empty()
                          ? nextName(preparedNames(*machine, profile, cluster, file), taken)
                          : machine->node;
    if (name.empty()) {
      leave("no name is free for it; name more nodes in the inventory, or approve it with --as");
      continue;
    }
    const auto more = extras.find(machine->bmc);
    CsvFields row;
    if (more != extras.end()) row = more->second;
    if (!row.contains("address")) {
      const auto part = addresses.partOf(*machine);
      if (!part) {
        leave(part.error().text());
        continue;
      }
      const auto address = addresses.next(*part);
      if (!address) {
        leave(*part ? fmt::format("subnet {} has no free address", (*part)->name)
                    : "the provisioning network has no free address");
        continue;
      }
      row["address"] = address->str();
    }
    row["name"] = name, row["mac"] = mac, row["bmc"] = machine->bmc;
    if (!machine->certificate.empty() &&
        (!machine->certificate_approved_by.empty() || !machine->credential.empty()))
      row["bmc_pin"] = machine->certificate;
    if (!machine->rack.empty()) row["rack"] = machine->rack;
    if (isRealSerial(machine->serial)) row["serial"] = machine->serial;
    taken.insert(name);
    machine->node = name, machine->profile = profile;
    out.adopted.emplace_back(machine->bmc, name);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace muster::discovery
