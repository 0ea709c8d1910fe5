// SPDX-License-Identifier: Apache-2.0
// The cache folder: what is built once and kept, and how it appears and disappears whole.
//
//   images/KEY/{pack, content.json, index-SIGNER.json}     KEY = SHA-256 of the build's inputs;
//   content.json is the canonical index ramos/KEY/{vmlinuz, initrd.img}
//   ramos/agent-DIGEST/agent.img ramos/KEY.use                                          held by
//   whoever starts machines from it (ramos_sets.h) …/KEY.TOKEN.partial being built, under the lock
//   KEY.lock; left over only after a crash
//
// A folder is made as KEY.TOKEN.partial, of another name each time, and renamed, so a reader sees
// all of it or nothing. Packs do not depend on who signs: each controller adds its own signed index
// beside the pack.
#pragma once

#include "base/io/files.h"
#include "base/result.h"

#include <filesystem>
#include <functional>
#include <string>

namespace muster::provision {

/// Held while an entry is built; a second builder waits. The kernel lets go of it when the process
/// ends, however it ends.
class BuildLock {
 public:
  /// `on_wait` is called once if somebody else holds it.
  static Result<BuildLock> take(const std::filesystem::path& file,
                                const std::function<void()>& on_wait);
  /// Whether nobody holds it now.
  static bool isFree(const std::filesystem::path& file);

 private:
  explicit BuildLock(io::Fd fd) : fd_(std::move(fd)) {}
  io::Fd fd_;
};

/// Removes a folder, unless something is mounted below it. Errors: Conflict (mounted), Internal
Result<void> removeTree(const std::filesystem::path& folder);

/// The lock under which a folder KEY.TOKEN.partial is built.
std::filesystem::path lockOfPartial(const std::filesystem::path& partial);

/// Builds `entry` by `fill` (called with an empty folder) and publishes it. Whatever was there is
/// replaced. The caller holds the entry's lock.
Result<void> publish(const std::filesystem::path& entry,
                     const std::function<Result<void>(const std::filesystem::path&)>& fill);

}  // namespace muster::provision
