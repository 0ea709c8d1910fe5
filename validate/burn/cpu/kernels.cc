// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cpu/kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

// One body, compiled for what the processor can do. Sanitizers cannot look into functions that are
// chosen by the loader.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MUSTER_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MUSTER_CLONES
#endif

namespace muster::burn::cpu {
namespace {

constexpr int kRows = 8;     ///< of the product that stays in registers
constexpr int kDepth = 256;  ///< of a packed panel: both fit into the first-level cache

/// Values that are added and multiplied at once, said outright: what a compiler makes of plain
/// loops here differs by a factor of ten. Processors with shorter registers take several of theirs.
constexpr std::size_t kVectorBytes = 64;
template <class Value>
struct Lanes {
  typedef Value Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int kCount = kVectorBytes / sizeof(Value);
};
constexpr int kVectors = 2;  ///< side by side in the product that stays in registers
template <class Value>
constexpr int kColumns = kVectors * Lanes<Value>::kCount;

template <class Value, class Whole>
inline __attribute__((always_inline)) TileSum sumOfIntegers(const Value* tile, std::size_t stride,
                                                            const std::uint64_t* w,
                                                            const std::uint64_t* v, Value limit) {
  TileSum out;
  for (int i = 0; i < kTile; ++i) {
    const Value* row = tile + static_cast<std::size_t>(i) * stride;
    std::uint64_t sum = 0;
    std::uint32_t odd = 0;
    for (int j = 0; j < kTile; ++j) {
      const Value value = row[j];
      const bool sane = value > -limit && value < limit;  // false for a NaN
      const Whole whole = static_cast<Whole>(sane ? value : 0);
      odd += !(static_cast<Value>(whole) == value);
      sum += v[j] * static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
    }
    out.sum += w[i] * sum;
    out.odd += odd;
  }
  return out;
}

template <class Value, class Bits>
inline __attribute__((always_inline)) TileSum sumOfBits(const Value* tile, std::size_t stride,
                                                        const std::uint64_t* w,
                                                        const std::uint64_t* v) {
  TileSum out;
  for (int i = 0; i < kTile; ++i) {
    const Value* row = tile + static_cast<std::size_t>(i) * stride;
    std::uint64_t sum = 0;
    for (int j = 0; j < kTile; ++j) {
      Bits bits;
      std::memcpy(&bits, row + j, sizeof bits);
      sum += v[j] * bits;
    }
    out.sum += w[i] * sum;
  }
  return out;
}

template <Pattern kPattern>
inline __attribute__((always_inline)) std::uint64_t differ(const std::uint64_t* words,
                                                           std::size_t count, bool inverse,
                                                           std::uint64_t index,
                                                           std::uint64_t seed) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < count; ++i)
    all |= words[i] ^ patternWord(kPattern, inverse, index + i, seed);
  return all;
}

template <Pattern kPattern>
inline __attribute__((always_inline)) void put(std::uint64_t* words, std::size_t count,
                                               bool inverse, std::uint64_t index,
                                               std::uint64_t seed) {
  for (std::size_t i = 0; i < count; ++i)
    words[i] = patternWord(kPattern, inverse, index + i, seed);
}

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (kCrc32c & (0u - (crc & 1u)));
    table[byte] = crc;
  }
  return table;
}();

/// `rows` rows of `depth` values each, so that what is multiplied together lies together: [k][row].
template <class Value>
void pack(const Value* from, int n, int rows, int depth, Value* to) {
  for (int k = 0; k < depth; ++k)
    for (int row = 0; row < rows; ++row)
      to[k * rows + row] = from[static_cast<std::size_t>(row) * static_cast<std::size_t>(n) +
                                static_cast<std::size_t>(k)];
}

template <class Value>
inline __attribute__((always_inline)) void block(const Value* a, const Value* b, int depth,
                                                 Value* c, int n) {
  using Vector = typename Lanes<Value>::Vector;
  Vector sums[kRows][kVectors] = {};
  for (int k = 0; k < depth; ++k) {
    Vector right[kVectors];
    std::memcpy(right, b + static_cast<std::size_t>(k) * kColumns<Value>, sizeof right);
    for (int row = 0; row < kRows; ++row)
      for (int part = 0; part < kVectors; ++part)
        sums[row][part] += a[k * kRows + row] * right[part];
  }
  for (int row = 0; row < kRows; ++row) {
    Value* to = c + static_cast<std::size_t>(row) * static_cast<std::size_t>(n);
    Vector old[kVectors];
    std::memcpy(old, to, sizeof old);
    for (int part = 0; part < kVectors; ++part) old[part] += sums[row][part];
    std::memcpy(to, old, sizeof old);
  }
}

template <class Value>
inline __attribute__((always_inline)) void product(const Value* a, const Value* b, Value* c,
                                                   int n) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<Value> a_panel(size * kDepth), b_panel(kColumns<Value> * kDepth);
  std::fill(c, c + size * size, Value{0});
  for (int k = 0; k < n; k += kDepth) {
    const int depth = std::min(kDepth, n - k);
    for (int i = 0; i < n; i += kRows)
      pack(a + static_cast<std::size_t>(i) * size + k, n, kRows, depth,
           a_panel.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(depth));
    for (int j = 0; j < n; j += kColumns<Value>) {
      pack(b + static_cast<std::size_t>(j) * size + k, n, kColumns<Value>, depth, b_panel.data());
      for (int i = 0; i < n; i += kRows)
        block(a_panel.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(depth),
              b_panel.data(), depth, c + static_cast<std::size_t>(i) * size + j, n);
    }
  }
}

}  // namespace

MUSTER_CLONES TileSum integerSum(const float* tile, std::size_t stride, const std::uint64_t* w,
                                 const std::uint64_t* v) {
  return sumOfIntegers<float, std::int32_t>(tile, stride, w, v, 0x1p30f);
}
MUSTER_CLONES TileSum integerSum(const double* tile, std::size_t stride, const std::uint64_t* w,
                                 const std::uint64_t* v) {
  return sumOfIntegers<double, std::int64_t>(tile, stride, w, v, 0x1p62);
}
MUSTER_CLONES TileSum bitSum(const float* tile, std::size_t stride, const std::uint64_t* w,
                             const std::uint64_t* v) {
  return sumOfBits<float, std::uint32_t>(tile, stride, w, v);
}
MUSTER_CLONES TileSum bitSum(const double* tile, std::size_t stride, const std::uint64_t* w,
                             const std::uint64_t* v) {
  return sumOfBits<double, std::uint64_t>(tile, stride, w, v);
}

MUSTER_CLONES std::uint64_t differences(const std::uint64_t* words, std::size_t count,
                                        Pattern pattern, bool inverse, std::uint64_t index,
                                        std::uint64_t seed) {
  switch (pattern) {
    case Pattern::Zeros:
      return differ<Pattern::Zeros>(words, count, inverse, index, seed);
    case Pattern::Checkerboard:
      return differ<Pattern::Checkerboard>(words, count, inverse, index, seed);
    case Pattern::Address:
      return differ<Pattern::Address>(words, count, inverse, index, seed);
    case Pattern::WalkingOne:
      return differ<Pattern::WalkingOne>(words, count, inverse, index, seed);
    case Pattern::Random:
      return differ<Pattern::Random>(words, count, inverse, index, seed);
  }
  return ~0ULL;
}

MUSTER_CLONES void write(std::uint64_t* words, std::size_t count, Pattern pattern, bool inverse,
                         std::uint64_t index, std::uint64_t seed) {
  switch (pattern) {
    case Pattern::Zeros:
      return put<Pattern::Zeros>(words, count, inverse, index, seed);
    case Pattern::Checkerboard:
      return put<Pattern::Checkerboard>(words, count, inverse, index, seed);
    case Pattern::Address:
      return put<Pattern::Address>(words, count, inverse, index, seed);
    case Pattern::WalkingOne:
      return put<Pattern::WalkingOne>(words, count, inverse, index, seed);
    case Pattern::Random:
      return put<Pattern::Random>(words, count, inverse, index, seed);
  }
}

std::uint32_t crcOfWord(std::uint32_t crc, std::uint64_t word) {
  for (int byte = 0; byte < 8; ++byte, word >>= 8)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ word) & 0xff];
  return crc;
}

MUSTER_CLONES void multiply(const float* a, const float* b, float* c, int n) {
  product(a, b, c, n);
}
MUSTER_CLONES void multiply(const double* a, const double* b, double* c, int n) {
  product(a, b, c, n);
}

}  // namespace muster::burn::cpu
