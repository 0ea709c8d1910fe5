// SPDX-License-Identifier: Apache-2.0
// Lenient reading of BMC JSON. Schema breakage is normal in the field (numbers as strings, null or
// missing required fields, objects where a string was due), so nothing here fails: absent and
// unusable are the same.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

using Json = nlohmann::json;

/// Path of member names separated by '/', as in "Actions/#ComputerSystem.Reset/target"; null when a
/// step is missing.
const Json* find(const Json& json, std::string_view path);
/// String, number or bool as text; "" otherwise.
std::string textAt(const Json& json, std::string_view path);
/// A number, or a string that is one.
std::optional<double> numberAt(const Json& json, std::string_view path);
std::optional<bool> boolAt(const Json& json, std::string_view path);
/// The target of a link: {"@odata.id": "…"} or a bare string; "" otherwise.
std::string linkAt(const Json& json, std::string_view path);
/// Targets of an array of links; entries that are none are left out.
std::vector<std::string> linksAt(const Json& json, std::string_view path);
std::vector<std::string> textsAt(const Json& json, std::string_view path);

/// Parses; anything that is not JSON is null.
Json parseLenient(std::string_view text);

/// What the service says went wrong: the messages of ExtendedInfo, shortened to one line. "" when
/// it says nothing.
std::string serviceMessage(const Json& body);
/// True when a message id of the answer ends in this name ("…1.0.ActionParameterValueConflict").
bool hasMessageId(const Json& body, std::string_view name);

/// By a service root; Supermicro names itself only in Oem. "" when it does not say.
std::string vendorOf(const Json& service_root);

}  // namespace muster::bmc
