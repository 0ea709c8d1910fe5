// SPDX-License-Identifier: Apache-2.0
// token: who may ask the API from elsewhere.
#include "api/tokens.h"

#include "api/remote_site.h"
#include "api/remote_tokens.h"
#include "api/unknown_names.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "base/json_output.h"
#include "base/main_guard.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/print_done.h"
#include "cli/commands/server.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <optional>

namespace muster::cli {
namespace {

Result<api::TokenRequest> requestOf(const TokenCreateArgs& args) {
  const auto role = api::parseRole(args.role);
  if (!role)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is no role; there are: {}", args.role, api::allRoles()));
  std::vector<std::string> words;
  if (!args.pools.empty()) words.push_back("pools=" + args.pools);
  if (!args.racks.empty()) words.push_back("racks=" + args.racks);
  if (!args.nodes.empty()) words.push_back("nodes=" + args.nodes);
  TRY(scope, api::parseScope(words));
  return api::TokenRequest{args.name, *role, std::move(scope), args.hours, args.owner};
}

/// The server that makes tokens for this command; null: this process, in the store.
struct TokenSite {
  std::unique_ptr<app::SiteClient> site;
  std::optional<api::RemoteTokens> server;
};
Result<TokenSite> tokenSite(const app::Options& options) {
  TRY(site, orderedSite(options));
  std::optional<api::RemoteTokens> server;
  if (auto* remote = dynamic_cast<api::RemoteSite*>(site.get()))
    server.emplace(remote->connection());
  return TokenSite{std::move(site), server};
}

Result<api::CreatedToken> create(const app::Options& options, TokenSite& at,
                                 const api::TokenRequest& request) {
  if (at.server) return at.server->create(request);
  TRY(store, app::openStoreForWriting(options));
  return api::Tokens(*store).create(request, {app::actorText(options), app::userName()},
                                    SystemClock().now());
}

/// Answers what it was called.
Result<std::string> revoke(const app::Options& options, TokenSite& at,
                           const std::string& id_or_name) {
  if (at.server) {
    TRY_OK(at.server->revoke(id_or_name));
    return id_or_name;
  }
  TRY(store, app::openStoreForReading(options));
  TRY(revoked,
      api::Tokens(*store).revoke(id_or_name, app::actorText(options), SystemClock().now()));
  return fmt::format("{} ({})", revoked.name, revoked.id);
}

/// A token that nobody could read is nobody's: it is revoked, and the name is free again.
int printOnce(const app::Options& options, TokenSite& at, const api::CreatedToken& made,
              const std::string& text) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error of the write
  std::cout << text << "\n" << std::flush;
  if (std::cout) return kOk;
  const auto revoked = revoke(options, at, made.token.id);
  return report(Error(
      ErrorCode::Unavailable,
      fmt::format(
          "the token could not be written to standard output (is it a full disk, or closed?), "
          "and it is never shown again; {}",
          revoked ? fmt::format("{} is revoked: create it anew", made.token.id)
                  : fmt::format("it could not be revoked either: muster token revoke {} ({})",
                                made.token.id, revoked.error().str()))));
}

}  // namespace

int tokenCreate(const app::Options& options, const TokenCreateArgs& args) {
  const auto request = requestOf(args);
  if (!request) return report(request.error());
  if (wasClosedAtStart(STDOUT_FILENO))
    return report(Error(ErrorCode::InvalidInput,
                        "standard output is closed, and a token is shown there once: none was "
                        "created"));
  auto at = tokenSite(options);
  if (!at) return report(at.error());
  const auto made = create(options, *at, *request);
  if (!made) return report(made.error());
  if (const auto loaded = at->server ? inventory::Loaded() : app::loadDeclared(options);
      loaded.cluster)
    for (const auto& unknown : api::unknownInScope(request->scope, *loaded.cluster))
      std::cerr << fmt::format(
          "muster: warning: the inventory has no {}: until it has one the "
          "token opens nothing there\n",
          unknown);
  if (options.json) {
    auto out = api::toJson(made->token);
    out["token"] = made->secret;
    return printOnce(options, *at, *made, jsonText(out, 2));
  }
  std::cerr << fmt::format("{} ({}) of {}: {}, {}, until {}. It is not shown again:\n",
                           made->token.name, made->token.id, made->token.owner,
                           toString(made->token.role), api::scopeText(made->token.scope),
                           muster::toString(made->token.expires_at));
  return printOnce(options, *at, *made, made->secret);
}

int tokenList(const app::Options& options) {
  auto at = tokenSite(options);
  if (!at) return report(at.error());
  const auto tokens = [&]() -> Result<std::vector<api::Token>> {
    if (at->server) return at->server->list();
    TRY(store, app::openStoreForReading(options));
    return api::Tokens(*store).list();
  }();
  if (!tokens) return report(tokens.error());
  auto out = nlohmann::json::array();
  const auto now = SystemClock().now();
  for (const auto& token : *tokens) {
    out.push_back(api::toJson(token));
    if (options.json) continue;
    const auto* state = token.revoked ? "revoked" : token.expires_at <= now ? "over" : "counts";
    std::cout << fmt::format("{} {:<20} {:<9} {:<8} until {}  {}, of {}, by {}\n", token.id,
                             token.name, toString(token.role), state,
                             muster::toString(token.expires_at), api::scopeText(token.scope),
                             token.owner, token.created_by);
  }
  if (options.json) std::cout << jsonText(out, 2) << "\n";
  if (!options.json && tokens->empty()) std::cout << "there is no token\n";
  return kOk;
}

int tokenRevoke(const app::Options& options, const TokenRevokeArgs& args) {
  auto at = tokenSite(options);
  if (!at) return report(at.error());
  const auto revoked = revoke(options, *at, args.token);
  if (!revoked) return report(revoked.error());
  return printDone(
      options, {{"token", *revoked}, {"revoked", true}},
      fmt::format("{} is revoked; a server refuses it within two seconds\n", *revoked));
}

}  // namespace muster::cli
