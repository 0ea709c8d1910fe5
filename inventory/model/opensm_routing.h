// SPDX-License-Identifier: Apache-2.0
// OpenSM's routing engines: what `routing` of a fabric may name, what OpenSM is started with, and
// which engine in force meets the declaration.
#pragma once

#include <array>
#include <string_view>
#include <vector>

namespace muster::inventory {

/// Those that need no file of their own. (opensm(8))
inline constexpr std::array<std::string_view, 9> kRoutingEngines = {
    "minhop", "updn", "dnup", "ftree", "lash", "dor", "dfsssp", "sssp", "nue"};
inline constexpr std::string_view kFatTreeRouting = "ftree";

/// "ftree,updn" → ftree, updn: the engines in order of preference. OpenSM takes the first that can
/// route the fabric.
std::vector<std::string_view> routingPreferences(std::string_view routing);
/// Whether the declaration names this engine, at whatever place.
bool namesRouting(std::string_view routing, std::string_view engine);
/// The first word that is no engine; empty: all are.
std::string_view unknownRouting(std::string_view routing);

}  // namespace muster::inventory
