// SPDX-License-Identifier: Apache-2.0
// File systems on the machine's own disks: mounted read-only (a kernel does that after an error),
// or full.
#include "validate/checks/check_row.h"

#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

namespace muster::validate {
namespace {

constexpr double kMinFreePercent = 3;  ///< of blocks, for users; own choice
constexpr double kMinFreeInodes = 1;   ///< percent; own choice
constexpr std::array<std::string_view, 3> kReadOnlyByNature{"squashfs", "iso9660", "erofs"};

struct Mount {
  std::string device, folder, type, options;
};

bool hasOption(std::string_view options, std::string_view option) {
  return fmt::format(",{},", options).find(fmt::format(",{},", option)) != std::string::npos;
}

/// A space in a name is "\040" there.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Of /proc/self/mounts, or of /etc/fstab, which has the same columns.
std::vector<Mount> mountsIn(const std::string& table) {
  std::vector<Mount> out;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Mount mount;
    if (line.starts_with('#') ||
        !(words >> mount.device >> mount.folder >> mount.type >> mount.options))
      continue;
    mount.folder = unescaped(mount.folder);
    out.push_back(std::move(mount));
  }
  return out;
}

bool isReadOnlyByNature(const Mount& mount) {
  return std::find(kReadOnlyByNature.begin(), kReadOnlyByNature.end(), mount.type) !=
         kReadOnlyByNature.end();
}

/// Percent; of an empty file system, as some without inodes report, all is free.
double share(unsigned long long free, unsigned long long all) {
  return all == 0 ? 100.0 : 100.0 * static_cast<double>(free) / static_cast<double>(all);
}

}  // namespace

Verdict checkSystemFilesystems(const nlohmann::json& params, const Host& host) {
  const double min_free = params.value("min_free_percent", kMinFreePercent),
               min_inodes = params.value("min_free_inodes_percent", kMinFreeInodes);
  std::set<std::string> meant_read_only;
  for (const auto& mount : mountsIn(host.text("etc/fstab")))
    if (hasOption(mount.options, "ro")) meant_read_only.insert(mount.folder);
  std::vector<std::string> wrong;
  std::set<std::string> seen;
  auto verdict = pass("");
  for (const auto& mount : mountsIn(host.text("proc/self/mounts"))) {
    if (!mount.device.starts_with("/dev/") || isReadOnlyByNature(mount)) continue;
    if (!seen.insert(mount.folder).second) continue;
    if (hasOption(mount.options, "ro") && !meant_read_only.contains(mount.folder))
      wrong.push_back(fmt::format("{} ({} on {}) is read-only, and /etc/fstab does not say so",
                                  mount.folder, mount.type, mount.device));
    struct statvfs state{};
    if (::statvfs((host.root / mount.folder.substr(1)).c_str(), &state) != 0) {
      wrong.push_back(fmt::format("{} ({} on {}) does not say how full it is", mount.folder,
                                  mount.type, mount.device));
      continue;
    }
    const double blocks = share(state.f_bavail, state.f_blocks),
                 inodes = share(state.f_favail, state.f_files);
    verdict.values["free_percent " + mount.folder] = blocks;
    if (blocks < min_free)
      wrong.push_back(
          fmt::format("{} has {:.1f} % free, at least {}", mount.folder, blocks, min_free));
    if (inodes < min_inodes)
      wrong.push_back(fmt::format("{} has {:.1f} % of its inodes free, at least {}", mount.folder,
                                  inodes, min_inodes));
  }
  if (!wrong.empty()) verdict.status = wire::CheckStatus::Fail;
  verdict.text = wrong.empty()
                     ? fmt::format("{} file systems on disks, writable, not full", seen.size())
                     : fmt::format("{}", fmt::join(wrong, "; "));
  // A live image has none on a disk; a table that cannot be read has none at all.
  if (seen.empty() && host.text("proc/self/mounts").empty())
    return noData("/proc/self/mounts cannot be read");
  return verdict;
}

}  // namespace muster::validate
