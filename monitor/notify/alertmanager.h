// SPDX-License-Identifier: Apache-2.0
// Open findings as alerts of Prometheus Alertmanager, by its API v2
// (github.com/prometheus/alertmanager, api/v2/openapi.yaml: postAlerts).
#pragma once

#include "inventory/model/cluster.h"
#include "lifecycle/model/finding.h"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace muster::monitor {

/// By the text of its labels, which is what tells alerts apart: several findings of one facet are
/// one alert, with the words of the newest.
using Alerts = std::map<std::string, nlohmann::json>;

/// Labels: alertname, cluster, subject, facet, severity, and of a node its rack and pool.
Alerts alertsOf(const std::vector<lifecycle::Finding>& findings, const inventory::Cluster& cluster,
                const inventory::NotificationReceiver& receiver);

/// The body to post: what is open until `until` unless it is said again, and what was open before
/// and is over since `now`.
std::string postedAlerts(const Alerts& open, const Alerts& before, WallTime now, WallTime until);

}  // namespace muster::monitor
