// SPDX-License-Identifier: Apache-2.0
// Rules of several fabrics: a profile has one compute fabric, every rail one fabric, every
// InfiniBand fabric an HCA of the controller of its own. That no switch is in two fabrics is known
// when they are expanded (fabric/topology/declaration.h).
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::inventory {

namespace {

constexpr std::string_view kController = "controller";
constexpr std::size_t kShown = 3;  ///< names in a message

class FabricRules {
 public:
  FabricRules(Cluster& cluster, const DeclaredNodes& nodes, const Value& root, Reader& reader)
      : cluster_(cluster), root_(root), reader_(reader) {
    if (nodes.complete) names_ = &nodes.names;
    for (const DeclaredNode& declared : nodes.nodes)
      if (const auto profile = cluster_.profiles.find(declared.node.profile);
          profile != cluster_.profiles.end())
        for (auto& name : fabricsOf(profile->second))
          if (cluster_.fabrics.contains(name)) used_.insert(std::move(name));
  }

  void run() {
    const Value& profiles = place(root_, "profiles");
    for (auto& [name, profile] : cluster_.profiles) {
      const Value& map = place(profiles, name);
      if (!profile.other_fabrics.empty()) computeFabric(profile, map);
      profile.other_fabrics.empty() ? railsOfOne(profile, map) : railsOfSeveral(profile, map);
    }
    controllerHcas();
    standbys();
    nvlinkDomains();
    unused();
  }

 private:
  const Value& fabricKey(const std::string& fabric, std::string_view key) const {
    return place(place(place(root_, "fabric"), fabric), key);
  }

  bool isUsed(const Fabric& fabric) const {
    return cluster_.fabrics.size() == 1 || used_.contains(fabric.name);
  }

  void computeFabric(Profile& profile, const Value& map) {
    auto names = fabricsOf(profile);
    std::vector<std::string> compute;
    for (const auto& name : names) {
      const auto fabric = cluster_.fabrics.find(name);
      if (fabric == cluster_.fabrics.end()) return;  // reported as a reference
      if (fabric->second.purpose == FabricPurpose::Compute) compute.push_back(name);
    }
    if (compute.empty())
      return reader_.error(
          place(map, "fabric"),
          fmt::format("profile {} is on the fabrics {}, none of which is a compute fabric",
                      profile.name, fmt::join(names, ", ")),
          "remove purpose: storage at the one that jobs communicate over");
    if (compute.size() > 1)
      return reader_.error(
          place(map, "fabric"),
          fmt::format("profile {} is on {} compute fabrics ({}); jobs communicate over one",
                      profile.name, compute.size(), fmt::join(compute, ", ")),
          "write purpose: storage at the others");
    profile.fabric = compute.front();
    std::erase(names, profile.fabric);
    std::sort(names.begin(), names.end());
    profile.other_fabrics = std::move(names);
  }

  const Value& railAt(const Value& map, std::size_t i) const {
    const Value& list = place(map, "rails");
    return i < list.items.size() ? list.items[i] : list;
  }

  void railsOfOne(const Profile& profile, const Value& map) {
    for (std::size_t i = 0; i < profile.rails.size(); ++i) {
      const auto& rail = profile.rails.at(i);
      if (rail.fabric.empty() || rail.fabric == profile.fabric ||
          !cluster_.fabrics.contains(rail.fabric))
        continue;
      reader_.error(
          place(railAt(map, i), "fabric"), notOfTheProfile(profile, i),
          profile.fabric.empty()
              ? fmt::format("write fabric: {} at the profile", rail.fabric)
              : fmt::format("write fabric: [{}, {}] at the profile", profile.fabric, rail.fabric));
    }
  }

  static std::string notOfTheProfile(const Profile& profile, std::size_t i) {
    const auto& rail = profile.rails.at(i);
    return fmt::format("profile {}: rail {} ({}) is on the fabric {}, the profile is not",
                       profile.name, i, rail.hca, rail.fabric);
  }

  void railsOfSeveral(const Profile& profile, const Value& map) {
    const auto names = fabricsOf(profile);
    if (profile.rails.empty())
      return reader_.error(
          place(map, "fabric"),
          fmt::format("profile {} is on {} fabrics, and no rail says which HCA is on which",
                      profile.name, names.size()),
          fmt::format("write rails: [{{hca: mlx5_0, fabric: {}}}, …]", names.front()));
    std::set<std::string_view> cabled;
    for (std::size_t i = 0; i < profile.rails.size(); ++i) {
      const auto& rail = profile.rails.at(i);
      if (rail.fabric.empty())
        reader_.error(
            railAt(map, i),
            fmt::format("profile {}: rail {} ({}) is on no fabric", profile.name, i, rail.hca),
            fmt::format("write fabric: {}", fmt::join(names, " or ")));
      else if (!isOn(profile, rail.fabric) && cluster_.fabrics.contains(rail.fabric))
        reader_.error(place(railAt(map, i), "fabric"), notOfTheProfile(profile, i),
                      fmt::format("the profile is on {}", fmt::join(names, ", ")));
      cabled.insert(rail.fabric);
    }
    for (const auto& name : names)
      if (!cabled.contains(name) && cluster_.fabrics.contains(name))
        reader_.error(place(map, "rails"),
                      fmt::format("profile {} is on the fabric {}, and none of its rails is",
                                  profile.name, name),
                      fmt::format("write fabric: {} at the rails that are, or take the fabric out "
                                  "of the profile",
                                  name));
  }

  /// Two subnet managers cannot sit on one port, and two fabrics are not seen through it.
  void controllerHcas() {
    std::map<std::string_view, std::string_view> first;
    for (const auto& [name, fabric] : cluster_.fabrics) {
      if (!isUsed(fabric) || fabric.roce) continue;
      if (const auto [at, fresh] = first.emplace(fabric.controller_hca, name); !fresh)
        reader_.error(
            fabricKey(name, "controller_hca"),
            fmt::format("the fabrics {} and {} have the same HCA of the controller, {}: two subnet "
                        "managers cannot run on one port",
                        at->second, name, fabric.controller_hca),
            "write at one of them controller_hca: mlx5_1, the HCA that is cabled to it");
    }
  }

  /// A node has one folder and one service of a standby.
  void standbys() {
    std::map<std::string_view, std::string_view> first;
    for (const auto& [name, fabric] : cluster_.fabrics) {
      if (!isUsed(fabric) || fabric.roce) continue;
      const std::set<std::string_view> nodes(fabric.subnet_managers.begin(),
                                             fabric.subnet_managers.end());
      for (const auto node : nodes)
        if (const auto [at, fresh] = first.emplace(node, name); !fresh && node != kController)
          reader_.error(fabricKey(name, "subnet_managers"),
                        fmt::format("{} stands by for the fabrics {} and {}; a node runs one "
                                    "standby subnet manager",
                                    node, at->second, name),
                        "name another node at one of them");
    }
  }

  const Value& domainNodes(const std::string& fabric, const NvlinkDomain& domain) const {
    return place(place(fabricKey(fabric, "nvlink_domains"), domain.name), "nodes");
  }

  /// IMEX waits for each node of its list, and a node has one list.
  void nodesOfDomain(const std::string& fabric, const NvlinkDomain& domain,
                     std::map<std::string_view, std::string_view>& domains) {
    std::vector<std::string_view> unknown;
    for (const auto& node : domain.nodes) {
      if (names_ && !names_->contains(node)) unknown.push_back(node);
      if (const auto [at, fresh] = domains.emplace(node, domain.name); !fresh) {
        reader_.error(domainNodes(fabric, domain),
                      at->second == domain.name
                          ? fmt::format("the NVLink domain {} lists {} twice", domain.name, node)
                          : fmt::format("{} is in the NVLink domains {} and {}", node, at->second,
                                        domain.name),
                      "a node is in one domain: that of the rack whose NVLink switches it is on");
        return;  // one message a domain
      }
    }
    if (unknown.empty()) return;
    std::vector<std::string_view> known;
    for (const auto& [name, where] : *names_) known.push_back(name);
    const auto near = nearest(unknown.front(), known);
    reader_.error(domainNodes(fabric, domain),
                  fmt::format("the NVLink domain {} lists {}, which {} no node", domain.name,
                              someOf(unknown), unknown.size() == 1 ? "is" : "are"),
                  near.empty() ? "declare the node, or take it out of the domain"
                               : fmt::format("did you mean {}?", near));
  }

  static std::string someOf(const std::vector<std::string_view>& names) {
    const auto shown = std::min(names.size(), kShown);
    return fmt::format(
        "{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
  }

  void nvlinkDomains() {
    std::map<std::string_view, std::string_view> first;
    for (const auto& [name, fabric] : cluster_.fabrics) {
      if (fabric.purpose == FabricPurpose::Storage && !fabric.nvlink_domains.empty())
        reader_.error(fabricKey(name, "nvlink_domains"),
                      fmt::format("the fabric {} is for storage: NVLink domains are of jobs", name),
                      "declare them at the compute fabric of these nodes");
      std::map<std::string_view, std::string_view> domains;
      for (const auto& domain : fabric.nvlink_domains) {
        nodesOfDomain(name, domain, domains);
        for (const auto& node : domain.nodes)
          if (const auto [at, fresh] = first.emplace(node, name); !fresh && at->second != name) {
            reader_.error(place(fabricKey(name, "nvlink_domains"), domain.name),
                          fmt::format("{} is in NVLink domains of the fabrics {} and {}", node,
                                      at->second, name),
                          "declare its domain at the compute fabric alone");
            break;  // one message a domain
          }
      }
    }
  }

  void unused() {
    if (cluster_.fabrics.size() < 2) return;
    for (const auto& [name, fabric] : cluster_.fabrics)
      if (!isUsed(fabric))
        reader_.warning(place(place(root_, "fabric"), name),
                        fmt::format("no node is on the fabric {}: nothing of it is planned, "
                                    "checked or exported",
                                    name),
                        "name it under fabric of a profile");
  }

  Cluster& cluster_;
  const Value& root_;
  Reader& reader_;
  std::set<std::string> used_;
  const decltype(DeclaredNodes::names)* names_ = nullptr;  ///< null: more may be meant
};

}  // namespace

void checkFabrics(Cluster& cluster, const DeclaredNodes& nodes, const Value& root, Reader& reader) {
  FabricRules(cluster, nodes, root, reader).run();
}

}  // namespace muster::inventory
