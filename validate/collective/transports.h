// SPDX-License-Identifier: Apache-2.0
// How ranks can talk on this machine: by TCP, or between GPUs. NCCL comes as a file of its own
// beside the program, RCCL is loaded from ROCm.
#pragma once

#include "validate/collective/collective.h"

#include <filesystem>

namespace muster::collective {

inline constexpr const char* kNcclFile = "libmuster-collective-nccl.so";
inline constexpr const char* kNcclEntry = "muster_collective_open_nccl";

struct NcclFound {
  int gpus = 0;
  std::string library = "NCCL";                  ///< or "RCCL"
  std::string version;                           ///< of the library: "2.28.3"
  std::function<Result<std::string>()> make_id;  ///< of a group, on the node of rank 0
  std::function<Join(std::string id)> join_by;
};
/// What the file exports.
using OpenNccl = void (*)(Result<NcclFound>& found);

/// NCCL, or RCCL where there is no NCCL and no GPU for it. Errors: NotFound (no such file, a
/// library that it needs, no GPU: each with what to do), Corrupt (of another version)
Result<NcclFound> openNccl(const std::filesystem::path& folder_of_program);

}  // namespace muster::collective
