// SPDX-License-Identifier: Apache-2.0
// What is kept of a node's consoles: one folder a boot, of a bounded size, the last kKeptBoots of
// them.
//
//   FOLDER/NODE/K/about.json   when it began and why
//   FOLDER/NODE/K/bytes-0      the first kHeadBytes
//   FOLDER/NODE/K/bytes-N      what came after, kTailBytes each; only the last two are there. So
//   the last kTailBytes at least are kept,
//                              whatever the machine says, and a crash at any place leaves what was
//                              written.
// K grows and is never used again. Nobody but muster's user may read: consoles show passwords.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/io/files.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace muster::bmc {

inline constexpr std::size_t kHeadBytes = 128u << 10;  ///< firmware and the start of the kernel
inline constexpr std::size_t kTailBytes = 192u << 10;  ///< of each of two
inline constexpr int kKeptBoots = 8;                   ///< of a node: at most 4 MiB in all

/// Where a state folder keeps them.
inline std::filesystem::path keptConsoles(const std::filesystem::path& state) {
  return state / "console";
}

/// One boot being written. Blocking: used on a worker.
class BootLog {
 public:
  BootLog(int number, std::filesystem::path folder) : number_(number), folder_(std::move(folder)) {}
  int number() const { return number_; }
  /// Errors: Unavailable (disk full, folder gone)
  Result<void> append(std::string_view bytes);

 private:
  Result<void> openNext();
  int number_;
  std::filesystem::path folder_;
  io::Fd file_;
  std::size_t room_ = 0;  ///< in the file that is open
  int next_ = 0;          ///< file
};

/// What a boot has said from a place on.
struct BootPart {
  std::string bytes;
  std::uint64_t from = 0;  ///< where they begin; later than what was asked for: what came between
                           ///< is not kept
  std::uint64_t next = 0;  ///< the place behind them
};

struct KeptBoot {
  int number = 0;
  WallTime began{};
  std::string why;
};

/// The boots of one node.
class BootLogArchive {
 public:
  BootLogArchive(const std::filesystem::path& root, const NodeName& node)
      : folder_(root / node.str()) {}
  /// A new boot; the oldest beyond kKeptBoots go.
  Result<BootLog> begin(WallTime now, const std::string& why);
  /// Oldest first. Errors: Unavailable; none when nothing was kept
  Result<std::vector<KeptBoot>> boots() const;
  /// All that is kept of a boot, in order; where something is left out it says so. Errors: NotFound
  Result<std::string> read(int number) const;
  /// At most `limit` bytes from the place `from` on, counted from the boot's first byte: who
  /// follows a boot asks again with `next`. Errors: NotFound
  Result<BootPart> readFrom(int number, std::uint64_t from, std::size_t limit) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace muster::bmc
