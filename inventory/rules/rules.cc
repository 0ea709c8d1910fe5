// SPDX-License-Identifier: Apache-2.0
// Rules between sections: references lead somewhere, networks and addresses do not collide, nothing
// unique occurs twice.
#include "base/ip_address.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/gates.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

namespace muster::inventory {

namespace {

constexpr std::array<std::string_view, 5> kOpenSmWords{"ALL", "ALL_CAS", "ALL_SWITCHES",
                                                       "ALL_ROUTERS", "SELF"};
constexpr std::string_view kController = "controller";

class Rules {
 public:
  Rules(Cluster& cluster, const DeclaredNodes& nodes, const Value& root, Reader& reader)
      : cluster_(cluster), nodes_(nodes), root_(root), reader_(reader) {}

  void run() {
    references();
    networks();
    unique();
    addresses();
    bmcs();
    undeclaredBmcs();
    for (const auto& [name, profile] : cluster_.profiles) {
      imageAndDisk(profile);
      oneDriverWith(profile, "keys of Fabric Manager",
                    [](const Driver& driver) { return !driver.fabric_manager.empty(); });
      oneDriverWith(profile, "host", [](const Driver& driver) { return driver.host.has_value(); });
    }
    signedBootBesideOthers();
    activeChecks();
    for (const auto& [name, fabric] : cluster_.fabrics) fabricMembers(fabric);
  }

 private:
  /// Names that a section declares, also those whose entry was bad.
  std::vector<std::string_view> declared(std::string_view section) const {
    std::vector<std::string_view> names;
    if (const Value* map = root_.find(section))
      for (const auto& [key, value] : map->entries) names.push_back(key.text);
    return names;
  }

  const Value& at(std::initializer_list<std::string_view> path) const {
    const Value* value = &root_;
    for (std::string_view key : path)
      if (const Value* inner = value->find(key)) value = inner;
    return *value;
  }

  void error(SourceRef where, std::string what, std::string suggestion) {
    ++reader_.errors;
    reader_.diagnostics.error(std::move(where), std::move(what), std::move(suggestion));
  }

  bool unknownTopKey() const {
    return std::any_of(root_.entries.begin(), root_.entries.end(),
                       [](const auto& entry) { return !clusterSpec()->find(entry.first.text); });
  }

  void references() {
    std::map<std::string_view, std::set<std::string_view>> sections;
    for (const Reader::Reference& reference : reader_.references) {
      auto [names, fresh] = sections.try_emplace(reference.section);
      if (fresh)
        for (std::string_view name : declared(reference.section)) names->second.insert(name);
      if (names->second.contains(reference.name)) continue;
      if (!root_.find(reference.section) && unknownTopKey())
        continue;  // most likely the section itself is misspelt
      error(reference.where,
            fmt::format("\"{}\" is not declared under {}", shorten(reference.name),
                        reference.section),
            didYouMean(reference.name, declared(reference.section)));
    }
  }

  /// What is said of disks must be of use to the image.
  void imageAndDisk(const Profile& profile) {
    const auto image = cluster_.images.find(profile.image);
    if (image == cluster_.images.end()) return;
    const Value& map = at({"profiles", profile.name});
    if (image->second.arch != profile.arch)
      reader_.error(
          place(map, "image"),
          fmt::format("image {} is for {}, profile {} is of {}", profile.image,
                      traitsOf(image->second.arch).name, profile.name, traitsOf(profile.arch).name),
          "choose an image for this processor, or correct arch of one of the two");
    const auto refuse = [&](std::string_view key, std::string why, std::string_view advice) {
      if (const Value* value = map.find(key))
        reader_.error(*value, std::move(why), std::string(advice));
    };
    if (image->second.kind == ImageKind::Live)
      for (std::string_view key : {"disk", "root", "storage"})
        refuse(key,
               fmt::format(
                   "image {} is live: it runs in memory, and no disk of these nodes is written",
                   profile.image),
               "remove it, or choose an image of another kind");
    if (image->second.kind == ImageKind::Disk)
      refuse(
          "root",
          fmt::format("image {} is of a whole disk and brings its own partitions", profile.image),
          "remove it, or choose an image of another kind");
  }

  /// A node has one fabricmanager.cfg, and one site that it is of.
  template <class Has>
  void oneDriverWith(const Profile& profile, std::string_view what, Has has) {
    std::string_view first;
    for (const Value& item : at({"profiles", profile.name, "drivers"}).items) {
      const auto driver = cluster_.drivers.find(item.text);
      if (driver == cluster_.drivers.end() || !has(driver->second)) continue;
      if (!first.empty())
        reader_.error(item,
                      fmt::format("the drivers {} and {} both set {}", first, item.text, what),
                      "say them in one driver, or give each profile one of these");
      first = driver->first;
    }
  }

  /// Firmware that boots signed loaders asks for their files whom the other server names.
  void signedBootBesideOthers() {
    const Network* network = provisioning();
    if (!network || network->dhcp_mode != DhcpMode::Proxy) return;
    for (const auto& [name, profile] : cluster_.profiles) {
      const bool arm64 = profile.arch == Architecture::Arm64;  // boots by signed loaders always
      if (const Value* key = at({"profiles", name}).find(arm64 ? "arch" : "secure_boot");
          key && (arm64 || profile.secure_boot))
        reader_.warning(*key,
                        fmt::format("beside another DHCP server GRUB of profile {} loads its "
                                    "configuration from whom that server names",
                                    name),
                        fmt::format("let it name {} as next-server (dnsmasq: dhcp-boot=,,{})",
                                    network->controller.str(), network->controller.str()));
    }
  }

  /// A check that lasts holds its node from who waits for it.
  void activeChecks() {
    for (const auto& [name, pool] : cluster_.pools) {
      if (!pool.slurm || !pool.slurm->active_checks) continue;
      const auto gate = cluster_.gates.find(pool.slurm->active_checks->gate);
      if (gate == cluster_.gates.end() || gate->second.level == GateLevel::Quick) continue;
      reader_.error(
          at({"pools", name, "slurm", "active_checks", "gate"}),
          fmt::format("gate {} takes too long for idle nodes, which are wanted back within "
                      "seconds",
                      gate->first),
          "name a gate of level quick");
    }
  }

  /// A network or a subnet, and where its addresses are declared.
  struct Span {
    std::string name;
    Cidr cidr;
    const Value* where;
  };

  void networks() {
    std::vector<Span> all;
    for (const Network& network : cluster_.networks) {
      all.push_back({network.name, network.cidr, &at({"networks", network.name, "cidr"})});
      for (const Subnet& subnet : network.subnets)
        all.push_back({subnet.name, subnet.cidr,
                       &at({"networks", network.name, "subnets", subnet.name, "cidr"})});
    }
    std::sort(all.begin(), all.end(),
              [](const Span& a, const Span& b) { return a.where->line < b.where->line; });
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (all[i].cidr.prefix_bits > 0 && all[j].cidr.prefix_bits > 0 &&
            all[i].cidr.overlaps(all[j].cidr))
          reader_.error(
              *all[i].where,
              fmt::format("the networks {} ({}) and {} ({}) overlap", all[j].name,
                          all[j].cidr.str(), all[i].name, all[i].cidr.str()),
              fmt::format("{} is declared at {}", all[j].name, reader_.at(*all[j].where).str()));
  }

  /// Reports the second use of a value.
  class Uniqueness {
   public:
    Uniqueness(Rules& rules, std::string_view what) : rules_(rules), what_(what) {}
    void see(const std::string& value, const Node& node, DeclaredNode::Place place) {
      SourceRef where{node.where.file, place.line, place.column};
      auto [first, fresh] = seen_.try_emplace(value, Use{&node, where});
      if (fresh) return;
      rules_.error(where,
                   fmt::format("the {} {} of {} is also that of {}", what_, shorten(value),
                               node.name.str(), first->second.node->name.str()),
                   fmt::format("the other one is at {}", first->second.where.str()));
    }

   private:
    struct Use {
      const Node* node;
      SourceRef where;
    };
    Rules& rules_;
    std::string_view what_;
    std::unordered_map<std::string, Use> seen_;
  };

  void unique() {
    Uniqueness macs(*this, "MAC"), addresses(*this, "address"), bmcs(*this, "BMC"),
        serials(*this, "serial");
    for (const DeclaredNode& declared : nodes_.nodes) {
      const Node& node = declared.node;
      macs.see(node.mac.str(), node, declared.mac);
      addresses.see(node.address.str(), node, declared.address);
      bmcs.see(node.bmc.place(), node, declared.bmc);
      if (!node.serial.empty()) serials.see(node.serial, node, declared.serial);
    }
  }

  const Network* provisioning() const {
    for (const Network& network : cluster_.networks)
      if (network.name == "provisioning" && network.cidr.prefix_bits > 0) return &network;
    return nullptr;
  }

  /// What is wrong with an address on the network that somebody else than muster uses; empty:
  /// nothing.
  static std::string misplaced(const Network& network, Ipv4 address) {
    const Subnet* subnet = subnetOf(network, address);
    const Cidr& cidr = subnet ? subnet->cidr : network.cidr;
    const auto& range = subnet ? subnet->dhcp_range : network.dhcp_range;
    const auto gateway = subnet ? std::optional(subnet->gateway) : network.gateway;
    std::uint32_t first = cidr.network.value();
    if (isController(network, address)) return "is the controller's own address";
    if (gateway && address == *gateway) return "is the gateway's address";
    for (const BootServer& server : network.boot_servers)
      if (server.tftp == address) return fmt::format("is that of the boot server {}", server.name);
    if (range && range->first <= address && address <= range->second)
      return fmt::format("is inside the DHCP range {}-{}", range->first.str(), range->second.str());
    if (cidr.prefix_bits < 31 &&
        (address.value() == first || address.value() == (first | ~cidr.netmask().value())))
      return "is the network's own or broadcast address";
    return {};
  }

  /// A node outside every subnet, or in another one than its rack.
  static std::string outside(const Network& network, const Node& node) {
    const Subnet* home = subnetOf(network, node.address);
    if (!isProvisioned(network, node.address))
      return fmt::format("is outside the provisioning network {}{}", network.cidr.str(),
                         network.subnets.empty() ? "" : " and its subnets");
    for (const Subnet& subnet : network.subnets)
      if (&subnet != home && !node.rack.empty() &&
          std::find(subnet.racks.begin(), subnet.racks.end(), node.rack) != subnet.racks.end())
        return fmt::format("is not in the subnet {} ({}) of its rack {}", subnet.name,
                           subnet.cidr.str(), shorten(node.rack));
    return {};
  }

  void addresses() {
    const Network* network = provisioning();
    if (!network) return;
    std::map<Ipv4, const DeclaredNode*> used;
    for (const DeclaredNode& declared : nodes_.nodes) {
      const Node& node = declared.node;
      SourceRef where{node.where.file, declared.address.line, declared.address.column};
      used.emplace(node.address, &declared);
      if (auto wrong = outside(*network, node); !wrong.empty())
        error(where,
              fmt::format("the address {} of {} {}", node.address.str(), node.name.str(), wrong),
              "use an address of that network");
      else if (auto wrong = misplaced(*network, node.address); !wrong.empty())
        error(where,
              fmt::format("the address {} of {} {}", node.address.str(), node.name.str(), wrong),
              "give the node another one");
    }
    for (const DeclaredNode& declared : nodes_.nodes) bmcAddress(declared, used);
  }

  /// A BMC that is named by address and stands on one of our networks.
  void bmcAddress(const DeclaredNode& declared, const std::map<Ipv4, const DeclaredNode*>& used) {
    constexpr std::string_view kScheme = "https://";
    const std::string& url = declared.node.bmc.url;
    if (!url.starts_with(kScheme)) return;
    auto address = Ipv4::parse(std::string_view(url).substr(
        kScheme.size(), url.find(':', kScheme.size()) - kScheme.size()));
    if (!address) return;
    SourceRef where{declared.node.where.file, declared.bmc.line, declared.bmc.column};
    if (auto other = used.find(*address); other != used.end())
      error(where,
            fmt::format("the BMC address {} of {} is also the node address of {}", address->str(),
                        declared.node.name.str(), other->second->node.name.str()),
            "one of them is wrong");
    for (const Network& network : cluster_.networks) {
      if (!isProvisioned(network, *address)) continue;
      if (auto wrong = misplaced(network, *address); !wrong.empty())
        error(where,
              fmt::format("the BMC address {} of {} {}", address->str(), declared.node.name.str(),
                          wrong),
              "give the BMC another one");
    }
  }

  /// The default credential is needed only where a BMC asks for one.
  void bmcs() {
    std::set<std::string_view> profiles;
    for (const DeclaredNode& declared : nodes_.nodes)
      if (declared.node.bmc.url.starts_with("https://") && declared.node.bmc.credential.empty())
        profiles.insert(declared.node.profile);
    auto credentials = declared("credentials");
    std::set<std::string_view> known(credentials.begin(), credentials.end());
    for (const auto& [name, profile] : cluster_.profiles)
      if (profiles.contains(name) && !at({"profiles", name}).find("bmc_credential") &&
          !known.contains(profile.bmc_credential))
        reader_.error(
            at({"profiles", name}),
            fmt::format("the BMCs of profile {} need the credential \"{}\", which is not declared",
                        name, profile.bmc_credential),
            fmt::format("add credentials: {{{}: {{username: …, password: {{file: …}}}}}}, or "
                        "bmc_credential",
                        profile.bmc_credential));
  }

  /// With bmc_trust: declared these BMCs get no password. No error: it is how their fingerprints
  /// are found out.
  void undeclaredBmcs() {
    if (cluster_.bmc_trust != BmcTrustPolicy::Declared) return;
    std::vector<std::string> names;
    for (const DeclaredNode& declared : nodes_.nodes) {
      const auto profile = cluster_.profiles.find(declared.node.profile);
      if (!declared.node.bmc.url.starts_with("https://") ||
          declared.node.bmc.trust->declaresCertificate())
        continue;
      if (profile == cluster_.profiles.end() || profile->second.bmc_trust->declaresCertificate())
        continue;
      names.push_back(declared.node.name.str());
    }
    if (names.empty()) return;
    reader_.warning(
        at({"cluster", "bmc_trust"}),
        fmt::format("nothing declares the certificate of {} BMC{}, so no password goes there: {}",
                    names.size(), names.size() == 1 ? "" : "s", shorten(foldHostlist(names), 200)),
        "muster discover scan shows their fingerprints; write bmc_pin or bmc_ca");
  }

  std::string nearestNode(const std::string& name) const {
    std::vector<std::string_view> names;
    for (const auto& [known, where] : nodes_.names) names.push_back(known);
    return didYouMean(name, names);
  }

  bool onFabric(const std::string& node, const Fabric& fabric) const {
    auto declared = std::lower_bound(nodes_.nodes.begin(), nodes_.nodes.end(), node,
                                     [](const DeclaredNode& a, const std::string& b) {
                                       return naturalLess(a.node.name.str(), b);
                                     });
    if (declared == nodes_.nodes.end() || declared->node.name.str() != node)
      return true;  // already reported
    auto profile = cluster_.profiles.find(declared->node.profile);
    if (profile == cluster_.profiles.end()) return true;
    const auto names = fabricsOf(profile->second);
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == fabric.name || !cluster_.fabrics.contains(name);  // that is reported already
    });
  }

  void fabricMembers(const Fabric& fabric) {
    const Value& managers = at({"fabric", fabric.name, "subnet_managers"});
    std::set<std::string_view> seen;
    for (const Value& item : managers.items) {
      if (!seen.insert(item.text).second)
        reader_.error(item,
                      fmt::format("the subnet manager {} is listed twice", shorten(item.text)),
                      "remove one");
      if (item.text == kController) continue;
      if (!nodes_.names.contains(item.text)) {
        if (nodes_.complete)
          reader_.error(item,
                        fmt::format("the subnet manager \"{}\" is no node", shorten(item.text)),
                        fmt::format("write a node or controller; {}", nearestNode(item.text)));
      } else if (!onFabric(item.text, fabric)) {
        reader_.error(
            item,
            fmt::format("the subnet manager {} is not on the fabric {}", item.text, fabric.name),
            "its profile must name the fabric");
      }
    }
    places(fabric);
    for (const Partition& partition : fabric.partitions) {
      std::map<std::string, std::string_view> members;
      for (std::string_view kind : {"full", "limited"})
        partitionMembers(fabric, partition, kind, members);
    }
  }

  /// Declared places name every node of the fabric, and nobody else.
  void places(const Fabric& fabric) {
    if (fabric.places.empty()) return;
    const Value& list = at({"fabric", fabric.name, "places"});
    for (const Value& item : list.items) {
      const auto names = item.text == "-" || item.text.ends_with(" free")
                             ? std::vector<std::string>()
                             : expandHostlist(item.text).value_or(std::vector<std::string>());
      for (const std::string& name : names)
        if (!nodes_.names.contains(name)) {
          if (!nodes_.complete) break;
          reader_.error(
              item, fmt::format("\"{}\" is no node", shorten(name)),
              fmt::format("where a node has left write \"-\" in its place; {}", nearestNode(name)));
          break;  // one message a hostlist
        } else if (!onFabric(name, fabric)) {
          reader_.error(item, fmt::format("{} is not on the fabric {}", name, fabric.name),
                        "its profile must name the fabric, or write \"-\" in its place");
          break;
        }
    }
    const std::set<std::string_view> placed(fabric.places.begin(), fabric.places.end());
    std::vector<std::string> missing;
    for (const DeclaredNode& declared : nodes_.nodes) {
      const auto profile = cluster_.profiles.find(declared.node.profile);
      if (profile != cluster_.profiles.end() && isOn(profile->second, fabric.name) &&
          !placed.contains(declared.node.name.str()))
        missing.push_back(declared.node.name.str());
    }
    if (!missing.empty())
      reader_.error(list,
                    fmt::format("places of the fabric {} leave out {}", fabric.name,
                                shorten(foldHostlist(missing))),
                    "say where it is cabled, in the place of a \"-\" or at the end");
  }

  void partitionMembers(const Fabric& fabric, const Partition& partition, std::string_view kind,
                        std::map<std::string, std::string_view>& members) {
    for (const Value& item :
         at({"fabric", fabric.name, "partitions", partition.name, kind}).items) {
      if (item.kind != Value::Kind::Scalar) continue;
      auto names = expandHostlist(item.text);
      if (!names) {
        reader_.error(item, fmt::format("\"{}\" is no hostlist", shorten(item.text)),
                      names.error().text());
        continue;
      }
      for (const std::string& name : *names)
        if (!partitionMember(fabric, partition, kind, name, item, members))
          break;  // one message a hostlist
    }
  }

  bool partitionMember(const Fabric& fabric, const Partition& partition, std::string_view kind,
                       const std::string& name, const Value& item,
                       std::map<std::string, std::string_view>& members) {
    bool word = std::find(kOpenSmWords.begin(), kOpenSmWords.end(), name) != kOpenSmWords.end();
    if (!word && !nodes_.names.contains(name)) {
      if (!nodes_.complete) return false;
      reader_.error(item,
                    fmt::format("partition {}: \"{}\" is no node", partition.name, shorten(name)),
                    fmt::format("write nodes, ALL or SELF; {}", nearestNode(name)));
      return false;
    }
    if (!word && !onFabric(name, fabric)) {
      reader_.error(item,
                    fmt::format("partition {}: {} is not on the fabric {}", partition.name, name,
                                fabric.name),
                    "its profile must name the fabric");
      return false;
    }
    if (auto [first, fresh] = members.emplace(name, kind); !fresh) {
      reader_.error(item,
                    fmt::format("partition {}: {} occurs twice, as {} and {} member",
                                partition.name, name, first->second, kind),
                    "keep one");
      return false;
    }
    return true;
  }

  Cluster& cluster_;
  const DeclaredNodes& nodes_;
  const Value& root_;
  Reader& reader_;
};

}  // namespace

void checkRules(Cluster& cluster, const DeclaredNodes& nodes, const Value& root, Reader& reader) {
  Rules(cluster, nodes, root, reader).run();
}

}  // namespace muster::inventory
