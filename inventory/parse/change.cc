// SPDX-License-Identifier: Apache-2.0
// Reading a change for a cluster, and what can be said of one without any node.
#include "inventory/parse/change.h"

#include "base/architecture.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "inventory/parse/foreign_file.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/change_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::inventory {

namespace {

constexpr ForeignFile kNoChange{
    "change", "its keys are those of docs/rollouts.md: profiles: {NAME: {drivers: […]}}",
    "name a change: --change FILE"};

template <class T>
std::vector<std::string_view> keysOf(const Section<T>& section) {
  std::vector<std::string_view> out;
  for (const auto& [key, value] : section) out.push_back(key);
  return out;
}

/// Names of a section that a change may refer to: the inventory's and its own, also those that were
/// bad.
std::vector<std::string_view> namesOf(std::string_view section, const Cluster& cluster,
                                      const Value& root) {
  std::vector<std::string_view> out;
  if (section == "images") out = keysOf(cluster.images);
  if (section == "drivers") out = keysOf(cluster.drivers);
  if (section == "firmware") out = keysOf(cluster.firmware);
  if (const Value* own = root.find(section))
    for (const auto& [key, value] : own->entries) out.push_back(key.text);
  return out;
}

bool sameSource(const Image& a, const Image& b) {
  const auto *x = std::get_if<ImageBuild>(&a.source), *y = std::get_if<ImageBuild>(&b.source);
  if (x && y)
    return x->suite == y->suite && x->packages == y->packages && x->mirror == y->mirror &&
           x->release == y->release && x->archives == y->archives;
  const auto *p = std::get_if<ImageImport>(&a.source), *q = std::get_if<ImageImport>(&b.source);
  return p && q && p->path == q->path && p->sha256 == q->sha256;
}
bool same(const Image& a, const Image& b) {
  return sameSource(a, b) && a.kind == b.kind && a.arch == b.arch &&
         a.authorized_keys == b.authorized_keys;
}
bool same(const Driver& a, const Driver& b) {
  return a.packages == b.packages && a.repository == b.repository && a.modules == b.modules &&
         a.verify == b.verify;
}
bool same(const FirmwareBaseline& a, const FirmwareBaseline& b) {
  return a.canonical() == b.canonical();
}

/// A name stands for one thing: nodes that have not changed yet still need the old one.
template <class T>
void checkNew(std::string_view section, const Section<T>& declared, const Section<T>& added,
              const Value& root, Reader& reader) {
  const Value* map = root.find(section);
  if (!map) return;
  for (const auto& [name, entry] : added) {
    const auto known = declared.find(name);
    if (known == declared.end() || same(known->second, entry)) continue;
    if (const Value* key = map->findKey(name))
      reader.error(
          *key,
          fmt::format("{}: \"{}\" is in the inventory already, and says something else there",
                      section, name),
          "give the new one a name of its own: nodes that have not changed yet still need the old "
          "one");
  }
}

/// An image of another processor would be wiped onto a disk that cannot start it.
void imagesFit(const Change& change, const Cluster& cluster, const Value& root, Reader& reader) {
  const auto archOf = [&](const std::string& name) -> std::optional<Architecture> {
    for (const auto* images : {&change.images, &cluster.images})
      if (const auto found = images->find(name); found != images->end()) return found->second.arch;
    return std::nullopt;  // said already
  };
  for (const auto& [name, wanted] : change.profiles) {
    const auto profile = cluster.profiles.find(name);
    const auto arch = wanted.image ? archOf(*wanted.image) : std::nullopt;
    if (!arch || profile == cluster.profiles.end() || *arch == profile->second.arch) continue;
    const Value& map = place(place(root, "profiles"), name);
    reader.error(place(map, "image"),
                 fmt::format("image {} is for {}, profile {} is of {}", *wanted.image,
                             traitsOf(*arch).name, name, traitsOf(profile->second.arch).name),
                 "choose an image for this processor");
  }
}

/// The name of an apt package without its pin.
std::string_view bare(std::string_view package) { return package.substr(0, package.find('=')); }

const FirmwareComponent* find(const FirmwareBaseline* baseline, const std::string& name) {
  if (!baseline) return nullptr;
  auto found = std::find_if(baseline->components.begin(), baseline->components.end(),
                            [&](const auto& c) { return c.name == name; });
  return found == baseline->components.end() ? nullptr : &*found;
}

void irreversibleFirmware(const Cluster& cluster, const Profile& from, const Profile& to,
                          std::vector<std::string>& out) {
  auto baseline = [&](const std::string& name) {
    auto found = cluster.firmware.find(name);
    return found == cluster.firmware.end() ? nullptr : &found->second;
  };
  const auto *before = baseline(from.firmware), *after = baseline(to.firmware);
  if (!after || before == after) return;
  for (const auto& component : after->components) {
    const auto* old = find(before, component.name);
    if (!old)
      out.push_back(
          fmt::format("firmware {} stays at {}: the inventory named no version of it before",
                      component.name, component.version));
    else if (old->version != component.version && old->file.empty())
      out.push_back(fmt::format("firmware {} stays at {}: the baseline {} names no file of {}",
                                component.name, component.version, before->name, old->version));
  }
}

void irreversibleDrivers(const Cluster& cluster, const Profile& from, const Profile& to,
                         std::vector<std::string>& out) {
  auto lacks = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) == names.end();
  };
  for (const auto& name : to.drivers) {
    if (!lacks(from.drivers, name)) continue;
    const auto& added = cluster.drivers.at(name);
    bool replaces = false;
    for (const auto& other : from.drivers) {
      const auto& old = cluster.drivers.at(other);
      if (!lacks(to.drivers, other) || !sameKind(added, old)) continue;
      replaces = true;
      for (const auto& package : old.packages)
        if (package.find('=') == std::string::npos &&
            std::any_of(added.packages.begin(), added.packages.end(),
                        [&](const auto& p) { return bare(p) == package; }))
          out.push_back(fmt::format(
              "package {} stays as driver {} brings it: driver {} pins no version of it", package,
              name, other));
    }
    if (!replaces)
      out.push_back(fmt::format(
          "driver {} stays installed: it replaces none, and muster removes no packages", name));
  }
}

}  // namespace

LoadedChange loadChangeText(std::string_view yaml, const std::filesystem::path& file,
                            const Cluster& cluster) {
  LoadedChange loaded;
  std::error_code ignored;
  Reader reader(file.string(),
                std::filesystem::absolute(file, ignored).lexically_normal().parent_path(),
                loaded.diagnostics);
  std::vector<SourceRef> quoting;
  auto root = parseYaml(yaml, reader.file, loaded.diagnostics, &quoting);
  if (!hasKeyOf(*changeSpec(), root, yaml)) {
    loaded.diagnostics = root ? noKeyOf(kNoChange, reader.file)
                              : withoutContent(loaded.diagnostics, quoting, kNoChange);
    return loaded;
  }
  if (!root) return loaded;
  Change change;
  readObject(&change, *root, *changeSpec(), reader);
  for (const auto& reference : reader.references) {
    const auto names = namesOf(reference.section, cluster, *root);
    if (std::find(names.begin(), names.end(), reference.name) != names.end()) continue;
    loaded.diagnostics.error(
        reference.where,
        fmt::format("\"{}\" is declared under {} neither here nor in the inventory",
                    shorten(reference.name), reference.section),
        didYouMean(reference.name, names));
  }
  if (const Value* profiles = root->find("profiles"))
    for (const auto& [key, value] : profiles->entries)
      if (!cluster.profiles.contains(key.text))
        reader.error(key, fmt::format("the inventory has no profile \"{}\"", shorten(key.text)),
                     didYouMean(key.text, keysOf(cluster.profiles)));
  checkNew("images", cluster.images, change.images, *root, reader);
  checkNew("drivers", cluster.drivers, change.drivers, *root, reader);
  checkNew("firmware", cluster.firmware, change.firmware, *root, reader);
  imagesFit(change, cluster, *root, reader);
  loaded.diagnostics.sort();
  if (!loaded.diagnostics.hasErrors()) loaded.change = std::move(change);
  return loaded;
}

bool sameKind(const Driver& a, const Driver& b) {
  for (const auto& x : a.packages)
    for (const auto& y : b.packages)
      if (bare(x) == bare(y)) return true;
  for (const auto& module : a.modules)
    if (std::find(b.modules.begin(), b.modules.end(), module) != b.modules.end()) return true;
  return std::any_of(a.verify.begin(), a.verify.end(), [&](const auto& probe) {
    return probe.first != "kernel" && b.verify.contains(probe.first);
  });
}

Result<std::string> changeToDriver(const Cluster& cluster, const std::string& name,
                                   const std::vector<std::string>& profiles) {
  const auto driver = cluster.drivers.find(name);
  if (driver == cluster.drivers.end())
    return fail(ErrorCode::NotFound, fmt::format("the inventory has no driver \"{}\" ({}); declare "
                                                 "it under drivers, or in a file: --change FILE",
                                                 name, didYouMean(name, keysOf(cluster.drivers))));
  std::string out;
  bool there = false;
  for (const auto& profile_name : std::set<std::string>(profiles.begin(), profiles.end())) {
    const auto profile = cluster.profiles.find(profile_name);
    if (profile == cluster.profiles.end()) continue;
    auto drivers = profile->second.drivers;
    if (std::find(drivers.begin(), drivers.end(), name) != drivers.end()) {
      there = true;
      continue;
    }
    std::vector<std::string*> replaced;
    for (auto& each : drivers)
      if (sameKind(cluster.drivers.at(each), driver->second)) replaced.push_back(&each);
    if (replaced.size() > 1)
      return fail(
          ErrorCode::Conflict,
          fmt::format(
              "profile {} has several drivers of the kind of {}; say which one goes: --change FILE",
              profile_name, name));
    if (replaced.empty()) continue;
    *replaced.front() = name;
    out += fmt::format("  {}: {{drivers: [{}]}}\n", profile_name, fmt::join(drivers, ", "));
  }
  if (out.empty() && there)
    return fail(
        ErrorCode::Conflict,
        fmt::format(
            "the profiles of these nodes name driver {} already; carry it out: muster apply",
            name));
  if (out.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("no profile of these nodes has a driver that {} would replace: none "
                            "has a package, a module or "
                            "a probe in common with it; to add it, write a file: --change FILE",
                            name));
  return "profiles:\n" + out;
}

std::vector<std::string> irreversible(const Cluster& cluster, const Profile& from,
                                      const Profile& to) {
  std::vector<std::string> out;
  if (from.image != to.image)
    out.push_back(
        fmt::format("the disk is wiped again to bring back image {}, which needs leave each time: "
                    "muster wipe NODES --reason TEXT",
                    from.image));
  irreversibleFirmware(cluster, from, to, out);
  irreversibleDrivers(cluster, from, to, out);
  return out;
}

}  // namespace muster::inventory
