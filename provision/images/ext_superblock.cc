// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ext_superblock.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace muster::provision {

namespace {

constexpr std::uint64_t kSuperblockAt = 1024;
constexpr std::size_t kSuperblockBytes = 1024;
constexpr std::size_t kBlocksAt = 4, kLogBlockAt = 24, kStateAt = 58, kCompatibleAt = 92,
                      kIncompatibleAt = 96, kJournalInodeAt = 224;
constexpr std::uint32_t kMaxLogBlock = 6;  ///< 64 KiB
constexpr std::uint16_t kCleanBit = 1, kErrorBit = 2;
constexpr std::uint32_t kHasJournalBit = 4, kRecoverBit = 4;
/// Of Debian's kernels, for both architectures; they mount no larger block.
constexpr std::uint64_t kPageBytes = 4096;

class Superblock {
 public:
  Superblock(int fd, std::uint64_t offset_bytes) : bytes_(kSuperblockBytes, '\0') {
    const auto n =
        ::pread(fd, bytes_.data(), bytes_.size(), static_cast<off_t>(offset_bytes + kSuperblockAt));
    whole_ = n == static_cast<ssize_t>(bytes_.size());
  }
  bool whole() const { return whole_; }
  template <class Number>
  Number at(std::size_t offset) const {
    Number value{};
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  /// 0: no block has that size.
  std::uint64_t blockBytes() const {
    const auto log = at<std::uint32_t>(kLogBlockAt);
    return log <= kMaxLogBlock ? std::uint64_t{1024} << log : 0;
  }

 private:
  std::string bytes_;
  bool whole_ = false;
};

}  // namespace

std::uint64_t extBytes(int fd, std::uint64_t offset_bytes) {
  const Superblock superblock(fd, offset_bytes);
  return superblock.whole() ? superblock.at<std::uint32_t>(kBlocksAt) * superblock.blockBytes() : 0;
}

Result<void> checkExtIsClean(int fd, std::uint64_t offset_bytes) {
  const Superblock superblock(fd, offset_bytes);
  if (!superblock.whole())
    return fail(ErrorCode::Corrupt, "its file system has no whole superblock");
  const auto state = superblock.at<std::uint16_t>(kStateAt);
  const auto incompatible = superblock.at<std::uint32_t>(kIncompatibleAt);
  const char* why = (state & kErrorBit) != 0 ? "is marked as faulty: its kernel found errors in it"
                    : (incompatible & kRecoverBit) != 0
                        ? "was copied while it was mounted: its journal has not been replayed"
                    : (state & kCleanBit) == 0
                        ? "was copied while it was mounted, or not unmounted cleanly"
                        : nullptr;
  if (why == nullptr) return {};
  return fail(ErrorCode::InvalidInput,
              fmt::format("its file system {}; run e2fsck -f on it (of a disk: losetup --find "
                          "--show --partscan FILE, then its partition; of a qcow2: qemu-img "
                          "convert -O raw first), and declare the SHA-256 of the result",
                          why));
}

Result<void> checkExtMounts(int fd, std::uint64_t offset_bytes) {
  const Superblock superblock(fd, offset_bytes);
  if (!superblock.whole())
    return fail(ErrorCode::Corrupt, "its file system has no whole superblock");
  if (superblock.blockBytes() > kPageBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("its file system has blocks of {} bytes, and kernels whose pages have "
                            "{} mount none of more than that; make it by mke2fs -b {}",
                            superblock.blockBytes(), kPageBytes, kPageBytes));
  if ((superblock.at<std::uint32_t>(kCompatibleAt) & kHasJournalBit) != 0 &&
      superblock.at<std::uint32_t>(kJournalInodeAt) == 0)
    return fail(ErrorCode::InvalidInput,
                "the journal of its file system is on another device, which no node has; give it "
                "one of its own: tune2fs -O ^has_journal, then tune2fs -j");
  return {};
}

}  // namespace muster::provision
