// SPDX-License-Identifier: Apache-2.0
#include "provision/images/startable.h"

#include "base/io/selinux.h"
#include "provision/images/disk_check.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <set>

namespace muster::provision {

namespace {

constexpr std::size_t kMaxKernelBytes = 256u << 20, kMaxInitrdBytes = 1u << 30;
constexpr std::size_t kMaxProgramBytes = 128u << 20, kMaxConfigBytes = 64u << 10;
constexpr std::uint64_t kMaxUnpackedBytes = 8ull << 30;  ///< of an initrd: no machine's memory
constexpr std::size_t kMaxLibraries = 256;
constexpr const char* kInit = "sbin/init";
constexpr std::string_view kSystemd = "/systemd/systemd";
/// Where the loaders of the distributions look, beside what /etc/ld.so.conf.d names.
constexpr const char* kLibraryFolders[] = {"lib64",   "usr/lib64",     "lib",
                                           "usr/lib", "usr/local/lib", "usr/local/lib64"};

struct OpenFolder {
  const char* path;
  unsigned needs;  ///< permissions, as chmod's
};
constexpr OpenFolder kOpenFolders[] = {{"", 0555},        {"etc", 0111},     {"usr", 0111},
                                       {"usr/bin", 0111}, {"usr/lib", 0111}, {"lib64", 0111},
                                       {"var", 0111}};

std::string folderOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

/// A regular file with something in it, by a path that may be a link.
Result<std::string> contentOf(const FileTree& tree, const std::string& path, std::size_t max_bytes,
                              std::string* real = nullptr) {
  TRY(resolved, tree.resolve(path));
  if (real != nullptr) *real = resolved;
  const auto entry = tree.at(resolved);
  if (!entry || entry->kind != FileTree::Kind::File)
    return fail(ErrorCode::InvalidInput, fmt::format("/{} is not a regular file", resolved));
  if (entry->size_bytes == 0)
    return fail(ErrorCode::Corrupt, fmt::format("/{} is empty", resolved));
  if (entry->size_bytes > max_bytes)
    return fail(ErrorCode::InvalidInput, fmt::format("/{} has {} MiB, which no such file has",
                                                     resolved, entry->size_bytes >> 20));
  return tree.read(resolved, max_bytes);
}

/// A program or library for this architecture.
Result<ElfFile> programOf(const FileTree& tree, const std::string& path,
                          const ArchitectureTraits& wanted, std::string* real) {
  TRY(content, contentOf(tree, path, kMaxProgramBytes, real));
  auto elf = parseElf(content);
  if (!elf) return fail(std::move(elf).error().within("/" + *real));
  if (!elf->is_64_bit || elf->machine != wanted.elf_machine)
    return fail(ErrorCode::InvalidInput,
                fmt::format("/{} is for {}, not for {}: the image is for another architecture",
                            *real, elfMachineName(elf->machine), wanted.machine));
  return elf;
}

std::vector<std::string> libraryFolders(const FileTree& tree, const ArchitectureTraits& wanted) {
  std::vector<std::string> folders{std::string("lib/") + wanted.library_folder,
                                   std::string("usr/lib/") + wanted.library_folder};
  folders.insert(folders.end(), std::begin(kLibraryFolders), std::end(kLibraryFolders));
  std::vector<std::string> files{"etc/ld.so.conf"};
  if (const auto folder = tree.resolve("etc/ld.so.conf.d"))
    for (const auto& name : tree.list(*folder))
      files.push_back(fmt::format("{}/{}", *folder, name));
  for (const auto& file : files) {
    const auto text = contentOf(tree, file, kMaxConfigBytes);
    if (!text) continue;
    for (std::size_t at = 0; at < text->size();) {
      const auto end = std::min(text->find('\n', at), text->size());
      const auto line = text->substr(at, end - at);
      if (line.starts_with('/')) folders.push_back(line.substr(1, line.find_last_not_of(" \t\r")));
      at = end + 1;
    }
  }
  return folders;
}

/// A library by its name, as the loader would find it: of a file of another architecture it goes
/// on.
std::optional<std::string> findLibrary(const FileTree& tree, const std::string& name,
                                       const std::vector<std::string>& first,
                                       const std::vector<std::string>& then) {
  for (const auto* folders : {&first, &then})
    for (const auto& folder : *folders) {
      const auto path = tree.resolve(fmt::format("{}/{}", folder, name));
      const auto entry = path ? tree.at(*path) : std::nullopt;
      if (entry && entry->kind == FileTree::Kind::File) return *path;
    }
  return std::nullopt;
}

std::vector<std::string> ownFolders(const ElfFile& elf, const std::string& path) {
  std::vector<std::string> folders;
  for (std::string folder : elf.search_folders) {
    for (const std::string_view mark : {"$ORIGIN", "${ORIGIN}"})
      if (const auto at = folder.find(mark); at != std::string::npos)
        folder.replace(at, mark.size(), folderOf(path));
    folders.push_back(std::move(folder));
  }
  return folders;
}

/// Everything that init needs before it runs its first line.
struct Walk {
  const FileTree& tree;
  const ArchitectureTraits& wanted;
  std::vector<std::string> folders;
  std::set<std::string> seen = {};
  Obstacles obstacles = {};
  std::optional<ElfFile> libc = {};

  void libraries(const ElfFile& program, const std::string& path) {
    std::deque<std::pair<ElfFile, std::string>> left{{program, path}};
    while (!left.empty() && seen.size() < kMaxLibraries) {
      const auto [elf, at] = std::move(left.front());
      left.pop_front();
      for (const auto& name : elf.needed) {
        if (!seen.insert(name).second) continue;
        const auto found = findLibrary(tree, name, ownFolders(elf, at), folders);
        if (!found) {
          obstacles.push_back(fmt::format("it has no {}, which /{} needs", name, at));
          continue;
        }
        std::string real;
        auto library = programOf(tree, *found, wanted, &real);
        if (!library) {
          obstacles.push_back(library.error().str());
          continue;
        }
        if (name == "libc.so.6") libc = *library;
        left.emplace_back(std::move(*library), real);
      }
    }
  }
};

/// A tree that does not show links: it is systemd when it has systemd's content.
bool isSystemd(const FileTree& tree, const std::string& path) {
  const auto content = contentOf(tree, path, kMaxProgramBytes);
  for (const char* place : {"usr/lib/systemd/systemd", "lib/systemd/systemd"})
    if (const auto systemd = contentOf(tree, place, kMaxProgramBytes); content && systemd)
      return *content == *systemd;
  return false;
}

void addLibc(const std::optional<ElfFile>& libc, Obstacles& obstacles) {
  if (!libc) {
    obstacles.emplace_back(
        "its init does not use the GNU C library (libc.so.6): muster knows no system with another");
    return;
  }
  const auto version = glibcVersionOf(*libc);
  if (!version || *version < kOldestGlibc)
    obstacles.push_back(
        fmt::format("its C library is {}, muster's programs need glibc {} or later",
                    version ? "glibc " + version->str() : std::string("of no known release"),
                    kOldestGlibc.str()));
}

/// What os-release(5) calls so; empty where it does not say. As a shell would read it: the last one
/// counts, in either quotes.
std::string releaseWord(const FileTree& tree, std::string_view key) {
  for (const char* file : {"etc/os-release", "usr/lib/os-release"}) {
    const auto text = contentOf(tree, file, kMaxConfigBytes);
    if (!text) continue;
    std::string word;
    for (std::string_view left = *text; !left.empty();) {
      auto line = left.substr(0, left.find('\n'));
      left.remove_prefix(std::min(left.size(), line.size() + 1));
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      if (!line.starts_with(key) || !line.substr(key.size()).starts_with('=')) continue;
      word = line.substr(key.size() + 1);
      std::erase_if(word, [](char c) { return c == '"' || c == '\'' || c == '\r'; });
    }
    return word;
  }
  return {};
}

void addDistribution(const FileTree& tree, Obstacles& obstacles) {
  const auto id = releaseWord(tree, "ID");
  if (id.starts_with("sle") || id == "sl-micro" || id.starts_with("suse") ||
      id.starts_with("opensuse"))
    obstacles.push_back(
        fmt::format("it is a system of SUSE (ID={}): muster does not support these; it knows "
                    "neither their network service (wicked) nor their snapshots of the root",
                    id));
}

io::SelinuxConfig selinuxOf(const FileTree& tree) {
  return io::parseSelinuxConfig(
      contentOf(tree, io::kSelinuxConfig, kMaxConfigBytes).value_or(std::string()));
}

/// What the agent writes into it is labelled by the system's own policy and program.
void addSelinux(const FileTree& tree, Obstacles& obstacles) {
  const auto config = selinuxOf(tree);
  if (!config.enforcing) return;
  if (!tree.resolve(config.fileContexts()))
    obstacles.push_back(
        fmt::format("it enforces SELinux (/{}), but has no /{}: install selinux-policy-{} into it, "
                    "or let it be permissive",
                    io::kSelinuxConfig, config.fileContexts(), config.policy));
  if (!tree.resolve("usr/sbin/setfiles") && !tree.resolve("sbin/setfiles") &&
      !tree.resolve("usr/bin/setfiles"))
    obstacles.push_back(fmt::format(
        "it enforces SELinux (/{}), but has no setfiles, by which what muster writes is "
        "labelled: install policycoreutils into it, or let it be permissive",
        io::kSelinuxConfig));
}

/// What everybody must enter, else only root's programs find a file. A folder of mktemp is 0700,
/// and an archive of it, or a file system that it was unpacked to, keeps that for "/".
void addClosedFolders(const FileTree& tree, Obstacles& obstacles) {
  for (const auto& folder : kOpenFolders) {
    const auto real = tree.resolve(folder.path);
    const auto entry = real ? tree.at(*real) : std::nullopt;
    if (!entry || entry->kind != FileTree::Kind::Folder || !entry->permissions ||
        (*entry->permissions & folder.needs) == folder.needs)
      continue;
    obstacles.push_back(
        fmt::format("its /{} has the mode {:04o}, so nobody but root could use it: no user could "
                    "log in, no service of another user start; give it 0755 (chmod, in the tree "
                    "that the image is made of, or in the image mounted)",
                    *real, *entry->permissions));
  }
}

}  // namespace

Obstacles inMemoryObstacles(const FileTree& tree) {
  if (!selinuxOf(tree).enforcing) return {};
  return {
      fmt::format("it enforces SELinux (/{}), and files that are written into a live image have "
                  "no labels: let it be permissive",
                  io::kSelinuxConfig)};
}

Obstacles userspaceObstacles(const FileTree& tree, Architecture architecture) {
  const auto& wanted = traitsOf(architecture);
  std::string real;
  auto init = programOf(tree, kInit, wanted, &real);
  if (!init) return {fmt::format("no /{} that could start: {}", kInit, init.error().str())};
  Walk walk{.tree = tree, .wanted = wanted, .folders = libraryFolders(tree, wanted)};
  if (!("/" + real).ends_with(kSystemd) && !isSystemd(tree, real))
    walk.obstacles.push_back(
        fmt::format("its /{} is /{}, not systemd, which starts muster's agent", kInit, real));
  if (const auto entry = tree.at(real); !entry || !entry->executable)
    walk.obstacles.push_back(fmt::format("/{} may not be executed (its mode)", real));
  if (init->interpreter.empty()) {
    walk.obstacles.push_back(fmt::format("/{} names no loader: it is no program", real));
  } else {
    std::string loader;
    if (auto found = programOf(tree, init->interpreter, wanted, &loader); !found)
      walk.obstacles.push_back(
          fmt::format("the loader of its programs is missing: {}", found.error().str()));
  }
  walk.libraries(*init, real);
  if (!walk.seen.contains("libc.so.6") || walk.libc) addLibc(walk.libc, walk.obstacles);
  addDistribution(tree, walk.obstacles);
  addSelinux(tree, walk.obstacles);
  addClosedFolders(tree, walk.obstacles);
  return std::move(walk.obstacles);
}

namespace {

constexpr std::string_view kArm64Magic = "ARM\x64";
constexpr std::size_t kArm64MagicOffset = 0x38, kArm64SizeOffset = 0x10;

bool isArm64Kernel(std::string_view content) {
  return content.size() >= kArm64MagicOffset + kArm64Magic.size() &&
         content.substr(kArm64MagicOffset, kArm64Magic.size()) == kArm64Magic;
}

Result<std::string> unpackedKernel(std::string_view content) {
  using Handle = std::unique_ptr<archive, decltype(&archive_read_free)>;
  const Handle in(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(in.get());
  archive_read_support_format_raw(in.get());
  archive_entry* entry = nullptr;
  const auto damaged = [] {
    return fail(ErrorCode::Corrupt, "it is damaged or cut short: it does not unpack");
  };
  if (archive_read_open_memory(in.get(), content.data(), content.size()) != ARCHIVE_OK ||
      archive_read_next_header(in.get(), &entry) < ARCHIVE_WARN)
    return damaged();
  if (archive_filter_count(in.get()) != 2)  // libarchive would unpack both, a boot loader one
    return fail(ErrorCode::InvalidInput, "it is packed twice");
  std::string unpacked, piece(1u << 20, '\0');
  for (;;) {
    const auto got = archive_read_data(in.get(), piece.data(), piece.size());
    if (got < 0) return damaged();
    if (got == 0) return unpacked;
    unpacked.append(piece, 0, static_cast<std::size_t>(got));
    if (unpacked.size() > kMaxKernelBytes)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("it unpacks to more than {} MiB", kMaxKernelBytes >> 20));
  }
}

/// `image_size` counts memory behind the file, too; whether the file is whole the sections of its
/// UEFI program say. Without one no firmware of such machines could start it.
Result<void> checkArm64Kernel(std::string_view content) {
  if (content.starts_with("\x1f\x8b")) {
    TRY(unpacked, unpackedKernel(content));
    return checkArm64Kernel(unpacked);
  }
  if (content.size() > 0x206 && content.substr(0x202, 4) == "HdrS")
    return fail(ErrorCode::InvalidInput, "it is a kernel for x86, not for AArch64");
  if (!isArm64Kernel(content))
    return fail(ErrorCode::InvalidInput, "it is no kernel for AArch64 (no Image)");
  std::uint64_t size = 0;
  std::memcpy(&size, content.data() + kArm64SizeOffset, sizeof size);
  if (size == 0)
    return fail(ErrorCode::InvalidInput, "its header has no size: it is older than Linux 3.17");
  return checkEfiProgram(content, Architecture::Arm64);
}

}  // namespace

Result<void> checkKernelImage(std::string_view content, Architecture architecture) {
  if (architecture == Architecture::Arm64) return checkArm64Kernel(content);
  constexpr std::size_t kBootFlag = 0x1fe, kMagic = 0x202, kLoadFlags64 = 0x236;
  constexpr std::size_t kHeaderEnd = 0x268, kSetupSectors = 0x1f1, kSystemBytes = 0x1f4;
  if (content.size() < kHeaderEnd || content.substr(kMagic, 4) != "HdrS" ||
      content.substr(kBootFlag, 2) != "\x55\xaa")
    return fail(ErrorCode::InvalidInput, content.starts_with("\x7f"
                                                             "ELF") ||
                                                 content.size() < kHeaderEnd ||
                                                 content.substr(0x38, 4) != "ARM\x64"
                                             ? "it is no kernel for x86-64 (no bzImage)"
                                             : "it is a kernel for AArch64, not for x86-64");
  if ((static_cast<unsigned char>(content[kLoadFlags64]) & 1) == 0)
    return fail(ErrorCode::InvalidInput, "it is a kernel for x86 with 32 bits, not for x86-64");
  std::uint32_t paragraphs = 0;
  std::memcpy(&paragraphs, content.data() + kSystemBytes, sizeof paragraphs);
  const std::uint64_t setup = static_cast<unsigned char>(content[kSetupSectors]);
  const std::uint64_t whole = ((setup == 0 ? 4 : setup) + 1) * 512 + std::uint64_t{paragraphs} * 16;
  if (whole > content.size())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("it is cut short: its header says {} bytes, it has {}", whole, content.size()));
  return {};
}

namespace {

constexpr std::string_view kTrailer = "TRAILER!!!";
/// gzip, xz, zstd, bzip2, lzma, and lz4 in its first format: a kernel does not know the frames that
/// `lz4` writes without -l. Source: lib/decompress.c of the kernel
constexpr std::string_view kXzMagic =
    "\xfd"
    "7zXZ";
constexpr std::string_view kPackedMagics[] = {"\x1f\x8b", kXzMagic,        "\x28\xb5\x2f\xfd",
                                              "BZh",      {"\x5d\0\0", 3}, "\x02\x21\x4c\x18"};
constexpr std::string_view kLz4Frames = "\x04\x22\x4d\x18", kLzop = "\x89LZO";

/// One archive of the newc format from `at` on; answers where it ends.
Result<std::size_t> walkCpio(std::string_view content, std::size_t at) {
  constexpr std::size_t kHeaderBytes = 110, kSizeAt = 54, kNameSizeAt = 94;
  const auto cut = [] { return fail(ErrorCode::Corrupt, "it is cut short within an archive"); };
  const auto field = [&content](std::size_t from) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto text = content.substr(from, 8);
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  };
  for (;;) {
    if (content.size() - at < kHeaderBytes) return cut();
    if (!content.substr(at).starts_with("07070"))
      return fail(ErrorCode::Corrupt, "its archive is damaged");
    const auto size = field(at + kSizeAt), name_size = field(at + kNameSizeAt);
    if (!size || !name_size) return fail(ErrorCode::Corrupt, "its archive is damaged");
    const std::size_t name = at + kHeaderBytes;
    const std::size_t data = (name + *name_size + 3) / 4 * 4;
    if (data > content.size() || *size > content.size() - data) return cut();
    const bool last = content.substr(name).starts_with(kTrailer);
    at = std::min(content.size(), (data + *size + 3) / 4 * 4);
    if (last) return at;
  }
}

/// What is compressed, to its end. It must be an archive, too.
Result<void> checkCompressed(std::string_view content) {
  using Handle = std::unique_ptr<archive, decltype(&archive_read_free)>;
  const Handle in(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(in.get());
  archive_read_support_filter_xz(in.get());
  archive_read_support_filter_lzma(in.get());
  archive_read_support_filter_zstd(in.get());
  archive_read_support_filter_bzip2(in.get());
  archive_read_support_filter_lz4(in.get());
  archive_read_support_format_raw(in.get());
  archive_entry* entry = nullptr;
  const auto unknown = [] {
    return fail(ErrorCode::InvalidInput,
                "it is no archive that a kernel unpacks (cpio, plain or compressed)");
  };
  const auto damaged = [] {
    return fail(ErrorCode::Corrupt, "it is damaged or cut short: it does not unpack");
  };
  if (content.starts_with(kLz4Frames))
    return fail(
        ErrorCode::InvalidInput,
        "it is compressed by lz4 in frames, which no kernel unpacks: compress it with lz4 -l");
  if (content.starts_with(kLzop))
    return fail(ErrorCode::InvalidInput,
                "it is compressed by lzop, and muster cannot look into that: make it with zstd, xz "
                "or gzip (initramfs-tools: COMPRESS=zstd; dracut: --zstd)");
  if (std::none_of(std::begin(kPackedMagics), std::end(kPackedMagics),
                   [content](std::string_view magic) { return content.starts_with(magic); }))
    return unknown();
  if (archive_read_open_memory(in.get(), content.data(), content.size()) != ARCHIVE_OK ||
      archive_read_next_header(in.get(), &entry) < ARCHIVE_WARN)
    return damaged();
  if (archive_filter_count(in.get()) < 2) return damaged();
  std::string piece(1u << 20, '\0'), before;
  bool first = true, whole = false;
  for (std::uint64_t total = 0;;) {
    const auto got = archive_read_data(in.get(), piece.data(), piece.size());
    if (got < 0) return damaged();
    if (got == 0) break;
    const std::string_view part(piece.data(), static_cast<std::size_t>(got));
    if (first && !part.starts_with("07070")) return unknown();
    first = false;
    total += part.size();
    if (total > kMaxUnpackedBytes)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("it unpacks to more than {} GiB", kMaxUnpackedBytes >> 30));
    // The end's mark may lie across two pieces.
    before += part;
    whole = whole || before.find(kTrailer) != std::string::npos;
    before = before.substr(before.size() - std::min(before.size(), kTrailer.size()));
  }
  if (first) return damaged();
  if (!whole) return fail(ErrorCode::Corrupt, "it is cut short: its archive has no end");
  return {};
}

using Check = std::function<Result<void>(std::string_view)>;

Check kernelCheck(Architecture architecture) {
  return
      [architecture](std::string_view content) { return checkKernelImage(content, architecture); };
}

/// Reads a file by a path that may be a link, and hands it to its check.
void addFile(const FileTree& tree, const std::string& path, const char* what, const char* advice,
             std::size_t max_bytes, const Check& check, Obstacles& obstacles) {
  std::string real = path;
  const auto content = contentOf(tree, path, max_bytes, &real);
  if (!content) {
    obstacles.push_back(fmt::format("no {}: {}{}", what, content.error().text(), advice));
    return;
  }
  if (const auto checked = check(*content); !checked)
    obstacles.push_back(fmt::format("its {} /{}: {}", what, real, checked.error().text()));
}

}  // namespace

Result<void> checkInitrd(std::string_view content) {
  bool archives = false;
  for (std::size_t at = 0;;) {
    while (at < content.size() && content[at] == '\0') ++at;
    if (at >= content.size()) {
      if (archives) return {};
      return fail(ErrorCode::Corrupt, "it has nothing but zeros");
    }
    if (!content.substr(at).starts_with("07070")) return checkCompressed(content.substr(at));
    TRY(end, walkCpio(content, at));
    at = end;
    archives = true;
  }
}

Obstacles kernelObstacles(const FileTree& tree, Architecture architecture) {
  Obstacles obstacles;
  addFile(tree, "vmlinuz", "kernel", "; install a kernel into it (muster starts /vmlinuz)",
          kMaxKernelBytes, kernelCheck(architecture), obstacles);
  addFile(tree, "initrd.img", "initrd", "; create it with the kernel (muster starts /initrd.img)",
          kMaxInitrdBytes, checkInitrd, obstacles);
  return obstacles;
}

Obstacles bootFolderObstacles(const FileTree& tree, const std::string& folder,
                              Architecture architecture) {
  Obstacles obstacles;
  const auto real = tree.resolve(folder);
  const auto names = real ? tree.list(*real) : std::vector<std::string>();
  const struct {
    const char* what;
    std::vector<std::string_view> prefixes;
    std::size_t max_bytes;
    Check check;
  } kinds[] = {{"kernel", {"vmlinuz"}, kMaxKernelBytes, kernelCheck(architecture)},
               {"initrd", {"initrd", "initramfs"}, kMaxInitrdBytes, checkInitrd}};
  for (const auto& kind : kinds) {
    bool good = false;
    Obstacles all;
    for (const auto& name : names) {
      if (std::none_of(kind.prefixes.begin(), kind.prefixes.end(),
                       [&name](std::string_view prefix) { return name.starts_with(prefix); }))
        continue;
      Obstacles one;
      addFile(tree, real->empty() ? name : *real + "/" + name, kind.what, "", kind.max_bytes,
              kind.check, one);
      good = good || one.empty();
      all.insert(all.end(), one.begin(), one.end());
    }
    if (good) continue;  // older ones may be broken: the boot loader's menu has this one
    if (all.empty()) all.push_back(fmt::format("no {} in /{}", kind.what, folder));
    obstacles.insert(obstacles.end(), all.begin(), all.end());
  }
  return obstacles;
}

Result<void> refuseObstacles(const Obstacles& obstacles) {
  if (obstacles.empty()) return {};
  return fail(ErrorCode::InvalidInput,
              fmt::format("no machine could start it: {}", fmt::join(obstacles, "; ")));
}

}  // namespace muster::provision
