// SPDX-License-Identifier: Apache-2.0
// JSON Schemas (draft 2020-12) of what the API says, in one table of named shapes. OpenAPI refers
// to them, and tests hold every answer against them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace muster::api {

/// {"Node": {…}, …}: the `components/schemas` of OpenAPI.
const nlohmann::json& schemas();
/// {"$ref": "#/components/schemas/NAME"}
nlohmann::json refTo(const std::string& name);
/// A list of these: items, next, total; `more`: further members that it has.
nlohmann::json listOf(const std::string& name, const nlohmann::json& more);
nlohmann::json listOf(const std::string& name);

}  // namespace muster::api
