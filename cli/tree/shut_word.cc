// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/shut_word.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace muster::cli {
namespace {

/// Options that name a file which the command reads, and never makes.
constexpr std::array<std::string_view, 10> kInputs{
    "--access", "--client-cert", "--client-key", "--config",          "--found",
    "--key",    "--inventory",   "--server-ca",  "--passphrase-file", "--token-file"};

/// Options that name a file which the command makes, also where it is typed: without a folder.
constexpr std::array<std::string_view, 2> kOutputs{"--out", "--write"};

bool isOneOf(std::string_view option, std::span<const std::string_view> options) {
  return std::ranges::find(options, option) != options.end();
}

bool isShut(std::string_view text, std::string_view option, const Access& access) {
  if (text.empty() || text.contains("://")) return false;  // an address names no file
  const std::filesystem::path path(text);
  // In a folder that is shut every word looks like a file that is: names of commands and nodes.
  if (!path.has_parent_path() && !text.contains('.') && !isOneOf(option, kInputs) &&
      !isOneOf(option, kOutputs))
    return false;
  const int why = access(path, R_OK);
  if (why == EACCES) return true;
  if (why != ENOENT || isOneOf(option, kInputs)) return false;
  if (path.has_parent_path()) return access(path.parent_path(), W_OK) == EACCES;
  return isOneOf(option, kOutputs) && access(".", W_OK) == EACCES;
}

}  // namespace

Access accessOfThisProcess() {
  return [](const std::filesystem::path& path, int mode) {
    return ::access(path.c_str(), mode) == 0 ? 0 : errno;
  };
}

const char* shutWord(std::span<char* const> words, const Access& access) {
  std::string_view before;
  for (const char* word : words) {
    const std::string_view text(word);
    const auto equals = text.starts_with('-') ? text.find('=') : text.npos;
    const bool is_shut = equals != text.npos
                             ? isShut(text.substr(equals + 1), text.substr(0, equals), access)
                             : isShut(text, before, access);
    if (is_shut) return word;
    before = text;
  }
  return nullptr;
}

}  // namespace muster::cli
