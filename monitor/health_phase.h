// SPDX-License-Identifier: Apache-2.0
// Facade: the phase that turns what agents see into facts `health.*`, knows quarantine, and repairs
// by a reboot where that may help.
//
// Facets: health.gpu, health.disk, health.network, health.system ("ok", or
// "ACTION:symptom@device,…" with the strongest action); health.reboots (no goal: how many were
// tried for symptoms within kRemembered); quarantine ("none", "held").
#pragma once

#include "gateway/agent_gateway.h"
#include "lifecycle/model/consoles.h"
#include "lifecycle/model/phase.h"
#include "lifecycle/store/store.h"

#include <memory>
#include <optional>
#include <string>

namespace muster::monitor {

inline constexpr std::string_view kHealthPrefix = "health.";
inline constexpr std::string_view kHealthy = "ok";
inline constexpr std::string_view kRebootsFacet = "health.reboots";

/// The action word of a fact health.*; empty: the group is well, or this is no such fact.
std::string_view actionWordOf(const lifecycle::Fact& fact);
/// The symptoms of such a fact, as words.
std::string symptomsOf(const lifecycle::Fact& fact);

std::unique_ptr<lifecycle::Phase> makeHealthPhase(const inventory::Cluster& cluster,
                                                  gateway::AgentGateway& agents,
                                                  lifecycle::Store& store, Clock& clock,
                                                  lifecycle::RestartCallback on_restart = {});

}  // namespace muster::monitor
