// SPDX-License-Identifier: Apache-2.0
// The arithmetic that every back end shares, on hosts and on devices alike: what an operand is,
// what a memory word is, what a value weighs in a checksum. All pure functions of (seed, index):
// nothing has to be stored to know what must be there, and goldens are equal bit for bit wherever
// they are made.
#pragma once

#include <cstdint>

#if defined(__HIP__)  // clang's own words, without ROCm's headers
#define MUSTER_HD __attribute__((host)) __attribute__((device))
#define MUSTER_COPY_BYTES __builtin_memcpy
#elif defined(__CUDACC__)
#define MUSTER_HD __host__ __device__
#define MUSTER_COPY_BYTES memcpy
#else
#define MUSTER_HD
#define MUSTER_COPY_BYTES __builtin_memcpy
#endif

namespace muster::burn {

inline constexpr int kTile = 128;  ///< edge of an output tile that has a checksum of its own

MUSTER_HD inline std::uint64_t mix(std::uint64_t value) {  // splitmix64's finaliser
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

inline constexpr std::uint64_t kDrawStep =
    0x9e3779b97f4a7c15ULL;  ///< between one draw and the next
MUSTER_HD inline std::uint64_t draw(std::uint64_t seed, std::uint64_t index) {
  return mix(seed + (index + 1) * kDrawStep);
}

/// An integer in [-limit, limit].
MUSTER_HD inline std::int64_t integerOperand(std::uint64_t seed, std::uint64_t index,
                                             std::int64_t limit) {
  return static_cast<std::int64_t>((draw(seed, index) >> 24) %
                                   static_cast<std::uint64_t>(2 * limit + 1)) -
         limit;
}

/// A value in (-1, 1) that has `bits` significant bits at most.
MUSTER_HD inline double randomOperand(std::uint64_t seed, std::uint64_t index, int bits) {
  const std::uint64_t random = draw(seed, index);
  const double magnitude =
      static_cast<double>(random >> (64 - bits)) / static_cast<double>(1ULL << bits);
  return random & 1 ? -magnitude : magnitude;
}

/// Formats that give each block of `scale_block` neighbours along k a scale (0: no scales): by
/// which power of two the block is multiplied. Scales that never change would not show that they
/// are used.
MUSTER_HD inline int scaleExponent(std::uint64_t seed, std::uint64_t index, int scale_block) {
  if (scale_block == 0) return 0;
  return static_cast<int>(draw(mix(seed ^ 0x5), index / static_cast<std::uint64_t>(scale_block)) >>
                          63);
}
/// A whole number of at most twice the limit.
MUSTER_HD inline std::int64_t scaledInteger(std::uint64_t seed, std::uint64_t index,
                                            std::int64_t limit, int scale_block) {
  return integerOperand(seed, index, limit) * (1 << scaleExponent(seed, index, scale_block));
}
/// A value in (-1, 1): with scales, of half the size or of the whole.
MUSTER_HD inline double scaledRandom(std::uint64_t seed, std::uint64_t index, int bits,
                                     int scale_block) {
  const double value = randomOperand(seed, index, bits);
  return scale_block && scaleExponent(seed, index, scale_block) == 0 ? value / 2 : value;
}

/// 2:4 sparsity: which two of four neighbours along k are kept; the lower place in the low two
/// bits, the other in the next two. All six choices occur.
MUSTER_HD inline std::uint32_t keptPlaces(std::uint64_t seed, std::uint64_t group) {
  constexpr std::uint32_t kChoices = 0xed9c84;  // 01, 02, 03, 12, 13, 23
  return kChoices >> (4 * static_cast<int>((draw(mix(seed ^ 0x24), group) >> 24) % 6)) & 15;
}
MUSTER_HD inline bool isKept(std::uint64_t seed, std::uint64_t index) {
  const std::uint32_t places = keptPlaces(seed, index / 4);
  return index % 4 == (places & 3) || index % 4 == places >> 2;
}
/// Where the kept value `number` lies among all values.
MUSTER_HD inline std::uint64_t keptIndex(std::uint64_t seed, std::uint64_t number) {
  const std::uint32_t places = keptPlaces(seed, number / 2);
  return number / 2 * 4 + (number % 2 ? places >> 2 : places & 3);
}
inline constexpr int kGroupsPerWord = 8;  ///< of four values each, whose places lie in 32 bits
MUSTER_HD inline std::uint32_t keptPlacesWord(std::uint64_t seed, std::uint64_t word) {
  std::uint32_t all = 0;
  for (int group = 0; group < kGroupsPerWord; ++group)
    all |= keptPlaces(seed, word * kGroupsPerWord + static_cast<std::uint64_t>(group))
           << (4 * group);
  return all;
}

/// Odd, so that a change by any power of two changes the checksum.
MUSTER_HD inline std::uint64_t weight(std::uint64_t seed, std::uint64_t index) {
  return draw(~seed, index) | 1;
}

/// The two operands and the weights of rows and columns draw from streams of their own.
MUSTER_HD inline std::uint64_t streamA(std::uint64_t seed) { return mix(seed ^ 0xa); }
MUSTER_HD inline std::uint64_t streamB(std::uint64_t seed) { return mix(seed ^ 0xb); }
MUSTER_HD inline std::uint64_t streamRows(std::uint64_t seed) { return mix(seed ^ 0xc); }
MUSTER_HD inline std::uint64_t streamColumns(std::uint64_t seed) { return mix(seed ^ 0xd); }

enum class Pattern : std::uint8_t { Zeros, Checkerboard, Address, WalkingOne, Random };

/// What the 64-bit word `index` holds.
MUSTER_HD inline std::uint64_t patternWord(Pattern pattern, bool inverse, std::uint64_t index,
                                           std::uint64_t seed) {
  std::uint64_t word = 0;
  switch (pattern) {
    case Pattern::Zeros:
      break;
    case Pattern::Checkerboard:
      word = index & 1 ? 0xaaaaaaaaaaaaaaaaULL : 0x5555555555555555ULL;
      break;
    case Pattern::Address:
      word = index;
      break;
    case Pattern::WalkingOne:
      word = 1ULL << (index % 64);
      break;
    case Pattern::Random:
      word = draw(seed, index);
      break;
  }
  return inverse ? ~word : word;
}

inline constexpr std::uint32_t kCrc32c = 0x82f63b78u;  ///< Castagnoli, reflected
inline constexpr std::uint64_t kCopyBlockWords = 512;  ///< 4 KiB: what has a CRC of its own

/// CRC-32C by nibbles: little enough for a register file.
MUSTER_HD inline std::uint32_t crcWord(std::uint32_t crc, std::uint64_t word) {
  for (int half = 0; half < 2; ++half, word >>= 32) {
    crc ^= static_cast<std::uint32_t>(word);
    for (int bit = 0; bit < 32; ++bit) crc = (crc >> 1) ^ (kCrc32c & (0u - (crc & 1u)));
  }
  return crc;
}

}  // namespace muster::burn
