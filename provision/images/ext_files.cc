// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ext_files.h"

#include "base/io/crypto.h"

#include <ext2fs/ext2fs.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace muster::provision {

namespace {

constexpr std::size_t kPieceBytes = 1u << 20;
constexpr std::size_t kMaxFiles = 4'000'000;
constexpr int kMaxDepth = 128;

ext2_filsys fsOf(void* handle) { return static_cast<ext2_filsys>(handle); }

std::unexpected<Error> broken(const char* what, errcode_t code) {
  return fail(ErrorCode::Corrupt,
              fmt::format("the file system is damaged: {} ({})", what, static_cast<long>(code)));
}

struct Child {
  std::string name;
  ext2_ino_t inode;
};

int collect(ext2_dir_entry* entry, int, int, char*, void* private_data) {
  const std::string name(entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry)));
  if (name != "." && name != "..")
    static_cast<std::vector<Child>*>(private_data)->push_back({name, entry->inode});
  return 0;
}

Result<void> walk(ext2_filsys fs, ext2_ino_t folder, const std::string& path, int depth,
                  std::map<std::string, FileFact>& out) {
  if (depth > kMaxDepth || out.size() > kMaxFiles)
    return fail(ErrorCode::Corrupt,
                "the file system has more files, or deeper folders, than are looked at");
  std::vector<Child> children;
  if (const auto code = ext2fs_dir_iterate(fs, folder, 0, nullptr, collect, &children))
    return broken("a folder cannot be read", code);
  for (const Child& child : children) {
    const std::string name = path.empty() ? child.name : path + "/" + child.name;
    if (name == "lost+found") continue;
    ext2_inode inode{};
    if (const auto code = ext2fs_read_inode(fs, child.inode, &inode))
      return broken("an inode cannot be read", code);
    FileFact fact;
    fact.mode = inode.i_mode;
    fact.uid = inode_uid(inode);
    fact.gid = inode_gid(inode);
    fact.size_bytes = LINUX_S_ISDIR(inode.i_mode) ? 0 : EXT2_I_SIZE(&inode);
    fact.inode = child.inode;
    out.emplace(name, fact);
    if (LINUX_S_ISDIR(inode.i_mode)) TRY_OK(walk(fs, child.inode, name, depth + 1, out));
  }
  return {};
}

/// Calls the sink with the content, piece by piece.
template <class Sink>
Result<void> content(ext2_filsys fs, ext2_ino_t number, Sink sink) {
  ext2_inode inode{};
  if (const auto code = ext2fs_read_inode(fs, number, &inode))
    return broken("an inode cannot be read", code);
  if (LINUX_S_ISLNK(inode.i_mode) && ext2fs_is_fast_symlink(&inode)) {
    sink(reinterpret_cast<const char*>(inode.i_block), static_cast<std::size_t>(inode.i_size));
    return {};
  }
  if (!LINUX_S_ISREG(inode.i_mode) && !LINUX_S_ISLNK(inode.i_mode))
    return fail(ErrorCode::NotFound, "it is no file");
  ext2_file_t opened = nullptr;
  if (const auto code = ext2fs_file_open2(fs, number, &inode, 0, &opened))
    return broken("a file cannot be opened", code);
  const std::unique_ptr<ext2_file, errcode_t (*)(ext2_file_t)> file(opened, ext2fs_file_close);
  std::vector<char> piece(kPieceBytes);
  for (unsigned got = 1; got > 0;) {
    if (const auto code =
            ext2fs_file_read(opened, piece.data(), static_cast<unsigned>(piece.size()), &got))
      return broken("a file cannot be read", code);
    sink(piece.data(), got);
  }
  return {};
}

}  // namespace

Result<ExtFiles> ExtFiles::open(const std::filesystem::path& image, std::uint64_t offset_bytes) {
  ext2_filsys fs = nullptr;
  const auto where = fmt::format("offset={}", offset_bytes);
  if (const auto code =
          ext2fs_open2(image.c_str(), where.c_str(), EXT2_FLAG_64BITS, 0, 0, unix_io_manager, &fs))
    return fail(ErrorCode::InvalidInput, fmt::format("{} holds no ext4 file system ({})",
                                                     image.string(), static_cast<long>(code)));
  return ExtFiles(fs);
}

ExtFiles::ExtFiles(ExtFiles&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

ExtFiles::~ExtFiles() {
  if (handle_) ext2fs_free(fsOf(handle_));
}

Result<std::map<std::string, FileFact>> ExtFiles::list() const {
  std::map<std::string, FileFact> found;
  TRY_OK(walk(fsOf(handle_), EXT2_ROOT_INO, "", 0, found));
  return found;
}

Result<std::uint32_t> ExtFiles::rootMode() const {
  ext2_inode inode{};
  if (const auto code = ext2fs_read_inode(fsOf(handle_), EXT2_ROOT_INO, &inode))
    return broken("its top folder cannot be read", code);
  return inode.i_mode;
}

Result<std::string> ExtFiles::read(std::uint32_t inode, std::size_t max_bytes) const {
  std::string all;
  bool too_long = false;
  TRY_OK(content(fsOf(handle_), inode, [&](const char* data, std::size_t size) {
    too_long = too_long || all.size() + size > max_bytes;
    if (!too_long) all.append(data, size);
  }));
  if (too_long)
    return fail(ErrorCode::Corrupt, fmt::format("a file has more than {} bytes", max_bytes));
  return all;
}

Result<std::string> ExtFiles::digest(std::uint32_t inode) const {
  io::Sha256 hash;
  TRY_OK(content(fsOf(handle_), inode,
                 [&hash](const char* data, std::size_t size) { hash.update(data, size); }));
  return hash.finishHex();
}

Result<void> settleTimes(const std::filesystem::path& image, std::int64_t epoch,
                         std::int64_t since) {
  ext2_filsys opened = nullptr;
  if (const auto code = ext2fs_open(image.c_str(), EXT2_FLAG_RW | EXT2_FLAG_64BITS, 0, 0,
                                    unix_io_manager, &opened))
    return fail(ErrorCode::Internal,
                fmt::format("cannot open {} ({})", image.string(), static_cast<long>(code)));
  const std::unique_ptr<struct_ext2_filsys, void (*)(ext2_filsys)> fs(opened, ext2fs_free);
  fs->now = static_cast<time_t>(epoch);
  const auto seconds = static_cast<__u32>(epoch);
  ext2_inode_scan scan = nullptr;
  if (const auto code = ext2fs_open_inode_scan(opened, 0, &scan))
    return broken("its inodes cannot be read", code);
  const std::unique_ptr<ext2_struct_inode_scan, void (*)(ext2_inode_scan)> held(
      scan, ext2fs_close_inode_scan);
  const int size = EXT2_INODE_SIZE(fs->super);
  std::vector<char> buffer(static_cast<std::size_t>(size));
  auto* inode = reinterpret_cast<ext2_inode_large*>(buffer.data());
  for (;;) {
    ext2_ino_t number = 0;
    if (const auto code =
            ext2fs_get_next_inode_full(scan, &number, reinterpret_cast<ext2_inode*>(inode), size))
      return broken("an inode cannot be read", code);
    if (number == 0) break;
    if (inode->i_links_count == 0) continue;
    inode->i_atime = inode->i_ctime = seconds;
    if (static_cast<std::int64_t>(inode->i_mtime) >= since) inode->i_mtime = seconds;
    if (size > EXT2_GOOD_OLD_INODE_SIZE) {
      inode->i_crtime = seconds;
      inode->i_atime_extra = inode->i_ctime_extra = inode->i_mtime_extra = inode->i_crtime_extra =
          0;
    }
    if (const auto code =
            ext2fs_write_inode_full(opened, number, reinterpret_cast<ext2_inode*>(inode), size))
      return broken("an inode cannot be written", code);
  }
  if (const auto code = ext2fs_flush(opened))
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot write {} ({})", image.string(), static_cast<long>(code)));
  return {};
}

}  // namespace muster::provision
