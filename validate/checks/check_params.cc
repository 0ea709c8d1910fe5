// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/check_params.h"

#include "base/json_output.h"
#include "base/utf8.h"
#include "validate/checks/check_row.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace muster::validate {
namespace {

constexpr std::string_view kWord = ":word", kAnyName = "*";
constexpr double kMostNumber = std::numeric_limits<int>::max();
constexpr std::string_view kLevel = "level";  ///< of gpu.dcgm
constexpr std::size_t kShownBytes = 60;

enum class Kind { Count, Number, Word, List, Object };

/// What the controller takes from the profile and the fabric, for whichever check.
struct ControllerParam {
  std::string_view name;
  Kind kind;
};
constexpr ControllerParam kOfController[] = {
    {"count", Kind::Count},         {"driver", Kind::Word},          {"gid_index", Kind::Count},
    {"gpus", Kind::Count},          {"limit_seconds", Kind::Number}, {"link_layer", Kind::Word},
    {"model", Kind::Word},          {"port_gbits", Kind::Number},    {"rails", Kind::List},
    {"traffic_class", Kind::Count},
};
/// Without which there is nothing to compare with.
struct RequiredParam {
  std::string_view check, name;
};
constexpr RequiredParam kRequired[] = {
    {"gpu.count", "count"},
    {"gpu.driver", "driver"},
    {"gpu.model", "model"},
    {"rdma.count", "count"},
};
/// The one name that two checks use for different things.
constexpr std::string_view kDevices = "devices";
Kind kindOfDevices(std::string_view check) {
  return check == "rdma.ports" ? Kind::Object : Kind::List;
}

/// An order of a shape of its own, which its reader refuses by itself.
bool isJob(std::string_view check) { return check == "gpu.collective"; }

std::string_view said(Kind kind) {
  switch (kind) {
    case Kind::Count:
      return "a whole number, zero or more";
    case Kind::Number:
      return "a number, zero or more";
    case Kind::Word:
      return "text";
    case Kind::List:
      return "a list";
    case Kind::Object:
      return "an object";
  }
  return "?";
}

bool isNumber(const nlohmann::json& value) {
  if (!value.is_number()) return false;
  const auto number = value.get<double>();
  return number >= 0 && number <= kMostNumber;
}

bool is(Kind kind, const nlohmann::json& value) {
  switch (kind) {
    case Kind::Count:
      return value.is_number_integer() && isNumber(value);
    case Kind::Number:
      return isNumber(value);
    case Kind::Word:
      return value.is_string();
    case Kind::List:
      return value.is_array();
    case Kind::Object:
      return value.is_object();
  }
  return false;
}

std::string shown(const nlohmann::json& value) {
  return std::string(cutToBytes(jsonText(value), kShownBytes));
}

std::optional<Kind> ofController(std::string_view check, std::string_view name) {
  if (name == kDevices) return kindOfDevices(check);
  const auto* found = std::ranges::find(kOfController, name, &ControllerParam::name);
  return found == std::end(kOfController) ? std::nullopt : std::optional(found->kind);
}

/// Empty: it is right.
std::string whyWrong(const CatalogueRow& row, const std::vector<CheckParam>& params,
                     const std::string& name, const nlohmann::json& value) {
  const auto another = [&](std::string_view kind) {
    return fmt::format("{} is {}, and it must be {}", name, shown(value), kind);
  };
  if (const auto* own = findParam(params, name); own && own->word)
    return value.is_string() ? "" : another(said(Kind::Word));
  else if (own) {
    if (!isNumber(value)) return another(said(Kind::Number));
    const auto refused = whyNotNumber(name, value);
    return refused ? fmt::format("{}: {}", refused->why, refused->way_out) : "";
  }
  const auto kind = ofController(row.id, name);
  if (!kind)
    return fmt::format("this agent does not know the parameter {}; update the agent", name);
  return is(*kind, value) ? "" : another(said(*kind));
}

}  // namespace

std::vector<CheckParam> paramsOf(std::string_view takes) {
  std::vector<CheckParam> out;
  while (!takes.empty()) {
    const auto end = std::min(takes.find(' '), takes.size());
    auto name = takes.substr(0, end);
    const bool word = name.ends_with(kWord);
    if (word) name.remove_suffix(kWord.size());
    out.push_back({name, word});
    takes.remove_prefix(std::min(end + 1, takes.size()));
  }
  return out;
}

const CheckParam* findParam(const std::vector<CheckParam>& params, std::string_view name) {
  const auto found = std::ranges::find_if(
      params, [name](const auto& each) { return each.name == name || each.name == kAnyName; });
  return found == params.end() ? nullptr : &*found;
}

std::optional<ParamRefusal> whyNotNumber(std::string_view name, const nlohmann::json& value) {
  const auto number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0))
    return ParamRefusal{fmt::format("{} is {}", name, shown(value)),
                        "write a number, zero or more"};
  if (number > kMostNumber)
    return ParamRefusal{fmt::format("{} is {}", name, shown(value)),
                        fmt::format("the most is {}", std::numeric_limits<int>::max())};
  if (name == kLevel && number != 1 && number != 2 && number != 3 && number != 4)
    return ParamRefusal{fmt::format("{} is {}", name, shown(value)),
                        "dcgmi has the levels 1, 2, 3 and 4"};
  return std::nullopt;
}

std::string wrongParams(const CatalogueRow& row, const nlohmann::json& params) {
  if (isJob(row.id)) return {};
  const auto own = paramsOf(row.takes);
  std::string out;
  const auto add = [&out](const std::string& wrong) {
    if (!wrong.empty()) out += (out.empty() ? "" : "; ") + wrong;
  };
  for (const auto& [name, value] : params.items()) add(whyWrong(row, own, name, value));
  for (const auto& [check, name] : kRequired)
    if (check == row.id && !params.contains(name))
      add(fmt::format("the parameter {} is missing", name));
  return out;
}

}  // namespace muster::validate
