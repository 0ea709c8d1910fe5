// SPDX-License-Identifier: Apache-2.0
// OpenSM's files rendered from the declaration. Pure.
#include "base/json_input.h"
#include "base/json_output.h"
#include "fabric/opensm/subnet_manager.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/opensm_routing.h"

#include "base/io/crypto.h"

#include <algorithm>

namespace muster::fabric {

namespace {

constexpr int kSmPriority = 14;  // 0 to 15; of the first manager, each further one has one less
constexpr std::size_t kMostManagers = 8;
constexpr int kSweepIntervalS = 10;
// A standby takes over after (retries + 1) polls, and one more if it is unlucky: 1,000 ms took 4.4
// to 5.0 s. 200 ms × 2 declared a live master dead.
constexpr int kSmPollingMs = 800;
constexpr int kSmPollingRetries = 3;
constexpr std::string_view kOfOneSwitch = "minhop";
constexpr int kMaxWireSmps = 4;
constexpr int kLogMaxMib = 64;

constexpr std::string_view kPortsFact = "ports";
constexpr std::string_view kSwitchesFact = "switches";

/// Whether OpenSM may come to ftree, which wants lists of what hangs where.
bool mayUseFatTree(std::string_view routing) {
  return inventory::namesRouting(routing, inventory::kFatTreeRouting);
}

std::string rootGuids(const std::vector<std::string>& roots, const KnownGuids& known) {
  std::string out;
  for (const auto& root : roots)
    if (auto guid = known.switches.find(root); guid != known.switches.end())
      out += guid->second + "\n";
  return out;
}

template <class Map>
void forgetGuid(Map& map, const std::string& guid, const std::string& but) {
  std::erase_if(map, [&](const auto& entry) { return entry.second == guid && entry.first != but; });
}

/// How often a way between two ports above the leaves must turn up again: two HCAs at roots have
/// each other only by way of a leaf. Fewer leave such pairs without a way. 0: no port of that kind.
int reverseHops(const Topology& declared, std::size_t io_hcas) {
  if (io_hcas == 0) return 0;
  int highest = 1;
  for (const auto& [name, level] : switchLevels(declared)) highest = std::max(highest, level);
  return std::max(1, highest - 1);
}

std::string opensmConf(const std::string& routing, const SmSeat& seat, bool has_roots,
                       int reverse_hops) {
  const auto folder = seat.folder.string();
  std::string out = "# Written by muster from the inventory; what is changed here is undone.\n";
  auto set = [&](std::string_view option, auto value) {
    out += fmt::format("{} {}\n", option, value);
  };
  set("guid", seat.guid);
  set("sm_priority", kSmPriority - seat.rank);
  set("subnet_prefix", "0xfe80000000000000");
  set("m_key", "0x0000000000000000");
  set("routing_engine", routing);
  if (has_roots)
    set("root_guid_file",
        folder + "/root_guids");  // without it one pulled uplink makes ftree fall back to minhop
  if (mayUseFatTree(routing))
    set("cn_guid_file",
        folder + "/cn_guids");  // else one HCA on a spine (SHARP, UFM) is a node at the wrong level
  if (reverse_hops > 0 && mayUseFatTree(routing)) {
    set("io_guid_file",
        folder + "/io_guids");  // storage and gateways: not all on the level of the nodes
    set("max_reverse_hops", reverse_hops);
  }
  set("use_ucast_cache", "TRUE");  // a host that restarts does not re-route the fabric
  set("honor_guid2lid_file", "TRUE");
  set("sweep_interval", kSweepIntervalS);
  set("max_wire_smps", kMaxWireSmps);
  set("sminfo_polling_timeout", kSmPollingMs);
  set("polling_retry_number", kSmPollingRetries);
  set("partition_config_file", folder + "/partitions.conf");
  set("part_enforce", "both");
  set("allow_both_pkeys", "FALSE");
  set("qos", "FALSE");
  set("console", "off");  // the loopback and socket consoles ask for no credentials
  set("exit_on_fatal", "TRUE");
  set("log_file", folder + "/opensm.log");
  set("log_max_size", kLogMaxMib);
  set("force_log_flush", "TRUE");  // else SUBNET UP stays in the buffer
  set("dump_files_dir", folder);
  return out;
}

}  // namespace

std::string routingOf(const inventory::Fabric& fabric, const Topology& declared) {
  const auto switches = std::count_if(declared.devices.begin(), declared.devices.end(),
                                      [](const auto& entry) { return entry.second.is_switch; });
  return switches == 1 && fabric.routing == inventory::kFatTreeRouting ? std::string(kOfOneSwitch)
                                                                       : fabric.routing;
}

std::vector<std::string> managerHcas(const inventory::Cluster& cluster,
                                     const inventory::Fabric& fabric) {
  auto hosts = hostsOn(cluster, fabric);
  std::vector<std::string> out;
  for (const auto& manager : fabric.subnet_managers) {
    auto host = std::find_if(hosts.begin(), hosts.end(),
                             [&](const Host& one) { return one.name == manager; });
    out.push_back(host == hosts.end() || host->hcas.empty() ? controllerHca(fabric)
                                                            : host->hcas.front());
  }
  return out;
}

Result<void> checkSubnetManagers(const inventory::Fabric& fabric) {
  if (!fabric.subnet_managers.empty() && fabric.subnet_managers.front() != "controller")
    return fail(ErrorCode::InvalidInput,
                fmt::format("fabric {}: the first of subnet_managers must be controller, which "
                            "muster runs itself; nodes behind it are "
                            "standbys. Leave it out where UFM or a switch runs the subnet manager",
                            fabric.name));
  if (fabric.subnet_managers.size() > kMostManagers)
    return fail(ErrorCode::InvalidInput,
                fmt::format("fabric {}: {} subnet managers; at most {}, each has its own priority",
                            fabric.name, fabric.subnet_managers.size(), kMostManagers));
  if (const auto unknown = inventory::unknownRouting(fabric.routing); !unknown.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("fabric {}: OpenSM has no routing engine '{}'; one of {}", fabric.name,
                            unknown, fmt::join(inventory::kRoutingEngines, ", ")));
  return {};
}

void KnownGuids::learn(const Topology& declared, const Topology& found) {
  std::set<std::pair<Port, Port>> cables;
  for (const auto& link : found.links) cables.emplace(link.a, link.b);
  for (const auto& link : declared.links) {
    if (!cables.count({link.a, link.b})) continue;
    for (const auto& port : {link.a, link.b}) {
      const auto& device = found.devices.at(port.node);
      if (device.is_switch != declared.devices.at(port.node).is_switch) continue;
      auto address = device.addresses.find(port.number);
      if (device.is_switch) {
        forgetGuid(switches, device.guid, port.node);
        switches[port.node] = device.guid;
      } else if (address != device.addresses.end() && !address->second.guid.empty()) {
        forgetGuid(hcas, address->second.guid, port.node);
        hcas[port.node] = address->second.guid;
      }
    }
  }
}

std::string KnownGuids::toJson() const {
  nlohmann::json json;
  json[kPortsFact] = hcas;
  json[kSwitchesFact] = switches;
  return jsonText(json, 1);
}

KnownGuids KnownGuids::fromJson(std::string_view text) {
  KnownGuids known;
  auto json = jsonOrNone(text, kKeptJson);
  if (!json.is_object()) return known;
  auto read = [&](std::string_view key, std::map<std::string, std::string>& into) {
    if (!json.contains(key) || !json[key].is_object()) return;
    for (const auto& [name, guid] : json[key].items())
      if (guid.is_string() && canonicalGuid(guid.template get<std::string>()) ==
                                  guid.template get_ref<const std::string&>())
        into[name] = guid;
  };
  read(kPortsFact, known.hcas);
  read(kSwitchesFact, known.switches);
  return known;
}

std::string SmFiles::digest() const {
  return io::sha256Hex(opensm_conf + '\0' + root_guids + '\0' + io_guids);
}

namespace {

/// Declared HCAs as ftree wants them told apart.
struct HcaLists {
  std::vector<std::string> nodes;  ///< at leaves: cn_guids, which OpenSM wants on one level
  std::vector<std::string> io;     ///< storage, gateways, and whatever is cabled above the leaves
};
HcaLists hcaLists(const Topology& declared) {
  const auto levels = switchLevels(declared);
  const auto switches = switchesOfHcas(declared);
  HcaLists out;
  for (const auto& [name, device] : declared.devices) {
    if (device.is_switch) continue;
    const auto at = switches.find(name);
    const auto level = at == switches.end() ? levels.end() : levels.find(at->second);
    const bool is_io = device.role == inventory::AttachedRole::Storage ||
                       device.role == inventory::AttachedRole::Gateway ||
                       (level != levels.end() && level->second > 1);
    (is_io ? out.io : out.nodes).push_back(name);
  }
  return out;
}

std::string knownOf(const std::vector<std::string>& names, const KnownGuids& known) {
  std::string out;
  for (const auto& name : names)
    if (auto guid = known.hcas.find(name); guid != known.hcas.end()) out += guid->second + "\n";
  return out;
}

}  // namespace

SmFiles renderSm(const inventory::Fabric& fabric, const Topology& declared,
                 const PartitionRules& rules, const KnownGuids& known, const SmSeat& seat) {
  auto roots = rootSwitches(declared);
  const auto hcas = hcaLists(declared);
  const auto routing = routingOf(fabric, declared);
  return {opensmConf(routing, seat, !roots.empty(), reverseHops(declared, hcas.io.size())),
          rootGuids(roots, known), knownOf(hcas.io, known),
          mayUseFatTree(routing) ? knownOf(hcas.nodes, known) : std::string(),
          renderPartitions(withGuids(rules, known.hcas))};
}

std::string declaredSmDigest(const inventory::Fabric& fabric, const Topology& declared) {
  auto roots = rootSwitches(declared), io = hcaLists(declared).io;
  return io::sha256Hex(opensmConf(routingOf(fabric, declared), {controllerHca(fabric), "run", 0},
                                  !roots.empty(), reverseHops(declared, io.size())) +
                       fmt::format("{}\n{}\n{}", fmt::join(roots, "\n"), fmt::join(io, "\n"),
                                   fmt::join(fabric.subnet_managers, "\n")));
}

}  // namespace muster::fabric
