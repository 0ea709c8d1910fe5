// SPDX-License-Identifier: Apache-2.0
// The kernels of inputs and their check for AMD GPUs, launched by these names (rccl.cc).
#include "validate/collective/nccl/value_bodies.h"

using namespace muster::collective;

GPU_KERNEL fill_input(float* to, std::uint64_t count, std::uint64_t seed, int rank) {
  fillBody(to, count, seed, rank);
}
GPU_KERNEL count_wrong_output(const float* from, std::uint64_t count, OutputRule rule,
                              unsigned long long* wrong) {
  checkBody(from, count, rule, wrong);
}
