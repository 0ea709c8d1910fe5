// SPDX-License-Identifier: Apache-2.0
// The service has one set of paths inside; outside, resources bear the vendor's names
// (behaviour.h).
#pragma once

#include "lab/vbmc/behaviour.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string>

namespace muster::lab::vbmc {

/// The path inside of what a client asks for; one that is a path inside already stays.
std::string insideName(std::string path, std::span<const ResourceName> names);
/// The path that a client is shown.
std::string outsideName(std::string path, std::span<const ResourceName> names);
/// All links of a resource, and the Id of what is renamed itself.
void renameOutside(nlohmann::json& resource, std::span<const ResourceName> names);
/// All links of a request.
void renameInside(nlohmann::json& body, std::span<const ResourceName> names);

}  // namespace muster::lab::vbmc
