// SPDX-License-Identifier: Apache-2.0
// API tokens: 256 random bits, of which the store keeps only the SHA-256, with a role, a scope and
// an end. Whoever reads the store learns no token.
#pragma once

#include "api/identity.h"
#include "app/site/revoked_tokens.h"
#include "lifecycle/store/store.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::api {

inline constexpr std::string_view kTokenPrefix = "muster_";
inline constexpr std::size_t kMaxTokens = 1'000;
inline constexpr int kMaxTokenHours = 24 * 366;
inline constexpr std::size_t kMaxLogins = 2'000;
inline constexpr std::size_t kMaxLoginsOfOne = 16;
inline constexpr std::chrono::hours kLongestLogin{24};

struct Token {
  std::string id;  ///< names it in lists and logs
  std::string name;
  Role role = Role::Viewer;
  Scope scope;
  WallTime created_at{};
  std::string created_by;  ///< as the log says it
  WallTime expires_at{};
  bool revoked = false;
  std::string sha256;                ///< hex, of the whole token
  std::string owner;                 ///< the person who uses it: "anna"
  std::vector<std::string> issuers;  ///< persons who have seen it: who has made it, then who has
                                     ///< seen the token by which it was made, and so on; of an
                                     ///< older muster: from created_by
  std::string principal = {};        ///< of a login: "oidc:anna"; empty: "token:NAME"
  std::string account = {};          ///< of a login (lifecycle::RunActor)
  bool isLogin() const { return !principal.empty(); }
};
/// Without the hash.
nlohmann::json toJson(const Token& token);

struct TokenRequest {
  std::string name;  ///< letters, digits, '.', '_', '-'
  Role role = Role::Viewer;
  Scope scope;
  int hours = 24 * 90;
  std::string owner = {};  ///< empty: who makes it
};
/// Who makes a token.
struct TokenIssuer {
  std::string text;                       ///< for the log
  std::string person;                     ///< "anna"
  std::vector<std::string> issuers = {};  ///< who has seen the token by which that person comes
};
/// Somebody whom a provider has proved, for as long as it says.
struct LoginRequest {
  Identity who;    ///< of Way::Oidc, with its end
  std::string by;  ///< as the log says it
};
struct CreatedToken {
  Token token;
  std::string secret;  ///< "muster_…": shown once
};

/// The tokens of a store. Each change is one comparison and exchange, so two at once both count.
class Tokens {
 public:
  explicit Tokens(lifecycle::Store& store) : store_(store) {}
  Result<std::vector<Token>> list() const;
  /// Errors: InvalidInput (name, hours, tokens made by tokens too often), Conflict (the name is in
  /// use, or there are too many)
  Result<CreatedToken> create(const TokenRequest& request, const TokenIssuer& by, WallTime now);
  /// A login is a token that is gone when it is over. Of one account the newest kMaxLoginsOfOne
  /// count. Errors: InvalidInput (over already), Conflict (there are too many)
  Result<CreatedToken> logIn(const LoginRequest& request, WallTime now);
  /// The end of a login by whom it belongs to; another token is left alone. Answers whether it was
  /// one. Errors: those of the store
  Result<bool> logOut(std::string_view secret, const std::string& by, WallTime now);
  /// `id_or_name`. Errors: NotFound
  Result<Token> revoke(const std::string& id_or_name, const std::string& by, WallTime now);

 private:
  Result<void> note(const std::string& text, WallTime now);
  lifecycle::Store& store_;
};

/// The tokens that count, by their hash: looked up in memory by whoever answers unknown senders.
class TokenTable {
 public:
  TokenTable() = default;
  explicit TokenTable(const std::vector<Token>& tokens);
  /// Nothing: unknown, over or revoked.
  const Token* find(std::string_view secret, WallTime now) const;

 private:
  std::unordered_map<std::string, Token> by_hash_;
};
Identity identityOf(const Token& token);

/// The store's value that holds them.
using app::kTokensKey;
/// Errors: Corrupt
Result<std::vector<Token>> tokensFromText(std::string_view text);

}  // namespace muster::api
