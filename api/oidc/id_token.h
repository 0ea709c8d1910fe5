// SPDX-License-Identifier: Apache-2.0
// What an ID token says, once its signature is known to be the provider's: whether it is for this
// client, for this login, and still good.
#pragma once

#include "api/access_file.h"
#include "base/clock.h"
#include "base/result.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

/// By which the provider's clock may differ from ours.
inline constexpr std::chrono::seconds kClockSkew{60};

struct IdTokenRules {
  std::string issuer, client_id;
  std::optional<std::string> nonce;  ///< of a login that has one
};

struct IdToken {
  std::string subject;
  WallTime expires_at{};
  nlohmann::json claims;
};

/// Shape:  payload × rules × now → subject, end and all claims
/// Errors: Corrupt (not what an ID token is), Denied (of another issuer, client or login; over; not
/// valid yet). Source: OpenID Connect Core 1.0, 2 and 3.1.3.7
Result<IdToken> readIdToken(std::string_view payload, const IdTokenRules& rules, WallTime now);

/// Claims that hold the account's name and groups: of the ID token, or of the userinfo endpoint.
/// Nothing: the name is not in them. "realm_access.roles" is a claim within a claim.
/// Errors: Corrupt (no text; a list with something else in it), Denied (an e-mail address that the
/// provider has not verified)
Result<std::optional<OidcAccount>> accountIn(const nlohmann::json& claims,
                                             const OidcSettings& settings,
                                             const std::string& subject);
/// Whether the groups are said, be it that there are none.
bool saysGroups(const nlohmann::json& claims, const OidcSettings& settings);

/// Claims as JSON, with their limits. Errors: Corrupt
Result<nlohmann::json> parseClaims(std::string_view text);

}  // namespace muster::api
