// SPDX-License-Identifier: Apache-2.0
// Names in the access file and in tokens that nobody has: a typo lets nobody in, and whom it was
// meant for stays out or sees an empty site. A warning and no error: users and pools may come
// later.
#pragma once

#include "api/access_file.h"
#include "api/tokens.h"
#include "inventory/model/fwd.h"

#include <string>
#include <vector>

namespace muster::api {

/// "pool batsh (did you mean batch?)": pools, racks and nodes of a scope that the inventory has
/// not.
std::vector<std::string> unknownInScope(const Scope& scope, const inventory::Cluster& cluster);

/// A line for each row, "file:line:1: …": also of users and groups that this host does not know.
/// `cluster`: null where nobody knows it; scopes are not looked at then.
std::vector<std::string> unknownInAccess(const AccessTable& table,
                                         const inventory::Cluster* cluster);

/// A line for each token that counts at `now`.
std::vector<std::string> unknownInTokens(const std::vector<Token>& tokens,
                                         const inventory::Cluster& cluster, WallTime now);

}  // namespace muster::api
