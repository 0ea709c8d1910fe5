// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ext_tree.h"

#include "base/io/crypto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace muster::provision {

namespace {

constexpr std::size_t kMaxFiles = 4'000'000;
constexpr int kMaxDepth = 128;
constexpr std::uint64_t kPieceBlocks = 256;

int collectEntry(ext2_dir_entry* entry, int, int, char*, void* private_data) {
  std::string name(entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry)));
  if (name != "." && name != "..")
    static_cast<std::vector<ExtEntry>*>(private_data)
        ->push_back({std::move(name), entry->inode, ext2fs_dirent_file_type(entry)});
  return 0;
}

int collectRun(ext2_filsys, blk64_t* block, e2_blkcnt_t logical, blk64_t, int, void* private_data) {
  auto& runs = *static_cast<std::vector<ExtRun>*>(private_data);
  const auto at = static_cast<std::uint64_t>(logical);
  if (!runs.empty() && runs.back().logical + runs.back().count == at &&
      runs.back().physical + runs.back().count == *block)
    ++runs.back().count;
  else
    runs.push_back({at, *block, 1});
  return 0;
}

/// Reads a file's blocks in order, holes as zeros.
class BlockReader {
 public:
  static Result<BlockReader> of(const ExtTree& tree, const ExtNode& node) {
    TRY(runs, tree.runs(node));
    return BlockReader(tree.fs(), std::move(runs));
  }
  Result<void> read(std::uint64_t first, std::uint64_t count, std::string& out) {
    out.assign(count * fs_->blocksize, '\0');
    while (next_ < runs_.size() && runs_[next_].logical + runs_[next_].count <= first) ++next_;
    for (std::size_t i = next_; i < runs_.size() && runs_[i].logical < first + count; ++i) {
      const ExtRun& run = runs_[i];
      const auto from = std::max(first, run.logical);
      const auto to = std::min(first + count, run.logical + run.count);
      if (const auto code = io_channel_read_blk64(fs_->io, run.physical + (from - run.logical),
                                                  static_cast<int>(to - from),
                                                  out.data() + (from - first) * fs_->blocksize))
        return extError("a block cannot be read", code);
    }
    return {};
  }

 private:
  BlockReader(ext2_filsys fs, std::vector<ExtRun> runs) : fs_(fs), runs_(std::move(runs)) {}
  ext2_filsys fs_;
  std::vector<ExtRun> runs_;
  std::size_t next_ = 0;
};

std::uint64_t blocksFor(ext2_filsys fs, std::uint64_t bytes) {
  return (bytes + fs->blocksize - 1) / fs->blocksize;
}

/// Clears what says where an inode lies.
void clearPlace(ext2_inode_large& inode, bool has_blocks) {
  if (has_blocks) std::memset(inode.i_block, 0, sizeof inode.i_block);
  inode.i_blocks = 0;
  inode.osd2.linux2.l_i_blocks_hi = 0;
  inode.i_file_acl = 0;
  inode.osd2.linux2.l_i_file_acl_high = 0;
  inode.osd2.linux2.l_i_checksum_lo = 0;
  inode.i_checksum_hi = 0;
  if (LINUX_S_ISDIR(inode.i_mode)) inode.i_size = 0;
}

}  // namespace

std::unexpected<Error> extError(std::string_view what, errcode_t code) {
  return fail(ErrorCode::Corrupt,
              fmt::format("the file system: {} (libext2fs: {})", what, static_cast<long>(code)));
}

Result<ExtHandle> openExt(const std::filesystem::path& image, bool writable) {
  ext2_filsys fs = nullptr;
  const int flags = EXT2_FLAG_64BITS | (writable ? EXT2_FLAG_RW : 0);
  if (const auto code = ext2fs_open(image.c_str(), flags, 0, 0, unix_io_manager, &fs))
    return fail(ErrorCode::InvalidInput, fmt::format("{} holds no ext4 file system ({})",
                                                     image.string(), static_cast<long>(code)));
  return ExtHandle(fs, ext2fs_free);
}

Result<ExtTree> ExtTree::read(ext2_filsys fs) {
  ExtTree tree(fs);
  TRY_OK(tree.walk(EXT2_ROOT_INO, "", 0));
  for (auto& [number, node] : tree.nodes_) std::sort(node.paths.begin(), node.paths.end());
  return tree;
}

Result<ExtNode*> ExtTree::load(ext2_ino_t number) {
  if (const auto known = nodes_.find(number); known != nodes_.end()) return &known->second;
  if (nodes_.size() > kMaxFiles)
    return fail(ErrorCode::Corrupt, "the file system has more files than are looked at");
  ExtNode node;
  node.number = number;
  node.raw.resize(EXT2_INODE_SIZE(fs_->super));
  if (const auto code =
          ext2fs_read_inode_full(fs_, number, reinterpret_cast<ext2_inode*>(node.raw.data()),
                                 static_cast<int>(node.raw.size())))
    return extError("an inode cannot be read", code);
  return &nodes_.emplace(number, std::move(node)).first->second;
}

Result<void> ExtTree::walk(ext2_ino_t number, const std::string& path, int depth) {
  if (depth > kMaxDepth)
    return fail(ErrorCode::Corrupt, "the file system has deeper folders than are looked at");
  TRY(node, load(number));
  if (node->isFolder() && !node->paths.empty())
    return fail(ErrorCode::Corrupt, fmt::format("the folder {} has a second name", path));
  node->paths.push_back(path);
  paths_.emplace(path, number);
  if (!node->isFolder()) return {};
  if (const auto code = ext2fs_dir_iterate(fs_, number, 0, nullptr, collectEntry, &node->entries))
    return extError("a folder cannot be read", code);
  std::sort(node->entries.begin(), node->entries.end(),
            [](const ExtEntry& a, const ExtEntry& b) { return a.name < b.name; });
  for (const ExtEntry& entry : node->entries)
    TRY_OK(walk(entry.inode, path.empty() ? entry.name : path + "/" + entry.name, depth + 1));
  return {};
}

const ExtNode* ExtTree::find(const std::string& path) const {
  const auto found = paths_.find(path);
  return found == paths_.end() ? nullptr : &nodes_.at(found->second);
}

bool ExtTree::hasBlocks(const ExtNode& node) const {
  if (node.isLink()) {
    ext2_inode copy = *node.plain();
    return !ext2fs_is_fast_symlink(&copy);
  }
  return node.isRegular() || node.isFolder();
}

Result<std::vector<ExtRun>> ExtTree::runs(const ExtNode& node) const {
  std::vector<ExtRun> found;
  if (!hasBlocks(node)) return found;
  if (const auto code =
          ext2fs_block_iterate3(fs_, node.number, BLOCK_FLAG_READ_ONLY | BLOCK_FLAG_DATA_ONLY,
                                nullptr, collectRun, &found))
    return extError("the blocks of a file cannot be read", code);
  return found;
}

std::uint64_t ExtTree::blocks(const ExtNode& node) const {
  const std::uint64_t sectors =
      node.inode().i_blocks |
      (static_cast<std::uint64_t>(node.inode().osd2.linux2.l_i_blocks_hi) << 32);
  return sectors / (fs_->blocksize / 512);
}

Result<std::string> ExtTree::digest(const ExtNode& node) const {
  TRY(reader, BlockReader::of(*this, node));
  io::Sha256 hash;
  std::string piece;
  const std::uint64_t bytes = node.sizeBytes(), total = blocksFor(fs_, bytes);
  for (std::uint64_t first = 0; first < total; first += kPieceBlocks) {
    TRY_OK(reader.read(first, std::min(kPieceBlocks, total - first), piece));
    hash.update(piece.data(),
                std::min<std::uint64_t>(piece.size(), bytes - first * fs_->blocksize));
  }
  return hash.finishHex();
}

Result<std::string> ExtTree::attributeBlock(const ExtNode& node) const {
  const blk64_t block = ext2fs_file_acl_block(fs_, node.plain());
  if (block == 0) return std::string();
  std::string content(fs_->blocksize, '\0');
  if (const auto code = ext2fs_read_ext_attr3(fs_, block, content.data(), node.number))
    return extError("the attributes of a file cannot be read", code);
  auto* header = reinterpret_cast<ext2_ext_attr_header*>(content.data());
  if (header->h_refcount != 1)
    return fail(ErrorCode::Corrupt, "the file system shares attributes among files");
  header->h_checksum = 0;  // of the place, too
  return content;
}

bool sameInode(const ExtTree& a, const ExtNode& in_a, const ExtTree& b, const ExtNode& in_b) {
  if (in_a.raw.size() != in_b.raw.size() || a.hasBlocks(in_a) != b.hasBlocks(in_b)) return false;
  auto left = in_a.raw, right = in_b.raw;
  clearPlace(*reinterpret_cast<ext2_inode_large*>(left.data()), a.hasBlocks(in_a));
  clearPlace(*reinterpret_cast<ext2_inode_large*>(right.data()), b.hasBlocks(in_b));
  return left == right;
}

Result<bool> sameAttributeBlock(const ExtTree& a, const ExtNode& in_a, const ExtTree& b,
                                const ExtNode& in_b) {
  TRY(left, a.attributeBlock(in_a));
  TRY(right, b.attributeBlock(in_b));
  return left == right;
}

Result<bool> sameContent(const ExtTree& a, const ExtNode& in_a, const ExtTree& b,
                         const ExtNode& in_b) {
  if (in_a.isFolder() || !a.hasBlocks(in_a)) return true;  // sameInode has compared it
  const std::uint64_t bytes = in_a.sizeBytes();
  if (bytes != in_b.sizeBytes() || !b.hasBlocks(in_b)) return false;
  TRY(left, BlockReader::of(a, in_a));
  TRY(right, BlockReader::of(b, in_b));
  const std::uint64_t total = blocksFor(a.fs(), bytes);
  std::string x, y;
  for (std::uint64_t first = 0; first < total; first += kPieceBlocks) {
    const auto count = std::min(kPieceBlocks, total - first);
    TRY_OK(left.read(first, count, x));
    TRY_OK(right.read(first, count, y));
    if (x != y) return false;  // beyond the end of a file there are zeros
  }
  return true;
}

Result<void> expectSameTree(const ExtTree& a, const ExtTree& b) {
  const auto differs = [](const std::string& path, const char* how) {
    return fail(ErrorCode::Internal, fmt::format("/{} {}", path, how));
  };
  for (const auto& [path, number] : a.paths())
    if (!b.paths().contains(path)) return differs(path, "is missing");
  for (const auto& [path, number] : b.paths())
    if (!a.paths().contains(path)) return differs(path, "is too many");
  for (const auto& [number, node] : a.nodes()) {
    const std::string& path = node.paths.front();
    const ExtNode& other = *b.find(path);
    if (node.paths != other.paths) return differs(path, "has other hard links");
    if (!sameInode(a, node, b, other)) return differs(path, "has another inode");
    TRY(attributes, sameAttributeBlock(a, node, b, other));
    if (!attributes) return differs(path, "has other attributes");
    TRY(content, sameContent(a, node, b, other));
    if (!content) return differs(path, "has other content");
    for (std::size_t i = 0; i < node.entries.size(); ++i)
      if (node.entries[i].type != other.entries[i].type)
        return differs(path, "names an entry of another type");
  }
  return {};
}

}  // namespace muster::provision
