// SPDX-License-Identifier: Apache-2.0
// One run of muster-peer: the pieces it has, and their bytes.
//
// Pieces lie in a folder of the RAM disk, so a swarm takes as much memory as the pack is long;
// `roomFor` says whether the machine has that to spare. Leaving the swarm gives all of it back.
#pragma once

#include "base/io/process.h"
#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace muster::agent {

struct SharedProgress;

/// Whether the pieces may lie in memory: never more than half of what is free, so that writer and
/// tools keep theirs.
inline constexpr bool roomFor(std::uint64_t pack_bytes, std::uint64_t available_bytes) {
  return pack_bytes <= available_bytes / 2;
}

struct SwarmOptions {
  std::filesystem::path program = "muster-peer";
  std::filesystem::path folder = "/run/muster/peers";  ///< emptied, and removed at the end
  std::string listen = "0.0.0.0:6881";
};

/// What one swarm has brought, for the report.
struct SwarmStatus {
  std::uint32_t pieces = 0, have = 0, connected = 0, wrong_pieces = 0, banned = 0;
  std::uint64_t from_peers = 0, uploaded = 0;  ///< bytes
};

/// What the metainfo says of the pieces.
struct PieceTable {
  std::uint64_t pack_bytes = 0;
  std::uint32_t piece_bytes = 0;
  std::string sha1;  ///< 20 bytes a piece

  std::uint32_t pieces() const {
    return static_cast<std::uint32_t>((pack_bytes + piece_bytes - 1) / piece_bytes);
  }
  /// Errors: Corrupt (not as muster's controller makes it, not of a pack of this length)
  static Result<PieceTable> of(std::string_view metainfo, std::uint64_t pack_bytes);
};

class Swarm {
 public:
  /// Starts the engine. `wanted`: one byte a piece, 0 where it is not needed; empty: all.
  /// Errors: NotFound (no engine on this machine), Corrupt (metainfo of another make), Internal
  static Result<std::unique_ptr<Swarm>> join(SwarmOptions options, PieceTable table,
                                             std::string_view metainfo,
                                             const std::string& announce_url,
                                             const std::string& wanted,
                                             io::ProcessRunner& processes);
  ~Swarm();
  Swarm(const Swarm&) = delete;

  /// Whether the engine runs.
  bool alive();
  /// Whether it can be given pieces, and has some to give: a moment after it was started.
  bool ready();
  /// Grows as pieces come; what a stalled swarm does not do.
  std::uint32_t have();
  bool has(std::uint64_t offset, std::uint64_t length);
  /// Only what `has`. Errors: Internal
  Result<std::string> read(std::uint64_t offset, std::uint64_t length) const;
  /// A bit a piece, the first in the highest bit of the first byte: set for what is here or not
  /// wanted. Empty before the engine is there.
  std::string unneeded();
  /// Gives whole pieces to the engine, fetched from a server. Errors: Corrupt (their hash),
  /// Internal
  Result<void> offer(std::uint32_t first, std::string_view bytes);
  const PieceTable& table() const { return table_; }
  SwarmStatus status();
  pid_t pid() const { return engine_->pid(); }

 private:
  Swarm() = default;

  SwarmOptions options_;
  std::unique_ptr<io::Child> engine_;
  PieceTable table_;
  std::string wanted_;
  SharedProgress* progress_ = nullptr;
  std::size_t progress_bytes_ = 0;
};

}  // namespace muster::agent
