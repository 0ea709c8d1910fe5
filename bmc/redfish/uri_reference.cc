// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/uri_reference.h"

#include "base/io/http.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace muster::bmc {
namespace {

constexpr std::size_t kShownLinkBytes = 200;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool hasOddBytes(std::string_view link) {
  return std::ranges::any_of(link, [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
}

/// "https:…" or "//host/…"; else "".
std::string wholeAddress(const std::string& link, std::string_view scheme) {
  if (link.starts_with("//")) return std::string(scheme) + ":" + link;
  const auto colon = link.find(':');
  return colon != std::string::npos && link.find_first_of("/?#") > colon ? link : std::string();
}

}  // namespace

Result<std::string> resolveReference(const std::string& base_url, std::string_view from,
                                     const std::string& link) {
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the BMC at {} answered with {}: {}, which is not followed", base_url,
                            what, cutToBytes(link, kShownLinkBytes)));
  };
  if (link.empty() || hasOddBytes(link)) return refuse("a link that is no URI reference");
  TRY(own, io::Url::parse(base_url));
  if (const auto whole = wholeAddress(link, own.scheme); !whole.empty()) {
    const auto url = io::Url::parse(whole);
    if (!url) return refuse("a link that is no URI reference");
    if (lower(url->host) != lower(own.host) || url->scheme != own.scheme || url->port != own.port)
      return refuse("an address of another host");
    return url->target;
  }
  if (link.front() == '/') return link;
  const auto path = from.substr(0, from.find_first_of("?#"));
  if (link.front() == '?' || link.front() == '#') return std::string(path) + link;
  const auto slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash)) + "/" + link;
}

}  // namespace muster::bmc
