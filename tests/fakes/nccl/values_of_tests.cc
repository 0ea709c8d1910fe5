// SPDX-License-Identifier: Apache-2.0
// The launches of nccl/values.h without a GPU: done at once, by the host.
#include "validate/collective/nccl/values.h"

namespace muster::collective {

void fillInput(cudaStream_t, float* to, std::uint64_t count, std::uint64_t seed, int rank) {
  for (std::uint64_t i = 0; i < count; ++i) to[i] = inputValue(seed, rank, i);
}
void countWrongOutput(cudaStream_t, const float* from, std::uint64_t count, OutputRule rule,
                      unsigned long long* wrong) {
  for (std::uint64_t i = 0; i < count; ++i)
    *wrong +=
        !(from[i] == outputValue(rule.operation, rule.seed, rule.rank, rule.ranks, rule.count, i));
}

}  // namespace muster::collective
