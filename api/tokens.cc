// SPDX-License-Identifier: Apache-2.0
#include "api/tokens.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "lifecycle/runs/run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

namespace muster::api {
namespace {

constexpr std::string_view kPrincipalPrefix = "token:";  ///< of a principal that a token is
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kIdBytes = 6;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxSecretBytes = 128;
constexpr int kExchangeAttempts = 16;                 ///< others change the list at the same time
constexpr std::chrono::hours kKeptWhenOver{24 * 90};  ///< in lists, for who asks what it was

nlohmann::json keptJson(const Token& token) {
  auto out = toJson(token);
  out["sha256"] = token.sha256;
  out["issuers"] = token.issuers;
  if (token.isLogin()) {
    out["principal"] = token.principal;
    out["account"] = token.account;
  }
  return out;
}

std::string keptText(const std::vector<Token>& tokens) {
  auto out = nlohmann::json::array();
  for (const auto& token : tokens) out.push_back(keptJson(token));
  return jsonText(out);
}

/// Of a token of an older muster: "anna@ctl1 (API, …)", "token:ci (API, …)".
std::string personIn(const std::string& created_by) {
  return created_by.substr(0, created_by.find_first_of("@ "));
}

Result<Token> tokenOf(const nlohmann::json& json) {
  Token out;
  try {
    const auto& scope = json.at("scope");
    out = {json.at("id"),
           json.at("name"),
           Role::Viewer,
           {scope.at("pools"), scope.at("racks"), scope.at("nodes")},
           {},
           json.at("created_by"),
           {},
           json.at("revoked"),
           json.at("sha256"),
           json.value("owner", ""),
           json.value("issuers", std::vector<std::string>()),
           json.value("principal", ""),
           json.value("account", "")};
    if (out.issuers.empty()) out.issuers = {personIn(out.created_by)};
    if (out.owner.empty()) out.owner = out.issuers.front();
    const auto role = parseRole(json.at("role").get<std::string>());
    if (!role) return fail(ErrorCode::Corrupt, "a token of the store has a role that is none");
    out.role = *role;
    TRY(created, parseWallTime(json.at("created_at").get<std::string>()));
    TRY(expires, parseWallTime(json.at("expires_at").get<std::string>()));
    out.created_at = created;
    out.expires_at = expires;
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorCode::Corrupt,
                std::string("a token of the store cannot be read: ") + e.what());
  }
  return out;
}

bool isName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

bool isOpenLogin(const Token& token) { return token.isLogin() && !token.revoked; }

/// What nobody asks for any more goes: logins when they are over, tokens and what was revoked long
/// after: it takes back what was said with it (app/site/revoked_tokens.h).
void tidy(std::vector<Token>& tokens, WallTime now) {
  std::erase_if(tokens, [now](const Token& old) {
    return old.expires_at + (isOpenLogin(old) ? std::chrono::hours() : kKeptWhenOver) <= now;
  });
  const auto is_revoked_login = [](const Token& t) { return t.isLogin() && t.revoked; };
  while (static_cast<std::size_t>(std::ranges::count_if(tokens, is_revoked_login)) > kMaxLogins)
    tokens.erase(std::ranges::find_if(tokens, is_revoked_login));
}

/// `change` answers what the list becomes; asked again when somebody else was faster.
Result<void> exchange(lifecycle::Store& store,
                      const std::function<Result<void>(std::vector<Token>&)>& change) {
  for (int attempt = 0; attempt < kExchangeAttempts; ++attempt) {
    TRY(before, store.getValue(kTokensKey));
    TRY(tokens, tokensFromText(before.value_or("[]")));
    TRY_OK(change(tokens));
    TRY(done, store.exchangeValue(kTokensKey, before, keptText(tokens)));
    if (done) return {};
  }
  return fail(ErrorCode::Unavailable, "others change the tokens all the time; try again");
}

}  // namespace

nlohmann::json toJson(const Token& token) {
  return {{"login", token.isLogin()},
          {"id", token.id},
          {"name", token.name},
          {"role", toString(token.role)},
          {"scope", toJson(token.scope)},
          {"created_at", muster::toString(token.created_at)},
          {"created_by", token.created_by},
          {"owner", token.owner},
          {"expires_at", muster::toString(token.expires_at)},
          {"revoked", token.revoked}};
}

Result<std::vector<Token>> tokensFromText(std::string_view text) {
  TRY(json, parseJson(text, kKeptJson));
  if (!json.is_array()) return fail(ErrorCode::Corrupt, "the store's tokens are no list");
  std::vector<Token> out;
  for (const auto& each : json) {
    TRY(token, tokenOf(each));
    out.push_back(std::move(token));
  }
  // Of an older muster that names a token as the maker: the person behind that one.
  const auto madeBy = [&out](const std::string& name) {
    return name.starts_with(kPrincipalPrefix)
               ? std::ranges::find(out, name.substr(kPrincipalPrefix.size()), &Token::name)
               : out.end();
  };
  for (auto& token : out) {
    for (std::size_t step = 0; step < out.size(); ++step) {
      const auto made_by = madeBy(token.owner);
      if (made_by == out.end()) break;
      token.owner = made_by->owner;
    }
    for (std::size_t step = 0; step < out.size(); ++step) {
      const auto made_by = madeBy(token.issuers.back());
      if (made_by == out.end()) break;
      token.issuers.back() = made_by->owner;
      if (made_by->created_by.starts_with(kPrincipalPrefix))
        token.issuers.push_back(personIn(made_by->created_by));
    }
  }
  return out;
}

Result<std::vector<Token>> Tokens::list() const {
  TRY(text, store_.getValue(kTokensKey));
  return tokensFromText(text.value_or("[]"));
}

Result<void> Tokens::note(const std::string& text, WallTime now) {
  TRY(sequence, store_.addEvent({0, now, lifecycle::EventKind::Note, {}, "", text}));
  (void)sequence;
  return {};
}

Result<CreatedToken> Tokens::create(const TokenRequest& request, const TokenIssuer& by,
                                    WallTime now) {
  if (!isName(request.name))
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("a token's name has 1 to {} letters, digits, '.', '_' and '-'", kMaxNameBytes));
  if (request.hours < 1 || request.hours > kMaxTokenHours)
    return fail(ErrorCode::InvalidInput,
                fmt::format("a token lives 1 to {} hours", kMaxTokenHours));
  if (!request.owner.empty() && !isName(request.owner))
    return fail(ErrorCode::InvalidInput,
                fmt::format("the owner of a token is a person's user name, of 1 to {} letters, "
                            "digits, '.', '_' and '-'",
                            kMaxNameBytes));
  TRY_OK(checkScope(request.scope));
  CreatedToken out;
  out.secret = std::string(kTokenPrefix) + io::randomToken(kSecretBytes);
  out.token = {io::toHex(io::randomBytes(kIdBytes)),
               request.name,
               request.role,
               request.scope,
               now,
               by.text,
               now + std::chrono::hours(request.hours),
               false,
               io::sha256Hex(out.secret),
               request.owner.empty() ? by.person : request.owner,
               {by.person}};
  for (const auto& person : by.issuers)
    if (std::ranges::find(out.token.issuers, person) == out.token.issuers.end())
      out.token.issuers.push_back(person);
  if (out.token.issuers.size() > lifecycle::kMaxIssuers)
    return fail(ErrorCode::InvalidInput,
                "more people have seen the token by which this one would be made than muster "
                "remembers; make it on the socket");
  // The log has it before it counts.
  TRY_OK(note(fmt::format("{} creates token {} ({}) for {}: role {}, until {}", by.text,
                          out.token.name, out.token.id, out.token.owner, toString(request.role),
                          muster::toString(out.token.expires_at)),
              now));
  TRY_OK(exchange(store_, [&](std::vector<Token>& tokens) -> Result<void> {
    tidy(tokens, now);
    for (const auto& old : tokens)
      if (old.name == request.name && !old.revoked && old.expires_at > now)
        return fail(ErrorCode::Conflict,
                    fmt::format("there is a token {} already ({}); revoke it, or take another name",
                                old.name, old.id));
    const auto count = std::ranges::count_if(tokens, [](const Token& t) { return !t.isLogin(); });
    if (static_cast<std::size_t>(count) >= kMaxTokens)
      return fail(ErrorCode::Conflict,
                  fmt::format("there are {} tokens, which is the most; one that has been over for "
                              "90 days makes room",
                              count));
    tokens.push_back(out.token);
    return {};
  }));
  return out;
}

Result<CreatedToken> Tokens::logIn(const LoginRequest& request, WallTime now) {
  const auto& who = request.who;
  const auto ends = std::min(who.expires_at.value_or(now), now + kLongestLogin);
  if (ends <= now)
    return fail(ErrorCode::InvalidInput,
                "the provider's login is over as it begins; are both clocks right?");
  CreatedToken out;
  out.secret = std::string(kTokenPrefix) + io::randomToken(kSecretBytes);
  out.token.id = io::toHex(io::randomBytes(kIdBytes));
  out.token.name = "login-" + out.token.id;
  out.token.role = who.role;
  out.token.scope = who.scope;
  out.token.created_at = now;
  out.token.created_by = request.by;
  out.token.expires_at = ends;
  out.token.sha256 = io::sha256Hex(out.secret);
  out.token.owner = who.person;
  out.token.issuers = {who.person};
  out.token.principal = who.principal;
  out.token.account = who.account;
  TRY_OK(note(fmt::format("{} logs in ({}) as {}: role {}, until {}", request.by, out.token.id,
                          who.person, toString(who.role), muster::toString(ends)),
              now));
  TRY_OK(exchange(store_, [&](std::vector<Token>& tokens) -> Result<void> {
    tidy(tokens, now);
    const auto is_theirs = [&](const Token& t) {
      return isOpenLogin(t) && t.account == who.account;
    };
    while (static_cast<std::size_t>(std::ranges::count_if(tokens, is_theirs)) >= kMaxLoginsOfOne)
      tokens.erase(std::ranges::find_if(tokens, is_theirs));  // the oldest is the first
    if (static_cast<std::size_t>(std::ranges::count_if(tokens, isOpenLogin)) >= kMaxLogins)
      return fail(ErrorCode::Conflict,
                  fmt::format("{} logins are open, which is the most; try again when one has ended",
                              kMaxLogins));
    tokens.push_back(out.token);
    return {};
  }));
  return out;
}

Result<bool> Tokens::logOut(std::string_view secret, const std::string& by, WallTime now) {
  const auto hash = io::sha256Hex(secret);
  std::optional<Token> ended;
  TRY_OK(exchange(store_, [&](std::vector<Token>& tokens) -> Result<void> {
    ended.reset();
    const auto found = std::ranges::find(tokens, hash, &Token::sha256);
    if (found == tokens.end() || !found->isLogin()) return {};
    ended = *found;
    tokens.erase(found);
    return {};
  }));
  if (!ended) return false;
  TRY_OK(note(fmt::format("{} logs out ({})", by, ended->id), now));
  return true;
}

Result<Token> Tokens::revoke(const std::string& id_or_name, const std::string& by, WallTime now) {
  Token out;
  TRY_OK(exchange(store_, [&](std::vector<Token>& tokens) -> Result<void> {
    auto found = std::ranges::find(tokens, id_or_name, &Token::id);
    if (found == tokens.end())
      found = std::ranges::find_if(tokens, [&](const Token& token) {
        return token.name == id_or_name && !token.revoked && token.expires_at > now;
      });
    if (found == tokens.end())
      return fail(ErrorCode::NotFound, fmt::format("there is no token {}", id_or_name));
    found->revoked = true;
    out = *found;
    return {};
  }));
  TRY_OK(note(fmt::format("{} revokes token {} ({})", by, out.name, out.id), now));
  return out;
}

TokenTable::TokenTable(const std::vector<Token>& tokens) {
  for (const auto& token : tokens)
    if (!token.revoked) by_hash_.emplace(token.sha256, token);
}

const Token* TokenTable::find(std::string_view secret, WallTime now) const {
  if (by_hash_.empty() || secret.size() > kMaxSecretBytes || !secret.starts_with(kTokenPrefix))
    return nullptr;
  const auto found = by_hash_.find(io::sha256Hex(secret));
  return found == by_hash_.end() || found->second.expires_at <= now ? nullptr : &found->second;
}

Identity identityOf(const Token& token) {
  const bool is_login = token.isLogin();
  return {is_login ? token.principal : "token:" + token.name,
          is_login ? Way::Oidc : Way::Token,
          token.role,
          token.scope,
          token.expires_at,
          token.owner,
          token.issuers,
          token.account,
          token.id};
}

}  // namespace muster::api
