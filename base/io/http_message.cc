// SPDX-License-Identifier: Apache-2.0
// HTTP words without a network: URLs, queries, headers.
#include "base/io/http.h"

#include <fmt/format.h>

#include <strings.h>
#include <algorithm>
#include <boost/asio/ip/address_v6.hpp>
#include <charconv>

namespace muster::io {

namespace {

std::optional<char> hexPair(std::string_view two) {
  unsigned value = 0;  // a signed one would take "-1"
  const auto [end, error] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
  if (error != std::errc() || end != two.data() + two.size() || two.size() != 2)
    return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(value));
}

/// A broken escape stays as it is.
std::string percentDecode(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto escaped = text[i] == '%' ? hexPair(text.substr(i + 1, 2)) : std::nullopt;
    if (escaped) {
      out += *escaped;
      i += 2;
    } else {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

bool CaseLess::operator()(const std::string& a, const std::string& b) const {
  return ::strcasecmp(a.c_str(), b.c_str()) < 0;
}

Result<Url> Url::parse(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is not an HTTP address: {}", text, why));
  };
  Url url;
  std::string_view rest = text;
  const auto colon = rest.find("://");
  if (colon == std::string_view::npos) return bad("write it as https://host:port/path");
  url.scheme = std::string(rest.substr(0, colon));
  std::transform(url.scheme.begin(), url.scheme.end(), url.scheme.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (url.scheme != "http" && url.scheme != "https") return bad("the scheme must be http or https");
  rest.remove_prefix(colon + 3);
  const auto slash = rest.find_first_of("/?#");
  std::string_view authority = rest.substr(0, slash);
  std::string_view target =
      slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  target = target.substr(0, target.find('#'));
  url.target =
      target.empty() || target.front() != '/' ? "/" + std::string(target) : std::string(target);
  if (authority.find('@') != std::string_view::npos) return bad("it must not hold a user name");
  std::string_view port;
  if (!authority.empty() && authority.front() == '[') {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return bad("the bracket is not closed");
    url.host = std::string(authority.substr(1, close - 1));
    port = authority.substr(close + 1);
    boost::system::error_code not_v6;
    boost::asio::ip::make_address_v6(url.host, not_v6);
    if (!url.host.empty() && not_v6) return bad("only an IPv6 address stands in brackets");
  } else {
    const auto at = authority.find(':');
    url.host = std::string(authority.substr(0, at));
    port = at == std::string_view::npos ? std::string_view() : authority.substr(at);
  }
  if (url.host.empty()) return bad("the host is missing");
  if (url.host.find_first_of("[]") != std::string::npos)
    return bad("a host name holds no brackets");
  const auto unclean = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (std::any_of(url.host.begin(), url.host.end(), unclean) ||
      std::any_of(url.target.begin(), url.target.end(), unclean)) {
    return bad("it holds blanks or control characters");
  }
  url.port = url.scheme == "https" ? 443 : 80;
  if (!port.empty()) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(port.data() + 1, port.data() + port.size(), value);
    if (port.front() != ':' || error != std::errc() || end != port.data() + port.size() ||
        value == 0 || value > 65535) {
      return bad("the port must be 1…65535");
    }
    url.port = static_cast<std::uint16_t>(value);
  }
  return url;
}

std::string Url::origin() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", scheme, v6 ? "[" : "", host, v6 ? "]" : "", port);
}

std::string Url::str() const { return origin() + target; }

std::map<std::string, std::string> queryOf(std::string_view target) {
  std::map<std::string, std::string> out;
  const auto mark = target.find('?');
  if (mark == std::string_view::npos) return out;
  std::string_view rest = target.substr(mark + 1);
  rest = rest.substr(0, rest.find('#'));
  while (!rest.empty()) {
    const auto pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto value =
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    out[percentDecode(pair.substr(0, equals), true)] = percentDecode(value, true);
  }
  return out;
}

std::string pathOf(std::string_view target) {
  return percentDecode(target.substr(0, target.find_first_of("?#")), false);
}

std::string percentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(u) || c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", u);
    }
  }
  return out;
}

std::string HttpResponse::header(const std::string& name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? std::string() : it->second;
}

ServerResponse ServerResponse::text(int status, std::string body) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body)};
}

ServerResponse ServerResponse::json(int status, const std::string& body) {
  return {status, {{"Content-Type", "application/json"}}, body};
}

ServerResponse ServerResponse::file(FileBody body) {
  ServerResponse response;
  response.headers["Content-Type"] = body.content_type;
  response.body = std::move(body);
  return response;
}

ServerResponse ServerResponse::stream(StreamBody body) {
  ServerResponse response;
  response.headers["Content-Type"] = body.content_type;
  response.body = std::move(body);
  return response;
}

}  // namespace muster::io
