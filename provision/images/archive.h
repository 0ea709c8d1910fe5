// SPDX-License-Identifier: Apache-2.0
// Seam: libarchive. Tar archives and compressed files that somebody else made; no name in them
// leads out of its folder.
#pragma once

#include "base/io/files.h"
#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct archive;
struct archive_entry;

namespace muster::provision {

class ArchiveInput;

/// Of a path in an image. mke2fs (e2fsprogs up to 1.47.0, path_append) writes behind its buffer at
/// 2,040 bytes, programs open no path of more than 4,095 (PATH_MAX), and those of the distributions
/// have some hundred.
inline constexpr std::size_t kMaxTreePathBytes = 2000;
/// One in the other, above a file: the reader of the finished file system goes one deeper.
inline constexpr int kMaxTreeFolders = 127;

/// One member while an archive is read from its beginning to its end.
class ArchiveReader {
 public:
  enum class Kind {
    Tar,
    Compressed
  };  ///< a tar (compressed or not), or one compressed stream (gzip, xz, zstd, bzip2)

  /// Errors: NotFound, InvalidInput (nothing that it knows)
  static Result<ArchiveReader> open(const std::filesystem::path& file, Kind kind);
  ArchiveReader(ArchiveReader&& other) noexcept;
  ~ArchiveReader();

  /// The next member's name without leading "./" and "/"; empty at the end. Errors: Corrupt
  /// (damaged, cut short)
  Result<std::string> next();
  bool isRegular() const;
  /// The content of this member, piece by piece. Errors: Corrupt, and those of the sink
  Result<void> read(const std::function<Result<void>(std::string_view)>& sink);
  Result<std::string> readAll(std::size_t max_bytes);
  /// After the last member: what is behind it. Errors: Corrupt (a tar without an end: it was cut
  /// short), InvalidInput (something more)
  Result<void> expectEnd();
  archive* raw() const { return archive_; }
  archive_entry* entry() const { return entry_; }

 private:
  ArchiveReader(archive* handle, std::unique_ptr<ArchiveInput> input, std::filesystem::path file);
  std::unexpected<Error> broken(ErrorCode code) const;

  std::unique_ptr<ArchiveInput> input_;  ///< what archive_ reads
  archive* archive_;
  archive_entry* entry_ = nullptr;
  std::filesystem::path file_;
};

/// Extracts a root file system: owners by number, modes, times, extended attributes, device nodes.
/// A member below a link of the tree lands where the link leads, as in the running system: lib/x
/// lands in usr/lib where /lib is a link to it, and the link stays.
/// `whiteouts`: the layer of an OCI image, whose ".wh." files remove what lower layers brought.
/// Errors: Corrupt (cut short), InvalidInput (a name or a link that leads out, files with huge
/// holes), Denied (not root), Unavailable (disk full)
Result<void> extractTree(const std::filesystem::path& tar, const std::filesystem::path& root,
                         bool whiteouts);

/// Extracts an archive of data, in which everything but files and folders is refused: who reads a
/// FIFO of it by its name would wait for ever.
/// Errors: as extractTree
Result<void> extractFiles(const std::filesystem::path& tar, const std::filesystem::path& root);

/// Decompresses one file, leaving holes where it is zero. Errors: Corrupt, Unavailable
Result<void> decompressFile(const std::filesystem::path& file, const std::filesystem::path& raw);

/// Writes an uncompressed tar of these files under these names; owner, times and order are fixed.
Result<void> writeTar(const std::filesystem::path& tar,
                      const std::vector<std::pair<std::string, std::filesystem::path>>& members);

}  // namespace muster::provision
