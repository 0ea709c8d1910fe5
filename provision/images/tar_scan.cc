// SPDX-License-Identifier: Apache-2.0
#include "provision/images/tar_scan.h"

#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster::provision {

namespace {

constexpr std::size_t kTarBlockBytes = 512;
constexpr std::size_t kChecksumAt = 148, kChecksumBytes = 8, kSizeAt = 124, kTarSizeBytes = 12,
                      kTypeAt = 156;
constexpr std::size_t kSparseMoreAt = 482,
                      kSparseBlockMoreAt = 504;       ///< GNU: more headers of its map follow
constexpr std::uint64_t kMaxSpecialBytes = 1u << 20;  ///< as libarchive
constexpr std::uint64_t kMaxBodyBytes = 1ull << 62;
/// Behind the end: tar fills its last record (10 KiB, a tape's has some MiB).
constexpr std::uint64_t kMaxPaddingBytes = 64ull << 20;
constexpr std::size_t kMaxShownBytes = 200;

bool isZero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char byte) { return byte == '\0'; });
}

/// Octal digits, or base 256 where the first bit is set; nothing: negative, or more than 64 bits.
std::optional<std::uint64_t> numberOf(std::string_view field) {
  std::uint64_t value = 0;
  if (!field.empty() && (static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    if ((static_cast<unsigned char>(field[0]) & 0x40) != 0) return std::nullopt;
    bool first = true;
    for (const char byte : field) {
      if ((value >> 56) != 0) return std::nullopt;
      value = value << 8 | (static_cast<unsigned char>(byte) & (first ? 0x3f : 0xff));
      first = false;
    }
    return value;
  }
  const auto begin = std::min(field.find_first_not_of(' '), field.size());
  std::from_chars(field.data() + begin, field.data() + field.size(), value, 8);
  return value;
}

/// Both ways in which programs have summed up the bytes.
bool hasChecksum(std::string_view header) {
  std::int64_t plain = 0, with_sign = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const char byte = i >= kChecksumAt && i < kChecksumAt + kChecksumBytes ? ' ' : header[i];
    plain += static_cast<unsigned char>(byte);
    with_sign += static_cast<signed char>(byte);
  }
  const auto wanted = numberOf(header.substr(kChecksumAt, kChecksumBytes));
  return wanted && (static_cast<std::int64_t>(*wanted) == plain ||
                    static_cast<std::int64_t>(*wanted) == with_sign);
}

}  // namespace

void TarScan::feed(std::string_view bytes) {
  while (!bytes.empty() && state_ != State::Lost && !problem_) {
    if (state_ == State::Ended) {
      zeros_behind_ += bytes.size();
      if (!isZero(bytes))
        refuse(ErrorCode::InvalidInput,
               "there is something behind the archive's end (two archives one behind the other?), "
               "and no program would unpack it: make one "
               "archive of all");
      else if (zeros_behind_ > kMaxPaddingBytes)
        refuse(ErrorCode::InvalidInput,
               fmt::format("more than {} MiB of zeros are behind the archive's end",
                           kMaxPaddingBytes >> 20));
      return;
    }
    const bool skips = state_ == State::Skip;
    const std::uint64_t wanted =
        skips || state_ == State::Collect ? left_bytes_ : kTarBlockBytes - block_.size();
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, bytes.size()));
    if (!skips) block_.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    if (skips || state_ == State::Collect) left_bytes_ -= n;
    if (n < wanted) return;
    if (skips)
      state_ = State::Header;
    else if (state_ == State::Collect)
      onCollected();
    else
      onHeader();
  }
}

void TarScan::skip(std::uint64_t body_bytes) {
  left_bytes_ = (body_bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
  state_ = left_bytes_ == 0 ? State::Header : State::Skip;
}

void TarScan::onHeader() {
  const std::string header = std::exchange(block_, {});
  if (state_ == State::SparseHeader) {
    if (header[kSparseBlockMoreAt] == '\0') skip(size_after_sparse_);
    return;
  }
  if (isZero(header)) {
    state_ = State::Ended;
    return;
  }
  const auto size = numberOf(std::string_view(header).substr(kSizeAt, kTarSizeBytes));
  const char type = header[kTypeAt];
  const bool special = type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
  if (!hasChecksum(header) || !size || *size > kMaxBodyBytes ||
      (special && *size > kMaxSpecialBytes)) {
    state_ = State::Lost;
    return;
  }
  if (special) {
    collected_type_ = type;
    left_bytes_ = *size;
    state_ = State::Collect;
    if (left_bytes_ == 0) onCollected();
    return;
  }
  const auto body = std::exchange(pax_size_, std::nullopt).value_or(*size);
  if (type == 'M')
    return refuse(ErrorCode::InvalidInput,
                  "it is a part of an archive of several volumes: join them first (tar --extract "
                  "--multi-volume), and make "
                  "one archive");
  if (type == 'S' && header[kSparseMoreAt] != '\0') {
    size_after_sparse_ = body;
    state_ = State::SparseHeader;
    return;
  }
  // Links, devices and folders have none, whatever they say; of a hard link the next block tells,
  // which is a header or not.
  skip(type >= '1' && type <= '6' ? 0 : body);
}

void TarScan::onCollected() {
  const auto size = block_.size();
  if (collected_type_ == 'L' || collected_type_ == 'K') {
    const std::string_view name(block_);
    const auto end = std::min(name.find('\0'), name.size());
    if (!isZero(name.substr(end)))
      refuse(
          ErrorCode::InvalidInput,
          fmt::format(
              "a member's name has a NUL in it (\"{}\"), and no file's can: make the archive anew",
              printable(name.substr(0, kMaxShownBytes))));
  } else {
    onPaxRecords();
  }
  block_.clear();
  left_bytes_ = (kTarBlockBytes - size % kTarBlockBytes) % kTarBlockBytes;
  state_ = left_bytes_ == 0 ? State::Header : State::Skip;
}

/// "LENGTH KEY=VALUE\n", where the length counts all of it.
void TarScan::onPaxRecords() {
  const auto damaged = [this] {
    refuse(ErrorCode::Corrupt,
           "a header of it is damaged: a record of PAX is not what its length says");
  };
  for (std::string_view left = block_; !left.empty() && !problem_;) {
    std::size_t length = 0;
    const auto [end, bad] = std::from_chars(left.data(), left.data() + left.size(), length);
    const auto digits = static_cast<std::size_t>(end - left.data());
    if (bad != std::errc() || length > left.size() || length < digits + 3 || *end != ' ' ||
        left[length - 1] != '\n')
      return damaged();
    const auto record = left.substr(digits + 1, length - digits - 2);
    const auto equals = record.find('=');
    if (equals == 0 || equals == std::string_view::npos ||
        record.substr(0, equals).find('\0') != std::string_view::npos)
      return damaged();
    onPaxRecord(record.substr(0, equals), record.substr(equals + 1));
    left.remove_prefix(length);
  }
}

void TarScan::onPaxRecord(std::string_view key, std::string_view value) {
  const bool names = key == "path" || key == "linkpath" || key == "GNU.sparse.name";
  if (names && value.find('\0') != std::string_view::npos)
    return refuse(
        ErrorCode::InvalidInput,
        fmt::format(
            "a member's name has a NUL in it (\"{}\"), and no file's can: make the archive anew",
            printable(value.substr(0, kMaxShownBytes))));
  if (key != "size" || collected_type_ == 'g') return;
  std::uint64_t size = 0;
  const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), size);
  if (bad != std::errc() || end != value.data() + value.size() || size > kMaxBodyBytes)
    return refuse(ErrorCode::Corrupt,
                  fmt::format("a header of it is damaged: it has the size \"{}\"",
                              printable(value.substr(0, kMaxShownBytes))));
  pax_size_ = size;
}

void TarScan::refuse(ErrorCode code, std::string text) {
  if (!problem_) problem_ = Error(code, std::move(text));
}

}  // namespace muster::provision
