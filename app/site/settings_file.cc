// SPDX-License-Identifier: Apache-2.0
#include "app/site/settings_file.h"

#include "base/io/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace muster::app {
namespace {

constexpr std::size_t kMaxSettingsBytes = 64 << 10;
constexpr std::array<std::string_view, 12> kSettings{
    "MUSTER_INVENTORY",  "MUSTER_STATE",     "MUSTER_STORE",       "MUSTER_CACHE",
    "MUSTER_LAB",        "MUSTER_ADDRESS",   "MUSTER_ALLOW_PATH",  "MUSTER_SERVER",
    "MUSTER_TOKEN_FILE", "MUSTER_SERVER_CA", "MUSTER_CLIENT_CERT", "MUSTER_CLIENT_KEY"};

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

Result<std::map<std::string, std::string>> parseSettings(std::string_view text,
                                                         const std::filesystem::path& file) {
  std::map<std::string, std::string> out;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const auto wrong = [&](const std::string& what) {
      return fail(ErrorCode::InvalidInput, fmt::format("{}:{}: {}", file.string(), number, what));
    };
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) return wrong("expected KEY=VALUE");
    const auto key = trimmed(line.substr(0, equals));
    auto value = trimmed(line.substr(equals + 1));
    if (std::ranges::find(kSettings, key) == kSettings.end())
      return wrong(
          fmt::format("there is no setting \"{}\"; there are {}", key, fmt::join(kSettings, ", ")));
    if (!value.empty() && value.front() == '"') {
      if (value.size() < 2 || value.back() != '"') return wrong("the quote is not closed");
      value = value.substr(1, value.size() - 2);
    }
    if (std::ranges::any_of(value, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      return wrong("a value must not hold control characters");
    out[std::string(key)] = value;
  }
  return out;
}

Result<void> applySettingsFile() {
  const char* named = std::getenv(kSettingsFileVariable);
  const std::filesystem::path file = named ? named : kSettingsFile;
  if (file.empty()) return {};
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    if (!named && errno == ENOENT) return {};
    if (!named && errno == EACCES) return {};
    return fail(ErrorCode::NotFound,
                fmt::format("{} ({}) cannot be read", file.string(), kSettingsFileVariable));
  }
  if (::access(file.c_str(), R_OK) != 0 && !named) return {};
  // Who writes it chooses whose inventory root carries out.
  if ((status.st_mode & 0022) != 0 || (status.st_uid != 0 && status.st_uid != ::geteuid()))
    return fail(ErrorCode::Denied,
                fmt::format("{} could be written by other users, so it is not followed; as root: "
                            "chown root {} && chmod go-w {}",
                            file.string(), file.string(), file.string()));
  TRY(text, io::readFile(file, kMaxSettingsBytes));
  TRY(settings, parseSettings(text, file));
  for (const auto& [key, value] : settings) ::setenv(key.c_str(), value.c_str(), 0);
  return {};
}

}  // namespace muster::app
