// SPDX-License-Identifier: Apache-2.0
#include "discovery/netbox_rows.h"

#include "base/ids.h"
#include "base/ip_address.h"
#include "base/printable.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/parse/hostlist.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

namespace muster::discovery {
namespace {

constexpr int kMostUnits = 99;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::optional<Ipv4> addressOf(const std::string& with_prefix) {
  const auto address = Ipv4::parse(with_prefix.substr(0, with_prefix.find('/')));
  return address ? std::optional(*address) : std::nullopt;
}

/// How people find a device in NetBox.
std::string shown(const NetboxDevice& device) {
  return device.name.empty() ? fmt::format("device {}", device.id) : printable(device.name);
}

/// What NetBox says of one device, in the inventory's words.
struct Told {
  const NetboxDevice* device = nullptr;
  std::string name;
  CsvFields fields;
  std::vector<std::string> open;  ///< what it leaves open
};

const NetboxInterface* interfaceOf(const NetboxDevice& device, std::int64_t id) {
  const auto found = std::ranges::find(device.interfaces, id, &NetboxInterface::id);
  return found == device.interfaces.end() ? nullptr : &*found;
}

/// The one that the provisioning network has; of several the device's primary one.
const NetboxAddress* bootAddress(const NetboxDevice& device, const inventory::Network& network,
                                 Told& told) {
  std::vector<const NetboxAddress*> here;
  for (const auto& each : device.addresses)
    if (const auto address = addressOf(each.address);
        address && inventory::isProvisioned(network, *address))
      here.push_back(&each);
  if (here.size() == 1) return here.front();
  const auto primary = addressOf(device.primary_ip4);
  for (const auto* each : here)
    if (primary && addressOf(each->address) == primary) return each;
  told.open.push_back(
      here.empty() ? fmt::format("none of its interfaces has an address in {}", network.name)
                   : fmt::format("it has {} addresses in {}, and none of them is its primary one",
                                 here.size(), network.name));
  return nullptr;
}

void tellPlace(Told& told) {
  const auto& device = *told.device;
  if (device.rack.empty()) {
    told.open.emplace_back("it is in no rack");
    return;
  }
  told.fields["rack"] = printable(device.rack);
  if (!device.position) {
    told.open.push_back(fmt::format("it has no position in rack {}", printable(device.rack)));
    return;
  }
  const double unit = *device.position;
  if (unit != std::floor(unit) || unit < 1 || unit > kMostUnits)
    told.open.push_back(
        fmt::format("its position {:g} is no whole height unit from 1 to {}", unit, kMostUnits));
  else
    told.fields["unit"] = fmt::format("{:g}", unit);
}

void tellBmc(Told& told) {
  const auto& device = *told.device;
  auto address = addressOf(device.oob_ip);
  if (!address) {
    std::vector<Ipv4> found;
    for (const auto& each : device.addresses)
      if (const auto* interface = interfaceOf(device, each.interface);
          interface && interface->mgmt_only)
        if (const auto one = addressOf(each.address)) found.push_back(*one);
    if (found.size() == 1) address = found.front();
  }
  if (address)
    told.fields["bmc"] = "https://" + address->str();
  else
    told.open.emplace_back(
        "its BMC's address is not known: set its out-of-band IP, or an address of its one "
        "interface that is for management only");
}

void tellNetwork(Told& told, const inventory::Network& network) {
  const auto& device = *told.device;
  const auto* address = bootAddress(device, network, told);
  if (!address) return;
  told.fields["address"] = addressOf(address->address)->str();
  const auto* interface = interfaceOf(device, address->interface);
  const auto mac = interface ? Mac::parse(interface->mac) : fail(ErrorCode::NotFound, "");
  if (mac)
    told.fields["mac"] = mac->str();
  else
    told.open.push_back(
        fmt::format("its interface {} has {}", interface ? printable(interface->name) : "?",
                    interface && !interface->mac.empty() ? "no MAC that can be read" : "no MAC"));
  if (!interface || interface->peer_device.empty() || interface->peer_port.empty()) return;
  told.fields["switch"] = printable(interface->peer_device);
  told.fields["port"] = printable(interface->peer_port);
}

std::vector<Told> tellAll(const std::vector<NetboxDevice>& devices,
                          const inventory::Cluster& cluster, NetboxComparison& out) {
  std::vector<Told> all;
  std::map<std::string, int> named;
  for (const auto& device : devices) {
    Told told{&device, lower(device.name), {}, {}};
    if (device.name.empty()) {
      out.left_out.push_back(shown(device) + ": it has no name in NetBox");
      continue;
    }
    if (const auto good = inventory::checkHostName(told.name); !good) {
      out.left_out.push_back(shown(device) + ": its name is no host name; rename it in NetBox");
      continue;
    }
    ++named[told.name];
    tellPlace(told);
    tellNetwork(told, cluster.provisioning());
    tellBmc(told);
    if (!device.serial.empty()) told.fields["serial"] = printable(device.serial);
    told.fields["name"] = told.name;
    all.push_back(std::move(told));
  }
  std::erase_if(all, [&](const Told& told) {
    if (named[told.name] == 1) return false;
    out.left_out.push_back(fmt::format("{}: {} devices of NetBox have this name",
                                       shown(*told.device), named[told.name]));
    return true;
  });
  std::ranges::sort(
      all, [](const Told& a, const Told& b) { return inventory::naturalLess(a.name, b.name); });
  return all;
}

/// Two machines in one unit: one of them is elsewhere, and who knows which.
void leaveOutSharedPlaces(std::vector<Told>& all, NetboxComparison& out) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> places;
  for (const auto& told : all)
    if (told.fields.contains("unit"))
      places[{told.fields.at("rack"), told.fields.at("unit")}].push_back(told.name);
  std::erase_if(all, [&](const Told& told) {
    if (!told.fields.contains("unit")) return false;
    const auto& there = places[{told.fields.at("rack"), told.fields.at("unit")}];
    if (there.size() == 1) return false;
    out.left_out.push_back(fmt::format("{}: {} are all in unit {} of rack {}; correct it in NetBox",
                                       told.name, fmt::join(there, " and "), told.fields.at("unit"),
                                       told.fields.at("rack")));
    return true;
  });
}

/// Of a node, as a row would say it.
CsvFields fieldsOf(const inventory::Node& node) {
  CsvFields out{{"rack", node.rack},       {"mac", node.mac.str()}, {"address", node.address.str()},
                {"bmc", node.bmc.url},     {"serial", node.serial}, {"switch", node.switch_name},
                {"port", node.switch_port}};
  if (node.unit > 0) out["unit"] = std::to_string(node.unit);
  return out;
}

void compareNode(const Told& told, const inventory::Node& node, NetboxComparison& out) {
  const auto here = fieldsOf(node);
  for (const auto& [key, value] : told.fields) {
    if (key == "name") continue;
    const auto found = here.find(key);
    const auto said = found == here.end() ? std::string() : found->second;
    if (said != value) out.differences.push_back({told.name, key, said, value});
  }
}

/// Nodes by what their machines are known by.
class NodesByParts {
 public:
  explicit NodesByParts(const inventory::Cluster& cluster) {
    for (const auto& node : cluster.nodes) {
      if (!node.serial.empty()) by_part_.emplace("serial " + node.serial, &node);
      by_part_.emplace("mac " + node.mac.str(), &node);
    }
  }
  /// The node that this machine is already, under another name; null: none.
  const inventory::Node* find(const Told& told) const {
    for (const std::string key : {"serial", "mac"})
      if (const auto value = told.fields.find(key); value != told.fields.end())
        if (const auto found = by_part_.find(key + " " + value->second); found != by_part_.end())
          return found->second;
    return nullptr;
  }

 private:
  std::map<std::string, const inventory::Node*> by_part_;
};

}  // namespace

NetboxComparison compareWithNetbox(const std::vector<NetboxDevice>& devices,
                                   const inventory::Cluster& cluster) {
  NetboxComparison out;
  out.devices = devices.size();
  auto all = tellAll(devices, cluster, out);
  leaveOutSharedPlaces(all, out);
  const NodesByParts known(cluster);
  std::set<std::string> listed;
  for (const auto& device : devices) listed.insert(lower(device.name));
  for (const auto& told : all) {
    if (const auto* node = cluster.findNode(NodeName(told.name))) {
      compareNode(told, *node, out);
      for (const auto& each : told.open) out.remarks.push_back(told.name + ": " + each);
      continue;
    }
    if (const auto* node = known.find(told)) {
      out.left_out.push_back(
          fmt::format("{}: the machine with its serial or MAC is node {} of the inventory",
                      told.name, node->name.str()));
      continue;
    }
    const bool complete =
        std::ranges::all_of(std::array{"mac", "address", "bmc"},
                            [&](const char* key) { return told.fields.contains(key); });
    if (!complete) {
      out.left_out.push_back(fmt::format("{}: {}", told.name, fmt::join(told.open, "; ")));
      continue;
    }
    for (const auto& each : told.open) out.remarks.push_back(told.name + ": " + each);
    out.rows.push_back(told.fields);
  }
  for (const auto& node : cluster.nodes)
    if (!listed.contains(node.name.str())) out.only_here.push_back(node.name.str());
  return out;
}

}  // namespace muster::discovery
