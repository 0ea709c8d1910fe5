// SPDX-License-Identifier: Apache-2.0
#include "provision/images/live_image.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/file_tree.h"
#include "provision/images/recipes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kToolLimit{20};

/// What the build itself made has the hour of the build on it.
Result<void> settleTreeTimes(const fs::path& folder, std::int64_t since) {
  const auto settle = [since](const fs::path& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0 || info.st_mtim.tv_sec < since) return;
    const timespec times[2] = {{.tv_sec = kImageEpochSeconds, .tv_nsec = 0},
                               {.tv_sec = kImageEpochSeconds, .tv_nsec = 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  };
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error))
    settle(it->path());
  settle(folder);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot walk {}: {}", folder.string(), error.message()));
  return {};
}

struct Kernel {
  fs::path modules, image;
};

/// The newest of those that are whole. Distributions keep the kernel in /boot or beside its
/// modules. Links are followed as in the running system: none leads to a file of this machine.
Result<Kernel> newestKernel(const fs::path& tree) {
  Kernel best;
  const auto files = openFolderTree(tree);
  const auto isFile = [&files](const Result<std::string>& path) {
    const auto entry = path ? files->at(*path) : std::nullopt;
    return entry && entry->kind == FileTree::Kind::File;
  };
  for (const char* place : {"usr/lib/modules", "lib/modules"}) {
    const auto folder = files->resolve(place);
    for (const auto& version : folder ? files->list(*folder) : std::vector<std::string>()) {
      const auto modules = *folder + "/" + version;
      const auto entry = files->at(modules);
      const bool is_version = version.front() >= '0' && version.front() <= '9';
      if (!is_version || !entry || entry->kind != FileTree::Kind::Folder ||
          !isFile(files->resolve(modules + "/modules.dep")) ||
          (!best.modules.empty() &&
           ::strverscmp(version.c_str(), best.modules.filename().c_str()) <= 0))
        continue;
      for (const auto& image : {"boot/vmlinuz-" + version, modules + "/vmlinuz"})
        if (const auto real = files->resolve(image); isFile(real))
          best = {tree / modules, tree / *real};
    }
  }
  if (best.modules.empty())
    return fail(ErrorCode::InvalidInput,
                "it has no kernel with modules (/boot/vmlinuz-VERSION and "
                "/usr/lib/modules/VERSION): no machine could start it; install a kernel into it");
  return best;
}

}  // namespace

Result<void> makeSquashfs(const fs::path& folder, const fs::path& image_file, std::int64_t since) {
  TRY_OK(newestKernel(folder));
  TRY_OK(settleTreeTimes(folder, since));
  std::error_code ignored;
  fs::remove(image_file, ignored);
  io::Command command{.program = "mksquashfs"};
  command.args = {folder.string(), image_file.string(), "-noappend", "-quiet", "-no-progress",
                  "-comp", "zstd", "-Xcompression-level", "15", "-b", "262144", "-mkfs-time",
                  std::to_string(kImageEpochSeconds), "-no-exports",
                  // Kept up to date by nobody here, and the largest file of all: machines start
                  // with the RAM OS's.
                  "-wildcards", "-e", "boot/initrd*", "initrd.img*", "boot/initramfs*"};
  command.timeout = kToolLimit;
  auto made = io::runChecked(command);
  if (!made) return fail(std::move(made).error().within("making the squashfs"));
  return {};
}

Result<fs::path> liveKernelOf(const fs::path& tree) {
  TRY(kernel, newestKernel(tree));
  return kernel.image;
}

fs::path liveBootOf(const fs::path& entry) {
  return entry /
         ("boot-" + io::sha256Hex(recipeDigest("live") + recipeDigest("ramos")).substr(0, 16));
}

Result<void> makeLiveBoot(const fs::path& squashfs, const fs::path& work, const fs::path& out) {
  const auto tree = work / "tree", recipes = work / "recipes";
  TRY_OK(io::makeDirs(work));
  io::Command extract{.program = "unsquashfs",
                      .args = {"-no-progress", "-quiet", "-no-xattrs", "-dest", tree.string(),
                               squashfs.string(), "boot", "usr/lib/modules", "lib/modules"}};
  extract.timeout = kToolLimit;
  if (auto done = io::runChecked(extract); !done)
    return fail(Error(ErrorCode::Corrupt, std::move(done).error().text())
                    .within("unpacking " + squashfs.string()));
  TRY(kernel, newestKernel(tree));
  TRY_OK(writeRecipes(recipes));
  io::Command pack{.program = (recipes / "live/modules.sh").string(),
                   .args = {kernel.modules.string(), (recipes / "ramos/modules").string(),
                            (recipes / "live/modules").string(), (out / kLiveModules).string()}};
  pack.env = {{"MUSTER_RECIPES", recipes.string()}};
  pack.timeout = kToolLimit;
  if (auto done = io::runChecked(pack); !done)
    return fail(std::move(done).error().within("packing the modules of a live image"));
  std::error_code error;
  fs::copy_file(kernel.image, out / kLiveKernel, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(out / kLiveKernel, fs::perms(0644), error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot keep {}: {}", kernel.image.string(), error.message()));
  return {};
}

}  // namespace muster::provision
