// SPDX-License-Identifier: Apache-2.0
// How GoogleTest prints JSON. Without this it tries all its ways to print a value, which costs most
// of a second of compile time in each file that compares one.
#pragma once

#include <nlohmann/json.hpp>

#include <iosfwd>

NLOHMANN_JSON_NAMESPACE_BEGIN
void PrintTo(const json& value, std::ostream* out);
NLOHMANN_JSON_NAMESPACE_END
