// SPDX-License-Identifier: Apache-2.0
// In place of the back end where the compiler knows no AMD GPU.
#include "validate/burn/hip/hip_backend.h"

namespace muster::burn::hip {

Result<std::vector<std::unique_ptr<Device>>> openHip() {
  return fail(ErrorCode::NotFound,
              "this muster was built without kernels for AMD GPUs: build it with clang");
}

}  // namespace muster::burn::hip
