// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_import.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/images.h"
#include "provision/images/archive.h"
#include "provision/images/disk_check.h"
#include "provision/images/ext_superblock.h"
#include "provision/images/foreign_format.h"
#include "provision/images/live_image.h"
#include "provision/images/startable.h"
#include "wire/pack_index.h"
#include "wire/partition_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <thread>

namespace muster::provision {

namespace {

constexpr std::chrono::minutes kConvertLimit{20};
constexpr std::uint64_t kSectorBytes = 512;
constexpr off_t kExtMagicOffset = 1024 + 56;  ///< in the superblock, which starts at 1024
constexpr std::size_t kCopyBytes = 4u << 20;
constexpr std::size_t kHeadBytes = 4096;  ///< enough to tell every format
constexpr std::size_t kMaxKernelBytes = 256u << 20;
/// Of one file of a squashfs, and of the holes of all files together: what is larger was made to
/// fill the disk.
constexpr std::uint64_t kMaxFileBytes = 64ull << 30, kMaxHoleBytes = 16ull << 30;
constexpr std::size_t kQcow2VersionOffset = 4, kQcow2BackingOffset = 8, kQcow2CryptOffset = 32,
                      kQcow2IncompatibleOffset = 72, kQcow2HeaderBytes = 80;
constexpr std::uint64_t kQcow2CorruptBit = 1u << 1, kQcow2DataFileBit = 1u << 2,
                        kQcow2SubclustersBit = 1u << 4;
constexpr std::size_t kVmdkCapacityOffset = 12, kVmdkHeaderBytes = 512;

struct Range {
  std::uint64_t offset = 0, length = 0;  ///< bytes
};

bool hasExt(int fd, std::uint64_t offset) {
  unsigned char magic[2] = {};
  return ::pread(fd, magic, 2, static_cast<off_t>(offset) + kExtMagicOffset) == 2 &&
         magic[0] == 0x53 && magic[1] == 0xef;
}

/// What a format is known by: bytes at an offset.
struct Magic {
  ImportFormat format;
  std::size_t offset;
  std::string_view bytes;
};
constexpr Magic kMagics[] = {{ImportFormat::Qcow2, 0, "QFI\xfb"},
                             {ImportFormat::Vmdk, 0, "KDMV"},
                             {ImportFormat::Vdi, 64, "\x7f\x10\xda\xbe"},
                             {ImportFormat::Squashfs, 0, "hsqs"},
                             {ImportFormat::CompressedRaw, 0, "\x1f\x8b"},
                             {ImportFormat::CompressedRaw, 0,
                              "\xfd"
                              "7zXZ"},
                             {ImportFormat::CompressedRaw, 0, "\x28\xb5\x2f\xfd"},
                             {ImportFormat::CompressedRaw, 0, "BZh"},
                             {ImportFormat::Tar, 257, "ustar"}};

std::optional<ImportFormat> byMagic(std::string_view head) {
  for (const Magic& magic : kMagics)
    if (head.size() >= magic.offset + magic.bytes.size() &&
        head.substr(magic.offset, magic.bytes.size()) == magic.bytes)
      return magic.format;
  return std::nullopt;
}

Result<std::string> headOf(const std::filesystem::path& file, bool compressed) {
  std::string head;
  if (!compressed) {
    const io::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    head.resize(kHeadBytes);
    const ssize_t n = fd.valid() ? ::read(fd.get(), head.data(), head.size()) : -1;
    if (n < 0)
      return fail(ErrorCode::NotFound,
                  fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
    head.resize(static_cast<std::size_t>(n));
    return head;
  }
  TRY(reader, ArchiveReader::open(file, ArchiveReader::Kind::Compressed));
  TRY_OK(reader.next());
  const auto enough = reader.read([&head](std::string_view piece) -> Result<void> {
    head += piece;
    if (head.size() >= kHeadBytes) return fail(ErrorCode::Conflict, "enough");
    return {};
  });
  if (!enough && enough.error().code() != ErrorCode::Conflict) return fail(enough.error());
  return head;
}

/// Only what an OCI archive holds, and its layout file among it.
Result<bool> isOci(const std::filesystem::path& file) {
  TRY(reader, ArchiveReader::open(file, ArchiveReader::Kind::Tar));
  for (;;) {
    TRY(name, reader.next());
    if (reader.entry() == nullptr) return false;
    if (name == "oci-layout") return true;
    if (name != "blobs" && !name.starts_with("blobs/") && name != "index.json" &&
        name != "manifest.json" && name != "repositories")
      return false;
  }
}

int sectorBytesOf(int fd) {
  std::string head(wire::kTableHeadBytes, '\0');
  const ssize_t n = ::pread(fd, head.data(), head.size(), 0);
  return wire::sectorBytesOfTable(
      std::string_view(head).substr(0, n < 0 ? 0 : static_cast<std::size_t>(n)));
}

/// Where a GPT says that its copy at the end of the disk is; 0 without a GPT.
std::uint64_t gptEndBytes(int fd) {
  char header[40] = {};
  std::uint64_t copy_sector = 0;
  const auto sector_bytes = sectorBytesOf(fd);
  if (::pread(fd, header, sizeof header, sector_bytes) != sizeof header ||
      std::string_view(header, 8) != "EFI PART")
    return 0;
  std::memcpy(&copy_sector, header + 32, sizeof copy_sector);
  return (copy_sector + 1) * static_cast<std::uint64_t>(sector_bytes);
}

Result<Range> findRoot(int fd, const std::filesystem::path& raw) {
  std::error_code error;
  const auto size = std::filesystem::file_size(raw, error);
  if (hasExt(fd, 0)) {
    if (const auto whole = extBytes(fd, 0); whole > size)
      return fail(ErrorCode::Corrupt,
                  fmt::format("its file system has {} bytes, the file only {}: it was cut short",
                              whole, size));
    TRY_OK(checkExtIsClean(fd, 0));
    TRY_OK(checkExtMounts(fd, 0));
    return Range{0, size};
  }
  if (const auto end = gptEndBytes(fd); end > size)
    return fail(
        ErrorCode::Corrupt,
        fmt::format(
            "its partition table is of a disk of {} bytes, the file has only {}: it was cut short",
            end, size));
  if (sectorBytesOf(fd) != static_cast<int>(kSectorBytes))
    return fail(ErrorCode::InvalidInput,
                "its partition table is for sectors of 4096 bytes, and partitions are taken only "
                "out of those for 512; give the file system alone (losetup --sector-size 4096 "
                "--partscan shows its partitions), or `kind: disk`");
  const auto listed = io::runChecked({.program = "sfdisk", .args = {"--json", raw.string()}});
  Range best;
  for (const auto& partition : wire::readPartitionTable(listed.value_or("")).partitions) {
    const Range range{partition.start_sectors * kSectorBytes,
                      partition.size_sectors * kSectorBytes};
    if (range.length <= best.length || !hasExt(fd, range.offset)) continue;
    if (range.offset + range.length > size)
      return fail(ErrorCode::Corrupt,
                  fmt::format("a partition ends at byte {}, the file at {}: it was cut short",
                              range.offset + range.length, size));
    if (const auto whole = extBytes(fd, range.offset); whole > range.length)
      return fail(
          ErrorCode::Corrupt,
          fmt::format("a partition has {} bytes, the file system in it {}: it was cut short",
                      range.length, whole));
    best = range;
  }
  if (best.length == 0) {
    const auto foreign = foreignFormat(fd);
    return fail(ErrorCode::InvalidInput,
                foreign.empty()
                    ? "there is neither an ext4 file system nor a partition with one in it"
                    : foreign);
  }
  TRY_OK(checkExtIsClean(fd, best.offset));
  TRY_OK(checkExtMounts(fd, best.offset));
  return best;
}

Result<void> copyRange(int from, Range range, const std::filesystem::path& to_path) {
  const io::Fd to(::open(to_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const std::uint64_t size = range.length / 4096 * 4096;
  if (!to.valid() || ::ftruncate(to.get(), static_cast<off_t>(size)) != 0)
    return fail(ErrorCode::Internal,
                fmt::format("cannot create {}: {}", to_path.string(), std::strerror(errno)));
  std::string piece(kCopyBytes, '\0');
  for (std::uint64_t done = 0; done < size;) {
    // A hole is skipped: a disk of some TiB with little in it is no work.
    const off_t data = ::lseek(from, static_cast<off_t>(range.offset + done), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data > static_cast<off_t>(range.offset + done)) {
      done = static_cast<std::uint64_t>(data) - range.offset;
      continue;
    }
    const ssize_t n =
        ::pread(from, piece.data(), std::min<std::uint64_t>(piece.size(), size - done),
                static_cast<off_t>(range.offset + done));
    if (n <= 0)
      return fail(ErrorCode::Corrupt, "the image is shorter than its partition table says");
    if (!wire::allZero(std::string_view(piece).substr(0, static_cast<std::size_t>(n))) &&
        ::pwrite(to.get(), piece.data(), static_cast<std::size_t>(n), static_cast<off_t>(done)) !=
            n)
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot write {}: {}", to_path.string(), std::strerror(errno)));
    done += static_cast<std::uint64_t>(n);
  }
  return {};
}

/// A disk as it is. It must have partitions: that is what its firmware starts from, and what is
/// grown.
Result<Range> wholeDisk(int fd, const std::filesystem::path& raw) {
  std::error_code error;
  const auto size = std::filesystem::file_size(raw, error);
  if (const auto end = gptEndBytes(fd); end > size)
    return fail(
        ErrorCode::Corrupt,
        fmt::format(
            "its partition table is of a disk of {} bytes, the file has only {}: it was cut short",
            end, size));
  const auto listed = io::runChecked({.program = "sfdisk", .args = {"--json", raw.string()}});
  if (wire::readPartitionTable(listed.value_or("")).partitions.empty()) {
    const auto foreign = foreignFormat(fd);
    return fail(ErrorCode::InvalidInput,
                foreign.empty()
                    ? "it has no partition table, so no machine could start it; remove `kind: disk`"
                    : foreign);
  }
  return Range{0, size};
}

Result<void> fromDisk(const std::filesystem::path& raw, const std::filesystem::path& name,
                      inventory::ImageKind kind, Architecture architecture,
                      const std::filesystem::path& work, const std::filesystem::path& image_file) {
  const io::Fd fd(::open(raw.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot open {}: {}", raw.string(), std::strerror(errno)));
  auto root =
      kind == inventory::ImageKind::Disk ? wholeDisk(fd.get(), raw) : findRoot(fd.get(), raw);
  if (!root) return fail(std::move(root).error().within(name.string()));
  if (root->length > wire::kMaxImageBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} has {} GiB, more than an image may have ({} GiB)", name.string(),
                            root->length >> 30, wire::kMaxImageBytes >> 30));
  TRY_OK(copyRange(fd.get(), *root, image_file));
  auto starts = kind == inventory::ImageKind::Disk
                    ? checkWholeDisk(image_file, work, architecture)
                    : checkRootFileSystem(image_file, work, architecture);
  if (starts) return {};
  std::error_code ignored;
  std::filesystem::remove(image_file, ignored);
  return fail(std::move(starts).error().within(name.string()));
}

std::uint64_t bigEndian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

/// Before qemu-img opens it: a qcow2 and a VMDK can name files of this machine as their base or as
/// what holds their data, and those would go into an image that everybody can fetch. Source:
/// docs/interop/qcow2 of QEMU; VMDK 5.0, hosted sparse extents.
Result<void> checkHolds(const std::filesystem::path& from, ImportFormat format) {
  TRY(head, headOf(from, false));
  const auto field = [&head](std::size_t offset, std::size_t bytes) {
    return bigEndian(std::string_view(head).substr(offset, bytes));
  };
  const auto refuse = [&](const char* why) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} {}; flatten it first: qemu-img convert", from.string(), why));
  };
  if (format == ImportFormat::Qcow2) {
    if (head.size() < kQcow2HeaderBytes)
      return fail(ErrorCode::Corrupt, from.string() + " is truncated: its header is incomplete");
    if (field(kQcow2BackingOffset, 8) != 0)
      return refuse("holds only what differs from another file");
    if (field(kQcow2VersionOffset, 4) < 2)
      return fail(ErrorCode::InvalidInput,
                  from.string() +
                      " is a qcow of before version 2; convert it: qemu-img convert -f qcow -O "
                      "qcow2");
    if (field(kQcow2CryptOffset, 4) != 0)
      return fail(
          ErrorCode::InvalidInput,
          from.string() + " is encrypted; make one that is not: qemu-img convert with its secret");
    const auto features =
        field(kQcow2VersionOffset, 4) >= 3 ? field(kQcow2IncompatibleOffset, 8) : 0;
    if ((features & kQcow2DataFileBit) != 0)
      return refuse("holds no data of its own, but names a file that does");
    if ((features & kQcow2SubclustersBit) != 0)
      return refuse(
          "has subclusters (extended_l2), with which nobody can tell whether it is whole");
    if ((features & kQcow2CorruptBit) != 0)
      return fail(ErrorCode::Corrupt, from.string() +
                                          " is marked as damaged by the program that wrote it; "
                                          "repair it: qemu-img check -r all, and "
                                          "declare the SHA-256 of the result");
  }
  if (format == ImportFormat::Vmdk) {
    if (head.size() < kVmdkHeaderBytes)
      return fail(ErrorCode::Corrupt, from.string() + " is truncated: its header is incomplete");
    if (field(kVmdkCapacityOffset, 8) == 0)
      return refuse("holds no data of its own, but a description of files that do");
  }
  return {};
}

/// The format is named, never guessed: a raw disk could begin like a qcow2 that names a file of
/// this machine as its base.
Result<void> convert(const std::filesystem::path& from, const char* format,
                     const std::filesystem::path& raw) {
  io::Command ask{.program = "qemu-img",
                  .args = {"info", "-f", format, "--output=json", from.string()}};
  auto told = io::runChecked(ask);
  if (!told)
    return fail(Error(ErrorCode::Corrupt, std::move(told).error().text())
                    .within("reading " + from.string()));
  const auto info = jsonOrNone(*told, kToolJson);
  if (!info.is_object())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("{}: qemu-img does not tell whether it needs another file", from.string()));
  if (info.contains("backing-filename"))
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("{} holds only what differs from {}; flatten it first: qemu-img convert",
                    from.string(), jsonText(info["backing-filename"])));
  const auto size = info.value("virtual-size", nlohmann::json());
  if (!size.is_number_unsigned() || size.get<std::uint64_t>() > wire::kMaxImageBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is of a disk of {} bytes, an image may have {} GiB", from.string(),
                            jsonText(size), wire::kMaxImageBytes >> 30));
  TRY_OK(checkDiskFormat(from, format));
  io::Command command{.program = "qemu-img",
                      .args = {"convert", "-f", format, "-O", "raw", from.string(), raw.string()}};
  command.timeout = kConvertLimit;
  if (auto done = io::runChecked(command); !done)
    return fail(Error(ErrorCode::Corrupt, std::move(done).error().text())
                    .within("reading " + from.string()));
  return {};
}

Result<void> refuseHoles(const std::filesystem::path& root) {
  std::uint64_t holes = 0;
  std::error_code error;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (auto it = Walk(root, error); !error && it != Walk(); it.increment(error)) {
    struct stat info{};
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const auto size = static_cast<std::uint64_t>(info.st_size),
               held = static_cast<std::uint64_t>(info.st_blocks) * kSectorBytes;
    holes += size - std::min(size, held);
    if (holes > kMaxHoleBytes)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} brings the holes of all files to more than {} GiB",
                              it->path().lexically_relative(root).string(), kMaxHoleBytes >> 30));
  }
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot walk {}: {}", root.string(), error.message()));
  return {};
}

Result<void> unpackSquashfs(const std::filesystem::path& from, const std::filesystem::path& root) {
  std::error_code error;
  std::filesystem::remove(root, error);
  io::Command command{.program = "prlimit",
                      .args = {fmt::format("--fsize={}", kMaxFileBytes), "unsquashfs",
                               "-no-progress", "-quiet", "-dest", root.string(), from.string()}};
  command.timeout = kConvertLimit;
  if (auto done = io::runChecked(command); !done)
    return fail(Error(ErrorCode::Corrupt, std::move(done).error().text())
                    .within("unpacking " + from.string()));
  return refuseHoles(root);
}

/// Seconds since 1970, after all that the archive holds: what is younger was made by the import,
/// and must not be told from one import to the next. An archive of this very second is waited for.
std::int64_t beginningAfter(const std::filesystem::path& archive) {
  struct stat info{};
  const auto now = [] { return static_cast<std::int64_t>(std::time(nullptr)); };
  if (::stat(archive.c_str(), &info) == 0)
    for (int i = 0; i < 20 && now() == static_cast<std::int64_t>(info.st_mtime); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return now();
}

/// Of a live image the RAM OS brings kernel arguments and initrd; makeSquashfs looks for its
/// kernel.
Result<void> checkTree(const std::filesystem::path& root, inventory::ImageKind kind,
                       Architecture architecture) {
  Obstacles obstacles;
  const auto tree = openFolderTree(root);
  if (kind == inventory::ImageKind::Live) {
    TRY(kernel, liveKernelOf(root));
    TRY(content, io::readFile(kernel, kMaxKernelBytes));
    if (const auto checked = checkKernelImage(content, architecture); !checked)
      obstacles.push_back(fmt::format(
          "its kernel /{}: {}", kernel.lexically_relative(root).string(), checked.error().text()));
    const auto in_memory = inMemoryObstacles(*tree);
    obstacles.insert(obstacles.end(), in_memory.begin(), in_memory.end());
  } else {
    TRY_OK(linkKernel(root));
    obstacles = kernelObstacles(*tree, architecture);
  }
  const auto userspace = userspaceObstacles(*tree, architecture);
  obstacles.insert(obstacles.end(), userspace.begin(), userspace.end());
  return refuseObstacles(obstacles);
}

Result<void> fromTree(ImportFormat format, const std::filesystem::path& from,
                      inventory::ImageKind kind, Architecture architecture,
                      const std::filesystem::path& work, const std::filesystem::path& image_file) {
  if (::geteuid() != 0)
    return fail(ErrorCode::Denied,
                "unpacking a root file system needs root (it makes owners and device nodes); run "
                "it with sudo");
  const auto since = beginningAfter(from);
  const auto root = work / "root";
  TRY_OK(io::makeDirs(root));
  if (format == ImportFormat::Squashfs) TRY_OK(unpackSquashfs(from, root));
  if (format == ImportFormat::OciArchive) TRY_OK(extractOci(from, work, root, architecture));
  if (format == ImportFormat::Tar) TRY_OK(extractTree(from, root, false));
  if (auto starts = checkTree(root, kind, architecture); !starts)
    return fail(std::move(starts).error().within(from.string()));
  if (kind == inventory::ImageKind::Live) return makeSquashfs(root, image_file, since);
  TRY_OK(makeExt4(root, image_file, since));
  return checkExtFileSystem(image_file, 0);
}

}  // namespace

Result<ImportFormat> importFormatOf(const std::filesystem::path& file) {
  TRY(head, headOf(file, false));
  auto format = byMagic(head).value_or(ImportFormat::Raw);
  if (format == ImportFormat::CompressedRaw) {
    TRY(inner, headOf(file, true));
    if (byMagic(inner) == ImportFormat::Tar) format = ImportFormat::Tar;
  }
  if (format != ImportFormat::Tar) return format;
  TRY(oci, isOci(file));
  return oci ? ImportFormat::OciArchive : ImportFormat::Tar;
}

Result<void> linkKernel(const std::filesystem::path& root) {
  std::error_code error;
  const auto newest = [&root, &error](std::initializer_list<std::string_view> prefixes) {
    std::string best;
    for (const auto& file : std::filesystem::directory_iterator(root / "boot", error)) {
      const std::string name = file.path().filename();
      const bool fits =
          std::any_of(prefixes.begin(), prefixes.end(),
                      [&name](std::string_view prefix) { return name.starts_with(prefix); });
      if (fits && (best.empty() || ::strverscmp(name.c_str(), best.c_str()) > 0)) best = name;
    }
    return best;
  };
  const auto link = [&](const char* name,
                        std::initializer_list<std::string_view> prefixes) -> Result<void> {
    if (std::filesystem::exists(std::filesystem::symlink_status(root / name, error))) return {};
    const std::string target = newest(prefixes);
    if (target.empty())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("it has neither /{} nor a file for it in /boot: no machine could "
                              "start it; install a kernel into it",
                              name));
    std::filesystem::create_symlink("boot/" + target, root / name, error);
    if (error)
      return fail(ErrorCode::Internal, fmt::format("cannot make /{}: {}", name, error.message()));
    return {};
  };
  TRY_OK(link("vmlinuz", {"vmlinuz-"}));
  return link("initrd.img", {"initrd.img-", "initramfs-", "initrd-"});
}

Result<void> importImage(const inventory::ImageImport& import, inventory::ImageKind kind,
                         const std::filesystem::path& work, const std::filesystem::path& image_file,
                         const Say& say, Architecture architecture) {
  say(fmt::format("importing {}", import.path.string()));
  std::error_code missing;
  if (const auto status = std::filesystem::status(import.path, missing);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is not a regular file",
                            import.path.string()));  // a FIFO would be waited on for ever
  // Before its SHA-256: that of some TiB of holes takes hours.
  if (const auto size = std::filesystem::file_size(import.path, missing);
      !missing && size > wire::kMaxImageBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} has {} GiB, an image may have {} GiB", import.path.string(),
                            size >> 30, wire::kMaxImageBytes >> 30));
  TRY(sha256, io::sha256File(import.path));
  if (sha256 != import.sha256)
    return fail(ErrorCode::Corrupt, fmt::format("{} has the SHA-256 {}, the inventory says {}",
                                                import.path.string(), sha256, import.sha256));
  TRY(format, importFormatOf(import.path));
  const auto raw = work / "imported.raw";
  const bool tree = format == ImportFormat::Tar || format == ImportFormat::OciArchive ||
                    format == ImportFormat::Squashfs;
  if (kind == inventory::ImageKind::Live && !tree)
    return fail(
        ErrorCode::InvalidInput,
        import.path.string() +
            " is a disk; a live image is made of a tree of files (tar, OCI archive, squashfs)");
  TRY_OK(checkHolds(import.path, format));
  switch (format) {
    case ImportFormat::Raw:
      return fromDisk(import.path, import.path, kind, architecture, work, image_file);
    case ImportFormat::Qcow2:
      TRY_OK(convert(import.path, "qcow2", raw));
      break;
    case ImportFormat::Vmdk:
      TRY_OK(convert(import.path, "vmdk", raw));
      break;
    case ImportFormat::Vdi:
      TRY_OK(convert(import.path, "vdi", raw));
      break;
    case ImportFormat::CompressedRaw:
      TRY_OK(decompressFile(import.path, raw));
      break;
    default:
      if (kind == inventory::ImageKind::Disk)
        return fail(ErrorCode::InvalidInput,
                    import.path.string() + " is a tree of files and no disk; remove `kind: disk`");
      return fromTree(format, import.path, kind, architecture, work, image_file);
  }
  return fromDisk(raw, import.path, kind, architecture, work, image_file);
}

}  // namespace muster::provision
