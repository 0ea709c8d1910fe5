// SPDX-License-Identifier: Apache-2.0
#include "base/io/selinux.h"

#include "base/io/files.h"
#include "base/io/process.h"

#include <fmt/format.h>

#include <strings.h>

#include <algorithm>
#include <optional>

namespace muster::io {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxConfigBytes = 64u << 10;
/// A million files on a disk that turns.
constexpr std::chrono::minutes kLabelLimit{20};
/// The folders of the system's own, whatever this process looks for programs in.
constexpr const char* kPath = "/usr/sbin:/usr/bin:/sbin:/bin";
/// setfiles reaches files by its own descriptors (libselinux 3.4), which only /proc names.
constexpr const char* kLabelScript =
    "mount -t proc proc \"$1/proc\"; exec chroot \"$1\" setfiles -F -e /proc \"$2\" /";
constexpr const char* kBlank = " \t\r";

std::optional<std::string_view> valueOf(std::string_view line, std::string_view key) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  return line.substr(0, line.find_last_not_of(kBlank) + 1);
}

/// libselinux compares the beginning, in any case.
bool beginsWith(std::string_view value, std::string_view word) {
  return value.size() >= word.size() && ::strncasecmp(value.data(), word.data(), word.size()) == 0;
}

bool isFolderName(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos;
}

}  // namespace

std::string SelinuxConfig::fileContexts() const {
  return fmt::format("etc/selinux/{}/contexts/files/file_contexts", policy);
}

SelinuxConfig parseSelinuxConfig(std::string_view text) {
  SelinuxConfig config;
  bool said = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (const auto mode = valueOf(line, "SELINUX="); mode && !said) {
      config.enforcing = beginsWith(*mode, "enforcing");
      said = config.enforcing || beginsWith(*mode, "permissive") || beginsWith(*mode, "disabled");
    }
    if (const auto policy = valueOf(line, "SELINUXTYPE="); policy && isFolderName(*policy))
      config.policy = *policy;
  }
  return config;
}

Result<bool> labelTree(const fs::path& root) {
  const auto text = readFile(root / kSelinuxConfig, kMaxConfigBytes);
  if (!text) return false;
  const auto config = parseSelinuxConfig(*text);
  if (!config.enforcing) return false;
  std::error_code error;
  if (!fs::exists(root / config.fileContexts(), error))
    return fail(ErrorCode::InvalidInput,
                fmt::format("the system enforces SELinux, but has no /{}: install "
                            "selinux-policy-{} into it, or let it be permissive",
                            config.fileContexts(), config.policy));
  TRY_OK(makeDirs(root / "proc"));
  Command command{.program = "unshare",
                  .args = {"--mount", "sh", "-euc", kLabelScript, "sh", root.string(),
                           "/" + config.fileContexts()}};
  command.env = {{"PATH", kPath}, {"LC_ALL", "C"}};
  command.timeout = kLabelLimit;
  TRY(ended, runBlocking(command));
  if (ended.code == 0) return true;
  if (ended.code == 127)
    return fail(
        ErrorCode::InvalidInput,
        "the system enforces SELinux, but its setfiles does not start, by which what muster "
        "writes is labelled: install policycoreutils into it, or let it be permissive (" +
            ended.err + ")");
  return fail(ErrorCode::Internal, fmt::format("setfiles ended with {} and left files without "
                                               "labels: {}",
                                               ended.code, ended.err));
}

}  // namespace muster::io
