// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ext_chunks.h"

#include "base/io/files.h"
#include "wire/pack_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace muster::provision {

namespace {

class ImageFile {
 public:
  static Result<ImageFile> open(const std::filesystem::path& path, int flags) {
    io::Fd fd(::open(path.c_str(), flags | O_CLOEXEC));
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    if (!fd.valid() || error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
    return ImageFile(std::move(fd), path, bytes);
  }
  std::uint64_t bytes() const { return bytes_; }

  Result<void> read(std::uint64_t offset, std::uint64_t length, std::string& out) const {
    out.resize(length);
    for (std::size_t done = 0; done < out.size();) {
      const ssize_t n = ::pread(fd_.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        return fail(ErrorCode::Internal,
                    fmt::format("cannot read {}: {}", path_.string(),
                                n == 0 ? "it ends too early" : std::strerror(errno)));
      done += static_cast<std::size_t>(n);
    }
    return {};
  }
  Result<void> write(std::uint64_t offset, std::string_view data) const {
    while (!data.empty()) {
      const ssize_t n = ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        return fail(ErrorCode::Unavailable,
                    fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
      offset += static_cast<std::uint64_t>(n);
      data.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

 private:
  ImageFile(io::Fd fd, std::filesystem::path path, std::uint64_t bytes)
      : fd_(std::move(fd)), path_(std::move(path)), bytes_(bytes) {}
  io::Fd fd_;
  std::filesystem::path path_;
  std::uint64_t bytes_;
};

bool isUsed(ext2_filsys fs, blk64_t block) {
  return ext2fs_test_block_bitmap2(fs->block_map, block) != 0;
}

std::uint64_t chunkCount(std::uint64_t total, std::uint64_t chunk) {
  return (total + chunk - 1) / chunk;
}

/// Clears what is not used in a chunk's bytes.
/// Returns how many blocks were not zero before.
std::uint64_t clearUnused(ext2_filsys fs, blk64_t first, std::string& chunk) {
  std::uint64_t cleared = 0;
  for (std::uint64_t i = 0; i * fs->blocksize < chunk.size(); ++i) {
    char* const block = chunk.data() + i * fs->blocksize;
    if (isUsed(fs, first + i) || wire::allZero({block, fs->blocksize})) continue;
    std::memset(block, 0, fs->blocksize);
    ++cleared;
  }
  return cleared;
}

}  // namespace

ChunkAllocator::ChunkAllocator(ext2_filsys fs, std::uint64_t chunk_bytes)
    : fs_(fs), chunk_blocks_(chunk_bytes / fs->blocksize) {
  const std::uint64_t total = ext2fs_blocks_count(fs->super);
  std::vector<std::uint64_t> used(chunkCount(total, chunk_blocks_));
  for (std::uint64_t i = 0; i < used.size(); ++i) {
    const auto end = std::min(total, (i + 1) * chunk_blocks_);
    for (blk64_t block = i * chunk_blocks_; block < end; ++block)
      used[i] += block < fs->super->s_first_data_block || isUsed(fs, block) ? 1 : 0;
    if (used[i] == 0) empty_blocks_ += end - i * chunk_blocks_;
  }
  order_.resize(used.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&used](auto a, auto b) { return used[a] < used[b]; });
}

std::optional<blk64_t> ChunkAllocator::next() {
  const std::uint64_t total = ext2fs_blocks_count(fs_->super);
  for (; chunk_ < order_.size(); ++chunk_, offset_ = 0)
    while (offset_ < chunk_blocks_) {
      const blk64_t block = order_[chunk_] * chunk_blocks_ + offset_++;
      if (block >= fs_->super->s_first_data_block && block < total && !isUsed(fs_, block))
        return block;
    }
  return std::nullopt;
}

std::uint64_t InodeAllocator::chunkOf(ext2_ino_t inode) const {
  const std::uint64_t index = inode - 1, group = index / fs_->super->s_inodes_per_group,
                      offset = index % fs_->super->s_inodes_per_group * EXT2_INODE_SIZE(fs_->super);
  return (ext2fs_inode_table_loc(fs_, static_cast<dgrp_t>(group)) * fs_->blocksize + offset) /
         chunk_bytes_;
}

void InodeAllocator::collect() {
  std::vector<ext2_ino_t> elsewhere;
  for (ext2_ino_t number = EXT2_FIRST_INODE(fs_->super); number <= fs_->super->s_inodes_count;
       ++number) {
    if (ext2fs_test_inode_bitmap2(fs_->inode_map, number) != 0) continue;
    (changed_.contains(chunkOf(number)) ? free_ : elsewhere).push_back(number);
  }
  free_.insert(free_.end(), elsewhere.begin(), elsewhere.end());
  collected_ = true;
}

std::optional<ext2_ino_t> InodeAllocator::next() {
  if (!collected_) collect();
  return next_ < free_.size() ? std::optional(free_[next_++]) : std::nullopt;
}

Result<std::vector<std::uint64_t>> chunkSums(const std::filesystem::path& image,
                                             std::uint64_t chunk_bytes) {
  TRY(file, ImageFile::open(image, O_RDONLY));
  std::vector<std::uint64_t> sums;
  std::string chunk;
  for (std::uint64_t at = 0; at < file.bytes(); at += chunk_bytes) {
    TRY_OK(file.read(at, std::min(chunk_bytes, file.bytes() - at), chunk));
    sums.push_back(wire::quickSum(chunk));
  }
  return sums;
}

Result<DeadBlocks> clearDeadBlocks(ext2_filsys fs, const std::filesystem::path& image,
                                   const std::vector<std::uint64_t>& before,
                                   std::uint64_t chunk_bytes, std::uint64_t max_kept_blocks) {
  TRY(file, ImageFile::open(image, O_RDWR));
  const std::uint64_t chunk_blocks = chunk_bytes / fs->blocksize;
  struct Kept {
    std::uint64_t chunk, blocks;
  };
  std::vector<Kept> kept;
  DeadBlocks result;
  std::string chunk;
  const auto clear = [&](std::uint64_t i) -> Result<void> {
    return clearUnused(fs, i * chunk_blocks, chunk) == 0 ? Result<void>()
                                                         : file.write(i * chunk_bytes, chunk);
  };
  for (std::uint64_t i = 0; i * chunk_bytes < file.bytes(); ++i) {
    TRY_OK(
        file.read(i * chunk_bytes, std::min(chunk_bytes, file.bytes() - i * chunk_bytes), chunk));
    const auto sum = wire::quickSum(chunk);
    std::string cleared = chunk;
    const auto dead = clearUnused(fs, i * chunk_blocks, cleared);
    const bool empty = wire::allZero(cleared);
    const bool changes = i >= before.size() || sum != before[i];
    if (dead > 0 && !changes && !empty) {
      kept.push_back({i, dead});
      result.kept_blocks += dead;
    } else {
      if (dead > 0) TRY_OK(file.write(i * chunk_bytes, cleared));
      result.changed_chunks += i >= before.size() || wire::quickSum(cleared) != before[i] ? 1 : 0;
    }
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Kept& a, const Kept& b) { return a.blocks > b.blocks; });
  for (const Kept& one : kept) {
    if (result.kept_blocks <= max_kept_blocks) break;
    TRY_OK(file.read(one.chunk * chunk_bytes,
                     std::min(chunk_bytes, file.bytes() - one.chunk * chunk_bytes), chunk));
    TRY_OK(clear(one.chunk));
    result.kept_blocks -= one.blocks;
    ++result.changed_chunks;
  }
  return result;
}

}  // namespace muster::provision
