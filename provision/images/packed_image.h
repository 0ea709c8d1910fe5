// SPDX-License-Identifier: Apache-2.0
// What the image store has: packed images, and the RAM OS.
#pragma once

#include "base/architecture.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::provision {

/// What the store knows of one packed image. `digest` is the SHA-256 of the index's signed content:
/// it names the image.
struct PackedImage {
  std::string name;
  std::string digest;
  std::filesystem::path pack;                       ///< chunks, one after the other
  std::filesystem::path index;                      ///< signed JSON
  std::uint64_t size_bytes = 0;                     ///< of the file system when written out
  bool live = false;                                ///< it runs in memory
  std::filesystem::path kernel = {}, modules = {};  ///< what starts a live image, taken out of it;
                                                    ///< empty: not made yet (`build` does)
};

/// The RAM OS: a kernel and an initrd; the agent travels beside it in a small initrd of its own.
struct RamOs {
  std::filesystem::path kernel, initrd, agent_initrd;
  /// The signed loaders that start it from the network, where it is for another processor than the
  /// controller's packages; else empty.
  std::filesystem::path shim = {}, grub = {};
};

/// What is said where there is none.
inline std::string noRamOs(Architecture architecture) {
  const auto which = architecture == Architecture::Amd64
                         ? std::string()
                         : std::string(" for ") + traitsOf(architecture).name;
  return "the RAM OS" + which + " is not built; run `muster image build`";
}

}  // namespace muster::provision
