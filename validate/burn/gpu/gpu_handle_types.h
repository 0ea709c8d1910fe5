// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace muster::burn::gpu {

struct GpuStream;  ///< a cudaStream_t or hipStream_t
struct GpuEvent;
using StreamHandle = GpuStream*;
using EventHandle = GpuEvent*;

}  // namespace muster::burn::gpu
