// SPDX-License-Identifier: Apache-2.0
// Number formats of products. Apart from device.h, because nvcc reads it too, as C++20.
#pragma once

namespace muster::burn {

enum class Dtype { Fp64, Fp32, Tf32, Bf16, Fp16, Fp8, Int8 };

}  // namespace muster::burn
