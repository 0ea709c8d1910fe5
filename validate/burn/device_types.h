// SPDX-License-Identifier: Apache-2.0
// Number formats and words of memory. Apart from device.h, because compilers of kernels read it
// too, as C++20.
#pragma once

#include "validate/burn/arith.h"

namespace muster::burn {

/// Fp8: E4M3 by E4M3; Fp8E5m2: E5M2 by E4M3; Mxfp8: E4M3 with a scale of E8M0 for 32 values; Nvfp4:
/// E2M1 with a scale of E4M3 for 16 values; Bf16Sparse: BF16, of A two values of four.
enum class Dtype { Fp64, Fp32, Tf32, Bf16, Fp16, Fp8, Fp8E5m2, Mxfp8, Nvfp4, Int8, Bf16Sparse };

struct MemoryWord {
  Pattern pattern = Pattern::Zeros;
  bool inverse = false;
};

}  // namespace muster::burn
