// SPDX-License-Identifier: Apache-2.0
// A file that only who knows a passphrase can read or change unnoticed: docs/adr/0302.
//
//   "muster-sealed/1\n"
//   header: 4 bytes length (big endian), JSON: {kdf {name, n, r, p, salt}, check, about}
//   pieces: 4 bytes length, its top bit set on the last piece; ciphertext and tag (AES-256-GCM)
//
// The key is scrypt's of passphrase and salt, so it is of this file alone; a piece's nonce is its
// number and whether it is the last; the header is authenticated with every piece. So pieces cannot
// be left out, moved, cut off or taken from another file. `about` is readable without the
// passphrase.
#pragma once

#include "base/io/files.h"
#include "base/log.h"
#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::io {

inline constexpr std::size_t kSealedPieceBytes = 64 << 10;  ///< of plain text
inline constexpr std::size_t kMinPassphraseBytes = 12;

class SealedWriter {
 public:
  /// Begins a new file, mode 0600. `about`: a JSON object. Errors: InvalidInput (the passphrase is
  /// short), those of the disk
  static Result<SealedWriter> create(const std::filesystem::path& file, const Secret& passphrase,
                                     const std::string& about);
  Result<void> write(std::string_view data);
  /// The last piece, synced. Without it the file is refused as cut off.
  Result<void> finish();

 private:
  SealedWriter(Fd fd, std::filesystem::path file, const Secret& key, std::string header_digest);
  Result<void> put(std::string_view bytes);
  Result<void> seal(bool last);

  Fd fd_;
  std::filesystem::path file_;
  Secret key_;
  std::string header_digest_, pending_;
  std::uint64_t pieces_ = 0;
};

class SealedReader {
 public:
  /// Reads the header. Errors: Corrupt (no such file, a newer format), those of the disk
  static Result<SealedReader> open(const std::filesystem::path& file);
  const std::string& about() const { return about_; }
  /// Errors: Denied (another passphrase)
  Result<void> unlock(const Secret& passphrase);
  /// Exactly so many bytes. Errors: Corrupt (cut off, changed, or fewer are there)
  Result<std::string> read(std::size_t bytes);
  /// Nothing may follow. Errors: Corrupt
  Result<void> expectEnd();

 private:
  SealedReader(Fd fd, std::filesystem::path file) : fd_(std::move(fd)), file_(std::move(file)) {}
  Result<std::string> take(std::size_t bytes);
  Result<void> unseal();

  Fd fd_;
  std::filesystem::path file_;
  std::string about_, salt_, check_, header_digest_, plain_;
  std::size_t at_ = 0;
  std::uint64_t n_ = 0, r_ = 0, p_ = 0, pieces_ = 0;
  Secret key_;
  bool ended_ = false;
};

}  // namespace muster::io
