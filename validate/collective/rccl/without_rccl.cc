// SPDX-License-Identifier: Apache-2.0
// In place of RCCL where the compiler knows no AMD GPU.
#include "validate/collective/rccl/rccl.h"

namespace muster::collective {

Result<NcclFound> openRccl() {
  return fail(ErrorCode::NotFound,
              "this muster was built without kernels for AMD GPUs: build it with clang");
}

}  // namespace muster::collective
