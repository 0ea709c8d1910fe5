// SPDX-License-Identifier: Apache-2.0
#include "api/oidc/logins.h"

#include "api/dispatch.h"
#include "api/page_session.h"
#include "api/request_headers.h"
#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"
#include "base/printable.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::api {
namespace {

using nlohmann::json;

constexpr std::chrono::minutes kBrowserLife{10};
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kMaxTargetBytes = 512;
constexpr std::size_t kMaxBodyBytes = 4u << 10;
constexpr const char* kCallback = "/login/callback";
constexpr const char* kOtherWays =
    "a token (muster token create on the controller) does without the provider";
constexpr std::size_t kMaxShownBytes = 300;

/// Holds a count up for as long as it lives.
class Counted {
 public:
  explicit Counted(std::size_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::size_t& count_;
};

/// Source: RFC 7636, 4.2
std::string challengeOf(const std::string& verifier) {
  auto text = io::toBase64(io::sha256(verifier));
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

io::ServerResponse redirect(const std::string& where) {
  auto out = io::ServerResponse::text(302, "");
  out.headers["Location"] = where;
  out.headers["Cache-Control"] = "no-store";
  out.headers["Referrer-Policy"] = "no-referrer";
  return out;
}

io::ServerResponse answer(const json& body, const io::ServerRequest& request) {
  auto out = io::ServerResponse::json(200, jsonText(body) + "\n");
  out.headers["Cache-Control"] = "no-store";
  out.headers["X-Request-Id"] = requestIdOf(request);
  return out;
}

/// For a person at a browser, who cannot read JSON.
io::ServerResponse told(const Problem& problem, const std::string& page) {
  auto out = io::ServerResponse::text(
      problem.status, fmt::format("muster: {}\n\nWhat to do: {}\n\nBack to the page: {}/\n",
                                  printable(problem.detail), printable(problem.what_to_do), page));
  out.headers["Content-Type"] = "text/plain; charset=utf-8";
  out.headers["X-Content-Type-Options"] = "nosniff";
  out.headers["Cache-Control"] = "no-store";
  out.headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'";
  return out;
}

Problem failedLogin(const Error& error) {
  if (error.code() == ErrorCode::Denied)
    return {403, "denied", error.str(), std::string("begin the login anew; ") + kOtherWays};
  if (error.code() == ErrorCode::NotFound) return {404, "not-found", error.str(), kOtherWays};
  const bool is_away = error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::Timeout;
  Problem out(503, "unavailable", error.str(),
              std::string(is_away ? "try again in a moment; "
                                  : "an administrator looks at what the provider answers; ") +
                  kOtherWays);
  out.retryable = is_away;
  return out;
}

Problem tooMany() {
  Problem out(429, "too-many-orders", "too many logins are under way",
              std::string("try again in a minute; ") + kOtherWays);
  out.retryable = true;
  return out;
}

}  // namespace

Result<std::string> checkedTarget(std::string_view to) {
  const bool is_part = to.empty() || to.starts_with("#/");
  const bool is_clean = std::ranges::all_of(to, [](unsigned char c) {
    return c > 0x20 && c < 0x7f &&
           std::string_view("\"'<>\\^`{|}").find(static_cast<char>(c)) == std::string_view::npos;
  });
  if (is_part && is_clean && to.size() <= kMaxTargetBytes) return std::string(to);
  return fail(ErrorCode::InvalidInput,
              "what the page is opened at after the login begins with #/ and is a part of it");
}

std::expected<std::shared_ptr<ProviderClient>, Problem> Logins::provider() {
  const auto doors = hooks_.doors();
  if (!doors->oidcTrouble().empty())
    return std::unexpected(Problem(
        503, "unavailable", "logging in by OpenID Connect is not possible: " + doors->oidcTrouble(),
        std::string("an administrator corrects it; ") + kOtherWays));
  if (!doors->oidc())
    return std::unexpected(Problem(404, "not-found",
                                   "this server knows no provider of OpenID Connect",
                                   std::string("an administrator adds a row oidc to the access "
                                               "file; ") +
                                       kOtherWays));
  if (provider_of_ != doors) {
    provider_ = std::make_shared<ProviderClient>(*doors->oidc(), hooks_.make_http);
    provider_of_ = doors;
  }
  return provider_;
}

std::expected<void, Problem> Logins::makeRoom(Table& table, const std::string& address) {
  const auto now = Steady::now();
  std::erase_if(table, [now](const auto& each) { return each.second.until <= now; });
  const auto is_theirs = [&address](const auto& each) { return each.second.address == address; };
  // Of one address the newest count: a page elsewhere that begins one after the other in somebody's
  // browser must not keep them from logging in.
  if (static_cast<std::size_t>(std::ranges::count_if(table, is_theirs)) >= kMaxPendingOfAddress) {
    auto oldest = std::ranges::find_if(table, is_theirs);
    for (auto at = oldest; at != table.end(); ++at)
      if (is_theirs(*at) && at->second.until < oldest->second.until) oldest = at;
    table.erase(oldest);
  }
  if (asking_ >= kMaxProviderRequests || table.size() >= kMaxPendingLogins)
    return std::unexpected(tooMany());
  return {};
}

Task<io::ServerResponse> Logins::ways(io::ServerRequest request) {
  json body{{"oidc", nullptr}};
  const auto doors = hooks_.doors();
  if (const auto& provider = doors->oidc(); provider && doors->oidcTrouble().empty()) {
    const auto url = io::Url::parse(provider->settings.issuer);
    body["oidc"] = {{"provider", url ? url->host : std::string()},
                    {"page", !provider->settings.page.empty()}};
  }
  co_return answer(body, request);
}

Task<io::ServerResponse> Logins::begin(io::ServerRequest request) {
  const auto query = io::queryOf(request.target);
  // A browser comes here for a person, and not for a picture of some page.
  if (const auto mode = headerOf(request, "Sec-Fetch-Mode"); !mode.empty() && mode != "navigate")
    co_return told({400, "invalid-input", "a login is begun by opening /login", "open it"}, "");
  const auto found = provider();
  if (!found) co_return told(found.error(), "");
  const auto client = *found;
  const auto page = client->settings().page;
  if (page.empty())
    co_return told({404, "not-found", "this server does not say where its page is",
                    std::string("an administrator adds page=https://HOST:PORT to the row oidc; ") +
                        kOtherWays},
                   "");
  const auto to = checkedTarget(query.contains("to") ? query.at("to") : std::string());
  if (!to) co_return told({400, "invalid-input", to.error().text(), "open the page itself"}, page);
  if (const auto room = makeRoom(browsers_, request.remote_address); !room)
    co_return told(room.error(), page);
  Pending pending;
  pending.provider = client;
  pending.address = request.remote_address;
  pending.until = Steady::now() + kBrowserLife;
  pending.state = io::randomToken(kSecretBytes);
  pending.nonce = io::randomToken(kSecretBytes);
  pending.verifier = io::randomToken(kSecretBytes);
  pending.to = *to;
  const Counted counted(asking_);
  auto url = co_await client->authorizationUrl(page + kCallback, pending.state, pending.nonce,
                                               challengeOf(pending.verifier));
  if (!url) co_return told(failedLogin(url.error()), page);
  const auto secret = io::randomToken(kSecretBytes);
  browsers_.insert_or_assign(secret, std::move(pending));
  auto out = redirect(*url);
  // Lax: the browser comes back from the provider's site.
  out.headers["Set-Cookie"] =
      fmt::format("{}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={}", kLoginCookie, secret,
                  std::chrono::seconds(kBrowserLife).count());
  co_return out;
}

Task<io::ServerResponse> Logins::comeBack(io::ServerRequest request) {
  const auto doors = hooks_.doors();
  const auto page = doors->oidc() ? doors->oidc()->settings.page : std::string();
  const std::string secret(cookieOf(headerOf(request, "Cookie"), kLoginCookie));
  const auto found = browsers_.find(secret);
  const auto once = checkGivenOnce(request.target);
  auto query = io::queryOf(request.target);
  // Of this browser, begun here, and not answered yet: a link that somebody else has made is none.
  if (!once || found == browsers_.end() || found->second.until <= Steady::now() ||
      !io::equalConstantTime(found->second.state, query["state"]))
    co_return told({403, "denied",
                    "this answer of the provider belongs to no login that this browser has begun "
                    "here within the last ten minutes",
                    "open the page, and log in there"},
                   page);
  const auto pending = std::move(found->second);
  browsers_.erase(found);  // whatever comes of it: an answer counts once
  const auto issuer = query.find("iss");
  if (issuer == query.end() ? pending.provider->namesIssuer()
                            : issuer->second != pending.provider->settings().issuer)
    co_return told({403, "denied", "this answer is not of the provider that was asked (iss)",
                    "begin the login anew"},
                   page);
  if (query.contains("error"))
    co_return told({403, "denied",
                    fmt::format("the provider says no: {} {}",
                                printable(query["error"]).substr(0, kMaxShownBytes),
                                printable(query["error_description"]).substr(0, kMaxShownBytes)),
                    std::string("begin the login anew; ") + kOtherWays},
                   page);
  if (asking_ >= kMaxProviderRequests) co_return told(tooMany(), page);
  const Counted counted(asking_);
  auto login = co_await pending.provider->redeem(query["code"],
                                                 pending.provider->settings().page + kCallback,
                                                 pending.verifier, pending.nonce);
  if (!login) {
    logWarning("api", "a login by OpenID Connect from {} failed: {}", request.remote_address,
               login.error().str());
    co_return told(failedLogin(login.error()), page);
  }
  auto made = co_await admit(std::move(*login), std::move(request));
  if (!made) co_return told(made.error(), page);
  auto out = redirect(pending.provider->settings().page + "/" + pending.to);
  auto begun = sessionBegun(made->secret, made->token.expires_at, SystemClock().now());
  out.headers["Set-Cookie"] = begun.headers["Set-Cookie"];
  co_return out;
}

Task<std::expected<CreatedToken, Problem>> Logins::admit(OidcLogin login,
                                                         io::ServerRequest request) {
  const auto doors = hooks_.doors();
  auto who = doors->admit(login.account);
  if (!who) {
    logWarning("api", "{}", who.error().detail);
    co_return std::unexpected(std::move(who).error());
  }
  who->expires_at = login.expires_at;
  const auto by = fmt::format("{} (API, {}, request {})", who->principal,
                              request.peer ? std::string("Unix socket") : request.remote_address,
                              requestIdOf(request));
  auto made = co_await hooks_.log_in({*std::move(who), by});
  if (!made) co_return std::unexpected(Problem(std::move(made).error()));
  co_return *std::move(made);
}

Task<io::ServerResponse> Logins::beginDevice(io::ServerRequest request) {
  const auto id = requestIdOf(request);
  const auto found = provider();
  if (!found) co_return toResponse(found.error(), id);
  const auto client = *found;
  if (const auto room = makeRoom(devices_, request.remote_address); !room)
    co_return toResponse(room.error(), id);
  const Counted counted(asking_);
  auto start = co_await client->startDevice();
  if (!start) co_return toResponse(failedLogin(start.error()), id);
  Pending pending;
  pending.provider = client;
  pending.address = request.remote_address;
  pending.until = Steady::now() + start->expires_in;
  pending.device_code = start->device_code;
  pending.interval = start->interval;
  pending.ask_from = Steady::now() + pending.interval;
  const auto secret = io::randomToken(kSecretBytes);
  devices_.insert_or_assign(secret, std::move(pending));
  json body{{"login", secret},
            {"user_code", start->user_code},
            {"verification_uri", start->verification_uri},
            {"expires_in_s", start->expires_in.count()},
            {"interval_s", start->interval.count()}};
  if (!start->verification_uri_complete.empty())
    body["verification_uri_complete"] = start->verification_uri_complete;
  co_return answer(body, request);
}

Task<io::ServerResponse> Logins::pollDevice(io::ServerRequest request) {
  const auto id = requestIdOf(request);
  const auto body = jsonOrNone(request.body, kRequestJson);
  const auto said = body.is_object() ? body.find("login") : body.end();
  if (!body.is_object() || said == body.end() || !said->is_string())
    co_return toResponse({400, "invalid-input", "which login is not said",
                          "send {\"login\": \"…\"}, as POST /api/v1/login/device has answered it"},
                         id);
  const auto secret = said->get<std::string>();
  auto found = devices_.find(secret);
  if (found == devices_.end() || found->second.until <= Steady::now())
    co_return toResponse({403, "denied", "there is no such login under way (any more)",
                          "begin it anew: muster login"},
                         id);
  auto& pending = found->second;
  const json waiting{{"state", "pending"}, {"interval_s", pending.interval.count()}};
  const auto now = Steady::now();
  if (pending.is_asked || now < pending.ask_from || asking_ >= kMaxProviderRequests)
    co_return answer(waiting, request);
  pending.is_asked = true;
  pending.ask_from = now + pending.interval;
  const auto client = pending.provider;
  const Counted counted(asking_);
  const std::shared_ptr<void> asked_now(nullptr, [this, secret](void*) {
    if (const auto at = devices_.find(secret); at != devices_.end()) at->second.is_asked = false;
  });
  auto polled = co_await client->pollDevice(pending.device_code);
  found = devices_.find(secret);  // others come and go meanwhile
  if (found == devices_.end())
    co_return toResponse({403, "denied", "there is no such login under way (any more)",
                          "begin it anew: muster login"},
                         id);
  if (!polled && polled.error().code() == ErrorCode::Unavailable) {
    co_return answer(waiting, request);  // until its time is over; the code is still good
  }
  if (polled && polled->pending) {
    if (polled->slow_down) found->second.interval += std::chrono::seconds(5);  // RFC 8628, 3.5
    found->second.ask_from = Steady::now() + found->second.interval;
    co_return answer({{"state", "pending"}, {"interval_s", found->second.interval.count()}},
                     request);
  }
  devices_.erase(found);
  if (!polled) co_return toResponse(failedLogin(polled.error()), id);
  auto made = co_await admit(std::move(*polled->login), request);
  if (!made) co_return toResponse(made.error(), id);
  co_return answer({{"state", "done"},
                    {"token", made->secret},
                    {"principal", made->token.principal},
                    {"role", toString(made->token.role)},
                    {"expires_at", muster::toString(made->token.expires_at)}},
                   request);
}

std::vector<io::Route> Logins::routes() {
  using Handle = Task<io::ServerResponse> (Logins::*)(io::ServerRequest);
  const auto route = [this](const char* method, std::string path, Handle handle) {
    return io::Route{
        method,
        std::move(path),
        [this, handle](io::ServerRequest request) { return (this->*handle)(std::move(request)); },
        [](const io::ServerRequest&) { return io::Admission{kMaxBodyBytes, {}}; },
        {}};
  };
  const auto base = std::string(kBasePath) + "/login";
  return {route("GET", "/login", &Logins::begin), route("GET", kCallback, &Logins::comeBack),
          route("GET", base, &Logins::ways), route("POST", base + "/device", &Logins::beginDevice),
          route("POST", base + "/device/poll", &Logins::pollDevice)};
}

}  // namespace muster::api
