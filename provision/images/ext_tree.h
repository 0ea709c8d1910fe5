// SPDX-License-Identifier: Apache-2.0
// An ext4 file system as a tree of names and inodes, for what compares two of them or makes one
// like another: every inode with its raw bytes, its names and its content. libext2fs reads it;
// nothing is mounted. ext_files.h is for those who only want a file's text.
#pragma once

#include "base/result.h"

#include <ext2fs/ext2fs.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::provision {

using ExtHandle = std::unique_ptr<struct_ext2_filsys, void (*)(ext2_filsys)>;

/// Errors: InvalidInput (no ext file system)
Result<ExtHandle> openExt(const std::filesystem::path& image, bool writable);

/// Errors: Corrupt; `code` is libext2fs's
std::unexpected<Error> extError(std::string_view what, errcode_t code);

/// Blocks of a file that follow each other in it and on the disk.
struct ExtRun {
  std::uint64_t logical = 0, physical = 0, count = 0;
};

struct ExtEntry {
  std::string name;
  ext2_ino_t inode = 0;
  int type = 0;  ///< EXT2_FT_…
};

struct ExtNode {
  ext2_ino_t number = 0;
  std::vector<char> raw;           ///< the inode as it is stored, with its attributes
  std::vector<std::string> paths;  ///< in order; several of a hard link
  std::vector<ExtEntry> entries;   ///< of a folder, in the order of their names, without . and ..

  const ext2_inode_large& inode() const {
    return *reinterpret_cast<const ext2_inode_large*>(raw.data());
  }
  const ext2_inode* plain() const { return reinterpret_cast<const ext2_inode*>(raw.data()); }
  bool isFolder() const { return LINUX_S_ISDIR(inode().i_mode); }
  bool isRegular() const { return LINUX_S_ISREG(inode().i_mode); }
  bool isLink() const { return LINUX_S_ISLNK(inode().i_mode); }
  std::uint64_t sizeBytes() const { return EXT2_I_SIZE(plain()); }
};

class ExtTree {
 public:
  /// Reads all names and inodes. `fs` outlives the tree.
  /// Errors: Corrupt (damaged, too many files or too deep)
  static Result<ExtTree> read(ext2_filsys fs);

  ext2_filsys fs() const { return fs_; }
  const std::map<std::string, ext2_ino_t>& paths() const { return paths_; }  ///< "" is the root
  const std::map<ext2_ino_t, ExtNode>& nodes() const { return nodes_; }
  const ExtNode& node(ext2_ino_t number) const { return nodes_.at(number); }
  const ExtNode* find(const std::string& path) const;

  /// Whether the content is in blocks: of files, folders and long links.
  bool hasBlocks(const ExtNode& node) const;
  /// Errors: Corrupt
  Result<std::vector<ExtRun>> runs(const ExtNode& node) const;
  /// Blocks that data, extents and attributes take.
  std::uint64_t blocks(const ExtNode& node) const;
  /// SHA-256 of a regular file's content, holes as zeros. Errors: Corrupt
  Result<std::string> digest(const ExtNode& node) const;
  /// The block of attributes, empty if there is none. Errors: Corrupt
  Result<std::string> attributeBlock(const ExtNode& node) const;

 private:
  explicit ExtTree(ext2_filsys fs) : fs_(fs) {}
  Result<void> walk(ext2_ino_t number, const std::string& path, int depth);
  Result<ExtNode*> load(ext2_ino_t number);

  ext2_filsys fs_;
  std::map<std::string, ext2_ino_t> paths_;
  std::map<ext2_ino_t, ExtNode> nodes_;
};

/// Everything of an inode but where it lies: its blocks, its checksum, a folder's size.
/// A file without blocks (a device, a short link) is compared whole.
bool sameInode(const ExtTree& a, const ExtNode& in_a, const ExtTree& b, const ExtNode& in_b);
/// Errors: Corrupt
Result<bool> sameAttributeBlock(const ExtTree& a, const ExtNode& in_a, const ExtTree& b,
                                const ExtNode& in_b);
/// Of files and links; folders are compared by their entries. Errors: Corrupt
Result<bool> sameContent(const ExtTree& a, const ExtNode& in_a, const ExtTree& b,
                         const ExtNode& in_b);

/// Whether two file systems hold the same names, inodes, hard links, attributes and content,
/// wherever they lie. Errors: Corrupt, Internal (the first difference)
Result<void> expectSameTree(const ExtTree& a, const ExtTree& b);

}  // namespace muster::provision
