// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ramos_sets.h"

#include "base/io/files.h"
#include "inventory/model/images.h"
#include "provision/images/agent_initrd.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_entry.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "provision/images/ramos_cache.h"
#include "provision/images/recipes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kAgent = "agent-";

fs::path beside(const fs::path& set, const char* ending) { return set.string() + ending; }

Result<io::Fd> openUse(const fs::path& set, int how) {
  const auto file = beside(set, ".use");
  TRY_OK(io::makeDirs(file.parent_path()));
  io::Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
  (void)::fchmod(fd.get(), 0600);  // whoever can open it can lock it: older ones were open to all
  while (::flock(fd.get(), how) != 0) {
    if (errno == EWOULDBLOCK)
      return fail(ErrorCode::Conflict,
                  fmt::format("a running muster boots machines from {}", set.string()));
    if (errno != EINTR)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot lock {}: {}", file.string(), std::strerror(errno)));
  }
  return fd;
}

bool isSet(std::string_view name) {
  if (name.starts_with(kAgent)) name.remove_prefix(kAgent.size());
  return isDigest(name);
}

std::uint64_t bytesBelow(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error))
    if (file.is_regular_file(error)) bytes += file.file_size(error);
  return bytes;
}

}  // namespace

Result<RamOs> presentRamOs(const ImageStoreOptions& options, Architecture architecture) {
  return RamOsCache(options, architecture).present();
}

RamOs ramOsAt(const fs::path& cache, const std::string& system_key, Architecture architecture,
              const std::string& agent_digest) {
  const fs::path all = cache / "ramos", system = all / system_key;
  RamOs ram_os{system / "vmlinuz", system / "initrd.img",
               all / (std::string(kAgent) + agent_digest) / "agent.img"};
  if (architecture == Architecture::Arm64) {
    ram_os.shim = system / "shim.efi";
    ram_os.grub = system / "grub.efi";
  }
  return ram_os;
}

Result<RamOsUse> RamOsUse::hold(const fs::path& set) {
  TRY(fd, openUse(set, LOCK_SH));
  return RamOsUse(std::move(fd));
}

std::vector<RamOsSet> keptRamOs(const fs::path& cache, const std::vector<RamOs>& present) {
  std::vector<RamOsSet> sets;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache / "ramos", error)) {
    const auto& folder = entry.path();
    if (!entry.is_directory(error) || !isSet(folder.filename().string())) continue;
    RamOsSet set{folder, bytesBelow(folder), ""};
    if (std::ranges::any_of(present, [&folder](const RamOs& each) {
          return folder == each.kernel.parent_path() || folder == each.agent_initrd.parent_path();
        }))
      set.why = "this muster boots machines from it";
    else if (const auto use = fs::exists(beside(folder, ".use"), error)
                                  ? openUse(folder, LOCK_EX | LOCK_NB)
                                  : io::Fd();
             !use)
      set.why = use.error().text();
    else if (!BuildLock::isFree(beside(folder, ".lock")))
      set.why = "it is being built";
    sets.push_back(std::move(set));
  }
  std::sort(sets.begin(), sets.end(),
            [](const auto& a, const auto& b) { return a.folder < b.folder; });
  return sets;
}

Result<void> removeRamOs(const RamOsSet& set) {
  if (!set.why.empty())
    return fail(ErrorCode::Conflict, fmt::format("{} stays: {}", set.folder.string(), set.why));
  const auto builder = BuildLock::take(beside(set.folder, ".lock"), [] {});
  if (!builder) return fail(builder.error());
  const auto user = openUse(set.folder, LOCK_EX | LOCK_NB);
  if (!user) return fail(user.error());
  return removeTree(set.folder);
}

}  // namespace muster::provision
