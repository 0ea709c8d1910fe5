// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl/values.h"

namespace muster::collective {
namespace {

constexpr int kThreads = 256;
constexpr std::uint64_t kMaxBlocks = 1 << 16;

int blocksFor(std::uint64_t count) {
  const auto blocks = (count + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

__global__ void fillKernel(float* to, std::uint64_t count, std::uint64_t seed, int rank) {
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x)
    to[i] = inputValue(seed, rank, i);
}

__global__ void checkKernel(const float* from, std::uint64_t count, OutputRule rule,
                            unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < count; i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x)
    mine +=
        !(from[i] == outputValue(rule.operation, rule.seed, rule.rank, rule.ranks, rule.count, i));
  if (mine) atomicAdd(wrong, mine);
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
