// SPDX-License-Identifier: Apache-2.0
// What the published OpenAPI (api/openapi-spec/v3 of Kubernetes 1.3x) says of the objects that
// muster sends: names of fields, types, required ones. The real server ignores unknown fields
// unless asked; this one never does.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace muster::pool::test {

/// What is wrong with an object of this kind ("NodePatch", "Eviction", "DeleteOptions"); empty:
/// nothing.
std::string schemaOffence(const std::string& kind, const nlohmann::json& object);
/// What the server's own validation says of a whole node: labels, taints. Empty: nothing.
std::string nodeOffence(const nlohmann::json& node);

}  // namespace muster::pool::test
