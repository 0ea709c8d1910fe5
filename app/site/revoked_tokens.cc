// SPDX-License-Identifier: Apache-2.0
#include "app/site/revoked_tokens.h"

#include "base/json_input.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::app {
namespace {

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
  if (!actor.token.empty()) {
    if (good_ids_.contains(actor.token)) return {};
    return told(revoked_ids_.contains(actor.token) ? "was revoked" : "is known no more");
  }
  if (!actor.principal.starts_with(kTokenPrincipal)) return {};
  return revoked_names_.contains(actor.principal.substr(kTokenPrincipal.size()))
             ? told("was revoked")
             : std::string();
}

}  // namespace muster::app
