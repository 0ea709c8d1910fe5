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

bool isInput(std::string_view option) {
  return std::ranges::find(kInputs, option) != kInputs.end();
}

bool isShut(std::string_view text, bool is_input, const Access& access) {
  if (text.empty()) return false;
  const std::filesystem::path path(text);
  const int why = access(path, R_OK);
  if (why == EACCES) return true;
  return why == ENOENT && !is_input && path.has_parent_path() &&
         access(path.parent_path(), W_OK) == EACCES;
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
    const bool is_shut = equals != text.npos ? isShut(text.substr(equals + 1),
                                                      isInput(text.substr(0, equals)), access)
                                             : isShut(text, isInput(before), access);
    if (is_shut) return word;
    before = text;
  }
  return nullptr;
}

}  // namespace muster::cli
