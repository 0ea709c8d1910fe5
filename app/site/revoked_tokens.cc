// SPDX-License-Identifier: Apache-2.0
#include "app/site/revoked_tokens.h"

#include "base/json_input.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::app {
namespace {

constexpr std::string_view kLoginWay = "oidc";          ///< of who came by a provider
constexpr std::string_view kTokenPrincipal = "token:";  ///< begins the principal of a token

}  // namespace

Result<RevokedTokens> RevokedTokens::read(lifecycle::Store& store) {
  RevokedTokens out;
  TRY(text, store.getValue(kTokensKey));
  TRY(tokens, parseJson(text.value_or("[]"), kKeptJson));
  try {
    for (const auto& token : tokens) {
      const auto id = token.at("id").get<std::string>();
      const bool revoked = token.at("revoked").get<bool>();
      (revoked ? out.revoked_ids_ : out.good_ids_).insert(id);
      if (revoked) out.revoked_names_.insert(token.at("name").get<std::string>());
    }
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorCode::Corrupt,
                std::string("the tokens of the store cannot be read: ") + e.what());
  }
  return out;
}

std::string RevokedTokens::whyVoid(const lifecycle::RunActor& actor) const {
  const auto told = [&](const char* what) {
    return fmt::format("{} of {} {}", actor.principal, personOf(actor), what);
  };
  // A login that has ended, or that its owner has ended, is forgotten; it was good when it was
  // used.
  if (actor.way == kLoginWay)
    return revoked_ids_.contains(actor.token) ? told("was revoked") : std::string();
  if (!actor.token.empty()) {
    if (good_ids_.contains(actor.token)) return {};
    return told(revoked_ids_.contains(actor.token) ? "was revoked" : "is known no more");
  }
  if (!actor.principal.starts_with(kTokenPrincipal)) return {};
  return revoked_names_.contains(actor.principal.substr(kTokenPrincipal.size()))
             ? told("was revoked")
             : std::string();
}

bool RevokedTokens::mayKnow(const lifecycle::RunActor& actor) {
  return !actor.token.empty() || actor.principal.starts_with(kTokenPrincipal);
}

std::vector<std::string> RevokedTokens::strikeOut(lifecycle::Run& run) const {
  std::vector<std::string> out;
  const auto strike = [&](auto& each, const char* what) {
    if (!each.void_because.empty() || each.plan_hash != run.plan_hash) return;
    each.void_because = whyVoid(each.by);
    if (!each.void_because.empty())
      out.push_back(fmt::format("the {} of {} counts no more: {}", what, each.by.principal,
                                each.void_because));
  };
  for (auto& each : run.approvals) strike(each, each.confirmation ? "confirmation" : "approval");
  for (auto& each : run.overrides) strike(each, "override");
  return out;
}

}  // namespace muster::app
