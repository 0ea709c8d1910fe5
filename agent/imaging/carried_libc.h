// SPDX-License-Identifier: Apache-2.0
// Which C library muster's programs use on an installed system: the carried one, or the system's
// own where that is newer (docs/adr/0228).
#pragma once

#include "base/result.h"

#include <filesystem>

namespace muster::agent {

/// Decides after muster's programs were copied to `root`, and writes the decision there: the link
/// /usr/lib/muster/ld.so leads to the loader that is used, and a C library that is not used goes.
/// What the system brings for the programs to open (NVML, CUDA, NCCL, RDMA) needs a C library that
/// is not older than its own; so the newer of the two is right for both.
/// Effect: nothing where no C library was copied (a static build, a test)
/// Errors: Internal (the link cannot be made)
Result<void> chooseLibc(const std::filesystem::path& root);

}  // namespace muster::agent
