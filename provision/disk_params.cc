#include "provision/disk_params.h"

#include "inventory/user_data.h"
#include "provision/facets.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::provision {

using nlohmann::json;

namespace {

json volumesOf(const inventory::StorageSet& set) {
  json volumes = json::array();
  for (const auto& volume : set.volumes)
    volumes.push_back({{"name", volume.name}, {"size_gib", volume.size_gib}, {"filesystem", volume.filesystem == inventory::FileSystem::Xfs ? "xfs" : "ext4"},
                       {"mount", volume.mount}});
  return volumes;
}

}  // namespace

void addDiskParams(const inventory::Profile& profile, const inventory::Node& node, const std::vector<std::string>& image_mirrors, const std::string& digest, json& params) {
  for (std::string mirror : image_mirrors) {
    while (mirror.ends_with('/')) mirror.pop_back();
    params["mirror_urls"].push_back(fmt::format("{}/images/{}/pack", mirror, digest));
  }
  for (const auto& set : profile.storage) {
    json entry{{"name", set.name}, {"disks", set.disks}, {"count", set.count}, {"encrypt", set.encrypt}, {"volumes", volumesOf(set)}};
    if (set.raid != inventory::RaidLevel::None) entry["raid"] = set.raid == inventory::RaidLevel::Raid0 ? 0 : 1;
    params["storage"].push_back(std::move(entry));
  }
  if (!profile.user_data.empty()) params["user_data"] = inventory::userDataFor(profile, node);
}

std::vector<lifecycle::Finding> mirrorFindings(const NodeName& node, const std::string& result, WallTime at) {
  std::vector<lifecycle::Finding> findings;
  const json report = json::parse(result, nullptr, false);
  if (!report.is_object()) return findings;
  const json dropped = report.value("dropped_mirrors", json::array());
  for (const json& mirror : dropped) {
    if (!mirror.is_string()) continue;
    lifecycle::Finding finding;
    finding.facet = {lifecycle::Subject(node), facet(kImage)};
    finding.severity = Severity::Warning;
    finding.text = fmt::format("{} wrote its image without a mirror that it stopped asking: {}", node.str(), mirror.get<std::string>());
    finding.evidence = mirror.dump();
    finding.what_to_do = "look at that server: does it answer, and does it have the same pack as the controller? Its cache may hold an old or damaged one";
    finding.at = at;
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace muster::provision
