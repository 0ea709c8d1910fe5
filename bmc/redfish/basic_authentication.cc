// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/basic_authentication.h"

#include "base/io/crypto.h"
#include "bmc/redfish/session.h"

namespace muster::bmc {
namespace {

constexpr std::string_view kBasic = "Basic";
constexpr const char* kUsualSessions = "/redfish/v1/SessionService/Sessions";

}  // namespace

std::string sessionsOf(const Json& service_root) {
  if (const auto path = linkAt(service_root, "Links/Sessions"); !path.empty())
    return pathOnly(path);
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

/// Proved by a resource that needs it: the service root answers anybody.
Async<bool> RedfishSession::tryBasic(Candidate candidate) {
  const auto token = basicToken(options_.username, candidate.password.reveal());
  CO_TRY(reply, co_await exchange({.method = "GET", .path = "/redfish/v1/Systems"}, token));
  if (reply.status == 401 || reply.status == 403) {
    CO_TRY_OK(trust_.rememberRefusal(options_.username, candidate.password));
    co_return false;
  }
  if (!reply.ok()) co_return fail(errorOf(reply, "reading the systems of " + address()));
  token_ = token;
  session_path_.clear();
  uses_next_ = candidate.is_next;
  const bool both = candidate.is_next || !candidate.last || options_.next_password;
  CO_TRY_OK(both ? trust_.forgetRefusalOf(options_.username, candidate.password)
                 : trust_.forgetRefusal());
  co_return true;
}

}  // namespace muster::bmc
