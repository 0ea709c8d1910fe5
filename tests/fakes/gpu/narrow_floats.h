// SPDX-License-Identifier: Apache-2.0
// What the bits of narrow floats are worth, by the formats' definitions and by code of its own:
// nothing here is the product's. Source: IEEE 754; OCP 8-bit floating point (OFP8), tables 1 and 2;
// OCP microscaling formats (MX) 1.0, sections 5.3.3 and 5.4.1; AMD's CDNA 3 ISA, BF8 and FP8 (bias
// one more, 0x80 is the only NaN).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace muster::test::narrow {

/// `special`: the largest exponent is of infinities and NaNs (IEEE's way).
inline double decode(std::uint32_t bits, int exponent_bits, int mantissa_bits, int bias,
                     bool special) {
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (special && exponent == (1 << exponent_bits) - 1)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

inline double half(std::uint32_t bits) { return decode(bits, 5, 10, 15, true); }
inline double brain(std::uint32_t bits) { return decode(bits, 8, 7, 127, true); }
inline double e5m2(std::uint32_t bits) { return decode(bits, 5, 2, 15, true); }
inline double e2m1(std::uint32_t bits) { return decode(bits & 15, 2, 1, 1, false); }
/// 255 is a NaN.
inline double e8m0(std::uint32_t bits) {
  return bits == 255 ? std::numeric_limits<double>::quiet_NaN()
                     : std::ldexp(1, static_cast<int>(bits) - 127);
}
inline double e4m3(std::uint32_t bits) {
  return (bits & 0x7f) == 0x7f ? std::numeric_limits<double>::quiet_NaN()
                               : decode(bits, 4, 3, 7, false);
}
inline double e4m3Fnuz(std::uint32_t bits) {
  return bits == 0x80 ? std::numeric_limits<double>::quiet_NaN() : decode(bits, 4, 3, 8, false);
}
inline double e5m2Fnuz(std::uint32_t bits) {
  return bits == 0x80 ? std::numeric_limits<double>::quiet_NaN() : decode(bits, 5, 2, 16, false);
}

}  // namespace muster::test::narrow
