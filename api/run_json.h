// SPDX-License-Identifier: Apache-2.0
// A run as the API answers and as `muster run … --json` prints it: one form, whether a server was
// asked or not.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace muster::lifecycle {
struct Run;
}

namespace muster::api {

/// As schema Run of the OpenAPI description (api/schema.cc) says.
nlohmann::json runJson(const lifecycle::Run& run);

}  // namespace muster::api
