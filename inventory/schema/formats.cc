// SPDX-License-Identifier: Apache-2.0
#include "inventory/schema/formats.h"

#include "inventory/model/firmware.h"
#include "inventory/model/opensm_routing.h"
#include "wire/disk_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::inventory {

namespace {

constexpr std::size_t kMaxHostNameLength = 63;
constexpr std::size_t kSha256Digits = 64;
constexpr std::size_t kMaxUrlLength = 255;
constexpr int kMaxPort = 65535;
constexpr std::size_t kMaxLabelWord = 63;
constexpr std::size_t kMaxLabelPrefix = 253;

std::unexpected<Error> say(std::string suggestion) {
  return fail(ErrorCode::InvalidInput, std::move(suggestion));
}

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool hasSpace(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
}

/// A word of Kubernetes' labels and taints: letters, digits, '.', '_', '-' inside.
bool isLabelWord(std::string_view text, std::size_t limit) {
  auto end = [](char c) { return lower(c) || upper(c) || digit(c); };
  auto good = [end](char c) { return end(c) || c == '.' || c == '_' || c == '-'; };
  return !text.empty() && text.size() <= limit && end(text.front()) && end(text.back()) &&
         std::all_of(text.begin(), text.end(), good);
}

}  // namespace

Result<void> checkHostName(std::string_view text) {
  if (text.empty() || text.size() > kMaxHostNameLength)
    return say(fmt::format("1 to {} characters", kMaxHostNameLength));
  if (std::any_of(text.begin(), text.end(), upper))
    return say("write it in lower case: host names do not tell cases apart");
  if (text.front() == '-' || text.back() == '-') return say("it cannot begin or end with '-'");
  auto good = [](char c) { return lower(c) || digit(c) || c == '-'; };
  if (!std::all_of(text.begin(), text.end(), good))
    return say("use lower-case letters, digits and '-', without a domain");
  return {};
}

Result<void> checkSha256(std::string_view text) {
  auto good = [](char c) { return digit(c) || (c >= 'a' && c <= 'f'); };
  if (text.starts_with("sha256:")) return say("leave out \"sha256:\"");
  if (text.size() != kSha256Digits)
    return say(fmt::format("it has {} characters, a digest has 64 hex digits; see: sha256sum FILE",
                           text.size()));
  if (std::any_of(text.begin(), text.end(), upper)) return say("write it in lower case");
  if (!std::all_of(text.begin(), text.end(), good))
    return say("only the digits 0-9 and a-f; see: sha256sum FILE");
  return {};
}

/// A group address is no machine's: nothing would ever answer. Source: IEEE 802-2014, 8.2.2
Result<void> checkMac(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return c == '0' || c == ':' || c == '-'; }))
    return fail(
        ErrorCode::InvalidInput,
        "it is zero, which is what firmware shows for a NIC that is missing; see its label, "
        "or: ip link");
  const auto second = text.size() < 2 ? '0' : text[1];
  const bool group = std::string_view("13579bdfBDF").find(second) != std::string_view::npos;
  if (!group) return {};
  return fail(
      ErrorCode::InvalidInput,
      "it is a group address (multicast or broadcast), which no machine has; see its label, "
      "or: ip link");
}

Result<void> checkVersion(std::string_view text) {
  constexpr std::size_t kMaxVersionBytes = 128;
  const auto bare = trimmedVersion(text);
  const bool printable =
      std::ranges::all_of(bare, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
  if (!bare.empty() && bare.size() <= kMaxVersionBytes && printable) return {};
  return fail(ErrorCode::InvalidInput,
              "write it as the BMC prints it: 1 to 128 printable characters; see: muster firmware "
              "show");
}

Result<void> checkFingerprint(std::string_view text) {
  constexpr std::string_view kHow =
      "see: muster discover scan, muster bmc show, or openssl x509 -noout -fingerprint -sha256 -in "
      "FILE";
  std::string digits(text);
  std::erase(digits, ':');
  const bool pairs =
      digits.size() == text.size() || text.size() == kSha256Digits + kSha256Digits / 2 - 1;
  if (digits.size() != kSha256Digits || !pairs)
    return say(
        fmt::format("it has {} hex digits, a SHA-256 fingerprint has 64; {}", digits.size(), kHow));
  if (!std::all_of(digits.begin(), digits.end(),
                   [](unsigned char c) { return std::isxdigit(c) != 0; }))
    return say(fmt::format("only hex digits, perhaps in pairs with ':'; {}", kHow));
  return {};
}

Result<void> checkSshHostKey(std::string_view text) {
  const bool known = text.starts_with("ssh-") || text.starts_with("ecdsa-");
  const auto blank = text.find(' ');
  const auto base64 = blank == std::string_view::npos
                          ? std::string_view()
                          : text.substr(blank + 1, text.find(' ', blank + 1) - blank - 1);
  if (!known || base64.size() < 16 || text.find('\n') != std::string_view::npos)
    return say(
        "write TYPE and BASE64 as one line of ssh-keyscan shows them, without the host: "
        "ssh-ed25519 AAAA…");
  return {};
}

Result<void> checkSshKey(std::string_view text) {
  if (text.find("PRIVATE KEY") != std::string_view::npos)
    return say("this is a private key: write the .pub file's line, and replace the key");
  bool known = text.starts_with("ssh-") || text.starts_with("ecdsa-") || text.starts_with("sk-");
  if (!known || text.find(' ') == std::string_view::npos)
    return say("write one line of a .pub file: ssh-ed25519 AAAA… name");
  return {};
}

/// "3TB", "1.92TB", "400GiB".
bool isDiskSize(std::string_view text) {
  const auto unit = text.find_first_not_of("0123456789.");
  if (unit == 0 || unit == std::string_view::npos || unit > 8) return false;
  text.remove_prefix(unit);
  return text == "GB" || text == "TB" || text == "MiB" || text == "GiB" || text == "TiB";
}

Result<void> checkDisk(std::string_view text) {
  if (text.starts_with("/dev/"))
    return say(
        "device names change from boot to boot: write serial:…, wwn:… or smallest (see: lsblk -o "
        "NAME,SERIAL,WWN)");
  if (text == "smallest") return {};
  for (std::string_view kind : {"serial:", "wwn:"})
    if (text.starts_with(kind) && text.size() > kind.size() && !hasSpace(text)) return {};
  if (const auto dash = text.find('-'); text.starts_with("size:") && dash != std::string_view::npos)
    if (isDiskSize(text.substr(5, dash - 5)) &&
        (dash + 1 == text.size() || isDiskSize(text.substr(dash + 1)))) {
      if (wire::DiskRule::parse(text)) return {};
      return say("no disk is that large and that small: the lower size stands first");
    }
  return say("write serial:…, wwn:…, smallest or size:LOW-HIGH (size:3TB-, size:400GB-500GB)");
}

Result<void> checkKernelArgument(std::string_view text) {
  if (text.empty() || hasSpace(text)) return say("one argument each: [a=1, b=2]");
  if (text.starts_with("muster.")) return say("arguments that begin with muster. are muster's own");
  return {};
}

Result<void> checkBmcUrl(std::string_view text) {
  if (text.size() > kMaxUrlLength || hasSpace(text)) return say("for example https://10.20.250.1");
  auto hostChar = [](char c) { return lower(c) || upper(c) || digit(c) || c == '.' || c == '-'; };
  if (text.starts_with("libvirt:")) {
    std::string_view domain = text.substr(8);
    if (domain.empty() ||
        !std::all_of(domain.begin(), domain.end(), [&](char c) { return hostChar(c) || c == '_'; }))
      return say("write libvirt:DOMAIN");
    return {};
  }
  if (text.starts_with("http://"))
    return say("plain http would send the password in clear: write https://…");
  if (!text.starts_with("https://")) {
    bool bare = !text.empty() && std::all_of(text.begin(), text.end(), hostChar);
    return say(bare ? fmt::format("write https://{}", text)
                    : "for example https://10.20.250.1, or libvirt:DOMAIN");
  }
  std::string_view rest = text.substr(8);
  if (auto user = rest.find('@'); user != std::string_view::npos) {
    if (rest.substr(0, user).find(':') != std::string_view::npos)
      return say("no password in a URL: declare it under credentials");
    if (user == 0) return say("remove the '@'");
    rest.remove_prefix(user + 1);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('/') != std::string_view::npos) return say("only the host, without a path");
  if (rest.find(':') != rest.rfind(':') || rest.starts_with('['))
    return say("a BMC has an IPv4 address or a name here: give its IPv6 address a name in DNS");
  if (auto colon = rest.find(':'); colon != std::string_view::npos) {
    std::string_view port = rest.substr(colon + 1);
    bool good = !port.empty() && port.size() <= 5 && std::all_of(port.begin(), port.end(), digit);
    if (!good || std::stoi(std::string(port)) > kMaxPort || std::stoi(std::string(port)) == 0)
      return say("the port is a number from 1 to 65535");
    rest = rest.substr(0, colon);
  }
  if (rest.empty() || !std::all_of(rest.begin(), rest.end(), hostChar))
    return say("for example https://10.20.250.1");
  return {};
}

Result<void> checkServerUrl(std::string_view text) {
  if (text.starts_with("http://"))
    return say("plain http would send the token in clear: write https://…");
  if (!text.starts_with("https://")) return say(fmt::format("write https://{}", text));
  std::string_view rest = text.substr(8);
  const auto slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  std::string_view path = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  if (authority.find('@') != std::string_view::npos)
    return say("no account in a URL: declare token, or client_certificate and client_key");
  if (path.find_first_of("?#") != std::string_view::npos)
    return say("only scheme, host, port and path: no '?' and no '#'");
  if (path.starts_with("/api"))
    return say("leave out the path of the API itself: only what stands before /api");
  TRY_OK(checkBmcUrl("https://" + std::string(authority)));
  auto good = [](char c) {
    return lower(c) || upper(c) || digit(c) || c == '.' || c == '_' || c == '~' || c == '/' ||
           c == '-';
  };
  if (!std::all_of(path.begin(), path.end(), good))
    return say("the path has letters, digits, '.', '_', '~', '-' and '/' only");
  return {};
}

Result<void> checkTaint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return say(fmt::format("say the effect: {}:NoSchedule", text));
  const auto effect = text.substr(colon + 1);
  if (effect == "NoExecute")
    return say(
        "NoExecute ends pods without asking their disruption budgets; write NoSchedule, muster "
        "evicts them itself");
  if (effect == "PreferNoSchedule")
    return say("PreferNoSchedule lets pods in all the same; write NoSchedule");
  const auto name = text.substr(0, colon);
  const auto equals = name.find('=');
  const auto key = name.substr(0, equals);
  const auto slash = key.find('/');
  const bool good_prefix =
      slash == std::string_view::npos ||
      (isLabelWord(key.substr(0, slash), kMaxLabelPrefix) &&
       std::none_of(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(slash),
                    [](char c) { return upper(c) || c == '_'; }));
  const bool good_value = equals == std::string_view::npos || equals + 1 == name.size() ||
                          isLabelWord(name.substr(equals + 1), kMaxLabelWord);
  if (effect != "NoSchedule" || !good_prefix || !good_value ||
      !isLabelWord(key.substr(slash == std::string_view::npos ? 0 : slash + 1), kMaxLabelWord))
    return say("write KEY:NoSchedule or KEY=VALUE:NoSchedule, as in kubectl taint");
  return {};
}

Result<void> checkRouting(std::string_view text) {
  const auto unknown = unknownRouting(text);
  if (unknown.empty()) return {};
  return say(fmt::format("{} is no engine that OpenSM has without a file of its own; one of {}",
                         unknown, fmt::join(kRoutingEngines, ", ")));
}

namespace {

const std::string& routingPattern() {
  static const auto pattern = fmt::format("^({0})(,({0}))*$", fmt::join(kRoutingEngines, "|"));
  return pattern;
}

}  // namespace

const TextFormat kRouting{"one OpenSM routing engine, or several in order of preference",
                          routingPattern(), "ftree", checkRouting};

}  // namespace muster::inventory
