// SPDX-License-Identifier: Apache-2.0
// What libarchive reads an archive from: a file's bytes, of which gzip's checksums are checked
// (libarchive does not), and, of a tar, the unpacked bytes, which TarScan looks at as they go by.
#pragma once

#include "base/io/files.h"
#include "base/result.h"
#include "provision/images/tar_scan.h"

#include <filesystem>
#include <memory>
#include <string>

struct archive;

namespace muster::provision {

class ArchiveInput {
 public:
  /// Errors: NotFound, InvalidInput (no regular file)
  static Result<std::unique_ptr<ArchiveInput>> open(const std::filesystem::path& file);
  virtual ~ArchiveInput() = default;

  /// Lets `handle` read the file as one stream, which it unpacks, or as a tar, which was unpacked
  /// here. Answers as libarchive's functions do; what is wrong is set as the error of `handle`. The
  /// input must live longer than what `handle` is asked.
  virtual int feedStream(archive* handle) = 0;
  virtual int feedTar(archive* handle) = 0;
  virtual const TarScan& scan() const = 0;
  /// Reads what is behind the end of a tar, to the end of the file. Errors: Corrupt, InvalidInput
  virtual Result<void> finish() = 0;
};

/// Filters that every reader of archives here knows: gzip, xz, zstd, bzip2.
void supportPackings(archive* handle);

}  // namespace muster::provision
