// SPDX-License-Identifier: Apache-2.0
#include "bmc/withheld_words.h"

#include "bmc/spelled_secret.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace muster::bmc {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSpellings = 64;  ///< of two passwords, and of the tokens since
constexpr std::string_view kCut = "(withheld)";
constexpr std::string_view kWhole = "(withheld: its words hold a secret)";

/// Members that are words for people, wherever they stand. Source: DSP0266 "Error responses",
/// DSP2046 LogEntry, Task, Event
constexpr std::array<std::string_view, 5> kWords = {"Message", "message", "MessageArgs",
                                                    "Resolution", "RecommendedAction"};
/// Members of an error that are decided by, or followed.
constexpr std::array<std::string_view, 5> kNoWords = {"MessageId", "code", "@odata.id",
                                                      "@odata.type", "@odata.context"};

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool isOfWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool standsAsWord(std::string_view text, std::string_view word) {
  for (auto at = findSpelled(text, word); at; at = findSpelled(text, word, at->begin + 1)) {
    const bool begins = at->begin == 0 || !isOfWord(text[at->begin - 1]) || !isOfWord(word.front());
    const bool ends = at->end == text.size() || !isOfWord(text[at->end]) || !isOfWord(word.back());
    if (begins && ends) return true;
  }
  return false;
}

void cutOut(std::string& text, std::string_view secret) {
  for (auto at = findSpelled(text, secret); at;
       at = findSpelled(text, secret, at->begin + kCut.size()))
    text.replace(at->begin, at->end - at->begin, kCut);
}

/// Base64 without its padding, and in the alphabet of URLs (RFC 4648 5).
std::string inUrlAlphabet(std::string base64) {
  std::ranges::replace(base64, '+', '-');
  std::ranges::replace(base64, '/', '_');
  return base64;
}

}  // namespace

void WithheldWords::keep(std::string spelling) {
  Secret kept(std::move(spelling));
  if (kept.empty()) return;
  std::erase(spellings_, kept);
  if (spellings_.size() == kMaxSpellings) spellings_.erase(spellings_.begin());
  spellings_.push_back(std::move(kept));
}

void WithheldWords::add(const Secret& password) { keep(password.reveal()); }

void WithheldWords::addToken(std::string_view token) {
  const auto blank = token.find(' ');
  const auto secret = blank == std::string_view::npos ? token : token.substr(blank + 1);
  if (secret.size() < kLeastCutBytes) return;
  const auto bare = secret.substr(0, secret.find_last_not_of('=') + 1);
  for (const auto each : {secret, bare}) {
    keep(inUrlAlphabet(std::string(each)));
    keep(std::string(each));
  }
}

std::string WithheldWords::without(std::string text) const {
  std::vector<std::string_view> longest_first;
  for (const auto& spelling : spellings_) longest_first.emplace_back(spelling.reveal());
  std::ranges::sort(longest_first, std::ranges::greater(), &std::string_view::size);
  for (const auto secret : longest_first) {
    if (secret.size() >= kLeastCutBytes)
      cutOut(text, secret);
    else if (standsAsWord(text, secret))
      return std::string(kWhole);
  }
  return text;
}

Error WithheldWords::without(const Error& error) const {
  Error out = Error(error.code(), without(error.text())).retryable(error.canRetry());
  for (const auto& context : error.context()) out.within(without(context));
  for (const auto& reason : error.reasons()) out = std::move(out).because(reason);
  if (error.where()) out = std::move(out).at(*error.where());
  return out;
}

void WithheldWords::takeOutOf(json& body, bool is_error) const {
  if (spellings_.empty()) return;
  if (body.is_string()) {
    if (!is_error) return;
    auto& text = body.get_ref<std::string&>();
    // A path is followed: a short secret in it is chance.
    if (!text.starts_with("/redfish/")) text = without(std::move(text));
    return;
  }
  if (body.is_object()) {
    for (auto& [name, value] : body.items())
      if (!has(kNoWords, name)) takeOutOf(value, is_error || has(kWords, name));
  } else if (body.is_array()) {
    for (auto& value : body) takeOutOf(value, is_error);
  }
}

std::string imageWithoutSecrets(const std::string& url) {
  const auto scheme = url.find("://");
  const auto begin = scheme != std::string::npos                        ? scheme + 3
                     : url.starts_with("//") || url.starts_with("\\\\") ? 2
                                                                        : 0;
  std::string_view rest = std::string_view(url).substr(begin);
  const auto host = rest.substr(0, rest.find_first_of("/\\?#"));
  const auto colon = host.rfind(':');
  const auto port = colon == std::string_view::npos ? "0" : host.substr(colon + 1);
  // Nobody writes a '/' of a password as %2F who writes passwords into URLs.
  const bool is_host = !host.contains('@') && !port.empty() &&
                       port.find_first_not_of("0123456789") == std::string_view::npos;
  std::string out = url.substr(0, begin);
  if (const auto at = rest.rfind('@'); !is_host && at != std::string_view::npos) {
    out += kCut;
    rest.remove_prefix(at);
  }
  const auto query = rest.find('?');
  out += rest.substr(0, query);
  return query == std::string_view::npos ? out : out + "?" + std::string(kCut);
}

}  // namespace muster::bmc
