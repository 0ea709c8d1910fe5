// SPDX-License-Identifier: Apache-2.0
#include "api/oidc/provider_client.h"

#include "api/oidc/foreign_text.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kAnswerLimit{10};
constexpr std::size_t kMaxAnswerBytes = 256u << 10;
constexpr std::chrono::hours kEndpointsLife{1}, kKeysLife{1};
constexpr std::chrono::seconds kFailureLife{5};  ///< a provider that is down is left alone so long
constexpr std::chrono::seconds kKeysPause{10};   ///< between looks for a key that is not known
constexpr std::size_t kMaxShownBytes = 300;
constexpr std::size_t kMaxCodeBytes = 4u << 10;
constexpr std::chrono::seconds kShortestInterval{1}, kLongestInterval{60}, kLongestDevice{1'800};
constexpr JsonLimits kProviderJson{"the answer of the provider", kMaxAnswerBytes,    16, 20'000,
                                   DuplicateKeys::Refused,       BrokenUtf8::Refused};

std::chrono::seconds secondsOf(const json& object, const char* name, std::chrono::seconds otherwise,
                               std::chrono::seconds least, std::chrono::seconds most) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return otherwise;
  return std::clamp(
      std::chrono::seconds(std::clamp<std::int64_t>(found->get<std::int64_t>(), 0, 24 * 3600)),
      least, most);
}

bool hasWord(const json& object, const char* name, std::string_view word) {
  const auto list = object.find(name);
  return list != object.end() && list->is_array() &&
         std::find(list->begin(), list->end(), json(word)) != list->end();
}

/// Of the discovery document. A password, or a code, goes nowhere but over TLS.
Result<std::string> httpsMember(const json& object, const char* name, bool is_needed) {
  auto text = textOf(object, name);
  if (text.empty() && !is_needed) return text;
  const auto url = io::Url::parse(text);
  if (!url || url->scheme != "https" || text.find('#') != std::string::npos)
    return fail(ErrorCode::Corrupt,
                fmt::format("the provider says {} \"{}\", which is no https:// address", name,
                            shown(text, kMaxShownBytes)));
  return text;
}

std::string formOf(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string out;
  for (const auto& [name, value] : values)
    out += (out.empty() ? "" : "&") + name + "=" + io::percentEncode(value);
  return out;
}

/// RFC 6749, 5.2: the provider's own refusal.
Error refusalOf(int status, const json& body, const std::string& what) {
  const auto code = textOf(body, "error"), text = textOf(body, "error_description");
  auto words =
      fmt::format("{}: the provider refuses: {}{}", what,
                  code.empty() ? fmt::format("status {}", status) : shown(code, kMaxShownBytes),
                  text.empty() ? "" : " (" + shown(text, kMaxShownBytes) + ")");
  if (code == "invalid_client" || code == "unauthorized_client")
    words += "; see client-id and secret-file in the access file";
  else if (code == "invalid_grant")
    words += "; begin the login anew";
  const bool is_down = status >= 500 || status == 429;
  return Error(is_down ? ErrorCode::Unavailable : ErrorCode::Denied, std::move(words))
      .retryable(is_down);
}

}  // namespace

ProviderClient::ProviderClient(OidcProvider provider, MakeHttp make_http)
    : provider_(std::move(provider)) {
  io::TlsTrust trust;
  trust.ca_pem = provider_.ca_pem;
  http_ = make_http(std::move(trust));
}

/// JSON of a bounded size from exactly where it was asked for.
Async<ProviderClient::Said> ProviderClient::ask(io::HttpRequest request, std::string what) {
  request.timeout = kAnswerLimit;
  request.max_body_bytes = kMaxAnswerBytes;
  request.headers["Accept"] = "application/json";
  const auto origin = request.url.origin();
  auto answer = co_await http_->send(std::move(request));
  if (!answer)
    co_return std::unexpected(std::move(answer).error().within(
        fmt::format("{}: the provider of OpenID Connect cannot be asked ({})", what, origin)));
  if (answer->status / 100 == 3)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{}: the provider sends elsewhere ({}), which is not followed; see "
                               "issuer in the access file",
                               what, shown(answer->header("Location"), kMaxShownBytes)));
  const auto type = answer->header("Content-Type");
  if (type.find("json") == std::string::npos)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{}: the provider answers {} with \"{}\" and not with JSON; see "
                               "issuer in the access file, and whether a proxy stands before it",
                               what, answer->status, shown(type, kMaxShownBytes)));
  auto body = parseJson(answer->body, kProviderJson);
  if (!body) co_return std::unexpected(std::move(body).error().within(what));
  if (!body->is_object())
    co_return fail(ErrorCode::Corrupt, what + ": the provider's answer is no JSON object");
  co_return Said{answer->status, std::move(*body)};
}

Async<ProviderClient::Endpoints> ProviderClient::endpoints() {
  const auto now = Steady::now();
  if (endpoints_ && now < endpoints_until_) co_return *endpoints_;
  if (failed_ && now < failed_until_) {
    if (endpoints_) co_return *endpoints_;
    co_return fail(*failed_);
  }
  auto found = co_await discover();
  if (found) {
    endpoints_ = *found;
    endpoints_until_ = Steady::now() + kEndpointsLife;
    failed_.reset();
    co_return found;
  }
  failed_ = found.error();
  failed_until_ = Steady::now() + kFailureLife;
  if (endpoints_) co_return *endpoints_;  // as they were an hour ago
  co_return found;
}

Async<ProviderClient::Endpoints> ProviderClient::discover() {
  auto issuer = settings().issuer;
  if (issuer.ends_with('/')) issuer.pop_back();
  io::HttpRequest request;
  CO_TRY(url, io::Url::parse(issuer + "/.well-known/openid-configuration"));
  request.url = std::move(url);
  CO_TRY(said, co_await ask(std::move(request), "looking for the provider's endpoints"));
  if (said.status != 200) co_return fail(refusalOf(said.status, said.body, "its endpoints"));
  const auto& body = said.body;
  if (textOf(body, "issuer") != settings().issuer)
    co_return fail(ErrorCode::Denied,
                   fmt::format("the provider calls itself \"{}\", and the access file has "
                               "issuer={}; both must be the same to the letter",
                               shown(textOf(body, "issuer"), kMaxShownBytes), settings().issuer));
  Endpoints out;
  CO_TRY(authorization, httpsMember(body, "authorization_endpoint", true));
  CO_TRY(token, httpsMember(body, "token_endpoint", true));
  CO_TRY(key_set, httpsMember(body, "jwks_uri", true));
  CO_TRY(device, httpsMember(body, "device_authorization_endpoint", false));
  CO_TRY(userinfo, httpsMember(body, "userinfo_endpoint", false));
  out.authorization = std::move(authorization);
  out.token = std::move(token);
  out.keys = std::move(key_set);
  out.device = std::move(device);
  out.userinfo = std::move(userinfo);
  constexpr const char* kMethods = "token_endpoint_auth_methods_supported";
  out.by_post = body.contains(kMethods) && !hasWord(body, kMethods, "client_secret_basic") &&
                hasWord(body, kMethods, "client_secret_post");
  const auto names = body.find("authorization_response_iss_parameter_supported");
  out.names_issuer = names != body.end() && *names == true;
  co_return out;
}

Async<KeySet> ProviderClient::keys(bool anew) {
  const auto now = Steady::now();
  const bool is_fresh = keys_ && now < keys_until_;
  if (is_fresh && (!anew || now < keys_anew_from_)) co_return *keys_;
  CO_TRY(at, co_await endpoints());
  io::HttpRequest request;
  CO_TRY(url, io::Url::parse(at.keys));
  request.url = std::move(url);
  CO_TRY(said, co_await ask(std::move(request), "reading the provider's keys"));
  if (said.status != 200) co_return fail(refusalOf(said.status, said.body, "its keys"));
  auto read = KeySet::parse(jsonText(said.body));
  if (!read) co_return std::unexpected(std::move(read).error().within("the provider's keys"));
  keys_ = std::move(*read);
  keys_until_ = Steady::now() + kKeysLife;
  if (anew) keys_anew_from_ = Steady::now() + kKeysPause;
  co_return *keys_;
}

io::HttpRequest ProviderClient::form(const std::string& url,
                                     std::vector<std::pair<std::string, std::string>> values,
                                     const Endpoints& at) const {
  io::HttpRequest out;
  out.method = "POST";
  out.url = *io::Url::parse(url);  // httpsMember has read it
  out.headers["Content-Type"] = "application/x-www-form-urlencoded";
  values.emplace_back("client_id", settings().client_id);
  if (!provider_.secret.empty() && at.by_post)
    values.emplace_back("client_secret", provider_.secret);
  if (!provider_.secret.empty() && !at.by_post)
    out.headers["Authorization"] =
        "Basic " + io::toBase64(io::percentEncode(settings().client_id) + ":" +
                                io::percentEncode(provider_.secret));
  out.body = formOf(values);
  return out;
}

Async<std::string> ProviderClient::authorizationUrl(std::string redirect_uri, std::string state,
                                                    std::string nonce, std::string challenge) {
  CO_TRY(at, co_await endpoints());
  co_return at.authorization + (at.authorization.find('?') == std::string::npos ? "?" : "&") +
      formOf({{"response_type", "code"},
              {"client_id", settings().client_id},
              {"redirect_uri", redirect_uri},
              {"scope", settings().scopes},
              {"state", state},
              {"nonce", nonce},
              {"code_challenge", challenge},
              {"code_challenge_method", "S256"}});
}

Async<OidcLogin> ProviderClient::redeem(std::string code, std::string redirect_uri,
                                        std::string verifier, std::string nonce) {
  if (code.empty() || code.size() > kMaxCodeBytes)
    co_return fail(ErrorCode::Denied, "the provider sent no code; begin the login anew");
  CO_TRY(at, co_await endpoints());
  auto asked = ask(form(at.token,
                        {{"grant_type", "authorization_code"},
                         {"code", code},
                         {"redirect_uri", redirect_uri},
                         {"code_verifier", verifier}},
                        at),
                   "redeeming the code");
  CO_TRY(said, co_await std::move(asked));
  if (said.status != 200) co_return fail(refusalOf(said.status, said.body, "redeeming the code"));
  co_return co_await loginOf(std::move(said.body), std::move(nonce));
}

Async<OidcLogin> ProviderClient::loginOf(json answer, std::optional<std::string> nonce) {
  const auto id_token = textOf(answer, "id_token");
  if (id_token.empty())
    co_return fail(ErrorCode::Corrupt,
                   "the provider answers without an ID token; is openid among the scopes of this "
                   "client?");
  CO_TRY(key_set, co_await keys(false));
  auto payload = key_set.verify(id_token);
  if (!payload && payload.error().code() == ErrorCode::NotFound) {
    CO_TRY(newer, co_await keys(true));
    payload = newer.verify(id_token);
    if (!payload && payload.error().code() == ErrorCode::NotFound)
      co_return fail(ErrorCode::Denied, payload.error().text() + "; try again in a moment");
  }
  if (!payload) co_return std::unexpected(std::move(payload).error());
  CO_TRY(token, readIdToken(*payload, {settings().issuer, settings().client_id, std::move(nonce)},
                            SystemClock().now()));
  OidcLogin out;
  out.expires_at = token.expires_at;
  CO_TRY(account, co_await accountOf(std::move(token), textOf(answer, "access_token")));
  out.account = std::move(account);
  co_return out;
}

Async<OidcAccount> ProviderClient::accountOf(IdToken token, std::string access_token) {
  CO_TRY(account, accountIn(token.claims, settings(), token.subject));
  if (account && saysGroups(token.claims, settings())) co_return *std::move(account);
  CO_TRY(at, co_await endpoints());
  if (!at.userinfo.empty() && !access_token.empty()) {
    io::HttpRequest request;
    CO_TRY(url, io::Url::parse(at.userinfo));
    request.url = std::move(url);
    request.headers["Authorization"] = "Bearer " + access_token;
    CO_TRY(said, co_await ask(std::move(request), "asking who it is"));
    if (said.status != 200) co_return fail(refusalOf(said.status, said.body, "asking who it is"));
    if (textOf(said.body, "sub") != token.subject)
      co_return fail(ErrorCode::Denied,
                     "the provider's userinfo is of another account than its ID token");
    // What the ID token says is signed, and counts first.
    auto claims = std::move(said.body);
    for (const auto& [name, value] : token.claims.items()) claims[name] = value;
    CO_TRY(whole, accountIn(claims, settings(), token.subject));
    account = std::move(whole);
  }
  if (account) co_return *std::move(account);
  co_return fail(ErrorCode::Denied,
                 fmt::format("the provider says of {} no claim {}; see name and scopes in the "
                             "access file, and what the provider gives to this client",
                             shown(token.subject, kMaxShownBytes), settings().name_claim));
}

Async<DeviceStart> ProviderClient::startDevice() {
  CO_TRY(at, co_await endpoints());
  if (at.device.empty())
    co_return fail(ErrorCode::NotFound,
                   "the provider has no device flow (RFC 8628); make a token on the controller "
                   "instead: muster token create");
  auto asked = ask(form(at.device, {{"scope", settings().scopes}}, at), "beginning a login");
  CO_TRY(said, co_await std::move(asked));
  if (said.status != 200) co_return fail(refusalOf(said.status, said.body, "beginning a login"));
  DeviceStart out;
  out.device_code = textOf(said.body, "device_code");
  out.user_code = shown(textOf(said.body, "user_code"), kMaxShownBytes);
  CO_TRY(page, httpsMember(said.body, "verification_uri", true));
  CO_TRY(whole, httpsMember(said.body, "verification_uri_complete", false));
  out.verification_uri = shown(page, kMaxShownBytes);
  out.verification_uri_complete = shown(whole, kMaxShownBytes);
  if (out.device_code.empty() || out.device_code.size() > kMaxCodeBytes || out.user_code.empty())
    co_return fail(ErrorCode::Corrupt, "the provider's answer has no codes for a device");
  using std::chrono::seconds;
  out.expires_in = secondsOf(said.body, "expires_in", out.expires_in, seconds(1), kLongestDevice);
  out.interval =
      secondsOf(said.body, "interval", out.interval, kShortestInterval, kLongestInterval);
  co_return out;
}

Async<DevicePoll> ProviderClient::pollDevice(std::string device_code) {
  CO_TRY(at, co_await endpoints());
  auto asked = ask(form(at.token,
                        {{"grant_type", "urn:ietf:params:oauth:grant-type:device_code"},
                         {"device_code", device_code}},
                        at),
                   "asking whether the code was entered");
  CO_TRY(said, co_await std::move(asked));
  DevicePoll out;
  if (said.status == 200) {
    CO_TRY(proved, co_await loginOf(std::move(said.body), std::nullopt));
    out.login = std::move(proved);
    co_return out;
  }
  const auto code = textOf(said.body, "error");
  out.slow_down = code == "slow_down";
  out.pending = out.slow_down || code == "authorization_pending";
  if (out.pending) co_return out;
  co_return fail(refusalOf(said.status, said.body,
                           code == "expired_token"   ? "nobody entered the code in time"
                           : code == "access_denied" ? "somebody said no"
                                                     : "the login"));
}

}  // namespace muster::api
