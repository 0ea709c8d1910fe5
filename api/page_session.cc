// SPDX-License-Identifier: Apache-2.0
#include "api/page_session.h"

#include "api/request_headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace muster::api {
namespace {

constexpr std::int64_t kLongestSeconds = 400LL * 24 * 3600;  ///< what browsers keep at most

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

constexpr std::string_view kNoToken = "-";  ///< stands for one that is shown and empty

/// The scheme in any case, and as many spaces behind it as a client likes. Another scheme, or one
/// without a token, is a token that does not count: who shows something is not taken for the peer
/// of a socket. Source: RFC 9110, 11.4; RFC 6750, 2.1
std::string_view bearerOf(const io::ServerRequest& request) {
  constexpr std::string_view kScheme = "bearer";
  if (!request.headers.contains("Authorization")) return {};
  const auto text = trimmed(headerOf(request, "Authorization"));
  if (text.empty()) return kNoToken;
  const auto scheme = text.substr(0, text.find(' '));
  const bool is_bearer = std::ranges::equal(
      scheme, kScheme, {}, [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!is_bearer) return text;
  const auto token = trimmed(text.substr(scheme.size()));
  return token.empty() ? text : token;
}

bool changesNothing(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

io::ServerResponse withCookie(std::string_view value, std::int64_t seconds) {
  auto out = io::ServerResponse::text(204, "");
  out.headers["Set-Cookie"] =
      fmt::format("{}={}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={}", kSessionCookie,
                  value, seconds);
  out.headers["Cache-Control"] = "no-store";
  return out;
}

}  // namespace

std::string_view cookieOf(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const auto end = std::min(header.find(';'), header.size());
    const auto pair = trimmed(header.substr(0, end));
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
      return pair.substr(name.size() + 1);
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  return {};
}

std::string_view shownToken(const io::ServerRequest& request) {
  const auto bearer = bearerOf(request);
  if (!bearer.empty() || request.peer) return bearer;
  return cookieOf(headerOf(request, "Cookie"), kSessionCookie);
}

bool isFromOwnPage(const io::ServerRequest& request) {
  const auto site = headerOf(request, "Sec-Fetch-Site");
  const auto origin = headerOf(request, "Origin");
  if (!site.empty() && site != "same-origin") return false;
  if (origin.empty()) return !site.empty();
  const auto host = headerOf(request, "Host");
  return !host.empty() && origin == fmt::format("https://{}", host);
}

std::optional<Problem> refusedOrder(const io::ServerRequest& request) {
  if (changesNothing(request.method) || request.peer || !bearerOf(request).empty() ||
      isFromOwnPage(request))
    return std::nullopt;
  const bool by_cookie = !cookieOf(headerOf(request, "Cookie"), kSessionCookie).empty();
  // A browser shows a certificate by itself, too, but programs that have one say nothing of pages.
  const bool by_browser =
      !headerOf(request, "Sec-Fetch-Site").empty() || !headerOf(request, "Origin").empty();
  if (!by_cookie && !(request.shown_certificate && by_browser)) return std::nullopt;
  return denied("this order came from a page of another site", {});
}

io::ServerResponse sessionBegun(std::string_view token, std::optional<WallTime> expires_at,
                                WallTime now) {
  auto seconds = kLongestSeconds;
  if (expires_at)
    seconds = std::clamp<std::int64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(*expires_at - now).count(), 0,
        kLongestSeconds);
  return withCookie(token, seconds);
}

io::ServerResponse sessionEnded() { return withCookie("", 0); }

}  // namespace muster::api
