// SPDX-License-Identifier: Apache-2.0
#include "provision/images/archive.h"

#include "base/printable.h"
#include "provision/images/archive_input.h"
#include "provision/images/file_tree.h"
#include "wire/pack_index.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

namespace muster::provision {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBlockBytes = 1u << 20;
constexpr std::size_t kHoleBytes = 64u << 10;  ///< the least that is worth a hole
// A root file system of nodes has some hundred thousand files and some dozen GiB: what is larger is
// a mistake, or made to fill the disk.
constexpr std::size_t kMaxMembers = 4'000'000;
constexpr std::uint64_t kMaxTreeBytes = 256ull << 30;
/// Of all files together: /var/log/lastlog has some GiB of them, and each byte of a hole costs time
/// on every node.
constexpr std::uint64_t kMaxHoleBytes = 16ull << 30;
constexpr std::string_view kWhiteout = ".wh.", kOpaque = ".wh..wh..opq";
constexpr int kExtractFlags = ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME |
                              ARCHIVE_EXTRACT_XATTR | ARCHIVE_EXTRACT_ACL | ARCHIVE_EXTRACT_UNLINK |
                              ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT;

constexpr std::size_t kMaxShownName = 200;  ///< bytes of a name in a message

using Writer = std::unique_ptr<archive, decltype(&archive_write_free)>;

std::string words(archive* handle) {
  const char* text = archive_error_string(handle);
  return text ? text : "unknown fault";
}

/// A name of an archive for a message: names of kilobytes are shortened.
std::string shown(const std::string& name) {
  if (name.size() <= kMaxShownName) return printable(name);
  return fmt::format("{}… ({} bytes)", printable(name.substr(0, kMaxShownName)), name.size());
}

/// What the disk's side said, without the folder of this machine that it names.
std::string diskWords(archive* disk) {
  const int error = archive_errno(disk);
  const auto text = words(disk);
  if (error > 0) return std::strerror(error);
  return text.substr(0, text.find(" '/"));
}

std::string plainName(const char* name) {
  std::string_view text = name ? name : "";
  for (bool more = true; more;) {
    more = false;
    if (text.starts_with("./")) text.remove_prefix(2), more = true;
    while (text.starts_with('/')) text.remove_prefix(1), more = true;
  }
  while (text.ends_with('/')) text.remove_suffix(1);
  return text == "." ? std::string() : std::string(text);
}

bool leadsOut(const std::string& name) {
  const fs::path path(name);
  return std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

/// What lower layers brought and this one takes away. Never follows a link out of the root.
Result<void> applyWhiteout(const fs::path& root, const std::string& name) {
  TRY(place, placeBelow(root, name));
  const fs::path folder = (root / place).parent_path();
  const std::string file = fs::path(name).filename();
  std::error_code error;
  if (file == kOpaque) {
    for (const auto& child : fs::directory_iterator(folder, error))
      fs::remove_all(child.path(), error);
    return {};
  }
  const std::string gone = file.substr(kWhiteout.size());
  if (gone.empty() || gone == "." || gone == "..")
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} takes away a whole folder by its name", shown(name)));
  fs::remove_all(folder / gone, error);
  return {};
}

Result<void> applyWhiteouts(const fs::path& tar, const fs::path& root) {
  TRY(reader, ArchiveReader::open(tar, ArchiveReader::Kind::Tar));
  for (;;) {
    TRY(name, reader.next());
    if (name.empty() && reader.entry() == nullptr) return {};
    if (leadsOut(name))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{}: {} leads out of the image", tar.string(), shown(name)));
    if (fs::path(name).filename().string().starts_with(kWhiteout))
      if (auto gone = applyWhiteout(root, name); !gone)
        return fail(std::move(gone).error().within(tar.string()));
  }
}

/// What an archive may still bring, of all its members together.
struct Budget {
  std::uint64_t data_bytes = kMaxTreeBytes;
  std::uint64_t hole_bytes = kMaxHoleBytes;
};

Result<void> copyMember(archive* from, archive* to, const std::string& name,
                        std::uint64_t declared_bytes, Budget& left) {
  const void* block = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  if (declared_bytes > left.data_bytes + left.hole_bytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} says that it has {} GiB, more than a root file system may have",
                            shown(name), declared_bytes >> 30));
  std::uint64_t data = 0;
  for (;;) {
    const int got = archive_read_data_block(from, &block, &size, &offset);
    if (got == ARCHIVE_EOF) break;
    if (got < ARCHIVE_WARN)
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} is damaged or cut short: {}", shown(name), words(from)));
    if (size > left.data_bytes)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("its files have more than {} GiB", kMaxTreeBytes >> 30));
    left.data_bytes -= size;
    data += size;
    if (archive_write_data_block(to, block, size, offset) < ARCHIVE_WARN)
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot write {}: {}", shown(name), words(to)));
  }
  const auto holes = declared_bytes - std::min(declared_bytes, data);
  if (holes > left.hole_bytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} brings the holes of all files to more than {} GiB: remove it from "
                            "the archive, or what it holds",
                            shown(name), kMaxHoleBytes >> 30));
  left.hole_bytes -= holes;
  return {};
}

/// The links at the top of a system whose /usr holds everything. Source: file-hierarchy(7)
bool isMergedName(const std::string& name) {
  constexpr std::string_view kNames[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// A folder whose name is a link already: what is in it lands where the link leads.
Result<bool> staysLink(const fs::path& root, const std::string& place, archive_entry* entry) {
  const auto type = archive_entry_filetype(entry);
  const auto tree = openFolderTree(root);
  const auto there = tree->at(place);
  if (!there || there->kind != FileTree::Kind::Link || type == AE_IFLNK) return false;
  if (type != AE_IFDIR && isMergedName(place))
    return fail(ErrorCode::InvalidInput,
                fmt::format("a file would take the place of the link /{}", place));
  if (type != AE_IFDIR) return false;
  const auto leads = tree->resolve(place);
  const auto target = leads ? tree->at(*leads) : std::nullopt;
  if (target && target->kind == FileTree::Kind::Folder) return true;
  if (isMergedName(place))
    return fail(ErrorCode::InvalidInput,
                fmt::format("/{} is a link that leads nowhere, and a folder of the same name would "
                            "take its place",
                            place));
  return false;
}

/// libarchive only warns of attributes that it could not set: too many or too large for the file
/// system. A capability or a label that is lost is a program that does not run. Of other systems'
/// attributes (com.apple.…) nothing is lost here.
Result<void> checkAttributes(archive_entry* entry, const std::string& name) {
  const bool lists = (archive_entry_acl_types(entry) & ARCHIVE_ENTRY_ACL_TYPE_ACCESS) != 0;
  if (lists &&
      ::lgetxattr(archive_entry_pathname(entry), "system.posix_acl_access", nullptr, 0) < 0)
    return fail(ErrorCode::InvalidInput,
                fmt::format("cannot extract \"{}\": its access list cannot be kept ({}): remove "
                            "it from the archive (setfacl -b), or shorten it",
                            shown(name), std::strerror(errno)));
  const char* attribute = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  archive_entry_xattr_reset(entry);
  while (archive_entry_xattr_next(entry, &attribute, &value, &size) == ARCHIVE_OK) {
    const std::string_view of(attribute);
    const bool of_users = of.starts_with("user.") && archive_entry_filetype(entry) != AE_IFLNK;
    if (!of_users && !of.starts_with("security.") && !of.starts_with("trusted.")) continue;
    if (::lgetxattr(archive_entry_pathname(entry), attribute, nullptr, 0) >= 0) continue;
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("cannot extract \"{}\": its attribute {} ({} bytes) cannot be kept ({}): "
                    "a file system of images holds 4 KiB of attributes a file; remove it "
                    "from the archive",
                    shown(name), attribute, size, std::strerror(errno)));
  }
  return {};
}

struct ExtractRules {
  bool whiteouts = false;
  bool files_only = false;
};

/// Names that a file system, or a program that reads one, has no room for.
Result<void> checkLengths(const std::string& name, archive_entry* entry) {
  constexpr std::size_t kMaxTargetBytes = 4095;  // of a link in ext4, and PATH_MAX
  if (name.size() > kMaxTreePathBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is longer than the {} bytes that a path in an image may have: "
                            "shorten it, or leave it out of the archive",
                            shown(name), kMaxTreePathBytes));
  if (std::count(name.begin(), name.end(), '/') > kMaxTreeFolders)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" nests more than {} folders", shown(name), kMaxTreeFolders));
  const char* target = archive_entry_filetype(entry) == AE_IFLNK ? archive_entry_symlink(entry)
                                                                 : archive_entry_hardlink(entry);
  if (target != nullptr && std::strlen(target) > kMaxTargetBytes)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is a link to a path of {} bytes, and a path may have {}: remove "
                    "it from the archive",
                    shown(name), std::strlen(target), kMaxTargetBytes));
  return {};
}

/// The file that a hard link is of. Errors: InvalidInput (outside, not there, a folder)
Result<std::string> hardLinked(const fs::path& root, const std::string& name, const char* link) {
  const std::string target = plainName(link);
  if (leadsOut(target))
    return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is linked to \"{}\" outside the image",
                                                     shown(name), shown(target)));
  TRY(place, placeBelow(root, target));
  struct stat info{};
  if (::lstat((root / place).c_str(), &info) != 0)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is a hard link to \"{}\", which the archive does not bring "
                            "before it",
                            shown(name), shown(target)));
  if (S_ISDIR(info.st_mode))
    return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is a hard link to the folder \"{}\"",
                                                     shown(name), shown(target)));
  return place;
}

Result<void> extractMember(ArchiveReader& reader, archive* disk, const fs::path& root,
                           const std::string& name, const ExtractRules& rules, Budget& left) {
  archive_entry* entry = reader.entry();
  if (leadsOut(name))
    return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" leads out of the image", shown(name)));
  TRY_OK(checkLengths(name, entry));
  const auto type = archive_entry_filetype(entry);
  const char* link = archive_entry_hardlink(entry);
  if (rules.files_only && (link != nullptr || (type != AE_IFREG && type != AE_IFDIR)))
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is neither a file nor a folder", shown(name)));
  TRY(place, placeBelow(root, name));
  TRY(stays, staysLink(root, place, entry));
  if (stays) return {};
  archive_entry_set_pathname(entry, (place.empty() ? root : root / place).c_str());
  if (link != nullptr) {
    TRY(target, hardLinked(root, name, link));
    if (target == place) return {};  // tar writes so what it was given twice
    archive_entry_set_hardlink(entry, (root / target).c_str());
  }
  if (archive_write_header(disk, entry) < ARCHIVE_WARN) {
    const int error = archive_errno(disk);
    return fail(error == EPERM || error == EACCES ? ErrorCode::Denied
                : error == ENOSPC                 ? ErrorCode::Unavailable
                                                  : ErrorCode::InvalidInput,
                fmt::format("cannot extract \"{}\": {}", shown(name), diskWords(disk)));
  }
  const auto declared = type == AE_IFREG && link == nullptr ? archive_entry_size(entry) : 0;
  TRY_OK(copyMember(reader.raw(), disk, name,
                    static_cast<std::uint64_t>(std::max<la_int64_t>(0, declared)), left));
  const int finished = archive_write_finish_entry(disk);
  if (finished < ARCHIVE_WARN)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot extract \"{}\": {}", shown(name), diskWords(disk)));
  return finished == ARCHIVE_OK ? Result<void>() : checkAttributes(entry, name);
}

}  // namespace

ArchiveReader::ArchiveReader(archive* handle, std::unique_ptr<ArchiveInput> input, fs::path file)
    : input_(std::move(input)), archive_(handle), file_(std::move(file)) {}

Result<ArchiveReader> ArchiveReader::open(const fs::path& file, Kind kind) {
  TRY(input, ArchiveInput::open(file));
  ArchiveReader reader(archive_read_new(), std::move(input), file);
  const int opened = kind == Kind::Tar ? reader.input_->feedTar(reader.archive_)
                                       : reader.input_->feedStream(reader.archive_);
  if (opened != ARCHIVE_OK) return reader.broken(ErrorCode::InvalidInput);
  return reader;
}

ArchiveReader::ArchiveReader(ArchiveReader&& other) noexcept
    : input_(std::move(other.input_)),
      archive_(std::exchange(other.archive_, nullptr)),
      entry_(std::exchange(other.entry_, nullptr)),
      file_(std::move(other.file_)) {}

ArchiveReader::~ArchiveReader() {
  if (archive_) archive_read_free(archive_);
}

std::unexpected<Error> ArchiveReader::broken(ErrorCode code) const {
  return fail(code, fmt::format("{} cannot be read: {}", file_.string(), words(archive_)));
}

Result<std::string> ArchiveReader::next() {
  const bool first = entry_ == nullptr;
  const int got = archive_read_next_header(archive_, &entry_);
  if (const auto& problem = input_->scan().problem()) {
    entry_ = nullptr;
    return fail(Error(*problem).within(file_.string()));
  }
  if (got == ARCHIVE_EOF) {
    entry_ = nullptr;
    return std::string();
  }
  // Retry: a header that is none. A warning without words: the map of a sparse file is damaged.
  if (got < ARCHIVE_WARN || got == ARCHIVE_RETRY ||
      (got == ARCHIVE_WARN && archive_error_string(archive_) == nullptr)) {
    entry_ = nullptr;
    return broken(first ? ErrorCode::InvalidInput : ErrorCode::Corrupt);
  }
  return plainName(archive_entry_pathname(entry_));
}

bool ArchiveReader::isRegular() const {
  return entry_ != nullptr && archive_entry_filetype(entry_) == AE_IFREG;
}

Result<void> ArchiveReader::read(const std::function<Result<void>(std::string_view)>& sink) {
  std::string piece(kBlockBytes, '\0');
  for (;;) {
    const la_ssize_t n = archive_read_data(archive_, piece.data(), piece.size());
    if (n < 0) return broken(ErrorCode::Corrupt);
    if (n == 0) return {};
    TRY_OK(sink(std::string_view(piece.data(), static_cast<std::size_t>(n))));
  }
}

Result<std::string> ArchiveReader::readAll(std::size_t max_bytes) {
  std::string all;
  TRY_OK(read([&all, max_bytes](std::string_view piece) -> Result<void> {
    if (all.size() + piece.size() > max_bytes)
      return fail(ErrorCode::Corrupt, fmt::format("a member has more than {} bytes", max_bytes));
    all += piece;
    return {};
  }));
  return all;
}

Result<void> ArchiveReader::expectEnd() {
  if (auto rest = input_->finish(); !rest)
    return fail(std::move(rest).error().within(file_.string()));
  const auto& scan = input_->scan();
  if (scan.ended() || scan.lost()) return {};
  return fail(ErrorCode::Corrupt,
              fmt::format("{} has no end (two blocks of zeros): it was cut short", file_.string()));
}

namespace {

Result<void> extractAll(const fs::path& tar, const fs::path& root, const ExtractRules& rules) {
  const bool whiteouts = rules.whiteouts;
  std::error_code error;
  const fs::path top = fs::canonical(root, error);
  if (error)
    return fail(ErrorCode::NotFound, fmt::format("{}: {}", root.string(), error.message()));
  if (whiteouts) TRY_OK(applyWhiteouts(tar, top));
  TRY(reader, ArchiveReader::open(tar, ArchiveReader::Kind::Tar));
  const Writer disk(archive_write_disk_new(), archive_write_free);
  archive_write_disk_set_options(disk.get(), kExtractFlags);
  Budget left;
  for (std::size_t members = 0;; ++members) {
    TRY(name, reader.next());
    if (members > kMaxMembers)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} has more than {} members", tar.string(), kMaxMembers));
    if (reader.entry() == nullptr) {
      if (members == 0)
        return fail(ErrorCode::InvalidInput, fmt::format("{} is empty", tar.string()));
      // A layer is known by its digest; not every program ends one as a tar ends.
      if (!whiteouts) TRY_OK(reader.expectEnd());
      break;
    }
    if (whiteouts && fs::path(name).filename().string().starts_with(kWhiteout)) continue;
    if (auto done = extractMember(reader, disk.get(), top, name, rules, left); !done)
      return fail(std::move(done).error().within(tar.string()));
  }
  if (archive_write_close(disk.get()) < ARCHIVE_WARN)
    return fail(ErrorCode::Unavailable, fmt::format("{}: {}", tar.string(), words(disk.get())));
  return {};
}

}  // namespace

Result<void> extractTree(const fs::path& tar, const fs::path& root, bool whiteouts) {
  return extractAll(tar, root, {.whiteouts = whiteouts, .files_only = false});
}

Result<void> extractFiles(const fs::path& tar, const fs::path& root) {
  return extractAll(tar, root, {.whiteouts = false, .files_only = true});
}

Result<void> decompressFile(const fs::path& file, const fs::path& raw) {
  TRY(reader, ArchiveReader::open(file, ArchiveReader::Kind::Compressed));
  TRY_OK(reader.next());
  const io::Fd out(::open(raw.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot create {}: {}", raw.string(), std::strerror(errno)));
  off_t at = 0;
  TRY_OK(reader.read([&](std::string_view piece) -> Result<void> {
    if (static_cast<std::uint64_t>(at) + piece.size() > wire::kMaxImageBytes)
      return fail(ErrorCode::InvalidInput, fmt::format("{} unpacks to more than {} GiB",
                                                       file.string(), wire::kMaxImageBytes >> 30));
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kHoleBytes))) {
      const std::string_view part = piece.substr(0, kHoleBytes);
      if (!wire::allZero(part) &&
          ::pwrite(out.get(), part.data(), part.size(), at) != static_cast<ssize_t>(part.size()))
        return fail(ErrorCode::Unavailable,
                    fmt::format("cannot write {}: {}", raw.string(), std::strerror(errno)));
      at += static_cast<off_t>(part.size());
    }
    return {};
  }));
  if (::ftruncate(out.get(), at) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot write {}: {}", raw.string(), std::strerror(errno)));
  return {};
}

Result<void> writeTar(const fs::path& tar,
                      const std::vector<std::pair<std::string, fs::path>>& members) {
  const Writer out(archive_write_new(), archive_write_free);
  archive_write_set_format_gnutar(out.get());
  archive_write_add_filter_none(out.get());
  if (archive_write_open_filename(out.get(), tar.c_str()) != ARCHIVE_OK)
    return fail(ErrorCode::Internal,
                fmt::format("cannot create {}: {}", tar.string(), words(out.get())));
  std::string piece(kBlockBytes, '\0');
  for (const auto& [name, file] : members) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    const io::Fd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (error || !in.valid()) return fail(ErrorCode::NotFound, "cannot open " + file.string());
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    bool fine = archive_write_header(out.get(), entry.get()) == ARCHIVE_OK;
    for (ssize_t n = 1; fine && n > 0;) {
      n = ::read(in.get(), piece.data(), piece.size());
      fine = n >= 0 && (n == 0 || archive_write_data(out.get(), piece.data(),
                                                     static_cast<std::size_t>(n)) == n);
    }
    if (!fine)
      return fail(ErrorCode::Unavailable,
                  fmt::format("cannot write {} to {}: {}", name, tar.string(), words(out.get())));
  }
  if (archive_write_close(out.get()) != ARCHIVE_OK)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot write {}: {}", tar.string(), words(out.get())));
  return {};
}

}  // namespace muster::provision
