// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/apt_filter.h"

#include "base/io/process.h"
#include "base/log.h"
#include "base/printable.h"

#include <algorithm>
#include <span>
#include <vector>

namespace muster::provision {
namespace {

/// Of apt 2.6 to 3.0 (methods/http.cc, basehttp.cc, connect.cc): what has no host and no scheme.
constexpr std::string_view kSettings[] = {
    "Acquire::AllowTLS",        "Acquire::BlockDotOnion",    "Acquire::Connect::AddrConfig",
    "Acquire::Connect::IDN",    "Acquire::EnableSrvRecords", "Acquire::ForceIPv4",
    "Acquire::ForceIPv6",       "Acquire::Failure::ShowIP",  "Acquire::Retries",
    "Acquire::Send-URI-Encoded"};
/// Acquire::http::NAME, Acquire::http::HOST::NAME, and of https.
constexpr std::string_view kSettingsOfScheme[] = {
    "AllowRanges", "AllowRedirect",  "ConnectionAttemptDelayMsec",
    "Dl-Limit",    "Max-Age",        "No-Cache",
    "No-Store",    "Pipeline-Depth", "SendAccept",
    "Timeout",     "Verify-Host",    "Verify-Peer"};
constexpr std::string_view kFilesOfScheme[] = {"CaInfo", "SslCert", "SslKey"};
constexpr std::string_view kProxySchemes[] = {"http://", "https://", "socks5h://"};
constexpr std::string_view kAcquireFields[] = {
    "URI", "Filename", "Proxy", "Last-Modified", "Index-File", "Fail-Ignore", "Maximum-Size"};
constexpr std::string_view kExpected = "Expected-";

bool isIn(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::any_of(names, [&](auto each) { return isSameAptName(each, name); });
}

bool hasControls(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool isProxy(std::string_view value) {
  return value == "DIRECT" ||
         std::ranges::any_of(kProxySchemes, [&](auto each) { return value.starts_with(each); });
}

std::vector<std::string_view> partsOf(std::string_view name) {
  std::vector<std::string_view> out;
  while (true) {
    const auto end = name.find("::");
    out.push_back(name.substr(0, end));
    if (end == std::string_view::npos) return out;
    name.remove_prefix(end + 2);
  }
}

bool isOfHost(std::string_view name, std::string_view value, const std::string& settings) {
  for (std::string_view left = settings; !left.empty();) {
    const auto line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const auto equals = line.find('=');
    if (equals != std::string_view::npos && isSameAptName(line.substr(0, equals), name) &&
        line.substr(equals + 1) == value)
      return true;
  }
  return false;
}

bool isPassedOn(std::string_view name, std::string_view value, const HostSettings& host) {
  if (isIn(kSettings, name)) return true;
  const auto parts = partsOf(name);
  if (parts.size() < 3 || parts.size() > 4 || !isSameAptName(parts[0], "Acquire") ||
      !(isSameAptName(parts[1], "http") || isSameAptName(parts[1], "https")))
    return false;
  if (isSameAptName(parts[2], "Proxy")) {  // and Proxy::HOST
    if (isProxy(value)) return true;
    if (!value.empty())
      logWarning("image", "{} is no proxy of http, https or socks5h, and left out",
                 printable(name));  // not what it is: that may have a password
    return false;
  }
  if (isIn(kSettingsOfScheme, parts.back())) return true;
  return isIn(kFilesOfScheme, parts.back()) && isOfHost(name, value, host());
}

}  // namespace

std::string readHostSettings() {
  io::Command ask{.program = "apt-config", .args = {"dump", "--format", "%F=%v%n"}};
  return io::runChecked(ask).value_or("");
}

AptMessage filteredConfiguration(const AptMessage& asked, const HostSettings& host) {
  // Made anew: apt's method finds "Config-Item:" anywhere in a message.
  AptMessage out{apt::kConfiguration, "Configuration", {}};
  std::string settings;
  const HostSettings once = [&] { return settings.empty() ? settings = host() : settings; };
  for (const auto& [field, item] : asked.fields) {
    const auto equals = item.find('=');
    if (!isSameAptName(field, "Config-Item") || equals == std::string::npos) continue;
    const auto name = aptUnquoted(item.substr(0, equals));
    const auto value = aptUnquoted(item.substr(equals + 1));
    if (!hasControls(name) && !hasControls(value) && isPassedOn(name, value, once))
      out.fields.emplace_back("Config-Item", item);
  }
  return out;
}

AptMessage filteredAcquire(const AptMessage& asked) {
  AptMessage out{apt::kUriAcquire, "URI Acquire", {}};
  for (const auto& [name, value] : asked.fields) {
    const bool is_known =
        isIn(kAcquireFields, name) || (name.size() > kExpected.size() &&
                                       isSameAptName(name.substr(0, kExpected.size()), kExpected));
    if (!is_known || out.field(name) || hasControls(aptUnquoted(value))) continue;
    if (isSameAptName(name, "Proxy") && !isProxy(value)) continue;
    out.fields.emplace_back(name, value);
  }
  return out;
}

}  // namespace muster::provision
