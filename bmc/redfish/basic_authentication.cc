// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/basic_authentication.h"

#include "base/io/crypto.h"
#include "bmc/redfish/reply.h"

namespace muster::bmc {
namespace {

constexpr std::string_view kBasic = "Basic";
constexpr const char* kUsualSessions = "/redfish/v1/SessionService/Sessions";

}  // namespace

std::string sessionsOf(const Json& service_root) {
  // Its path, at this BMC: who is sent to another host by a link keeps the password here. A link
  // that is none is no word that there are no sessions, or Basic would send it with every request.
  if (const auto link = linkAt(service_root, "Links/Sessions"); !link.empty()) {
    const auto path = pathOnly(link);
    return path.starts_with('/') ? path : kUsualSessions;
  }
  const bool known = service_root.is_object() && service_root.contains("RedfishVersion");
  if (known && !find(service_root, "SessionService")) return {};
  return kUsualSessions;
}

std::string basicToken(const std::string& username, const std::string& password) {
  return std::string(kBasic) + " " + io::toBase64(username + ":" + password);
}

bool isBasic(const std::string& token) {
  return token.size() > kBasic.size() && token.substr(0, token.find(' ')) == kBasic;
}

void authorize(io::Headers& headers, const std::string& token) {
  if (isBasic(token))
    headers["Authorization"] = token;
  else
    headers["X-Auth-Token"] = token;
}

}  // namespace muster::bmc
