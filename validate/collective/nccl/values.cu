// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl/values.h"

#include "validate/burn/gpu/launch_shapes.h"
#include "validate/collective/nccl/value_bodies.h"

namespace muster::collective {
namespace {

using burn::gpu::blocksFor;
using burn::gpu::kThreads;

GPU_KERNEL fillKernel(float* to, std::uint64_t count, std::uint64_t seed, int rank) {
  fillBody(to, count, seed, rank);
}
GPU_KERNEL checkKernel(const float* from, std::uint64_t count, OutputRule rule,
                       unsigned long long* wrong) {
  checkBody(from, count, rule, wrong);
}

}  // namespace

void fillInput(cudaStream_t stream, float* to, std::uint64_t count, std::uint64_t seed, int rank) {
  fillKernel<<<blocksFor(count), kThreads, 0, stream>>>(to, count, seed, rank);
}
void countWrongOutput(cudaStream_t stream, const float* from, std::uint64_t count, OutputRule rule,
                      unsigned long long* wrong) {
  checkKernel<<<blocksFor(count), kThreads, 0, stream>>>(from, count, rule, wrong);
}

}  // namespace muster::collective
