// SPDX-License-Identifier: Apache-2.0
#include "api/oidc/id_token.h"

#include "api/oidc/foreign_text.h"
#include "base/json_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr JsonLimits kClaimsJson{"the claims of the provider", 256u << 10,         16, 20'000,
                                 DuplicateKeys::Refused,       BrokenUtf8::Refused};
constexpr double kLatestSeconds = 253'402'300'799;  ///< the end of the year 9999
constexpr std::size_t kMaxSubjectBytes = 255;       ///< Source: OpenID Connect Core 1.0, 2
constexpr std::size_t kMaxGroups = 2'000;
constexpr std::size_t kMaxGroupBytes = 256;
constexpr std::size_t kMaxShownBytes = 120;

Result<std::string> requiredText(const json& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_string())
    return fail(ErrorCode::Corrupt, fmt::format("the provider's token has no {}", name));
  return found->get<std::string>();
}

Result<std::optional<WallTime>> timeOf(const json& claims, const char* name) {
  const auto found = claims.find(name);
  if (found == claims.end()) return std::optional<WallTime>();
  const double seconds = found->is_number() ? found->get<double>() : -1;
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kLatestSeconds)
    return fail(ErrorCode::Corrupt, fmt::format("{} in the provider's token is no time", name));
  return std::optional(WallTime(std::chrono::seconds(static_cast<std::int64_t>(seconds))));
}

Result<void> checkAudience(const json& claims, const std::string& client_id) {
  const auto audience = claims.find("aud");
  const bool is_list = audience != claims.end() && audience->is_array();
  const bool is_ours =
      audience != claims.end() &&
      (is_list ? std::find(audience->begin(), audience->end(), json(client_id)) != audience->end()
               : *audience == client_id);
  if (!is_ours)
    return fail(ErrorCode::Denied,
                fmt::format("the provider's token is for another client than {}; see client-id in "
                            "the access file",
                            client_id));
  const auto party = claims.find("azp");
  const bool needs_party = is_list && audience->size() > 1;
  if ((needs_party || party != claims.end()) && (party == claims.end() || *party != client_id))
    return fail(
        ErrorCode::Denied,
        fmt::format("the provider's token was given to another client than {} (azp)", client_id));
  return {};
}

/// The time at which it ends.
Result<WallTime> checkTimes(const json& claims, WallTime now) {
  TRY(expires, timeOf(claims, "exp"));
  TRY(issued, timeOf(claims, "iat"));
  TRY(begins, timeOf(claims, "nbf"));
  if (!expires || !issued)
    return fail(ErrorCode::Corrupt,
                "the provider's token does not say when it was made and when it "
                "ends (iat, exp)");
  if (*expires + kClockSkew <= now)
    return fail(ErrorCode::Denied,
                fmt::format("the provider's token was good until {}, and here it is {}; are both "
                            "clocks right?",
                            muster::toString(*expires), muster::toString(now)));
  if (std::max(*issued, begins.value_or(*issued)) > now + kClockSkew)
    return fail(ErrorCode::Denied,
                fmt::format("the provider's token is of {}, and here it is {}; are both clocks "
                            "right?",
                            muster::toString(std::max(*issued, begins.value_or(*issued))),
                            muster::toString(now)));
  return *expires;
}

/// A claim by its name, or of claims within claims. Null: it is not there.
const json* claimOf(const json& claims, const std::string& name) {
  if (!claims.is_object()) return nullptr;
  if (const auto whole = claims.find(name); whole != claims.end()) return &*whole;
  const auto dot = name.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto outer = claims.find(name.substr(0, dot));
  return outer == claims.end() ? nullptr : claimOf(*outer, name.substr(dot + 1));
}

}  // namespace

Result<json> parseClaims(std::string_view text) {
  TRY(claims, parseJson(text, kClaimsJson));
  if (!claims.is_object()) return fail(ErrorCode::Corrupt, "the provider's claims are no object");
  return claims;
}

Result<IdToken> readIdToken(std::string_view payload, const IdTokenRules& rules, WallTime now) {
  IdToken out;
  TRY(claims, parseClaims(payload));
  out.claims = std::move(claims);
  TRY(issuer, requiredText(out.claims, "iss"));
  if (issuer != rules.issuer)
    return fail(ErrorCode::Denied,
                fmt::format("the token comes from {}, and the access file has issuer={}",
                            shown(issuer, kMaxShownBytes), rules.issuer));
  TRY_OK(checkAudience(out.claims, rules.client_id));
  TRY(expires_at, checkTimes(out.claims, now));
  out.expires_at = expires_at;
  if (rules.nonce) {
    const auto nonce = requiredText(out.claims, "nonce");
    if (!nonce || *nonce != *rules.nonce)
      return fail(ErrorCode::Denied, "the provider's token is of another login (nonce)");
  }
  TRY(subject, requiredText(out.claims, "sub"));
  const bool is_subject =
      !subject.empty() && subject.size() <= kMaxSubjectBytes &&
      std::ranges::all_of(subject, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!is_subject)
    return fail(ErrorCode::Corrupt, "the subject (sub) of the provider's token is none");
  out.subject = std::move(subject);
  return out;
}

bool saysGroups(const json& claims, const OidcSettings& settings) {
  return claimOf(claims, settings.group_claim) != nullptr;
}

Result<std::optional<OidcAccount>> accountIn(const json& claims, const OidcSettings& settings,
                                             const std::string& subject) {
  const auto* name = claimOf(claims, settings.name_claim);
  if (!name) return std::optional<OidcAccount>();
  if (!name->is_string())
    return fail(ErrorCode::Corrupt,
                fmt::format("the claim {} of the provider is no text", settings.name_claim));
  if (settings.name_claim == "email") {
    const auto verified = claims.find("email_verified");
    if (verified == claims.end() || (*verified != true && *verified != "true"))
      return fail(ErrorCode::Denied,
                  fmt::format("the provider has not verified the address {} (email_verified), and "
                              "the access file has name=email",
                              shown(name->get<std::string>(), kMaxShownBytes)));
  }
  OidcAccount out{settings.issuer, subject, name->get<std::string>(), {}};
  const auto* groups = claimOf(claims, settings.group_claim);
  if (!groups) return std::optional(std::move(out));
  const auto list = groups->is_array() ? *groups : json::array({*groups});
  for (const auto& group : list) {
    if (!group.is_string() || list.size() > kMaxGroups)
      return fail(ErrorCode::Corrupt,
                  fmt::format("the claim {} of the provider is no list of at most {} groups",
                              settings.group_claim, kMaxGroups));
    if (auto text = group.get<std::string>(); text.size() <= kMaxGroupBytes)
      out.groups.insert(std::move(text));
  }
  return std::optional(std::move(out));
}

}  // namespace muster::api
