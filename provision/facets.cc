// SPDX-License-Identifier: Apache-2.0
#include "provision/facets.h"

#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/images.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "provision/drivers/os_files.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/inspection.h"

#include <fmt/format.h>

namespace muster::provision {

using lifecycle::Disruption;
using lifecycle::FacetRef;
using lifecycle::Goal;
using lifecycle::Stage;
using lifecycle::Subject;

std::map<std::string, std::string> probesOf(const inventory::Driver& driver) {
  auto probes = driver.verify;
  // Files are compared by digest: what is declared is what must lie there, and be in force.
  if (const auto files = osFiles(driver); !files.empty())
    probes["config." + driver.name] = settingsDigest(files);
  if (driver.host) probes["host." + driver.name] = "as-declared";  // asked of who acts by it
  if (!driver.verify.empty()) return probes;
  for (const auto& package : driver.packages) {
    const auto equals = package.find('=');
    probes["package." + package.substr(0, equals)] =
        equals == std::string::npos ? "*" : package.substr(equals + 1);
  }
  for (const auto& module : driver.modules) probes["module." + module] = "loaded";
  return probes;
}

std::string joinProbes(const std::map<std::string, std::string>& values) {
  std::string out;
  for (const auto& [probe, value] : values) {
    out += (out.empty() ? "" : ",") + probe;
    if (!value.empty()) out += "=" + value;
  }
  return out;
}

std::string imageValue(const std::string& name, const std::optional<PackedImage>& packed) {
  return fmt::format("{}@{}", name, packed ? packed->digest : "*");
}

std::vector<Goal> provisionGoals(const inventory::Cluster& cluster, const Subject& subject,
                                 const std::optional<PackedImage>& packed,
                                 const MissingParts& missing) {
  std::vector<Goal> goals;
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  if (!node) return goals;
  const auto& profile = cluster.profileOf(*node);
  const auto at = [&](std::string_view name) { return FacetRef{subject, facet(name)}; };

  const bool by_medium = profile.boot_source == inventory::BootSource::VirtualMedia;
  goals.push_back({at(kEnrolled),
                   std::string(kYes),
                   Disruption::None,
                   {},
                   {},
                   {},
                   "its BMC must answer, and be the BMC of this machine"});
  goals.push_back({at(kInspected),
                   "match:" + expectationDigest(*node, profile),
                   Disruption::Reset,
                   {},
                   {},
                   {at(kEnrolled)},
                   fmt::format("its hardware must be what profile {} expects{}", profile.name,
                               by_medium ? "; the RAM OS starts from virtual media" : ""),
                   missing.ram_os,
                   {Stage::Firmware, Stage::Raid}});
  if (profile.image.empty()) return goals;
  goals.push_back({at(kImage),
                   imageValue(profile.image, packed),
                   cluster.isLive(profile) ? Disruption::Reset : Disruption::Wipe,
                   {},
                   {},
                   {at(kInspected)},
                   fmt::format("profile {} wants image {}{}", profile.name, profile.image,
                               by_medium ? "; the RAM OS starts from virtual media" : ""),
                   missing.image.empty() ? missing.ram_os : missing.image});
  goals.push_back({at(kOs),
                   std::string(kRunning),
                   Disruption::Reset,
                   {},
                   {},
                   {at(kImage)},
                   "the installed system must run and report in"});
  std::vector<FacetRef> before_drivers = {at(kOs)};
  if (const auto network = inventory::nodeNetworkOf(cluster, *node)) {
    goals.push_back(
        {at(kNetwork),
         wire::digestOf(*network),
         Disruption::Drain,
         {},
         {},
         {at(kOs)},
         fmt::format("its network must be the one that profile {} declares", profile.name)});
    before_drivers.push_back(at(kNetwork));  // packages come by it
  }
  for (const auto& name : profile.drivers) {
    const auto& driver = cluster.drivers.at(name);
    goals.push_back({{subject, driverFacet(name)},
                     joinProbes(probesOf(driver)),
                     Disruption::Drain,
                     {},
                     {},
                     before_drivers,
                     fmt::format("profile {} wants driver {}", profile.name, name)});
  }
  return goals;
}

}  // namespace muster::provision
