// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/carried_libc.h"

#include "base/architecture.h"
#include "base/elf.h"
#include "base/io/files.h"
#include "base/log.h"
#include "wire/carried_libc.h"

#include <fmt/format.h>

#include <optional>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxLibcBytes = 64u << 20;
/// The agent installs systems of its own processor alone.
constexpr const ArchitectureTraits& kOwn = traitsOf(kBuiltFor);
/// Where distributions have it: Debian and its kin, Red Hat's and SUSE, others.
const std::string kLibcFolders[] = {std::string("usr/lib/") + kOwn.library_folder,
                                    std::string("lib/") + kOwn.library_folder,
                                    "usr/lib64",
                                    "lib64",
                                    "usr/lib",
                                    "lib"};
constexpr int kMaxLinks = 16;

/// A path of the system below `root`, its links followed inside of it. Nothing where it leads to no
/// file.
std::optional<fs::path> fileOf(const fs::path& root, fs::path path) {
  std::error_code error;
  for (int links = 0; links < kMaxLinks; ++links) {
    fs::path done;
    bool changed = false;
    for (auto part = path.begin(); part != path.end(); ++part) {
      const auto next = done / *part;
      if (!changed && fs::is_symlink(fs::symlink_status(root / next, error))) {
        const auto target = fs::read_symlink(root / next, error);
        done = target.is_absolute() ? target.relative_path() : done / target;
        changed = true;
      } else {
        done = next;
      }
    }
    path = done.lexically_normal();
    if (!path.empty() && *path.begin() == "..") return std::nullopt;
    if (!changed)
      return fs::is_regular_file(fs::symlink_status(root / path, error))
                 ? std::optional(root / path)
                 : std::nullopt;
  }
  return std::nullopt;
}

std::optional<GlibcVersion> versionOf(const fs::path& libc) {
  const auto content = io::readFile(libc, kMaxLibcBytes);
  const auto elf = content ? parseElf(*content) : Result<ElfFile>(fail(content.error()));
  if (!elf || !elf->is_64_bit || elf->machine != kOwn.elf_machine) return std::nullopt;
  return glibcVersionOf(*elf);
}

std::optional<GlibcVersion> systemVersion(const fs::path& root) {
  for (const auto& folder : kLibcFolders)
    if (const auto libc = fileOf(root, fs::path(folder) / wire::kLibcName))
      if (const auto version = versionOf(*libc)) return version;
  return std::nullopt;
}

}  // namespace

Result<void> chooseLibc(const fs::path& root) {
  const auto folder = root / wire::kProgramFolder, carried = folder / wire::kCarriedLibcFolder,
             loader = folder / wire::kProgramLoaderName;
  std::error_code error;
  if (!fs::exists(carried, error)) return {};
  const auto own = versionOf(carried / wire::kLibcName);
  const auto theirs = systemVersion(root);
  const bool system_is_newer =
      own && theirs && *theirs >= *own &&
      fileOf(root, fs::path(kOwn.system_loader).relative_path()).has_value();
  const std::string target = system_is_newer
                                 ? std::string(kOwn.system_loader)
                                 : fmt::format("{}/{}", wire::kCarriedLibcFolder, kOwn.loader);
  fs::remove(loader, error);
  fs::create_symlink(target, loader, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot link {}: {}", loader.string(), error.message()));
  if (system_is_newer) fs::remove_all(carried, error);  // else it would be found by the RPATH
  logInfo("agent", "the system has glibc {}, muster was built with {}: the agent uses {}",
          theirs ? theirs->str() : "(none)", own ? own->str() : "(unknown)", target);
  return {};
}

}  // namespace muster::agent
