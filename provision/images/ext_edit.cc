// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ext_edit.h"

#include <cstring>

namespace muster::provision {

namespace {

constexpr std::uint64_t kMaxRunBlocks = 32768;  ///< of one extent. Source: EXT_INIT_MAX_LEN

ext2_inode* plain(ext2_inode_large& inode) { return reinterpret_cast<ext2_inode*>(&inode); }

int freeBlock(ext2_filsys fs, blk64_t* block, e2_blkcnt_t, blk64_t, int, void*) {
  ext2fs_block_alloc_stats2(fs, *block, -1);
  return 0;
}

void clearContent(ext2_inode_large& inode) {
  std::memset(inode.i_block, 0, sizeof inode.i_block);
  inode.i_blocks = 0;
  inode.osd2.linux2.l_i_blocks_hi = 0;
  inode.i_flags |= EXT4_EXTENTS_FL;
}

}  // namespace

Result<ExtEditor> ExtEditor::open(ext2_filsys fs, std::uint64_t chunk_bytes) {
  if (const auto code = ext2fs_read_bitmaps(fs))
    return extError("its bitmaps cannot be read", code);
  fs->flags |= EXT2_FLAG_MASTER_SB_ONLY;
  return ExtEditor(fs, chunk_bytes);
}

ExtEditor::ExtEditor(ExtEditor&& other) noexcept
    : fs_(std::exchange(other.fs_, nullptr)),
      chunk_bytes_(other.chunk_bytes_),
      blocks_(std::move(other.blocks_)),
      inodes_(std::move(other.inodes_)) {}

ExtEditor::~ExtEditor() {
  if (fs_ == nullptr) return;
  ext2fs_set_alloc_block_callback(fs_, nullptr, nullptr);
  fs_->priv_data = nullptr;
}

Result<void> ExtEditor::releaseContent(const ExtNode& node) {
  ext2_inode copy = *node.plain();
  if (!ext2fs_inode_has_valid_blocks2(fs_, &copy)) return {};
  if (const auto code = ext2fs_block_iterate3(fs_, node.number, BLOCK_FLAG_READ_ONLY, nullptr,
                                              freeBlock, nullptr))
    return extError("the blocks of a file cannot be given back", code);
  return {};
}

Result<void> ExtEditor::releaseAttributes(const ExtNode& node) {
  if (const blk64_t block = ext2fs_file_acl_block(fs_, node.plain()); block != 0)
    ext2fs_block_alloc_stats2(fs_, block, -1);
  return {};
}

Result<void> ExtEditor::releaseInode(const ExtNode& node) {
  noteChanged(node.number);
  std::vector<char> empty(node.raw.size());
  ext2fs_inode_alloc_stats2(fs_, node.number, -1, node.isFolder() ? 1 : 0);
  if (const auto code =
          ext2fs_write_inode_full(fs_, node.number, reinterpret_cast<ext2_inode*>(empty.data()),
                                  static_cast<int>(empty.size())))
    return extError("an inode cannot be cleared", code);
  return {};
}

errcode_t ExtEditor::onAllocate(ext2_filsys fs, blk64_t, blk64_t* block) {
  const auto next = static_cast<ChunkAllocator*>(fs->priv_data)->next();
  if (!next) return EXT2_ET_BLOCK_ALLOC_FAIL;
  *block = *next;
  return 0;
}

void ExtEditor::beginAllocation() {
  blocks_ = std::make_unique<ChunkAllocator>(fs_, chunk_bytes_);
  fs_->priv_data = blocks_.get();
  ext2fs_set_alloc_block_callback(fs_, onAllocate, nullptr);
}

Result<ext2_ino_t> ExtEditor::takeInode(bool folder) {
  const auto number = inodes_.next();
  if (!number) return fail(ErrorCode::Unavailable, "there is no free inode left");
  ext2fs_inode_alloc_stats2(fs_, *number, +1, folder ? 1 : 0);
  return *number;
}

Result<blk64_t> ExtEditor::takeBlock() {
  const auto block = blocks_->next();
  if (!block) return fail(ErrorCode::Unavailable, "there is no free block left");
  ext2fs_block_alloc_stats2(fs_, *block, +1);
  return *block;
}

Result<void> ExtEditor::copyFolderBlock(const ExtTree& from, const ExtNode& node, blk64_t source,
                                        blk64_t target, ext2_ino_t number, const InodeMap& map) {
  std::string block(fs_->blocksize, '\0');
  if (const auto code = ext2fs_read_dir_block4(from.fs(), source, block.data(), 0, node.number))
    return extError("a folder cannot be read", code);
  for (std::size_t at = 0; at + 8 <= block.size();) {
    auto* entry = reinterpret_cast<ext2_dir_entry*>(block.data() + at);
    unsigned length = 0;
    if (const auto code = ext2fs_get_rec_len(fs_, entry, &length); code != 0 || length < 8)
      return extError("a folder is damaged", code);
    if (entry->inode != 0) {
      const auto found = map.find(entry->inode);
      if (found == map.end()) return extError("a folder names an inode that is not there", 0);
      entry->inode = found->second;
    }
    at += length;
  }
  if (const auto code = ext2fs_write_dir_block4(fs_, target, block.data(), 0, number))
    return extError("a folder cannot be written", code);
  return {};
}

Result<void> ExtEditor::copyContent(const ExtTree& from, const ExtNode& node, ext2_ino_t number,
                                    ext2_inode_large& inode, const InodeMap& map) {
  TRY(runs, from.runs(node));
  clearContent(inode);
  ext2_extent_handle_t opened = nullptr;
  if (const auto code = ext2fs_extent_open2(fs_, number, plain(inode), &opened))
    return extError("a file cannot be opened", code);
  const std::unique_ptr<ext2_extent_handle, void (*)(ext2_extent_handle_t)> extents(
      opened, ext2fs_extent_free);
  ext2fs_extent pending{};
  std::uint64_t total = 0;
  const auto insert = [&]() -> Result<void> {
    if (pending.e_len == 0) return {};
    if (const auto code = ext2fs_extent_insert(opened, EXT2_EXTENT_INSERT_AFTER, &pending))
      return extError("a file cannot be extended", code);
    total += pending.e_len;
    pending = {};
    return {};
  };
  std::string block(fs_->blocksize, '\0');
  for (const ExtRun& run : runs)
    for (std::uint64_t i = 0; i < run.count; ++i) {
      TRY(target, takeBlock());
      if (node.isFolder()) {
        TRY_OK(copyFolderBlock(from, node, run.physical + i, target, number, map));
      } else {
        if (const auto code =
                io_channel_read_blk64(from.fs()->io, run.physical + i, 1, block.data()))
          return extError("a block cannot be read", code);
        if (const auto code = io_channel_write_blk64(fs_->io, target, 1, block.data()))
          return extError("a block cannot be written", code);
      }
      const bool follows = pending.e_len > 0 && pending.e_len < kMaxRunBlocks &&
                           pending.e_pblk + pending.e_len == target &&
                           pending.e_lblk + pending.e_len == run.logical + i;
      if (!follows) TRY_OK(insert());
      if (pending.e_len == 0) {
        pending.e_pblk = target;
        pending.e_lblk = run.logical + i;
      }
      ++pending.e_len;
    }
  TRY_OK(insert());
  ext2fs_iblk_add_blocks(fs_, plain(inode), total);
  return {};
}

Result<void> ExtEditor::copyAttributes(const ExtTree& from, const ExtNode& node, ext2_ino_t number,
                                       ext2_inode_large& inode) {
  TRY(content, from.attributeBlock(node));
  if (content.empty()) return {};
  TRY(block, takeBlock());
  if (const auto code = ext2fs_write_ext_attr3(fs_, block, content.data(), number))
    return extError("the attributes of a file cannot be written", code);
  ext2fs_file_acl_block_set(fs_, plain(inode), block);
  return {};
}

Result<void> ExtEditor::writeInode(const ExtTree& from, const ExtNode& node, ext2_ino_t number,
                                   const ExtNode* kept_content, bool keep_attributes,
                                   const InodeMap& map) {
  auto raw = node.raw;
  auto& inode = *reinterpret_cast<ext2_inode_large*>(raw.data());
  ext2_inode_large here{};
  if (kept_content != nullptr || keep_attributes)
    if (const auto code =
            ext2fs_read_inode_full(fs_, number, plain(here), static_cast<int>(sizeof here)))
      return extError("an inode cannot be read", code);
  ext2fs_file_acl_block_set(fs_, plain(inode), 0);
  if (from.hasBlocks(node) && kept_content == nullptr) {
    TRY_OK(copyContent(from, node, number, inode, map));
  } else if (from.hasBlocks(node)) {
    std::memcpy(inode.i_block, here.i_block, sizeof inode.i_block);
    inode.i_blocks = here.i_blocks;
    inode.osd2.linux2.l_i_blocks_hi = here.osd2.linux2.l_i_blocks_hi;
    if (node.isFolder()) inode.i_size = here.i_size;
    if (ext2fs_file_acl_block(fs_, kept_content->plain()) != 0)
      ext2fs_iblk_sub_blocks(fs_, plain(inode), 1);
  } else {
    inode.i_blocks = 0;
  }
  if (keep_attributes)
    ext2fs_file_acl_block_set(fs_, plain(inode), ext2fs_file_acl_block(fs_, plain(here)));
  else
    TRY_OK(copyAttributes(from, node, number, inode));
  if (ext2fs_file_acl_block(fs_, plain(inode)) != 0) ext2fs_iblk_add_blocks(fs_, plain(inode), 1);
  if (const auto code =
          ext2fs_write_inode_full(fs_, number, plain(inode), static_cast<int>(raw.size())))
    return extError("an inode cannot be written", code);
  return {};
}

Result<void> ExtEditor::flush(std::int64_t seconds) {
  fs_->now = static_cast<time_t>(seconds);
  if (const auto code = ext2fs_flush(fs_)) return extError("it cannot be written", code);
  return {};
}

}  // namespace muster::provision
