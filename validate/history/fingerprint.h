// SPDX-License-Identifier: Apache-2.0
// Numbers of a gate that are no measure but a digest: equal on all devices of a kind, or one of
// them is wrong.
#pragma once

#include <string_view>

namespace muster::validate::history {

/// Their names begin so behind the check: "gpu.burn/bits of gemm bf16 random (n 16384, …)@gpu3".
inline constexpr std::string_view kFingerprint = "bits of ";

inline bool isFingerprint(std::string_view metric) {
  const auto slash = metric.find('/');
  return slash != std::string_view::npos && metric.substr(slash + 1).starts_with(kFingerprint);
}

}  // namespace muster::validate::history
