// Nodes whose GPUs no table knows are judged by what others of their kind have reached, and the verdict says so.
#pragma once

#include "agent/protocol/messages.h"
#include "lifecycle/measurements.h"
#include "validate/checks/expectations.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

inline constexpr std::string_view kLearntCheck = "baseline.learnt";

/// By metric without its device: floors of rates that other nodes of this SKU have reached. A node counts once, with its newest value, the
/// median of its devices. Pure.
std::map<std::string, Baseline> learnFrom(const std::vector<lifecycle::MeasuredSet>& sets, std::string_view sku, const NodeName& but);

/// A check's answer about GPU rates in `numbers` (names as numbersOf gives them); nullopt: a table knows the model, or no rate was measured.
/// With too few other nodes it passes and says that nothing judged these rates. Pure.
std::optional<agent::CheckResult> judgeByLearnt(std::string_view model, const std::map<std::string, double>& numbers, const std::map<std::string, Baseline>& learnt);

}  // namespace muster::validate
