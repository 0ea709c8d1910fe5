// SPDX-License-Identifier: Apache-2.0
// Number formats of tensor cores, by their bits: the same code encodes on the device and decodes in
// tests. Only values that the format holds exactly are ever encoded. Source: IEEE 754; OCP 8-bit
// floating point specification (E4M3).
#pragma once

#include "validate/burn/arith.h"
#include "validate/burn/device_types.h"

#include <cstring>

namespace muster::burn::cuda {

struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
};
inline constexpr FloatFormat kHalf{5, 10, 15}, kBrain{8, 7, 127}, kE4m3{4, 3, 7};

/// A normal value or zero; both in range.
MUSTER_HD inline std::uint32_t encodeFloat(FloatFormat format, float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = bits >> 31, exponent = bits >> 23 & 0xff, mantissa = bits & 0x7fffff;
  const std::uint32_t shifted = sign << (format.exponent_bits + format.mantissa_bits);
  if (exponent == 0) return shifted;
  const auto biased = static_cast<std::uint32_t>(static_cast<int>(exponent) - 127 + format.bias);
  return shifted | biased << format.mantissa_bits | mantissa >> (23 - format.mantissa_bits);
}

/// What operand `index` of a plan's A or B holds.
struct OperandRule {
  bool integer;
  std::int64_t limit;
  int bits;
  std::uint64_t stream;
  MUSTER_HD double at(std::uint64_t index) const {
    return integer ? static_cast<double>(integerOperand(stream, index, limit))
                   : randomOperand(stream, index, bits);
  }
};

MUSTER_HD inline int bytesOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::Fp64:
      return 8;
    case Dtype::Fp32:
    case Dtype::Tf32:
      return 4;
    case Dtype::Bf16:
    case Dtype::Fp16:
      return 2;
    case Dtype::Fp8:
    case Dtype::Int8:
      return 1;
  }
  return 0;
}

/// The bits of one operand, in the low bytes.
MUSTER_HD inline std::uint64_t encode(Dtype dtype, double value) {
  const float narrow = static_cast<float>(value);
  std::uint64_t bits = 0;
  switch (dtype) {
    case Dtype::Fp64:
      memcpy(&bits, &value, sizeof value);
      break;
    case Dtype::Fp32:
    case Dtype::Tf32:
      memcpy(&bits, &narrow, sizeof narrow);
      break;
    case Dtype::Bf16:
      bits = encodeFloat(kBrain, narrow);
      break;
    case Dtype::Fp16:
      bits = encodeFloat(kHalf, narrow);
      break;
    case Dtype::Fp8:
      bits = encodeFloat(kE4m3, narrow);
      break;
    case Dtype::Int8:
      bits = static_cast<std::uint8_t>(static_cast<std::int8_t>(value));
      break;
  }
  return bits;
}

MUSTER_HD inline std::uint64_t load(Dtype dtype, const void* from, std::uint64_t index) {
  std::uint64_t bits = 0;
  const int bytes = bytesOf(dtype);
  memcpy(&bits, static_cast<const unsigned char*>(from) + index * static_cast<std::uint64_t>(bytes),
         static_cast<std::size_t>(bytes));
  return bits;
}
MUSTER_HD inline void store(Dtype dtype, void* to, std::uint64_t index, std::uint64_t bits) {
  const int bytes = bytesOf(dtype);
  memcpy(static_cast<unsigned char*>(to) + index * static_cast<std::uint64_t>(bytes), &bits,
         static_cast<std::size_t>(bytes));
}

/// What products come out as. FP8 as FP16: its products are so fast that reading FP32 results would
/// cost a sixteenth of their time.
enum class OutputKind { Double, Float, Half, Int32 };
MUSTER_HD inline OutputKind outputOf(Dtype dtype) {
  return dtype == Dtype::Fp64   ? OutputKind::Double
         : dtype == Dtype::Int8 ? OutputKind::Int32
         : dtype == Dtype::Fp8  ? OutputKind::Half
                                : OutputKind::Float;
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
  memcpy(&value, &bits, sizeof value);
  if (exponent == 0) value = (sign ? -1.0f : 1.0f) * static_cast<float>(mantissa) * 0x1p-24f;
  return value;
}

/// One output value: as a number, as bits, and as the whole number that it must be.
struct OutputValue {
  double number;
  std::uint64_t bits;
  std::int64_t whole;
  bool odd;  ///< no whole number of a sane size: NaN, infinity, fraction
};
MUSTER_HD inline OutputValue outputAt(OutputKind kind, const void* c, std::uint64_t index) {
  OutputValue value{};
  if (kind == OutputKind::Int32) {
    const auto number = static_cast<const std::int32_t*>(c)[index];
    return {static_cast<double>(number), static_cast<std::uint32_t>(number), number, false};
  }
  if (kind == OutputKind::Double) {
    value.number = static_cast<const double*>(c)[index];
    memcpy(&value.bits, &value.number, sizeof value.bits);
  } else if (kind == OutputKind::Half) {
    const auto half = static_cast<const std::uint16_t*>(c)[index];
    value.number = static_cast<double>(decodeHalf(half)), value.bits = half;
  } else {
    const float number = static_cast<const float*>(c)[index];
    std::uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    value.number = number, value.bits = bits;
  }
  const bool sane = value.number > -0x1p62 && value.number < 0x1p62;  // false for a NaN
  value.whole = static_cast<std::int64_t>(sane ? value.number : 0);
  value.odd = !(static_cast<double>(value.whole) == value.number);
  return value;
}

}  // namespace muster::burn::cuda
