// SPDX-License-Identifier: Apache-2.0
// Who asks, how that is known, and what part of the site is theirs.
#pragma once

#include "api/roles.h"
#include "base/clock.h"
#include "inventory/model/fwd.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::inventory {
struct Node;
}

namespace muster::api {

/// Nodes that are in one of these; all empty: the whole site.
struct Scope {
  std::vector<std::string> pools, racks;
  std::string nodes;  ///< hostlist
  bool isSite() const { return pools.empty() && racks.empty() && nodes.empty(); }
  friend bool operator==(const Scope&, const Scope&) = default;
};
nlohmann::json toJson(const Scope& scope);

/// A scope laid on an inventory.
class ScopeFilter {
 public:
  /// Errors: InvalidInput (the hostlist)
  static Result<ScopeFilter> make(const Scope& scope);
  bool has(const inventory::Cluster& cluster, const inventory::Node& node) const;
  bool isSite() const { return scope_.isSite(); }

 private:
  Scope scope_;
  std::set<std::string> names_;
};

enum class Way { UnixSocket, Certificate, Token, Oidc };
std::string_view toString(Way way);

struct Identity {
  std::string principal;  ///< "anna", "token:ci", "cert:anna", "oidc:anna"
  Way way = Way::UnixSocket;
  Role role = Role::Viewer;
  Scope scope;
  std::optional<WallTime> expires_at;
  std::string person = {};                ///< whose token it is; empty: the principal's own
  std::vector<std::string> issuers = {};  ///< persons who have seen the token: who made it, or one
                                          ///< by which it was made
  std::string account = {};  ///< never changes hands (lifecycle::RunActor); empty: the principal
  std::string token = {};    ///< its id; empty: they came without one
};

/// The one rule of a scope's words, whoever has written them. Errors: InvalidInput (a name that is
/// empty or has a comma or a control character, no hostlist)
Result<void> checkScope(const Scope& scope);

/// As parseScope reads it; "the whole site".
std::string scopeText(const Scope& scope);

/// "pools=a,b racks=r1 nodes=gpu[1-4]" as words, as files and commands write a scope.
/// Errors: InvalidInput (no such word, no hostlist)
Result<Scope> parseScope(const std::vector<std::string>& words);

}  // namespace muster::api
