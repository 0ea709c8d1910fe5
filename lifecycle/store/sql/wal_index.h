// SPDX-License-Identifier: Apache-2.0
// WalIndex: what SQLite's index of a write-ahead log says of the database file. In this mode the
// file is written only while frames of the log are copied into it, and the index, which all
// processes share, says so before the first byte and after the last. So a file that was written
// while the index says the same was written by somebody else.
//
// Source: https://www.sqlite.org/walformat.html, "WAL-Index File Format" (format 3007000); of the
// log itself: https://www.sqlite.org/fileformat2.html#the_write_ahead_log. The
// index is memory that SQLite has mapped; nothing here opens a file (store_files.h says why).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace muster::lifecycle::sql {

class WalIndex {
 public:
  static constexpr std::size_t kRegionBytes =
      32'768;  ///< of the first part, which SQLite maps as one

  struct Copied {
    std::uint32_t salt[2] = {};  ///< which log it is: both change when the log begins anew
    std::uint32_t frames = 0;    ///< copied
    std::uint32_t attempted =
        0;  ///< the same, unless somebody copies now, or was killed while he did
    bool settled() const { return frames == attempted; }
    friend bool operator==(const Copied&, const Copied&) = default;
  };

  WalIndex() = default;
  /// `region`: what SQLite has mapped, for as long as this is read.
  explicit WalIndex(const volatile void* region)
      : region_(static_cast<const volatile std::byte*>(region)) {}
  /// Nothing: there is no index, or one of a format that is not known.
  std::optional<Copied> read() const;
  /// How the log's file must begin and end as long as the index says so. Nothing: it holds no frame
  /// that counts, another process changes the index just now, or there is none.
  struct LogShape {
    std::array<std::byte, 8> salt{};     ///< in its header, bytes kLogSaltAt and following
    std::array<std::byte, 8> check{};    ///< in the header of the last frame that counts
    std::uint64_t last_frame_bytes = 0;  ///< where that header is
    std::uint64_t least_bytes = 0;       ///< of the whole file
    friend bool operator==(const LogShape&, const LogShape&) = default;
  };
  static constexpr std::size_t kLogSaltAt = 16, kFrameCheckAt = 16;
  std::optional<LogShape> logShape() const;

 private:
  std::uint32_t word(std::size_t offset) const;

  const volatile std::byte* region_ = nullptr;
};

}  // namespace muster::lifecycle::sql
