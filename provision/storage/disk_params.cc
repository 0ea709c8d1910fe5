// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/disk_params.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/node.h"
#include "inventory/model/profile.h"
#include "inventory/model/user_data.h"
#include "provision/facets.h"
#include "wire/task_reason.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {

using nlohmann::json;

void addDiskParams(const inventory::Profile& profile, const inventory::Node& node,
                   const std::vector<std::string>& image_mirrors, wire::WriteImageParams& params) {
  for (std::string mirror : image_mirrors) {
    while (mirror.ends_with('/')) mirror.pop_back();
    params.mirror_urls.push_back(fmt::format("{}/images/{}/pack", mirror, params.digest));
  }
  if (profile.root) params.root = *profile.root;
  params.storage = profile.storage;
  if (!profile.user_data.empty()) params.user_data = inventory::userDataFor(profile, node);
}

std::vector<lifecycle::Finding> sourceFindings(const NodeName& node, const std::string& result,
                                               WallTime at,
                                               const std::vector<std::string>& standby_urls) {
  std::vector<lifecycle::Finding> findings;
  const json report = jsonOrNone(result, kAgentJson);
  if (!report.is_object()) return findings;
  const auto add = [&](std::string text, const json& evidence, const char* what_to_do) {
    lifecycle::Finding finding;
    finding.facet = {lifecycle::Subject(node), facet(kImage)};
    finding.severity = Severity::Warning;
    finding.text = fmt::format("{} {}", node.str(), text);
    finding.evidence = jsonText(evidence);
    finding.what_to_do = what_to_do;
    finding.at = at;
    findings.push_back(std::move(finding));
  };
  const json peers = report.value("peers", json::object());
  const auto each = [](const json& object, const char* key, auto work) {
    const json list = object.is_object() ? object.value(key, json::array()) : json::array();
    for (const json& entry : list)
      if (entry.is_string()) work(entry.get<std::string>());
  };
  constexpr const char* kLookAtServer =
      "check that server: it must answer and have the same pack as the controller; its cache may "
      "hold an old or damaged one";
  const auto stands_by = [&](const std::string& mirror) {
    return std::any_of(standby_urls.begin(), standby_urls.end(),
                       [&mirror](const std::string& url) { return mirror.starts_with(url + "/"); });
  };
  each(report, "dropped_mirrors", [&](const std::string& mirror) {
    if (!stands_by(mirror))
      add("got its image without a mirror that it excluded: " + mirror, mirror, kLookAtServer);
  });
  const auto corrupt = [&](const std::string& server) {
    add("stopped fetching shared pieces from a server that sent wrong ones: " + server, server,
        kLookAtServer);
  };
  each(peers, "corrupt_mirrors", corrupt);
  each(peers, "liars", corrupt);  // the former key, of agents that are older
  if (peers.is_object() && peers.value("banned_peers", json(0)).is_number_unsigned() &&
      peers["banned_peers"] > 0u)
    add(fmt::format(
            "disconnected from {} other nodes that sent wrong pieces of its image ({} pieces)",
            jsonText(peers["banned_peers"]), jsonText(peers.value("wrong_pieces", json(0)))),
        peers,
        "look for a node with bad memory or a bad NIC among those that were imaged at the same "
        "time: memory and network checks, its journal");
  return findings;
}

std::optional<lifecycle::Finding> diskFinding(const NodeName& node, const Error& why, WallTime at) {
  if (!why.has(wire::TaskReason::DiskFailing)) return std::nullopt;
  lifecycle::Finding finding;
  finding.facet = {lifecycle::Subject(node), facet(kImage)};
  finding.text = fmt::format("a disk of {} is failing: {}", node.str(), why.str());
  finding.what_to_do = fmt::format(
      "replace the disk with the serial that is named, correct `disk` of the profile where it "
      "names that serial, then `muster apply --nodes {}` writes the new one; "
      "a broken cable or controller looks the same, so a second disk that fails at this place is "
      "not the disk's fault",
      node.str());
  finding.at = at;
  return finding;
}

}  // namespace muster::provision
