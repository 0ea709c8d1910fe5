// SPDX-License-Identifier: Apache-2.0
// Rules of machines: what no machine can be, however well each key reads by itself. Two file
// systems at one mount point, a RAID that the image cannot start, one HCA on two rails, two
// machines in one place, names that lead nowhere.
#include "inventory/model/cluster.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/fabric.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "inventory/model/mounts.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "inventory/model/racks.h"
#include "inventory/model/rails.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace muster::inventory {

namespace {

/// What a program of the layout is called in packages; empty: not needed.
struct LayoutNeeds {
  bool mdadm = false, lvm = false, cryptsetup = false;
};

class MachineRules {
 public:
  MachineRules(const Cluster& cluster, const DeclaredNodes& nodes, const Value& root,
               Reader& reader)
      : cluster_(cluster), nodes_(nodes), root_(root), reader_(reader) {}

  void run() {
    for (const auto& [name, profile] : cluster_.profiles) {
      const Value* map = entry("profiles", name);
      if (!map) continue;
      mountPoints(profile, *map);
      layoutPrograms(profile, *map);
      rails(profile, *map);
    }
    for (const auto& [name, baseline] : cluster_.firmware)
      if (const Value* map = entry("firmware", name)) constraints(baseline, *map);
    places();
    rackNames();
    for (const auto& declared : nodes_.nodes)
      if (declared.node.name.str() == "localhost")
        reader_.diagnostics.error(declared.node.where,
                                  "a node is called localhost, as each host calls itself",
                                  "give it the name that others reach it by");
  }

 private:
  const Value* entry(std::string_view section, std::string_view name) const {
    const Value* map = root_.find(section);
    return map ? map->find(name) : nullptr;
  }

  /// Every file system that the node mounts, of its own disks and of others.
  void mountPoints(const Profile& profile, const Value& map) {
    std::map<std::string, std::string> taken{{"/", "the system"}};
    const auto take = [&](const std::string& mount, std::string what, const Value& where) {
      const auto [first, is_free] = taken.emplace(mount, what);
      if (!is_free)
        reader_.error(where,
                      fmt::format("profile {}: {} and {} are both mounted at {}", profile.name,
                                  first->second, what, shorten(mount)),
                      "give each a mount point of its own");
    };
    const Value& mounts = place(map, "mounts");
    for (std::size_t i = 0; i < profile.mounts.size(); ++i) {
      const auto found = cluster_.file_systems.find(profile.mounts[i]);
      if (found == cluster_.file_systems.end()) continue;
      take(found->second.mount, "file system " + profile.mounts[i],
           i < mounts.items.size() ? mounts.items[i] : mounts);
    }
    const Value& storage = place(map, "storage");
    for (const auto& set : profile.storage)
      for (const auto& volume : set.volumes)
        take(volume.mount, fmt::format("volume {} of storage {}", volume.name, set.name),
             place(storage, set.name));
  }

  /// The agent refuses a layout that the image cannot start; by then its disks are asked for.
  void layoutPrograms(const Profile& profile, const Value& map) {
    const auto image = cluster_.images.find(profile.image);
    if (image == cluster_.images.end() || image->second.kind == ImageKind::Live) return;
    const auto* build = std::get_if<ImageBuild>(&image->second.source);
    if (!build) return;  // what an import holds is seen when it is imported
    LayoutNeeds root, storage;
    if (profile.root) {
      root.mdadm = profile.root->raid != RaidLevel::None;
      root.lvm = profile.root->lvm_gib > 0;
      root.cryptsetup = profile.root->encrypt != RootKey::None;
    }
    for (const auto& set : profile.storage) {
      storage.mdadm = storage.mdadm || set.raid != RaidLevel::None;
      storage.lvm = storage.lvm || set.lvm();
      storage.cryptsetup = storage.cryptsetup || set.encrypt;
    }
    const auto need = [&](bool by_root, bool by_storage, std::string_view package,
                          std::string_view what) {
      if (!by_root && !by_storage) return;
      const bool has = std::ranges::any_of(build->packages, [&](const std::string& each) {
        return each == package || each.starts_with(std::string(package) + "=") ||
               each.starts_with(std::string(package) + "-");
      });
      if (!has)
        reader_.warning(
            place(map, by_root ? "root" : "storage"),
            fmt::format("profile {}: {} needs {}, which image {} does not list", profile.name, what,
                        package, profile.image),
            fmt::format("add {} to its packages, unless another one brings it", package));
    };
    need(root.mdadm, storage.mdadm, "mdadm", "RAID");
    need(root.lvm, storage.lvm, "lvm2", "LVM");
    need(root.cryptsetup, storage.cryptsetup, "cryptsetup", "encryption");
  }

  void rails(const Profile& profile, const Value& map) {
    std::map<std::string, std::size_t> hcas, places;
    std::map<int, std::size_t> gpus;
    const Value& list = place(map, "rails");
    const auto where = [&](std::size_t i) -> const Value& {
      return i < list.items.size() ? list.items[i] : list;
    };
    for (std::size_t i = 0; i < profile.rails.size(); ++i) {
      const auto& rail = profile.rails.at(i);
      const auto say = [&](std::size_t first, const std::string& what) {
        reader_.error(
            where(i),
            fmt::format("profile {}: the rails {} and {} have {}", profile.name, first, i, what),
            "every rail has an HCA of its own");
      };
      if (const auto [first, is_new] = hcas.emplace(rail.hca, i); !is_new)
        say(first->second, "the same HCA " + rail.hca);
      if (rail.pci.empty()) continue;
      if (const auto [first, is_new] = places.emplace(rail.pci, i); !is_new)
        say(first->second, "the same PCI address " + rail.pci);
    }
    for (std::size_t i = 0; i < profile.rails.size(); ++i) {
      const auto& gpu = profile.rails.at(i).gpu;
      if (!gpu) continue;
      if (const auto [first, is_new] = gpus.emplace(*gpu, i); !is_new)
        reader_.warning(where(i),
                        fmt::format("profile {}: the rails {} and {} both serve GPU {}",
                                    profile.name, first->second, i, *gpu),
                        "in most machines every GPU has an HCA of its own");
      if (profile.expect.gpus && *gpu >= *profile.expect.gpus)
        reader_.error(where(i),
                      fmt::format("profile {}: rail {} serves GPU {}, and the node has {}",
                                  profile.name, i, *gpu, *profile.expect.gpus),
                      "GPUs are counted from 0");
    }
  }

  /// A term may name what only the machine knows; a typing mistake names nothing at all.
  void constraints(const FirmwareBaseline& baseline, const Value& map) {
    std::vector<std::string_view> names;
    for (const auto& component : baseline.components) names.push_back(component.name);
    const Value& list = place(map, "constraints");
    for (std::size_t i = 0; i < baseline.constraints.size(); ++i)
      for (const auto* term : {&baseline.constraints[i].when, &baseline.constraints[i].then}) {
        const bool fits = std::ranges::any_of(
            names, [term](std::string_view name) { return matchesGlob(term->component, name); });
        if (fits || isProbe(term->component)) continue;
        reader_.warning(
            i < list.items.size() ? list.items[i] : list,
            fmt::format("no component of this baseline is \"{}\"; where the machine has none "
                        "either, the constraint says nothing",
                        shorten(term->component)),
            didYouMean(term->component, names));
      }
  }

  static bool matchesGlob(std::string_view glob, std::string_view name) {
    if (glob.empty()) return name.empty();
    if (glob.front() == '*')
      return matchesGlob(glob.substr(1), name) ||
             (!name.empty() && matchesGlob(glob, name.substr(1)));
    return !name.empty() && (glob.front() == '?' || glob.front() == name.front()) &&
           matchesGlob(glob.substr(1), name.substr(1));
  }

  /// What a driver's `verify` asks for: "nvml.driver".
  bool isProbe(std::string_view name) const { return name.find('.') != std::string_view::npos; }

  /// Nodes of one chassis may share units, so it is a question, not a mistake.
  void places() {
    std::map<std::pair<std::string_view, int>, const DeclaredNode*> taken;
    for (const auto& declared : nodes_.nodes) {
      const auto& node = declared.node;
      if (node.rack.empty() || node.unit <= 0) continue;
      const auto [first, is_free] = taken.try_emplace({node.rack, node.unit}, &declared);
      if (!is_free)
        reader_.diagnostics.warning(
            node.where,
            fmt::format("{} and {} are both in unit {} of rack {}", first->second->node.name.str(),
                        node.name.str(), node.unit, shorten(node.rack)),
            "correct one, unless they share a chassis");
    }
  }

  /// Racks exist by the names that nodes, switches and rules of discovery give them.
  void rackNames() {
    if (!nodes_.complete) return;
    std::set<std::string_view> known;
    for (const auto& declared : nodes_.nodes)
      if (!declared.node.rack.empty()) known.insert(declared.node.rack);
    const auto collect = [&known](const Value* map) {
      if (const Value* rack = map ? map->find("rack") : nullptr) known.insert(rack->text);
    };
    if (const Value* fabrics = root_.find("fabric"))
      for (const auto& [name, fabric] : fabrics->entries)
        if (const Value* switches = fabric.find("switches"))
          for (const auto& each : switches->items) collect(&each);
    if (const Value* discovery = root_.find("discovery"))
      if (const Value* rules = discovery->find("rules"))
        for (const auto& [name, rule] : rules->entries) collect(&rule);
    const std::vector<std::string_view> words(known.begin(), known.end());
    const auto ask = [&](const Value& where, std::string_view rack) {
      if (known.contains(rack)) return;
      reader_.warning(
          where, fmt::format("no node, switch or rule of discovery is in rack {}", shorten(rack)),
          didYouMean(rack, words));
    };
    if (const Value* racks = root_.find("racks"))
      for (const auto& [name, rack] : racks->entries) ask(name, name.text);
    if (const Value* networks = root_.find("networks"))
      for (const auto& [name, network] : networks->entries)
        for (const char* section : {"boot_servers", "subnets"})
          if (const Value* servers = network.find(section))
            for (const auto& [server, map] : servers->entries)
              if (const Value* racks = map.find("racks"))
                for (const auto& rack : racks->items) ask(rack, rack.text);
  }

  const Cluster& cluster_;
  const DeclaredNodes& nodes_;
  const Value& root_;
  Reader& reader_;
};

}  // namespace

void checkMachines(const Cluster& cluster, const DeclaredNodes& nodes, const Value& root,
                   Reader& reader) {
  MachineRules(cluster, nodes, root, reader).run();
}

}  // namespace muster::inventory
