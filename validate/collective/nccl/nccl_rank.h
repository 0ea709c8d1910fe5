// SPDX-License-Identifier: Apache-2.0
// Ranks of a group by NCCL or RCCL, a GPU a rank. The library, the runtime and the kernels come
// from the vendor's side: nccl_cuda.cc, rccl/rccl.cc.
#pragma once

#include "validate/burn/gpu/runtime.h"
#include "validate/collective/element_values.h"
#include "validate/collective/nccl/nccl_api.h"
#include "validate/collective/transports.h"

namespace muster::collective {

/// Inputs and their check, on the GPU.
class Values {
 public:
  virtual ~Values() = default;
  virtual Result<void> fill(burn::gpu::StreamHandle, float* to, std::uint64_t count,
                            std::uint64_t seed, int rank) = 0;
  /// Adds to `wrong`; a NaN is wrong.
  virtual Result<void> countWrong(burn::gpu::StreamHandle, const float* from, std::uint64_t count,
                                  OutputRule rule, unsigned long long* wrong) = 0;
};

/// For several threads: ranks of one process share it.
struct NcclLibrary {
  std::string name;  ///< "NCCL" or "RCCL"
  NcclApi nccl;
  std::unique_ptr<burn::gpu::Runtime> runtime;
  std::unique_ptr<Values> values;

  Result<void> ok(NcclApi::Code code, const char* call) const;
};

/// Errors: NotFound (no GPU), Unavailable (the library)
Result<NcclFound> ranksBy(std::shared_ptr<NcclLibrary> library);

}  // namespace muster::collective
