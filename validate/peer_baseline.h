// SPDX-License-Identifier: Apache-2.0
// What other nodes of a kind say about a node: rates of GPUs that no table has a floor for, and, of
// all GPUs, the bits of results that must be equal.
#pragma once

#include "lifecycle/store/measurements.h"
#include "validate/checks/expectations.h"
#include "wire/messages.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

inline constexpr std::string_view kPeerBaselineCheck = "baseline.learnt",
                                  kBitsCheck = "baseline.bits";

/// By metric without its device: floors of rates that other nodes of this SKU have reached. A node
/// counts once, with its newest value, the median of its devices. Of what must be equal
/// (history/fingerprint.h): what most devices of at least as many nodes have. Pure.
std::map<std::string, Baseline> peerBaselinesFrom(const std::vector<lifecycle::MeasuredSet>& sets,
                                                  std::string_view sku, const NodeName& but);

/// Whether `numbers` has rates that only other nodes can evaluate: of a model that no table knows
/// every rate, of others those of a burn that the table has no floor for.
bool hasRatesForPeers(std::string_view model, const std::map<std::string, double>& numbers);

/// A check's answer about those rates (names as numbersOf gives them); nullopt: there are none, or
/// a table knows the model and too few other nodes do. With too few other nodes of an unknown model
/// it passes and says that nothing evaluated these rates. Pure.
std::optional<wire::CheckResult> evaluateByPeers(std::string_view model,
                                                 const std::map<std::string, double>& numbers,
                                                 const std::map<std::string, Baseline>& baselines);

/// Devices that compute other bits than most of their kind; nullopt: nothing to compare. A wrong
/// bit below the rounding level of a format shows nowhere else. Pure.
std::optional<wire::CheckResult> evaluateBits(const std::map<std::string, double>& numbers,
                                              const std::map<std::string, Baseline>& baselines);
bool hasBits(const std::map<std::string, double>& numbers);

}  // namespace muster::validate
