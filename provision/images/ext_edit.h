// SPDX-License-Identifier: Apache-2.0
// Single changes to an ext4 file system that nobody has mounted, by libext2fs. What they make comes
// out of another file system, block by block. The journal is not touched: it is empty before and
// after. Only the first superblock and group descriptors are written, as the kernel does.
#pragma once

#include "provision/images/ext_chunks.h"
#include "provision/images/ext_tree.h"

#include <cstdint>
#include <map>
#include <memory>

namespace muster::provision {

/// Inode numbers of the other file system → of this one.
using InodeMap = std::map<ext2_ino_t, ext2_ino_t>;

class ExtEditor {
 public:
  /// `fs` is open for writing and outlives the editor. Errors: Corrupt
  static Result<ExtEditor> open(ext2_filsys fs, std::uint64_t chunk_bytes);
  ExtEditor(ExtEditor&& other) noexcept;
  ~ExtEditor();

  /// Gives a file's blocks back, without its attributes.
  Result<void> releaseContent(const ExtNode& node);
  Result<void> releaseAttributes(const ExtNode& node);
  /// Gives an inode back and clears it.
  Result<void> releaseInode(const ExtNode& node);

  /// From here on blocks are taken, by the allocator: call it when all is released.
  void beginAllocation();
  /// A free inode, marked as used: one whose neighbours in the chunk are changed already, else the
  /// first. Errors: Unavailable (none left)
  Result<ext2_ino_t> takeInode(bool folder);
  /// The chunk of an inode table that holds it changes anyway.
  void noteChanged(ext2_ino_t inode) { inodes_.noteChanged(inode); }

  /// Writes the inode `number` after the example of `node`, with its attributes. Content: copied to
  /// new blocks, or as it is here already (`kept_content`: the inode whose content stays).
  Result<void> writeInode(const ExtTree& from, const ExtNode& node, ext2_ino_t number,
                          const ExtNode* kept_content, bool keep_attributes, const InodeMap& map);
  /// Writes what is still in memory. `seconds`: since 1970, written as the time of the change
  Result<void> flush(std::int64_t seconds);

 private:
  ExtEditor(ext2_filsys fs, std::uint64_t chunk_bytes)
      : fs_(fs), chunk_bytes_(chunk_bytes), inodes_(fs, chunk_bytes) {}
  Result<void> copyContent(const ExtTree& from, const ExtNode& node, ext2_ino_t number,
                           ext2_inode_large& inode, const InodeMap& map);
  Result<void> copyFolderBlock(const ExtTree& from, const ExtNode& node, blk64_t source,
                               blk64_t target, ext2_ino_t number, const InodeMap& map);
  Result<void> copyAttributes(const ExtTree& from, const ExtNode& node, ext2_ino_t number,
                              ext2_inode_large& inode);
  Result<blk64_t> takeBlock();
  static errcode_t onAllocate(ext2_filsys fs, blk64_t goal, blk64_t* block);

  ext2_filsys fs_;
  std::uint64_t chunk_bytes_;
  std::unique_ptr<ChunkAllocator> blocks_;
  InodeAllocator inodes_;
};

}  // namespace muster::provision
