// SPDX-License-Identifier: Apache-2.0
// Number formats of matrix units, by their bits: the same code encodes on the device and on the
// host. Only values that the format holds exactly are ever encoded. Source: IEEE 754; OCP 8-bit
// floating point (E4M3, E5M2); OCP microscaling formats (E2M1, E8M0); AMD's CDNA 3 ISA (FNUZ: one
// zero, the exponent's bias one more).
#pragma once

#include "validate/burn/arith.h"
#include "validate/burn/device_types.h"

#include <cstring>

namespace muster::burn::gpu {

struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  bool one_zero = false;  ///< the bits of a negative zero are a NaN
};
inline constexpr FloatFormat kHalf{5, 10, 15}, kBrain{8, 7, 127}, kE4m3{4, 3, 7}, kE5m2{5, 2, 15},
    kE2m1{2, 1, 1}, kE4m3Fnuz{4, 3, 8, true}, kE5m2Fnuz{5, 2, 16, true};

/// A normal value or zero; both in range.
MUSTER_HD inline std::uint32_t encodeFloat(FloatFormat format, float value) {
  std::uint32_t bits;
  MUSTER_COPY_BYTES(&bits, &value, sizeof bits);
  const std::uint32_t sign = bits >> 31, exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  const std::uint32_t shifted = sign << (format.exponent_bits + format.mantissa_bits);
  if (exponent == 0) return format.one_zero ? 0 : shifted;
  const auto biased = static_cast<std::uint32_t>(static_cast<int>(exponent) - 127 + format.bias);
  return shifted | biased << format.mantissa_bits | mantissa >> (23 - format.mantissa_bits);
}

/// What operand `index` of a plan's A or B holds.
struct OperandRule {
  bool integer;
  std::int64_t limit;
  int bits;
  std::uint64_t stream;
  int scale_block = 0;    ///< 0: no scales
  int element_shift = 0;  ///< elements are stored times, scales divided by two to the power of it
  bool sparse = false;    ///< kept values only are stored; `index` counts them
  /// As it is stored: without its scale.
  MUSTER_HD double element(std::uint64_t index) const {
    const std::uint64_t at = sparse ? keptIndex(stream, index) : index;
    const double value = integer ? static_cast<double>(integerOperand(stream, at, limit))
                                 : randomOperand(stream, at, bits);
    return value * static_cast<double>(1 << element_shift);
  }
  /// Of the block that the value is in. Random values are halved or not, whole ones doubled or not.
  MUSTER_HD int exponent(std::uint64_t index) const {
    return scaleExponent(stream, index, scale_block) - (integer ? 0 : 1) - element_shift;
  }
};

/// How a library wants the scales of an operand.
enum class ScaleLayout : std::uint8_t {
  Tiles,  ///< cuBLAS: tiles of 128 rows by 4 blocks
  Rows    ///< hipBLASLt: one row's after the other's, along k
};

/// A row r of a tile lies at 16 bytes times r % 32, plus 4 times r / 32. Source: cuBLAS, "1D Block
/// Scaling Factors Layout"; hipblaslt.h, HIPBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
MUSTER_HD inline std::uint64_t scalePlace(ScaleLayout layout, std::uint64_t row,
                                          std::uint64_t block, std::uint64_t blocks_a_row) {
  if (layout == ScaleLayout::Rows) return row * blocks_a_row + block;
  const std::uint64_t tile = row / 128 * (blocks_a_row / 4) + block / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

/// How an operand lies in memory.
enum class Encoding : std::uint8_t {
  Double,
  Float,
  Brain,
  Half,
  E4m3,
  E5m2,
  E4m3Fnuz,
  E5m2Fnuz,
  E2m1,  ///< two a byte, the first in the low bits
  Int8
};
enum class ScaleEncoding : std::uint8_t { E8m0, E4m3 };
/// Of 8-bit floats: OCP's, or those of AMD's CDNA 3.
enum class Float8 : std::uint8_t { Ocp, Fnuz };

/// E5M2 is multiplied by E4M3, as backward passes do: libraries have no product of two E5M2.
/// Source: cuBLASLt's and hipBLASLt's tables of supported types
inline Encoding encodingOf(Dtype dtype, bool is_a, Float8 float8) {
  switch (dtype) {
    case Dtype::Fp64:
      return Encoding::Double;
    case Dtype::Fp32:
    case Dtype::Tf32:
      return Encoding::Float;
    case Dtype::Bf16:
    case Dtype::Bf16Sparse:
      return Encoding::Brain;
    case Dtype::Fp16:
      return Encoding::Half;
    case Dtype::Fp8E5m2:
      if (is_a) return float8 == Float8::Ocp ? Encoding::E5m2 : Encoding::E5m2Fnuz;
      [[fallthrough]];
    case Dtype::Fp8:
      return float8 == Float8::Ocp ? Encoding::E4m3 : Encoding::E4m3Fnuz;
    case Dtype::Mxfp8:
      return Encoding::E4m3;
    case Dtype::Nvfp4:
      return Encoding::E2m1;
    case Dtype::Int8:
      return Encoding::Int8;
  }
  return Encoding::Int8;
}

/// Of one value; of E2M1 of two.
MUSTER_HD inline int bytesOf(Encoding encoding) {
  switch (encoding) {
    case Encoding::Double:
      return 8;
    case Encoding::Float:
      return 4;
    case Encoding::Brain:
    case Encoding::Half:
      return 2;
    case Encoding::E4m3:
    case Encoding::E5m2:
    case Encoding::E4m3Fnuz:
    case Encoding::E5m2Fnuz:
    case Encoding::E2m1:
    case Encoding::Int8:
      return 1;
  }
  return 0;
}

/// The bits of one operand, in the low bytes.
MUSTER_HD inline std::uint64_t encode(Encoding encoding, double value) {
  const float narrow = static_cast<float>(value);
  std::uint64_t bits = 0;
  switch (encoding) {
    case Encoding::Double:
      MUSTER_COPY_BYTES(&bits, &value, sizeof value);
      break;
    case Encoding::Float:
      MUSTER_COPY_BYTES(&bits, &narrow, sizeof narrow);
      break;
    case Encoding::Brain:
      bits = encodeFloat(kBrain, narrow);
      break;
    case Encoding::Half:
      bits = encodeFloat(kHalf, narrow);
      break;
    case Encoding::E4m3:
      bits = encodeFloat(kE4m3, narrow);
      break;
    case Encoding::E5m2:
      bits = encodeFloat(kE5m2, narrow);
      break;
    case Encoding::E4m3Fnuz:
      bits = encodeFloat(kE4m3Fnuz, narrow);
      break;
    case Encoding::E5m2Fnuz:
      bits = encodeFloat(kE5m2Fnuz, narrow);
      break;
    case Encoding::E2m1:
      bits = encodeFloat(kE2m1, narrow);
      break;
    case Encoding::Int8:
      bits = static_cast<std::uint8_t>(static_cast<std::int8_t>(value));
      break;
  }
  return bits;
}

/// Where a value's byte is.
MUSTER_HD inline std::uint64_t offsetOf(Encoding encoding, std::uint64_t index) {
  return encoding == Encoding::E2m1 ? index / 2
                                    : index * static_cast<std::uint64_t>(bytesOf(encoding));
}

/// A scale of two to the power of `exponent`.
MUSTER_HD inline std::uint8_t encodeScale(ScaleEncoding encoding, int exponent) {
  return static_cast<std::uint8_t>(encoding == ScaleEncoding::E8m0
                                       ? exponent + 127
                                       : (exponent + kE4m3.bias) << kE4m3.mantissa_bits);
}

MUSTER_HD inline std::uint64_t load(Encoding encoding, const void* from, std::uint64_t index) {
  if (encoding == Encoding::E2m1)
    return static_cast<const std::uint8_t*>(from)[index / 2] >> (index % 2 * 4) & 15;
  switch (bytesOf(encoding)) {
    case 8:
      return static_cast<const std::uint64_t*>(from)[index];
    case 4:
      return static_cast<const std::uint32_t*>(from)[index];
    case 2:
      return static_cast<const std::uint16_t*>(from)[index];
    default:
      return static_cast<const std::uint8_t*>(from)[index];
  }
}
MUSTER_HD inline void store(Encoding encoding, void* to, std::uint64_t index, std::uint64_t bits) {
  switch (bytesOf(encoding)) {
    case 8:
      static_cast<std::uint64_t*>(to)[index] = bits;
      break;
    case 4:
      static_cast<std::uint32_t*>(to)[index] = static_cast<std::uint32_t>(bits);
      break;
    case 2:
      static_cast<std::uint16_t*>(to)[index] = static_cast<std::uint16_t>(bits);
      break;
    default:
      static_cast<std::uint8_t*>(to)[index] = static_cast<std::uint8_t>(bits);
  }
}

/// Of E2M1 the values `index` and `index` + 1 at once, `index` being even.
MUSTER_HD inline void storeTwo(void* to, std::uint64_t index, std::uint64_t first,
                               std::uint64_t second) {
  static_cast<std::uint8_t*>(to)[index / 2] = static_cast<std::uint8_t>(first | second << 4);
}

/// What products come out as. FP8 and FP4 as FP16: their products are so fast that reading FP32
/// results would cost a sixteenth of their time and more.
enum class OutputKind : std::uint8_t { Double, Float, Half, Int32 };
MUSTER_HD inline OutputKind outputOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::Fp64:
      return OutputKind::Double;
    case Dtype::Int8:
      return OutputKind::Int32;
    case Dtype::Fp8:
    case Dtype::Fp8E5m2:
    case Dtype::Mxfp8:
    case Dtype::Nvfp4:
      return OutputKind::Half;
    case Dtype::Fp32:
    case Dtype::Tf32:
    case Dtype::Bf16:
    case Dtype::Fp16:
    case Dtype::Bf16Sparse:
      break;
  }
  return OutputKind::Float;
}
MUSTER_HD inline int bytesOf(OutputKind kind) {
  return kind == OutputKind::Double ? 8 : kind == OutputKind::Half ? 2 : 4;
}

/// The value of an FP16; subnormals, infinities and NaNs too.
MUSTER_HD inline float decodeHalf(std::uint32_t half) {
  const std::uint32_t sign = half >> 15 << 31, exponent = half >> 10 & 0x1f,
                      mantissa = half & 0x3ff;
  std::uint32_t bits = sign | (exponent + 112) << 23 | mantissa << 13;
  if (exponent == 0x1f) bits = sign | 0x7f800000u | mantissa << 13;
  float value;
  MUSTER_COPY_BYTES(&value, &bits, sizeof value);
  if (exponent == 0) value = (sign ? -1.0f : 1.0f) * static_cast<float>(mantissa) * 0x1p-24f;
  return value;
}

/// A whole number of a sane size, or odd: NaN, infinity, fraction.
struct Whole {
  std::int64_t value;
  bool odd;
};
MUSTER_HD inline Whole wholeOf(double number) {
  const bool sane = number > -0x1p62 && number < 0x1p62;  // false for a NaN
  const auto value = static_cast<std::int64_t>(sane ? number : 0);
  return {value, !(static_cast<double>(value) == number)};
}
/// Without FP64, of which some GPUs have little.
MUSTER_HD inline Whole wholeOf(float number) {
  const bool sane = number > -0x1p30f && number < 0x1p30f;
  const auto value = static_cast<std::int32_t>(sane ? number : 0);
  return {value, !(static_cast<float>(value) == number)};
}

/// Output values of one kind: their bits, as whole numbers and as numbers.
template <OutputKind kKind>
struct OutputFormat;
template <>
struct OutputFormat<OutputKind::Double> {
  using Bits = std::uint64_t;
  MUSTER_HD static double number(Bits bits) {
    double value;
    MUSTER_COPY_BYTES(&value, &bits, sizeof value);
    return value;
  }
  MUSTER_HD static Whole whole(Bits bits) { return wholeOf(number(bits)); }
};
template <>
struct OutputFormat<OutputKind::Float> {
  using Bits = std::uint32_t;
  MUSTER_HD static float number(Bits bits) {
    float value;
    MUSTER_COPY_BYTES(&value, &bits, sizeof value);
    return value;
  }
  MUSTER_HD static Whole whole(Bits bits) { return wholeOf(number(bits)); }
};
template <>
struct OutputFormat<OutputKind::Half> {
  using Bits = std::uint16_t;
  MUSTER_HD static float number(Bits bits) { return decodeHalf(bits); }
  MUSTER_HD static Whole whole(Bits bits) { return wholeOf(number(bits)); }
};
template <>
struct OutputFormat<OutputKind::Int32> {
  using Bits = std::uint32_t;
  MUSTER_HD static double number(Bits bits) {
    return static_cast<double>(static_cast<std::int32_t>(bits));
  }
  MUSTER_HD static Whole whole(Bits bits) { return {static_cast<std::int32_t>(bits), false}; }
};

MUSTER_HD inline double numberAt(OutputKind kind, const void* c, std::uint64_t index) {
  switch (kind) {
    case OutputKind::Double:
      return static_cast<const double*>(c)[index];
    case OutputKind::Float:
      return static_cast<double>(static_cast<const float*>(c)[index]);
    case OutputKind::Half:
      return static_cast<double>(decodeHalf(static_cast<const std::uint16_t*>(c)[index]));
    case OutputKind::Int32:
      break;
  }
  return static_cast<double>(static_cast<const std::int32_t*>(c)[index]);
}

}  // namespace muster::burn::gpu
