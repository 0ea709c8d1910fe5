// SPDX-License-Identifier: Apache-2.0
#include "provision/images/disk_check.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/json_input.h"
#include "provision/images/ext_superblock.h"
#include "provision/images/grub_tree.h"
#include "provision/images/startable.h"
#include "wire/pack_index.h"
#include "wire/partition_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kCheckLimit{10};
constexpr std::size_t kSectorBytes = 512, kHeadBytes = 128u << 10, kCopyBytes = 4u << 20;
constexpr std::size_t kMaxPartitions = 128;
constexpr std::size_t kMaxEfiBytes = 64u << 20;
constexpr std::size_t kMaxMapBytes = 256u << 20;  ///< a line an extent
/// What is copied to be looked at by GRUB; holes stay holes.
constexpr std::uint64_t kMaxCopyBytes = 256ull << 30;
constexpr std::string_view kGptMagic = "EFI PART";
/// What e2fsck prints before its complaints.
constexpr std::string_view kHeadings[] = {"Pass ", "e2fsck "};

std::string efiProgramOf(Architecture architecture) {
  return std::string("EFI/BOOT/") + traitsOf(architecture).removable_loader;
}

template <class Number>
Number numberAt(std::string_view bytes, std::size_t at) {
  Number value{};
  if (at <= bytes.size() && sizeof value <= bytes.size() - at)
    std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string readAt(int fd, std::uint64_t offset, std::size_t bytes) {
  std::string content(bytes, '\0');
  const ssize_t n = ::pread(fd, content.data(), content.size(), static_cast<off_t>(offset));
  content.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return content;
}

std::string firstLine(std::string_view text) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    const bool heading =
        std::any_of(std::begin(kHeadings), std::end(kHeadings),
                    [line](std::string_view each) { return line.starts_with(each); });
    if (!line.empty() && !heading) return std::string(line);
    text = line.size() == text.size() ? std::string_view() : text.substr(line.size() + 1);
  }
  return "no words";
}

struct Part {
  std::uint64_t offset = 0, length = 0;  ///< bytes
  std::string label;                     ///< for messages: "partition 2"
};

/// Entries of a GPT whose sectors have `sector_bytes`; sfdisk reads a file's only in those of 512.
/// Source: UEFI 2.10, 5.3
std::vector<Part> gptParts(int fd, std::uint64_t sector_bytes) {
  const auto header = readAt(fd, sector_bytes, 92);
  std::vector<Part> parts;
  if (header.compare(0, kGptMagic.size(), kGptMagic) != 0) return parts;
  const auto first = numberAt<std::uint64_t>(header, 72) * sector_bytes;
  const auto count = std::min<std::size_t>(numberAt<std::uint32_t>(header, 80), kMaxPartitions);
  const std::size_t size = numberAt<std::uint32_t>(header, 84);
  if (size < 128 || size > 4096) return parts;
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = readAt(fd, first + i * size, 128);
    if (entry.size() < 128 || wire::allZero(std::string_view(entry).substr(0, 16))) continue;
    const auto begin = numberAt<std::uint64_t>(entry, 32), end = numberAt<std::uint64_t>(entry, 40);
    if (end < begin) continue;
    parts.push_back({begin * sector_bytes, (end - begin + 1) * sector_bytes,
                     fmt::format("partition {}", i + 1)});
  }
  return parts;
}

/// Of a GPT: an MBR's extended partition holds others. Firmware leaves such partitions out, and
/// what grows one of them writes into the other. Source: UEFI 2.10, 5.3.3
Result<void> checkNoOverlap(std::vector<Part> parts) {
  std::ranges::sort(parts, {}, &Part::offset);
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i - 1].offset + parts[i - 1].length > parts[i].offset)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} and {} overlap: mend its partition table (sfdisk --verify shows "
                              "it), and declare the SHA-256 of the result",
                              parts[i - 1].label, parts[i].label));
  return {};
}

Result<std::vector<Part>> partsOf(int fd, const fs::path& raw, std::uint64_t size_bytes) {
  const auto sector_bytes = wire::sectorBytesOfTable(readAt(fd, 0, wire::kTableHeadBytes));
  std::vector<Part> parts;
  bool gpt = true;
  if (sector_bytes != static_cast<int>(kSectorBytes)) {
    parts = gptParts(fd, static_cast<std::uint64_t>(sector_bytes));
  } else {
    TRY(listed, io::runChecked({.program = "sfdisk", .args = {"--json", raw.string()}}));
    const auto table = wire::readPartitionTable(listed);
    gpt = table.label == "gpt";
    for (const auto& each : table.partitions)
      parts.push_back({each.start_sectors * kSectorBytes, each.size_sectors * kSectorBytes,
                       fmt::format("partition {}", each.number)});
  }
  if (parts.empty() || parts.size() > kMaxPartitions)
    return fail(ErrorCode::InvalidInput, "its partition table has no partitions");
  for (const auto& part : parts)
    if (part.offset > size_bytes || part.length > size_bytes - part.offset)
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} ends at byte {}, the disk at {}: it was cut short", part.label,
                              part.offset + part.length, size_bytes));
  if (gpt) TRY_OK(checkNoOverlap(parts));
  return parts;
}

enum class Content { Ext, Xfs, Fat, Btrfs, Lvm, Luks, Other };

Content contentOf(int fd, const Part& part) {
  const auto head = readAt(fd, part.offset, kHeadBytes);
  const auto is = [&head](std::size_t at, std::string_view bytes) {
    return head.size() >= at + bytes.size() &&
           std::string_view(head).substr(at, bytes.size()) == bytes;
  };
  if (is(1024 + 56, "\x53\xef")) return Content::Ext;
  if (is(0, "XFSB")) return Content::Xfs;
  if (is(510, "\x55\xaa") && (is(54, "FAT") || is(82, "FAT"))) return Content::Fat;
  if (is(0x10040, "_BHRfS_M")) return Content::Btrfs;
  if (is(512, "LABELONE")) return Content::Lvm;
  if (is(0, std::string_view("LUKS\xba\xbe", 6))) return Content::Luks;
  return Content::Other;
}

/// How much of the disk it says to have; 0: unknown. A kernel mounts none that has more than its
/// partition. Source: XFS Algorithms & Data Structures, superblock: sb_blocksize, sb_dblocks
std::uint64_t fileSystemBytes(int fd, const Part& part, Content content) {
  if (content == Content::Ext) return extBytes(fd, part.offset);
  if (content != Content::Xfs) return 0;
  constexpr std::size_t kBlockBytesAt = 4, kBlocksAt = 8;
  constexpr std::uint64_t kMaxBlockBytes = 64u << 10;
  const auto head = readAt(fd, part.offset, kSectorBytes);
  const std::uint64_t block_bytes = std::byteswap(numberAt<std::uint32_t>(head, kBlockBytesAt)),
                      blocks = std::byteswap(numberAt<std::uint64_t>(head, kBlocksAt));
  if (block_bytes == 0 || block_bytes > kMaxBlockBytes) return 0;
  return blocks > UINT64_MAX / block_bytes ? UINT64_MAX : blocks * block_bytes;
}

/// A partition as a file of its own; what is empty becomes a hole.
Result<fs::path> copyPart(int fd, const Part& part, const fs::path& to_path) {
  if (part.length > kMaxCopyBytes)
    return fail(ErrorCode::InvalidInput, fmt::format("{} has {} GiB, too many to be looked at",
                                                     part.label, part.length >> 30));
  const io::Fd to(::open(to_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!to.valid() || ::ftruncate(to.get(), static_cast<off_t>(part.length)) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot create {}: {}", to_path.string(), std::strerror(errno)));
  const auto end = static_cast<off_t>(part.offset + part.length);
  for (auto at = static_cast<off_t>(part.offset); at < end;) {
    at = ::lseek(fd, at, SEEK_DATA);
    if (at < 0 || at >= end) break;
    const auto piece =
        readAt(fd, static_cast<std::uint64_t>(at),
               std::min<std::size_t>(kCopyBytes, static_cast<std::size_t>(end - at)));
    if (piece.empty()) break;
    if (!wire::allZero(piece) &&
        ::pwrite(to.get(), piece.data(), piece.size(), at - static_cast<off_t>(part.offset)) !=
            static_cast<ssize_t>(piece.size()))
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot write {}: {}", to_path.string(), std::strerror(errno)));
    at += static_cast<off_t>(piece.size());
  }
  return to_path;
}

/// GRUB's first sector names the sector at which the rest of it lies. Source: GRUB 2, boot.S
bool hasGrubForBios(int fd, std::uint64_t size_bytes) {
  const auto sector = readAt(fd, 0, kSectorBytes);
  if (sector.size() < kSectorBytes || sector.substr(510) != "\x55\xaa" ||
      sector.substr(0, 440).find("GRUB") == std::string::npos)
    return false;
  const auto rest = numberAt<std::uint64_t>(sector, 0x5c);
  if (rest == 0 || rest >= size_bytes / kSectorBytes) return false;
  const auto next = readAt(fd, rest * kSectorBytes, kSectorBytes);
  return !next.empty() && !wire::allZero(next);
}

/// What the disk has for its firmware, and for the loader behind it.
struct Found {
  Architecture architecture = kBuiltFor;
  bool loader = false, system = false, kernel = false;
  Obstacles loader_obstacles, system_obstacles, kernel_obstacles;
};

void lookForLoader(const FileTree& esp, const Part& part, Found& found) {
  const auto program = efiProgramOf(found.architecture);
  const auto at = esp.resolve(program);
  if (!at) return;
  const auto content = esp.read(*at, kMaxEfiBytes);
  const auto checked =
      content ? checkEfiProgram(*content, found.architecture) : Result<void>(fail(content.error()));
  if (checked)
    found.loader = true;
  else
    found.loader_obstacles.push_back(
        fmt::format("its boot loader {} of {}: {}", program, part.label, checked.error().text()));
}

void lookForSystem(const FileTree& tree, Found& found) {
  const bool system = tree.resolve("etc/os-release") || tree.resolve("usr/lib/os-release");
  // A partition of /boot has the kernels at its top.
  const auto obstacles = bootFolderObstacles(tree, system ? "boot" : "", found.architecture);
  if (obstacles.empty())
    found.kernel = true;
  else if (system || found.kernel_obstacles.empty())
    found.kernel_obstacles = obstacles;
  if (!system) return;
  const auto userspace = userspaceObstacles(tree, found.architecture);
  if (userspace.empty())
    found.system = true;
  else
    found.system_obstacles = userspace;
}

Result<void> lookAtPart(int fd, const fs::path& raw, const Part& part, const fs::path& work,
                        Found& found) {
  const auto content = contentOf(fd, part);
  if (const auto whole = fileSystemBytes(fd, part, content); whole > part.length)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} has {} bytes, the file system in it {}: it was cut short",
                            part.label, part.length, whole));
  if (content == Content::Ext) {
    if (auto mounts = checkExtMounts(fd, part.offset); !mounts)
      return fail(std::move(mounts).error().within(part.label));
    if (auto sound = checkExtFileSystem(raw, part.offset); !sound)
      return fail(std::move(sound).error().within(part.label));
    TRY(tree, openExtTree(raw, part.offset));
    lookForSystem(*tree, found);
    return {};
  }
  if (content == Content::Lvm || content == Content::Luks)
    found.system_obstacles.push_back(
        fmt::format("{} is {}, which muster does not look into", part.label,
                    content == Content::Lvm ? "LVM" : "encrypted (LUKS)"));
  if (content == Content::Btrfs)
    found.system_obstacles.push_back(part.label +
                                     " is btrfs; muster's agent is installed on ext4 and xfs only");
  if (content != Content::Xfs && content != Content::Fat) return {};
  const fs::path copy = work / "partition";
  TRY_OK(copyPart(fd, part, copy));
  auto tree = openGrubTree(copy, work);
  if (tree && content == Content::Fat) lookForLoader(**tree, part, found);
  if (tree && content == Content::Xfs) lookForSystem(**tree, found);
  if (!tree)
    (content == Content::Fat ? found.loader_obstacles : found.system_obstacles)
        .push_back(fmt::format("{} cannot be read: {}", part.label, tree.error().text()));
  std::error_code ignored;
  fs::remove(copy, ignored);
  return {};
}

/// qemu-img reads zeros behind the end of a file, and its check does not compare either.
Result<void> checkHoldsItsData(const fs::path& file, const char* format) {
  io::Command command{.program = "qemu-img",
                      .args = {"map", "-f", format, "--output=json", file.string()}};
  command.timeout = kCheckLimit;
  command.max_output_bytes = kMaxMapBytes;
  TRY(text, io::runChecked(command));
  std::error_code error;
  const auto size_bytes = fs::file_size(file, error);
  if (error)
    return fail(ErrorCode::NotFound, fmt::format("{}: {}", file.string(), error.message()));
  // An array, an extent a line: millions of them are no tree in memory.
  for (std::string_view left = text; !left.empty();) {
    auto line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    const auto begin = line.find('{'), end = line.rfind('}');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) continue;
    const auto extent = jsonOrNone(line.substr(begin, end - begin + 1), kToolJson);
    if (!extent.is_object())
      return fail(ErrorCode::Corrupt,
                  fmt::format("{}: qemu-img does not tell where its data lie", file.string()));
    const auto offset = extent.value("offset", nlohmann::json()),
               length = extent.value("length", nlohmann::json());
    if (!offset.is_number_unsigned() || !length.is_number_unsigned())
      continue;  // a hole, or packed
    if (offset.get<std::uint64_t>() > size_bytes ||
        length.get<std::uint64_t>() > size_bytes - offset.get<std::uint64_t>())
      return fail(
          ErrorCode::Corrupt,
          fmt::format("{} says that it has data at byte {}, but has {} bytes: it was cut short",
                      file.string(), offset.get<std::uint64_t>(), size_bytes));
  }
  return {};
}

}  // namespace

Result<void> checkDiskFormat(const fs::path& file, const char* format) {
  io::Command command{.program = "qemu-img", .args = {"check", "-f", format, file.string()}};
  command.timeout = kCheckLimit;
  TRY(done, io::runBlocking(command));
  constexpr int kLeaks = 3;  // Source: qemu-img(1), check
  if (done.code == 0) return checkHoldsItsData(file, format);
  if (done.code == kLeaks)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} was not closed cleanly (leaked clusters); repair it: qemu-img "
                            "check -r leaks, and declare the SHA-256 of the result",
                            file.string()));
  return fail(ErrorCode::Corrupt,
              fmt::format("{} is damaged, qemu-img check says: {}", file.string(),
                          firstLine(done.err.empty() ? done.out : done.err)));
}

Result<void> checkExtFileSystem(const fs::path& file, std::uint64_t offset_bytes) {
  const std::string where =
      offset_bytes == 0 ? file.string() : fmt::format("{}?offset={}", file.string(), offset_bytes);
  io::Command command{.program = "e2fsck", .args = {"-f", "-n", where}};
  command.timeout = kCheckLimit;
  command.env = {{"LC_ALL", "C"}, {"E2FSCK_CONFIG", "/dev/null"}};
  TRY(done, io::runBlocking(command));
  if (done.code == 0) return {};
  return fail(ErrorCode::Corrupt,
              fmt::format("its ext4 file system is damaged (e2fsck -n, exit status {}: {}); run "
                          "e2fsck -f on it, and declare the SHA-256 of the result",
                          done.code, firstLine(done.out.empty() ? done.err : done.out)));
}

Result<void> checkRootFileSystem(const fs::path& image, const fs::path& work,
                                 Architecture architecture) {
  TRY_OK(checkExtFileSystem(image, 0));
  TRY(tree, openExtTree(image));
  auto obstacles = kernelObstacles(*tree, architecture);
  const auto userspace = userspaceObstacles(*tree, architecture);
  obstacles.insert(obstacles.end(), userspace.begin(), userspace.end());
  // Its kernel is read by GRUB, which knows fewer features than e2fsck and the kernel.
  if (const auto by_grub = openGrubTree(image, work); !by_grub)
    obstacles.push_back(
        fmt::format("GRUB, which starts it on nodes, cannot read its file system ({}): make it "
                    "anew without inline_data, ea_inode, casefold and whatever else mke2fs -t ext4 "
                    "does not choose by itself",
                    by_grub.error().text()));
  return refuseObstacles(obstacles);
}

Result<void> checkWholeDisk(const fs::path& raw, const fs::path& work, Architecture architecture) {
  const io::Fd fd(::open(raw.c_str(), O_RDONLY | O_CLOEXEC));
  std::error_code error;
  const auto size_bytes = fs::file_size(raw, error);
  if (!fd.valid() || error) return fail(ErrorCode::NotFound, "cannot open " + raw.string());
  TRY(parts, partsOf(fd.get(), raw, size_bytes));
  Found found{.architecture = architecture};
  // A PC's alone has a BIOS.
  found.loader = architecture == Architecture::Amd64 && hasGrubForBios(fd.get(), size_bytes);
  for (const auto& part : parts) TRY_OK(lookAtPart(fd.get(), raw, part, work, found));
  Obstacles obstacles;
  const auto add = [&obstacles](bool fine, const Obstacles& why, const std::string& otherwise) {
    if (fine) return;
    if (why.empty()) obstacles.push_back(otherwise);
    obstacles.insert(obstacles.end(), why.begin(), why.end());
  };
  add(found.loader, found.loader_obstacles,
      fmt::format("no boot loader: {}{} on a FAT partition",
                  architecture == Architecture::Amd64 ? "neither GRUB for BIOS nor " : "no ",
                  efiProgramOf(architecture)));
  add(found.system, found.system_obstacles,
      "none of its partitions holds a Linux system on ext4 or xfs (no /etc/os-release)");
  add(found.kernel, found.kernel_obstacles, "no kernel in /boot, nor on a partition of its own");
  return refuseObstacles(obstacles);
}

Result<void> checkEfiProgram(std::string_view content, Architecture architecture) {
  const auto& wanted = traitsOf(architecture);
  constexpr std::size_t kSectionBytes = 40;
  const auto pe = numberAt<std::uint32_t>(content, 0x3c);
  if (!content.starts_with("MZ") || pe > content.size() || content.size() - pe < 24 ||
      content.substr(pe, 4) != std::string_view("PE\0\0", 4))
    return fail(ErrorCode::InvalidInput, "it is no program for UEFI");
  if (const auto machine = numberAt<std::uint16_t>(content, pe + 4); machine != wanted.pe_machine)
    return fail(ErrorCode::InvalidInput,
                fmt::format("it is for machine {:#x}, not for {}", machine, wanted.machine));
  const auto sections = numberAt<std::uint16_t>(content, pe + 6);
  const std::size_t table = pe + 24 + numberAt<std::uint16_t>(content, pe + 20);
  for (std::size_t i = 0; i < sections; ++i) {
    const std::size_t at = table + i * kSectionBytes;
    const std::uint64_t bytes = numberAt<std::uint32_t>(content, at + 16),
                        offset = numberAt<std::uint32_t>(content, at + 20);
    if (at + kSectionBytes > content.size() || offset + bytes > content.size())
      return fail(ErrorCode::Corrupt, "it is cut short");
  }
  return {};
}

}  // namespace muster::provision
