// SPDX-License-Identifier: Apache-2.0
// Parameters of checks: which there are, and what each may be. One table for both sides: the
// controller refuses a gate by it, and the agent an order.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct CatalogueRow;

struct CheckParam {
  std::string_view name;
  bool word = false;  ///< else a number
};
/// Of a row's `takes`: "n seconds stages:word". "*": any name.
std::vector<CheckParam> paramsOf(std::string_view takes);
/// nullptr: there is none of this name.
const CheckParam* findParam(const std::vector<CheckParam>& params, std::string_view name);

/// What is wrong, and what is right.
struct ParamRefusal {
  std::string why, way_out;
};
/// A number that a gate may set: zero or more, and no more than an integer holds. `level` of
/// dcgmi: 1 to 4.
std::optional<ParamRefusal> whyNotNumber(std::string_view name, const nlohmann::json& value);

/// What is wrong with the parameters of an order, by name: one that this agent does not know, or
/// that is of another kind or range, or that is missing. Empty: nothing.
std::string wrongParams(const CatalogueRow& row, const nlohmann::json& params);

}  // namespace muster::validate
