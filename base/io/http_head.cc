// SPDX-License-Identifier: Apache-2.0
#include "base/io/http_head.h"

#include "base/io/http.h"

#include <boost/beast/core/string.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::io {

namespace http = boost::beast::http;

namespace {

/// Two readers would take two different ones of their values (RFC 9110, 5.3).
constexpr std::array<std::string_view, 6> kOnceOnly = {
    "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "Last-Event-ID", "Origin"};

bool isControl(char c) {
  const auto u = static_cast<unsigned char>(c);
  return (u < 0x20 && c != '\t' && c != '\r' && c != '\n') || u == 0x7f;
}

bool isDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::size_t countOf(const http::fields& fields, http::field name) {
  const auto range = fields.equal_range(name);
  return static_cast<std::size_t>(std::distance(range.first, range.second));
}

}  // namespace

HeadRefusal HeadScanner::scan(std::string_view received) {
  while (at_ < received.size() && !complete_) {
    const char c = received[at_];
    if (isControl(c)) return {400, "a control character in the head"};
    if (at_ == line_ && (c == ' ' || c == '\t'))
      return {400, "a folded or indented line in the head"};
    if (at_ > 0 && received[at_ - 1] == '\r' && c != '\n')
      return {400, "a carriage return without a line feed"};
    if (c == '\n')
      if (const auto refusal = lineEnds(received, at_)) return refusal;
    ++at_;
    if (first_ && at_ > kRequestLineLimitBytes) return {414, "the request line is too long"};
    if (at_ > kHeadLimitBytes) return {431, "the headers are too long"};
  }
  return {};
}

HeadRefusal HeadScanner::lineEnds(std::string_view received, std::size_t feed) {
  if (feed == 0 || received[feed - 1] != '\r')
    return {400, "a line feed without a carriage return"};
  const bool empty = feed - 1 == line_;
  if (empty && first_) return {400, "the request line is missing"};
  if (!empty && !first_ && ++fields_ > kHeaderFieldLimit) return {431, "too many headers"};
  complete_ = empty;
  first_ = false;
  line_ = feed + 1;
  return {};
}

HeadRefusal checkHead(const http::header<true, http::fields>& head) {
  const auto lengths = countOf(head, http::field::content_length),
             encodings = countOf(head, http::field::transfer_encoding);
  if (lengths > 1 || encodings > 1 || (lengths > 0 && encodings > 0))
    return {400, "the length of the body is said more than once"};
  if (lengths == 1 && !isDigits(head[http::field::content_length]))
    return {400, "Content-Length is not a number"};
  if (encodings == 1) {
    if (head.version() < 11) return {400, "a transfer encoding in HTTP/1.0"};
    if (!boost::beast::iequals(head[http::field::transfer_encoding], "chunked"))
      return {501, "only the chunked transfer encoding is known"};
  }
  const auto hosts = countOf(head, http::field::host);
  if (hosts > 1) return {400, "more than one Host"};
  if (hosts == 0 && head.version() >= 11) return {400, "no Host"};
  for (const auto name : kOnceOnly)
    if (const auto range = head.equal_range(name); std::distance(range.first, range.second) > 1)
      return {400, "a header that has one value was sent more than once"};
  if (const auto fault = faultOfTarget(head.target()); !fault.empty()) return {400, fault};
  return {};
}

std::string_view faultOfTarget(std::string_view target) {
  const auto raw = target.substr(0, target.find('?'));
  if (raw.empty() || raw.front() != '/') return "the path does not begin with \"/\"";
  if (raw.starts_with("//")) return "the path begins with \"//\"; write one";
  if (raw.contains('#')) return "the path has a \"#\"; write %23 where it belongs to a name";
  constexpr std::string_view kBackslash = "the path has a backslash; write \"/\" between its parts";
  if (raw.contains('\\')) return kBackslash;
  const auto path = pathOf(raw);
  // An escaped separator is a part of a name for one program and a separator for the next.
  if (std::count(path.begin(), path.end(), '/') != std::count(raw.begin(), raw.end(), '/'))
    return "a part of the path has an encoded \"/\" (%2F); no name has one";
  if (path.contains('\\')) return kBackslash;
  if (std::any_of(path.begin(), path.end(), isControl) || path.find_first_of("\r\n") != path.npos)
    return "a part of the path has a line break or control character";
  for (std::size_t at = 0; (at = path.find("/..", at)) != std::string::npos; at += 3)
    if (at + 3 == path.size() || path[at + 3] == '/')
      return "the path has a part \"..\"; write where it leads to";
  return {};
}

}  // namespace muster::io
