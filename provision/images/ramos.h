// SPDX-License-Identifier: Apache-2.0
// The RAM OS that machines start from the network.
#pragma once

#include "base/architecture.h"

#include <filesystem>
#include <string>

namespace muster::provision {

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
