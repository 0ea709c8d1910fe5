// SPDX-License-Identifier: Apache-2.0
// A new image laid out over its predecessor: what did not change keeps its blocks and inodes, so a
// node fetches what changed and little else. docs/adr/0239
//
//   predecessor (a copy) ─┐
//                         ├─► the tree of `fresh`, in the places of the predecessor
//   fresh (mke2fs -d) ────┘
//
// Only file systems that makeExt4 made and nobody has mounted are taken. The result is a function
// of both: same predecessor and same content, same bytes.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>

namespace muster::provision {

/// The file system may become this much larger than a fresh one before blocks between others are
/// used; and one that is larger than the second figure is laid out anew.
inline constexpr double kMaxGrownSize = 1.5, kMaxKeptSize = 2.0;
/// Of the content's blocks: when more are new, little is gained and all is laid out anew.
inline constexpr double kMaxNewShare = 0.75;
/// Of the content's blocks: those that are no longer used and still hold what they held.
inline constexpr double kMaxDeadShare = 0.25;

struct Succession {
  std::uint64_t chunks = 0, changed_chunks = 0;
  std::uint64_t kept_files = 0, new_files = 0, removed_files = 0;  ///< inodes
  std::uint64_t new_bytes = 0;   ///< blocks of content that were written
  std::uint64_t dead_bytes = 0;  ///< not used and not zero, in chunks that did not change
  std::uint64_t grown_bytes = 0;
};

/// Makes `image`, a copy of the predecessor, hold the tree of `fresh`: names, inodes, hard links,
/// attributes and content are compared afterwards, and e2fsck -fn finds nothing. After an error
/// `image` is of no use; `fresh` is never changed.
/// Units:  chunk_bytes: what a node fetches as a whole
/// Errors: Conflict (it is to be laid out anew: not made by makeExt4, too little in common, too
///         large, out of inodes), Corrupt (the predecessor), Unavailable (disk full), Internal
Result<Succession> layOutOver(const std::filesystem::path& image,
                              const std::filesystem::path& fresh, std::uint64_t chunk_bytes);

}  // namespace muster::provision
