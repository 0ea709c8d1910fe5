// SPDX-License-Identifier: Apache-2.0
// Live images: brought into memory, mounted under an overlay, made this node's system. No disk is
// opened.
//
// Runs in the RAM OS, on the image's own kernel. When it is done, the root of the system is in
// LivePlaces::root; whoever is process 1 then gives way to it
// (provision/images/recipes/ramos/init), and its agent calls as that of an installed system.
#pragma once

#include "agent/imaging/writer.h"

namespace muster::agent {

struct LivePlaces {
  std::filesystem::path folder =
      "/run/muster/live";  ///< root/, and what it is made of; /run goes along into the new system
  std::filesystem::path kernel_release = "/proc/sys/kernel/osrelease";
  std::filesystem::path root() const { return folder / "root"; }
};

struct LiveReport {
  std::string digest;
  double seconds = 0;
  std::uint64_t memory_bytes = 0;   ///< that the image takes
  std::uint64_t bytes_fetched = 0;  ///< compressed
  int retries = 0;
  std::vector<std::string> dropped_mirrors;

  std::string json() const;  ///< the task's result
};

/// Whether the image fits. Errors: InvalidInput, saying how much there is and how much it takes
Result<void> checkMemory(const wire::PackIndex& index, std::uint64_t available_bytes);

/// Fetches, verifies, mounts and configures; a half-made earlier try is undone first.
/// Errors: InvalidInput (memory; no live image), Conflict (the kernel that runs is not the
/// image's), Denied, Corrupt, Timeout, Internal
Async<LiveReport> startLive(wire::WriteImageParams params, WriterDeps deps, LivePlaces places,
                            std::chrono::seconds deadline);

}  // namespace muster::agent
