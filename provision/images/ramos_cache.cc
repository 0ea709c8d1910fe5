// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ramos_cache.h"

#include "provision/images/ramos_sets.h"

#include <fmt/format.h>

#include <sys/stat.h>

namespace muster::provision {

namespace fs = std::filesystem;

RamOsCache::RamOsCache(fs::path cache, Architecture architecture, fs::path agent_binary,
                       WorkOut files, Now now)
    : cache_(std::move(cache)),
      agent_binary_(std::move(agent_binary)),
      architecture_(architecture),
      files_(std::move(files)),
      now_(std::move(now)) {}

/// Size, inode and time of change: a file that was built anew differs in one of them. Programs that
/// are not there now may come.
std::string RamOsCache::stateOf(const std::vector<fs::path>& files) const {
  std::string state;
  const auto add = [&state](const fs::path& file) {
    struct stat info{};
    const bool there = ::stat(file.c_str(), &info) == 0;
    state += there ? fmt::format("{}:{}:{}.{};", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                                 info.st_mtim.tv_nsec)
                   : std::string("-;");
  };
  add(agent_binary_);
  for (const auto& program : agentPrograms(agent_binary_)) add(program);
  for (const auto& file : files) add(file);
  return state;
}

bool RamOsCache::holds(Known& known) const {
  const auto now = now_();
  if (now - known.looked_at < kLookInterval) return true;
  if (!known.answer) return now - known.looked_at < kFailureKept;
  if (stateOf(known.files) != known.state) return false;
  known.looked_at = now;
  return true;
}

bool RamOsCache::isKnown() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && known_ && holds(*known_);
}

Result<RamOs> RamOsCache::present() {
  const std::lock_guard lock(mutex_);
  if (known_ && holds(*known_)) return known_->answer;
  std::vector<fs::path> sources;
  std::string state;
  const auto work = [&]() -> Result<RamOs> {
    TRY(files, files_(agent_binary_));
    for (const auto& file : files) sources.push_back(file.source);
    state = stateOf(sources);  // before they are read: one that changes meanwhile makes this answer
                               // end at the next look
    TRY(digest, agentFilesDigest(files));
    return ramOsAt(cache_, architecture_, digest);
  };
  auto answer = work();
  known_.emplace(Known{std::move(answer), std::move(state), std::move(sources), now_()});
  return known_->answer;
}

}  // namespace muster::provision
