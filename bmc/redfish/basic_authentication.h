// SPDX-License-Identifier: Apache-2.0
// How a request proves who sends it: by a session's token, or, where a service has no sessions, by
// HTTP Basic authentication. Source: DSP0266 13.3.4
#pragma once

#include "base/io/http.h"
#include "bmc/redfish/json_view.h"

#include <string>

namespace muster::bmc {

/// Where sessions are opened, by a service root; "": the service has none. A root that could not be
/// read is taken for one with sessions, because Basic sends the password with every request.
std::string sessionsOf(const Json& service_root);

/// What stands in the place of a token: "Basic …".
std::string basicToken(const std::string& username, const std::string& password);
bool isBasic(const std::string& token);
/// Puts the token of a session, or what stands in its place, into the headers.
void authorize(io::Headers& headers, const std::string& token);

}  // namespace muster::bmc
