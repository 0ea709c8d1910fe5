// SPDX-License-Identifier: Apache-2.0
#include "api/identity.h"

#include "base/printable.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace muster::api {
namespace {

bool hasWord(const std::vector<std::string>& words, const std::string& word) {
  return !word.empty() && std::ranges::find(words, word) != words.end();
}

}  // namespace

nlohmann::json toJson(const Scope& scope) {
  return {{"pools", scope.pools}, {"racks", scope.racks}, {"nodes", scope.nodes}};
}

Result<ScopeFilter> ScopeFilter::make(const Scope& scope) {
  ScopeFilter out;
  out.scope_ = scope;
  if (scope.nodes.empty()) return out;
  TRY(names, inventory::expandHostlist(scope.nodes));
  out.names_.insert(names.begin(), names.end());
  return out;
}

bool ScopeFilter::has(const inventory::Cluster& cluster, const inventory::Node& node) const {
  return isSite() || names_.contains(node.name.str()) || hasWord(scope_.racks, node.rack) ||
         hasWord(scope_.pools, cluster.profileOf(node).pool);
}

std::string_view toString(Way way) {
  switch (way) {
    case Way::UnixSocket:
      return "unix";
    case Way::Certificate:
      return "certificate";
    case Way::Token:
      return "token";
    case Way::Oidc:
      return "oidc";
  }
  std::abort();
}

namespace {

std::vector<std::string> namesIn(const std::string& value) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= value.size();) {
    const auto end = std::min(value.find(',', begin), value.size());
    out.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

/// Files and commands separate names by commas: a name with one would be two of them.
bool isNameOfScope(const std::string& name) {
  return name.find_first_not_of(" \t") != std::string::npos &&
         std::ranges::none_of(name,
                              [](unsigned char c) { return c == ',' || c < ' ' || c == 0x7f; });
}

}  // namespace

Result<void> checkScope(const Scope& scope) {
  for (const auto& [kind, names] :
       {std::pair("pools", &scope.pools), std::pair("racks", &scope.racks)})
    for (const auto& name : *names)
      if (!isNameOfScope(name))
        return fail(ErrorCode::InvalidInput,
                    fmt::format("\"{}\" is no name of {}: a name is not empty and has no comma; a "
                                "scope with an empty name would be one without a bound",
                                printable(name), kind));
  if (scope.nodes.empty()) return {};
  TRY(names, inventory::expandHostlist(scope.nodes));
  (void)names;
  return {};
}

std::string scopeText(const Scope& scope) {
  std::string out;
  const auto add = [&](std::string_view key, const std::vector<std::string>& values) {
    for (const auto& value : values)
      out += (&value == &values.front() ? fmt::format("{}{}=", out.empty() ? "" : " ", key) : ",") +
             value;
  };
  add("pools", scope.pools);
  add("racks", scope.racks);
  if (!scope.nodes.empty()) out += (out.empty() ? "nodes=" : " nodes=") + scope.nodes;
  return out.empty() ? "the whole site" : out;
}

Result<Scope> parseScope(const std::vector<std::string>& words) {
  Scope out;
  std::set<std::string> given;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const auto key = word.substr(0, equals);
    const auto value = equals == std::string::npos ? std::string() : word.substr(equals + 1);
    if (value.empty() || (key != "pools" && key != "racks" && key != "nodes"))
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("\"{}\" is no scope; write pools=A,B racks=R1,R2 nodes=HOSTLIST", word));
    if (!given.insert(key).second)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{}= is there twice; write all names into one", key));
    if (key == "nodes")
      out.nodes = value;
    else
      (key == "pools" ? out.pools : out.racks) = namesIn(value);
  }
  TRY_OK(checkScope(out));
  return out;
}

}  // namespace muster::api
