// SPDX-License-Identifier: Apache-2.0
#include "wire/metainfo.h"

#include "base/io/crypto.h"
#include "base/io/sha1.h"

#include <fmt/format.h>

#include <charconv>

namespace muster::wire {

namespace {

constexpr std::uint64_t kManyPieces = 2048;
constexpr std::string_view kBegin = "d4:info", kLength = "d6:lengthi",
                           kName = "e4:name4:pack12:piece lengthi", kPieces = "e6:pieces",
                           kEnd = "7:privatei1ee", kLast = "e";

std::uint64_t piecesOf(std::uint64_t pack_bytes, std::uint32_t piece_bytes) {
  return (pack_bytes + piece_bytes - 1) / piece_bytes;
}

/// Takes things off the front; once something is not there, nothing is.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  void skip(std::string_view expected) {
    good_ = good_ && rest_.starts_with(expected);
    if (good_) rest_.remove_prefix(expected.size());
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    good_ = good_ && error == std::errc();
    if (good_) rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return good_ ? value : 0;
  }
  void skipBytes(std::uint64_t count) {
    good_ = good_ && count <= rest_.size();
    if (good_) rest_.remove_prefix(count);
  }
  std::string_view rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

std::uint32_t pieceBytesFor(std::uint64_t pack_bytes) {
  std::uint32_t bytes = kLeastPieceBytes;
  while (bytes < kMostPieceBytes && piecesOf(pack_bytes, bytes) > kManyPieces) bytes *= 2;
  return bytes;
}

std::string writeMetainfo(std::uint64_t pack_bytes, std::string_view hashes) {
  std::string text = fmt::format("{}{}{}{}{}{}{}:", kBegin, kLength, pack_bytes, kName,
                                 pieceBytesFor(pack_bytes), kPieces, hashes.size());
  text += hashes;
  return text.append(kEnd).append(kLast);
}

Result<Metainfo> readMetainfo(std::string bytes) {
  Metainfo info;
  Cursor at(bytes);
  at.skip(kBegin);
  const std::size_t info_begin = bytes.size() - at.rest().size();
  at.skip(kLength);
  info.pack_bytes = at.number();
  at.skip(kName);
  const auto piece_bytes = at.number();
  at.skip(kPieces);
  const auto hashes = at.number();
  at.skip(":");
  info.hashes_at = bytes.size() - at.rest().size();
  at.skipBytes(hashes);
  at.skip(kEnd);
  const std::size_t info_end = bytes.size() - at.rest().size();
  at.skip(kLast);
  const bool fits = at.good() && at.rest().empty() &&
                    piece_bytes == pieceBytesFor(info.pack_bytes) && info.pack_bytes > 0 &&
                    hashes == piecesOf(info.pack_bytes, static_cast<std::uint32_t>(piece_bytes)) *
                                  kPieceHashBytes;
  if (!fits) return fail(ErrorCode::Corrupt, "not a metainfo of muster");
  info.piece_bytes = static_cast<std::uint32_t>(piece_bytes);
  info.pieces = static_cast<std::uint32_t>(hashes / kPieceHashBytes);
  info.info_hash = io::sha1(std::string_view(bytes).substr(info_begin, info_end - info_begin));
  info.sha256 = io::sha256Hex(bytes);
  info.bytes = std::move(bytes);
  return info;
}

}  // namespace muster::wire
