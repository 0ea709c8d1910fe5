// SPDX-License-Identifier: Apache-2.0
// ext4 files without mounting: mke2fs -d, with the layout and the identities fixed, so that a
// rebuilt image keeps most chunks.
#include "base/io/process.h"
#include "provision/images/archive.h"
#include "provision/images/ext_files.h"
#include "provision/images/system_builder.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <set>

namespace muster::provision {

namespace {

constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::uint64_t kJournalMib = 32;  ///< resize2fs leaves it; enough for a system disk
constexpr std::uint64_t kSlackBytes =
    96ull << 20;  ///< room for what the writer adds before the file system grows
constexpr std::uint64_t kRoundBytes = 16ull << 20;
constexpr std::uint64_t kInodeBytes = 256;
constexpr std::size_t kMaxShownPath = 200;  ///< bytes of a path in a message
/// Not secret, not special: the same on every build, so that equal content is an equal image.
constexpr const char* kUuid = "6d757374-6572-4f53-8000-000000000001";
constexpr const char* kHashSeed = "6d757374-6572-4f53-8000-000000000002";
/// Spelt out, because /etc/mke2fs.conf of the building machine must not matter, and GRUB must be
/// able to read it.
constexpr const char* kFeatures =
    "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,"
    "large_file,huge_file,dir_nlink,"
    "extra_isize,metadata_csum";

struct Content {
  std::uint64_t bytes = 0;  ///< in whole blocks
  std::uint64_t files = 0;
};

Result<Content> measure(const std::filesystem::path& folder) {
  Content content;
  std::set<ino_t> linked;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(folder, error);
       !error && it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    const auto path_bytes = it->path().native().size() - folder.native().size() - 1;
    if (path_bytes > kMaxTreePathBytes)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{}… is longer than the {} bytes that a path in an image may have: "
                              "shorten it, or leave it out",
                              it->path().native().substr(folder.native().size(), kMaxShownPath),
                              kMaxTreePathBytes));
    if (it.depth() > kMaxTreeFolders)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{}… nests more than {} folders",
                              it->path().native().substr(folder.native().size(), kMaxShownPath),
                              kMaxTreeFolders));
    struct stat info{};
    if (::lstat(it->path().c_str(), &info) != 0) continue;
    if (info.st_nlink > 1 && S_ISREG(info.st_mode) && !linked.insert(info.st_ino).second) continue;
    ++content.files;
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
      const auto size = std::max<std::uint64_t>(static_cast<std::uint64_t>(info.st_size),
                                                S_ISDIR(info.st_mode) ? kBlockBytes : 0);
      content.bytes += (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    }
  }
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot walk {}: {}", folder.string(), error.message()));
  return content;
}

}  // namespace

Result<void> makeExt4(const std::filesystem::path& folder, const std::filesystem::path& image_file,
                      std::int64_t since) {
  TRY(content, measure(folder));
  const std::uint64_t inodes = content.files + content.files / 4 + 4096;
  const std::uint64_t needed =
      content.bytes + content.bytes / 25 + inodes * kInodeBytes + (kJournalMib << 20) + kSlackBytes;
  const std::uint64_t size_bytes = (needed + kRoundBytes - 1) / kRoundBytes * kRoundBytes;
  std::error_code ignored;
  std::filesystem::remove(image_file, ignored);
  io::Command command;
  command.program = "mke2fs";
  command.args = {
      "-q",
      "-F",
      "-t",
      "ext4",
      "-b",
      std::to_string(kBlockBytes),
      "-I",
      std::to_string(kInodeBytes),
      "-N",
      std::to_string(inodes),
      "-O",
      kFeatures,
      "-J",
      fmt::format("size={}", kJournalMib),
      "-L",
      "muster-root",
      "-U",
      kUuid,
      "-E",
      fmt::format("hash_seed={},lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0", kHashSeed),
      "-m",
      "1",
      "-d",
      folder.string(),
      image_file.string(),
      fmt::format("{}k", size_bytes / 1024)};
  const std::string epoch = std::to_string(kImageEpochSeconds);
  command.env = {{"SOURCE_DATE_EPOCH", epoch},
                 {"E2FSPROGS_FAKE_TIME", epoch},
                 {"MKE2FS_CONFIG", "/dev/null"},
                 {"MKE2FS_DEVICE_SECTSIZE", "512"}};
  command.timeout = std::chrono::minutes(10);
  auto made = io::runChecked(command);
  if (!made) return fail(std::move(made).error().within("making the file system"));
  return settleTimes(image_file, kImageEpochSeconds, since);
}

bool hasImageUuid(std::span<const std::uint8_t, 16> uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  return text == kUuid;
}

}  // namespace muster::provision
