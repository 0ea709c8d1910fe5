// SPDX-License-Identifier: Apache-2.0
// Where new blocks of a file system go so that few chunks of its image change, and what becomes of
// blocks that are no longer used. A chunk is what a node fetches as a whole (wire/pack_index.h).
#pragma once

#include "base/result.h"

#include <ext2fs/ext2fs.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

namespace muster::provision {

/// Hands out free blocks: chunks without any used block first, in order, then those with the fewest
/// used blocks. New content so lies together and changes no chunk that holds something else while
/// there is an empty one.
class ChunkAllocator {
 public:
  ChunkAllocator(ext2_filsys fs, std::uint64_t chunk_bytes);

  /// Blocks in chunks without a used block.
  std::uint64_t emptyChunkBlocks() const { return empty_blocks_; }
  /// The next free block; it is not marked as used. None: there is no free block left.
  std::optional<blk64_t> next();

 private:
  ext2_filsys fs_;
  std::uint64_t chunk_blocks_, empty_blocks_ = 0;
  std::vector<std::uint64_t> order_;  ///< chunks
  std::size_t chunk_ = 0;             ///< index into order_
  std::uint64_t offset_ = 0;          ///< in that chunk, blocks
};

/// Hands out free inodes: those of chunks that change anyway first, then in order.
class InodeAllocator {
 public:
  InodeAllocator(ext2_filsys fs, std::uint64_t chunk_bytes) : fs_(fs), chunk_bytes_(chunk_bytes) {}

  /// The chunk of the inode table that holds it changes. For before the first `next`.
  void noteChanged(ext2_ino_t inode) { changed_.insert(chunkOf(inode)); }
  /// The next free inode; it is not marked as used. None: there is no free inode left.
  std::optional<ext2_ino_t> next();

 private:
  std::uint64_t chunkOf(ext2_ino_t inode) const;
  void collect();

  ext2_filsys fs_;
  std::uint64_t chunk_bytes_;
  std::set<std::uint64_t> changed_;
  std::vector<ext2_ino_t> free_;
  std::size_t next_ = 0;
  bool collected_ = false;
};

/// What a chunk was, to tell whether it has changed: XXH3 of each. Errors: Internal
Result<std::vector<std::uint64_t>> chunkSums(const std::filesystem::path& image,
                                             std::uint64_t chunk_bytes);

struct DeadBlocks {
  std::uint64_t changed_chunks = 0;
  std::uint64_t kept_blocks = 0;  ///< not used, but not zero: to clear them would change a chunk
};

/// Clears blocks that are not used: where the chunk changes anyway, where it holds nothing else,
/// and of the others those with the most such blocks, until at most `max_kept_blocks` are left.
/// `before`: chunkSums of the image as it was. Errors: Internal, Unavailable (disk full)
Result<DeadBlocks> clearDeadBlocks(ext2_filsys fs, const std::filesystem::path& image,
                                   const std::vector<std::uint64_t>& before,
                                   std::uint64_t chunk_bytes, std::uint64_t max_kept_blocks);

}  // namespace muster::provision
