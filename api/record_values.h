// SPDX-License-Identifier: Apache-2.0
// The API's answers about records, parts and machines as the values that they were made from, as
// api/answer_values.h has those of nodes and runs. Errors of all: Corrupt
#pragma once

#include "base/result.h"

#include <nlohmann/json_fwd.hpp>

namespace muster::app {
struct BmcIdentity;
struct CertificateVerdict;
struct PoolBreaker;
struct DiscoveredMachine;
struct FabricCable;
struct FabricSummary;
struct MeasuredFleet;
struct NodeUpgrade;
struct ReceiverState;
}  // namespace muster::app
namespace muster::bmc {
struct KeptBoot;
}
namespace muster::discovery {
struct Anomaly;
}
namespace muster::lifecycle {
struct History;
}
namespace muster::provision {
struct KeptImage;
}
namespace muster::validate {
struct Certificate;
}

namespace muster::api {

struct Token;

Result<lifecycle::History> historyFrom(const nlohmann::json& json);
Result<app::NodeUpgrade> nodeUpgradeFrom(const nlohmann::json& json);
Result<provision::KeptImage> keptImageFrom(const nlohmann::json& json);
Result<app::FabricSummary> fabricSummaryFrom(const nlohmann::json& json);
Result<app::FabricCable> fabricCableFrom(const nlohmann::json& json);
/// With `valid` and `void_because`, which are the server's word about it.
Result<validate::Certificate> certificateFrom(nlohmann::json json);
Result<app::CertificateVerdict> certificateVerdictFrom(const nlohmann::json& json);
Result<app::DiscoveredMachine> discoveredMachineFrom(const nlohmann::json& json);
Result<discovery::Anomaly> anomalyFrom(const nlohmann::json& json);
/// Without documents.
Result<app::MeasuredFleet> measuredFleetFrom(const nlohmann::json& json);
Result<app::BmcIdentity> bmcIdentityFrom(const nlohmann::json& json);
Result<bmc::KeptBoot> keptBootFrom(const nlohmann::json& json);
Result<app::PoolBreaker> poolBreakerFrom(const nlohmann::json& json);
Result<app::ReceiverState> receiverFrom(const nlohmann::json& json);
/// Without the hash; `principal` says no more than that it is a login.
Result<Token> tokenFrom(const nlohmann::json& json);

}  // namespace muster::api
