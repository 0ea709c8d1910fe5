// SPDX-License-Identifier: Apache-2.0
// What a product must be, without the product: O(n²) integer arithmetic on the host, the same for
// every device.
#pragma once

#include "validate/burn/device.h"

namespace muster::burn {

/// One checksum a tile, row-major: Σ wᵢ·vⱼ·cᵢⱼ mod 2⁶⁴ with odd weights. From Σₖ(Σᵢ wᵢaᵢₖ)(Σⱼ
/// vⱼbₖⱼ): the ring of integers mod 2⁶⁴ makes it exact, so any single changed value is seen, and
/// several with a chance of missing of about 2⁻⁶⁰. Integer operands only.
std::vector<std::uint64_t> goldenSums(const GemmPlan& plan);

/// The exact values of one tile, row-major; to say which element of a bad tile is wrong. Integer
/// operands only.
std::vector<std::int64_t> exactTile(const GemmPlan& plan, int tile);

/// The side sums that random operands must have.
SideSums expectedSides(const GemmPlan& plan);
/// How far a side sum may lie off by rounding alone: ten standard deviations of n rounded
/// additions, over kTile values.
double sideTolerance(const GemmPlan& plan);

}  // namespace muster::burn
