// SPDX-License-Identifier: Apache-2.0
// The RAM OSs that the cache holds: one a version of its recipe, and one of the agent's initrd a
// build of muster. Which of them are used, and by whom; the others can be cleared away. Layout:
// image_cache.h
#pragma once

#include "base/architecture.h"
#include "base/io/files.h"
#include "base/result.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

struct ImageStoreOptions;
struct RamOs;

/// Where this muster's RAM OS lies, or will when it is built. Errors: NotFound (no agent beside
/// muster, a library of its)
Result<RamOs> presentRamOs(const ImageStoreOptions& options, Architecture architecture);
/// That of this system (ramOsKey) with this agent (agentFilesDigest).
RamOs ramOsAt(const std::filesystem::path& cache, const std::string& system_key,
              Architecture architecture, const std::string& agent_digest);

/// Held by a process that starts machines from a set, for as long as it lives: an armed node loads
/// it from there. The kernel lets go of it.
class RamOsUse {
 public:
  static Result<RamOsUse> hold(const std::filesystem::path& set);

 private:
  explicit RamOsUse(io::Fd fd) : fd_(std::move(fd)) {}
  io::Fd fd_;
};

struct RamOsSet {
  std::filesystem::path folder;
  std::uint64_t bytes = 0;
  std::string why;  ///< somebody needs it; empty: nobody
};
/// In the order of their folders.
std::vector<RamOsSet> keptRamOs(const std::filesystem::path& cache,
                                const std::vector<RamOs>& present);

/// Under its lock, and not if somebody began to use it meanwhile. Errors: Conflict (in use,
/// mounted), Internal
Result<void> removeRamOs(const RamOsSet& set);

}  // namespace muster::provision
