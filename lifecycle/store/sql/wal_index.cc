// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/wal_index.h"

#include <bit>
#include <cstring>

namespace muster::lifecycle::sql {
namespace {

constexpr std::uint32_t kFormat = 3'007'000;
// Offsets of 32-bit words in the byte order of the machine.
constexpr std::size_t kFormatAt = 0, kPageBytesAt = 12, kFramesAt = 16, kCheckAt = 24, kSaltAt = 32,
                      kHeaderBytes = 48, kCopiedAt = 96, kAttemptedAt = 128;

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

std::optional<WalIndex::LogShape> WalIndex::logShape() const {
  constexpr std::uint64_t kLogHeaderBytes = 32, kFrameHeaderBytes = 24;
  constexpr std::uint32_t kLargestPage = 65'536;
  if (!region_) return std::nullopt;
  // Two copies of the header: a process that changes it writes the second one first.
  std::array<std::uint32_t, kHeaderBytes / sizeof(std::uint32_t)> header;
  for (std::size_t i = 0; i < header.size(); ++i) header[i] = word(i * sizeof(std::uint32_t));
  for (std::size_t i = 0; i < header.size(); ++i)
    if (word(kHeaderBytes + i * sizeof(std::uint32_t)) != header[i]) return std::nullopt;
  const auto at = [&](std::size_t offset) { return header[offset / sizeof(std::uint32_t)]; };
  if (at(kFormatAt) != kFormat || at(kFramesAt) == 0) return std::nullopt;
  std::uint32_t page = at(kPageBytesAt) >> 16;  // the upper half of the word, little-endian
  if (page == 1) page = kLargestPage;           // it does not fit into 16 bits
  LogShape out;
  out.last_frame_bytes =
      kLogHeaderBytes + (at(kFramesAt) - std::uint64_t{1}) * (kFrameHeaderBytes + page);
  out.least_bytes = out.last_frame_bytes + kFrameHeaderBytes + page;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto salt = at(kSaltAt + i * sizeof(std::uint32_t));  // as it is in the file
    const auto check = std::byteswap(at(kCheckAt + i * sizeof(std::uint32_t)));  // big-endian there
    std::memcpy(out.salt.data() + i * sizeof(salt), &salt, sizeof(salt));
    std::memcpy(out.check.data() + i * sizeof(check), &check, sizeof(check));
  }
  return out;
}

}  // namespace muster::lifecycle::sql
