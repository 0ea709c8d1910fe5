// SPDX-License-Identifier: Apache-2.0
#include "wire/host_settings.h"

#include "wire/fields.h"

#include <algorithm>

namespace muster::wire {

namespace {

constexpr std::size_t kMaxTextBytes = 4'096, kMaxPemBytes = 64u << 10;
constexpr std::size_t kMaxServers = 16, kMaxAuthorities = 64, kMaxUsers = 512, kMaxKeys = 64,
                      kMaxGroups = 64;
constexpr std::uint64_t kMaxBaud = 4'000'000;
constexpr std::size_t kMaxUserName = 32;
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz", kDigits = "0123456789";
constexpr Text kText{kMaxTextBytes};

bool onlyOf(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}

std::string letters(std::string_view more) {
  return std::string(kLower) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + std::string(kDigits) +
         std::string(more);
}

bool isOneLine(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
}

bool isPlainWord(std::string_view text) {
  return !text.empty() && isOneLine(text) &&
         text.find_first_of(" \"'\\$`;{}()<>|&#") == std::string_view::npos;
}

constexpr auto kServers = [](const std::vector<std::string>& list) -> std::string_view {
  return std::ranges::all_of(list, isTimeServer) ? "" : "has an entry that is no host";
};
constexpr auto kPems = [](const std::map<std::string, std::string>& map) -> std::string_view {
  for (const auto& [name, pem] : map)
    if (name.empty() || name.front() == '.' || !onlyOf(name, letters("._-")) ||
        !isCertificatePem(pem))
      return "has an entry that is no certificate";
  return "";
};
constexpr auto kWordOrNone = [](std::string_view text) -> std::string_view {
  return text.empty() || isPlainWord(text) ? "" : "is not one plain word";
};
constexpr auto kWords = [](const std::vector<std::string>& list) -> std::string_view {
  return std::ranges::all_of(list, isPlainWord) ? "" : "has an entry that is not one plain word";
};
constexpr auto kSshKeys = [](const std::vector<std::string>& list) -> std::string_view {
  const auto good = [](std::string_view key) { return !key.empty() && isOneLine(key); };
  return std::ranges::all_of(list, good) ? "" : "has an entry that is no key";
};
constexpr auto kUserName = [](std::string_view name) -> std::string_view {
  return isUserName(name) ? "" : "is no user name";
};
constexpr auto kUserNames = [](const std::vector<std::string>& list) -> std::string_view {
  return std::ranges::all_of(list, isUserName) ? "" : "has an entry that is no group";
};
constexpr auto kShell = [](std::string_view text) -> std::string_view {
  return text.starts_with('/') && isPlainWord(text) && text.find(':') == std::string_view::npos
             ? ""
             : "is no path of a shell";
};
constexpr auto kHash = [](std::string_view text) -> std::string_view {
  return text.empty() || isPasswordHash(text) ? "" : "is no hash of yescrypt or SHA-512";
};
constexpr auto kUid = [](int uid) -> std::string_view {
  return uid == 0 || (uid >= kLeastUid && uid <= kMostUid) ? "" : "is no user's";
};

constexpr Words<SudoRight, 3> kSudoWords{
    {{SudoRight::None, "none"}, {SudoRight::Password, "password"}, {SudoRight::Free, "free"}}};

}  // namespace

template <>
inline constexpr auto kFields<HostUser> = std::tuple(
    field("name", &HostUser::name, kText).checked(kUserName),
    field("uid", &HostUser::uid, Whole{kMostUid}).checked(kUid).omitted(),
    field("keys", &HostUser::keys, Texts{kMaxKeys, kMaxTextBytes}).checked(kSshKeys).omitted(),
    field("groups", &HostUser::groups, Texts{kMaxGroups, kMaxTextBytes})
        .checked(kUserNames)
        .omitted(),
    field("shell", &HostUser::shell, kText).checked(kShell).omitted(),
    field("sudo", &HostUser::sudo, Word{&kSudoWords, kMaxTextBytes}).omitted(),
    field("password_hash", &HostUser::password_hash, kText).checked(kHash).omitted());

template <>
inline constexpr auto kFields<HostSettings> = std::tuple(
    field("time_servers", &HostSettings::time_servers, Texts{kMaxServers, kMaxTextBytes})
        .checked(kServers)
        .omitted(),
    field("authorities", &HostSettings::authorities, TextMap{kMaxAuthorities, kMaxPemBytes})
        .checked(kPems)
        .omitted(),
    field("http_proxy", &HostSettings::http_proxy, kText).checked(kWordOrNone).omitted(),
    field("https_proxy", &HostSettings::https_proxy, kText).checked(kWordOrNone).omitted(),
    field("no_proxy", &HostSettings::no_proxy, Texts{kMaxGroups, kMaxTextBytes})
        .checked(kWords)
        .omitted(),
    field("users", &HostSettings::users, Items{kMaxUsers}).omitted(),
    field("ssh_user_authorities", &HostSettings::ssh_user_authorities,
          Texts{kMaxKeys, kMaxTextBytes})
        .checked(kSshKeys)
        .omitted(),
    field("crash_kernel", &HostSettings::crash_kernel, kText).checked(kWordOrNone).omitted(),
    field("serial_console", &HostSettings::serial_console, kText).checked(kWordOrNone).omitted(),
    field("serial_baud", &HostSettings::serial_baud, Whole{kMaxBaud}).omitted());

std::string toJson(const HostSettings& settings) { return printMessage(settings); }

Result<HostSettings> parseHostSettings(std::string_view text) {
  return parseMessage<HostSettings>(text, kMaxHostSettingsBytes, "the settings of a host",
                                    "settings");
}

bool isUserName(std::string_view name) {
  static const std::string kFirst = std::string(kLower) + "_",
                           kRest = std::string(kLower) + std::string(kDigits) + "_-";
  return !name.empty() && name.size() <= kMaxUserName && onlyOf(name.substr(0, 1), kFirst) &&
         onlyOf(name, kRest);
}

bool isPasswordHash(std::string_view text) {
  constexpr std::size_t kSha512Chars = 86, kLeastParts = 4;
  static const std::string kHashLetters = letters("./$="), kEnd = letters("./");
  if ((!text.starts_with("$y$") && !text.starts_with("$6$")) || text.size() > kMaxTextBytes ||
      !onlyOf(text, kHashLetters))
    return false;
  const auto parts = static_cast<std::size_t>(std::ranges::count(text, '$'));
  const auto hash = text.substr(text.rfind('$') + 1);
  if (text.starts_with("$6$"))
    return parts >= kLeastParts - 1 && hash.size() == kSha512Chars && onlyOf(hash, kEnd);
  constexpr std::size_t kYescryptChars = 43;
  return parts == kLeastParts && hash.size() == kYescryptChars && onlyOf(hash, kEnd);
}

bool isTimeServer(std::string_view text) {
  constexpr std::size_t kMaxName = 253;
  static const std::string kHostLetters = letters(".-"),
                           kAddressLetters = "0123456789abcdefABCDEF:";
  return !text.empty() && text.size() <= kMaxName && text.front() != '-' && text.front() != '.' &&
         (onlyOf(text, kHostLetters) ||
          (onlyOf(text, kAddressLetters) && text.find(':') != std::string_view::npos));
}

bool isCertificatePem(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----",
                             kEnd = "-----END CERTIFICATE-----";
  static const std::string kBody = letters("+/=\r\n");
  bool any = false;
  for (;;) {
    const auto at = text.find("-----BEGIN ");
    if (at == std::string_view::npos) return any && text.find("PRIVATE KEY") == text.npos;
    if (!text.substr(at).starts_with(kBegin)) return false;
    const auto body = text.substr(at + kBegin.size());
    const auto end = body.find(kEnd);
    if (end == std::string_view::npos || !onlyOf(body.substr(0, end), kBody)) return false;
    any = true;
    text = body.substr(end + kEnd.size());
  }
}

}  // namespace muster::wire
