// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/wal_index.h"

namespace muster::lifecycle::sql {
namespace {

constexpr std::uint32_t kFormat = 3'007'000;
// Offsets of 32-bit words in the byte order of the machine.
constexpr std::size_t kFormatAt = 0, kPageBytesAt = 12, kFramesAt = 16, kSaltAt = 32,
                      kCopiedAt = 96, kAttemptedAt = 128;

}  // namespace

/// Another process writes it: each word is read as one, and in this order.
std::uint32_t WalIndex::word(std::size_t offset) const {
  return __atomic_load_n(reinterpret_cast<const volatile std::uint32_t*>(region_ + offset),
                         __ATOMIC_SEQ_CST);
}

std::optional<WalIndex::Copied> WalIndex::read() const {
  if (!region_ || word(kFormatAt) != kFormat) return std::nullopt;
  Copied out;
  out.salt[0] = word(kSaltAt);
  out.salt[1] = word(kSaltAt + sizeof(std::uint32_t));
  out.frames = word(kCopiedAt);
  out.attempted = word(kAttemptedAt);
  return out;
}

std::uint64_t WalIndex::logBytes() const {
  constexpr std::uint64_t kLogHeaderBytes = 32, kFrameHeaderBytes = 24;
  constexpr std::uint32_t kLargestPage = 65'536;
  if (!region_ || word(kFormatAt) != kFormat) return 0;
  std::uint32_t page = word(kPageBytesAt) >> 16;  // the upper half of the word, little-endian
  if (page == 1) page = kLargestPage;             // it does not fit into 16 bits
  const std::uint64_t frames = word(kFramesAt);
  return frames == 0 ? 0 : kLogHeaderBytes + frames * (kFrameHeaderBytes + page);
}

}  // namespace muster::lifecycle::sql
