// SPDX-License-Identifier: Apache-2.0
#include "monitor/notify/alertmanager.h"

#include "base/json_output.h"
#include "inventory/model/notifications.h"
#include "inventory/model/profile.h"
#include "monitor/notify/webhook.h"

namespace muster::monitor {
namespace {

using nlohmann::json;

constexpr const char* kAlertName = "MusterFinding";
constexpr std::size_t kMostEvidenceBytes = 2 << 10;  ///< receivers show it whole

json labelsOf(const lifecycle::Finding& finding, const inventory::Cluster& cluster) {
  const auto& subject = finding.facet.subject;
  json labels{{"alertname", kAlertName},
              {"cluster", cluster.name},
              {"subject", subject.str()},
              {"facet", finding.facet.facet.str()},
              {"severity", finding.severity == Severity::Error ? "critical" : "warning"}};
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  if (!node) return labels;
  if (!node->rack.empty()) labels["rack"] = node->rack;
  if (const auto& pool = cluster.profileOf(*node).pool; !pool.empty()) labels["pool"] = pool;
  return labels;
}

}  // namespace

Alerts alertsOf(const std::vector<lifecycle::Finding>& findings, const inventory::Cluster& cluster,
                const inventory::NotificationReceiver& receiver) {
  std::map<std::string, const lifecycle::Finding*> newest;
  Alerts out;
  for (const auto& finding : findings) {
    if (!isTold(finding, receiver)) continue;
    auto labels = labelsOf(finding, cluster);
    const auto key = jsonText(labels);
    const auto [known, is_new] = newest.try_emplace(key, &finding);
    if (!is_new && known->second->at >= finding.at) continue;
    known->second = &finding;
    json annotations{{"summary", finding.text}};
    if (!finding.what_to_do.empty()) annotations["what_to_do"] = finding.what_to_do;
    if (!finding.evidence.empty())
      annotations["evidence"] = finding.evidence.substr(0, kMostEvidenceBytes);
    out[key] = {{"labels", std::move(labels)},
                {"annotations", std::move(annotations)},
                {"startsAt", muster::toString(finding.at)}};
  }
  return out;
}

std::string postedAlerts(const Alerts& open, const Alerts& before, WallTime now, WallTime until) {
  auto list = json::array();
  for (const auto& [key, alert] : open) {
    list.push_back(alert);
    list.back()["endsAt"] = muster::toString(until);
  }
  for (const auto& [key, alert] : before) {
    if (open.contains(key)) continue;
    list.push_back(alert);
    list.back()["endsAt"] = muster::toString(now);
  }
  return jsonText(list);
}

}  // namespace muster::monitor
