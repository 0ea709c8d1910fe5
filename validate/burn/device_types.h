// SPDX-License-Identifier: Apache-2.0
// Number formats and words of memory. Apart from device.h, because nvcc reads it too, as C++20.
#pragma once

#include "validate/burn/arith.h"

namespace muster::burn {

enum class Dtype { Fp64, Fp32, Tf32, Bf16, Fp16, Fp8, Int8 };

struct MemoryWord {
  Pattern pattern = Pattern::Zeros;
  bool inverse = false;
};

}  // namespace muster::burn
