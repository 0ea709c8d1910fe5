// SPDX-License-Identifier: Apache-2.0
// The API's answers as the values that they were made from: the client's half of api/*_routes.cc.
// Members that are not known are left alone, so that a newer server can be asked. Errors of all:
// Corrupt (what is missing or of another kind, with its path)
#pragma once

#include "app/site/site_client.h"

#include <nlohmann/json_fwd.hpp>

namespace muster::api {

Result<app::NodeStatus> nodeStatusFrom(const nlohmann::json& json);
/// Of /site: who watches; without the nodes.
Result<app::SiteStatus> siteStatusFrom(const nlohmann::json& json);
Result<lifecycle::Event> eventFrom(const nlohmann::json& json);
Result<lifecycle::Finding> findingFrom(const nlohmann::json& json);
Result<lifecycle::Explanation> explanationFrom(const nlohmann::json& json);
Result<app::PoolHold> poolHoldFrom(const nlohmann::json& json);
Result<lifecycle::PlanImpact> impactFrom(const nlohmann::json& json);
Result<app::RolloutStatus> rolloutStatusFrom(const nlohmann::json& source);
Result<lifecycle::Run> runFrom(const nlohmann::json& json);

}  // namespace muster::api
