// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/dnsmasq_check.h"

#include "base/checked_lines.h"
#include "provision/netboot/netboot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;

constexpr LineLimits kLimits{.lines = 100'000, .line_bytes = kMaxDnsmasqLineBytes};
constexpr std::size_t kMaxInterfaceBytes = 15;  // IFNAMSIZ
constexpr std::size_t kMaxLeaseDigits = 6;

enum class Value {
  None,       ///< the option stands alone
  Exactly,    ///< one of `words`
  Interface,  ///< a name of one
  Count,
  Text,         ///< DHCP's own: what a client is told, and which clients
  OwnFile,      ///< the leases
  SharedFolder  ///< below the folder that the service writes
};

struct Allowed {
  std::string_view option;
  Value value;
  std::array<std::string_view, 2> words{};
};

constexpr std::array kAllowed{
    Allowed{"port", Value::Exactly, {"0", "0"}},
    Allowed{"no-resolv", Value::None},
    Allowed{"no-hosts", Value::None},
    Allowed{"pid-file", Value::Exactly, {"", ""}},
    Allowed{"interface", Value::Interface},
    Allowed{"except-interface", Value::Exactly, {"lo", "lo"}},
    Allowed{"bind-interfaces", Value::None},
    Allowed{"log-dhcp", Value::None},
    Allowed{"user", Value::Exactly, {"dnsmasq", "dnsmasq"}},
    Allowed{"enable-tftp", Value::None},
    Allowed{"tftp-root", Value::SharedFolder},
    Allowed{"tftp-unique-root", Value::Exactly, {"ip", "mac"}},
    Allowed{"dhcp-authoritative", Value::None},
    Allowed{"dhcp-leasefile", Value::OwnFile},
    Allowed{"dhcp-hostsdir", Value::SharedFolder},
    Allowed{"dhcp-lease-max", Value::Count},
    Allowed{"dhcp-match", Value::Text},
    Allowed{"dhcp-userclass", Value::Text},
    Allowed{"dhcp-range", Value::Text},
    Allowed{"dhcp-option", Value::Text},
    Allowed{"dhcp-option-force", Value::Text},
    Allowed{"dhcp-boot", Value::Text},
    Allowed{"pxe-service", Value::Text},
};
/// Without them it would serve DNS, or every network of the host.
constexpr std::array<std::string_view, 3> kNeeded{"port", "interface", "bind-interfaces"};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isInterface(std::string_view name) {
  return !name.empty() && name.size() <= kMaxInterfaceBytes &&
         std::ranges::all_of(name, [](char c) {
           return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  std::string_view("._-@").find(c) != std::string_view::npos;
         });
}

/// No way out of the folder by its name; what a link in it may lead to, the unit's sandbox says.
bool isBelow(std::string_view value, const fs::path& folder) {
  const fs::path path(value);
  if (!path.is_absolute() || path.lexically_normal() != path || value.ends_with('/')) return false;
  const auto rest = path.lexically_relative(folder);
  return !rest.empty() && rest != "." && *rest.begin() != "..";
}

bool isFine(const Allowed& allowed, std::string_view value, const DnsmasqFolders& folders) {
  switch (allowed.value) {
    case Value::None:
      return false;
    case Value::Exactly:
      return std::ranges::find(allowed.words, value) != allowed.words.end();
    case Value::Interface:
      return isInterface(value);
    case Value::Count:
      return !value.empty() && value.size() <= kMaxLeaseDigits &&
             std::ranges::all_of(value, isDigit);
    case Value::Text:
      return !value.empty();
    case Value::OwnFile:
      return fs::path(value) == dnsmasqLeaseFile(folders.own);
    case Value::SharedFolder:
      return isBelow(value, folders.shared);
  }
  return false;
}

Result<void> checkConfiguration(std::string_view text, const DnsmasqFolders& folders) {
  using Text = std::optional<std::string_view>;
  TRY(seen, checkOptions(text, kLimits, '=', kAllowed, [&](const Allowed& allowed, Text value) {
        return value ? isFine(allowed, *value, folders) : allowed.value == Value::None;
      }));
  for (const auto needed : kNeeded)
    if (!seen.contains(needed))
      return fail(ErrorCode::InvalidInput, fmt::format("option {} is missing", needed));
  return {};
}

}  // namespace

Result<void> checkDnsmasqFile(std::string_view name, std::string_view text,
                              const DnsmasqFolders& folders) {
  if (name == kDnsmasqConf) return checkConfiguration(text, folders);
  if (name == dnsmasqLeaseFile("").string())
    return checkLines(text, kLimits, [](std::string_view) { return std::string(); });
  return fail(ErrorCode::InvalidInput, "dnsmasq reads no such file");
}

}  // namespace muster::provision
