// SPDX-License-Identifier: Apache-2.0
#include "wire/pack_index.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/fields.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

// The library's code itself: nothing to carry into the RAM OS.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace muster::wire {

using nlohmann::json;

namespace {

constexpr std::size_t kHashHexChars = 64, kQuickHexChars = 16;

std::unexpected<Error> corrupt(std::string text) {
  return fail(ErrorCode::Corrupt, "image index: " + std::move(text));
}

bool isHash(const std::string& text) {
  return text.size() == kHashHexChars && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

constexpr std::size_t kMaxIndexTextBytes = 64u << 10;
constexpr std::size_t kMaxChunks = 5'000'000;

constexpr Words<int, 2> kFormats{{{2, kPackFormat}, {1, kFirstPackFormat}}};
constexpr Words<PackKind, 3> kKinds{
    {{PackKind::RootFs, "rootfs"}, {PackKind::Disk, "disk"}, {PackKind::Live, "live"}}};

constexpr Text kText{kMaxIndexTextBytes};

/// 64 bits as 16 hex digits.
struct HexDigits {
  json print(std::uint64_t number) const { return fmt::format("{:016x}", number); }
  void read(JsonReader& reader, const char* key, bool, std::uint64_t& number) const {
    const auto text = reader.text(key, kQuickHexChars);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (text.size() != kQuickHexChars || error != std::errc() || end != text.data() + text.size())
      reader.wrong(key, "is not 16 hex digits");
  }
};

/// 512 or 4096; 0 is absent.
struct SectorBytes {
  json print(int bytes) const { return bytes; }
  void read(JsonReader& reader, const char* key, bool, int& bytes) const {
    if (!reader.field(key, true)) return;
    bytes = static_cast<int>(reader.unsignedNumber(key, std::numeric_limits<int>::max()));
    if (bytes != 512 && bytes != 4096) reader.wrong(key, "is neither 512 nor 4096");
  }
};

constexpr auto kIsFirstFormat = [](const PackIndex& index) { return index.format == 1; };
constexpr auto kIsLaterFormat = [](const PackIndex& index) { return index.format > 1; };
constexpr auto kIsStored = [](const PackChunk& chunk) { return !chunk.zero; };

/// The table of a chunk in format 1.
struct FirstChunk {};

}  // namespace

// ---- the fields of each type

template <>
inline constexpr auto kFields<FirstChunk> = std::tuple(
    field("offset", &PackChunk::offset, Whole{}), field("length", &PackChunk::length, Whole{}),
    field("sha256", &PackChunk::sha256, kText), field("zero", &PackChunk::zero, Flag{}));

template <>
inline constexpr auto kFields<PackChunk> =
    std::tuple_cat(kFields<FirstChunk>,
                   std::tuple(field("packed", &PackChunk::packed_sha256, kText).onlyIf(kIsStored),
                              field("quick", &PackChunk::quick, HexDigits{}).onlyIf(kIsStored)));

template <>
inline constexpr auto kFields<PackIndex> = std::tuple(
    field("format", &PackIndex::format, Word{&kFormats, kMaxIndexTextBytes}),
    field("kind", &PackIndex::kind, Word{&kKinds, kMaxIndexTextBytes}).onlyIf(kIsLaterFormat),
    field("sector_bytes", &PackIndex::sector_bytes, SectorBytes{}).omitted(),
    field("predecessor", &PackIndex::predecessor, kText).omitted(),
    field("name", &PackIndex::name, kText), field("root_fs", &PackIndex::root_fs, kText),
    field("size_bytes", &PackIndex::size_bytes, Whole{}),
    field("chunk_bytes", &PackIndex::chunk_bytes, Whole{}),
    field("pack_bytes", &PackIndex::pack_bytes, Whole{}),
    field("pack_sha256", &PackIndex::pack_sha256, kText),
    field("chunks", &PackIndex::chunks, Items{kMaxChunks}).onlyIf(kIsLaterFormat),
    field("chunks", &PackIndex::chunks, ItemsBy<FirstChunk>{kMaxChunks}).onlyIf(kIsFirstFormat));

namespace {

Result<PackIndex> indexFrom(const json& object) {
  JsonReader reader(object, "index");
  PackIndex index;
  readFields(reader, index);
  if (const auto read = reader.finish(); !read) return corrupt(read.error().text());
  TRY_OK(checkIndex(index));
  return index;
}

}  // namespace

std::string_view toString(PackKind kind) { return wordOf(kKinds, kind); }

bool allZero(std::string_view data) {
  return data.empty() ||
         (data[0] == 0 && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

std::uint64_t quickSum(std::string_view data) { return XXH3_64bits(data.data(), data.size()); }

std::uint64_t PackIndex::rawBytes(std::size_t chunk) const {
  const std::uint64_t start = chunk * chunk_bytes;
  return std::min(chunk_bytes, size_bytes - std::min(start, size_bytes));
}

std::string canonicalJson(const PackIndex& index) { return jsonText(printFields(index)); }

std::string digestOf(const PackIndex& index) { return io::sha256Hex(canonicalJson(index)); }

Result<std::string> signedJson(const PackIndex& index, const io::SigningKey& key) {
  json object = printFields(index);
  TRY(signature, io::sign(key, jsonText(object)));
  object["signature"] = signature;
  return jsonText(object);
}

Result<PackIndex> openIndex(std::string_view text, std::string_view digest,
                            std::string_view signing_public_pem) {
  if (text.size() > kMaxIndexBytes)
    return corrupt(
        fmt::format("{} bytes are more than the {} that are allowed", text.size(), kMaxIndexBytes));
  json object = jsonOrNone(text, kIndexJson);
  if (!object.is_object()) return corrupt("it is not a JSON object (was the download cut short?)");
  JsonReader reader(object, "index");
  const std::string signature = reader.text("signature", kMaxIndexTextBytes);
  if (const auto read = reader.finish(); !read) return corrupt(read.error().text());
  object.erase("signature");
  const std::string canonical = jsonText(object);
  if (const std::string found = io::sha256Hex(canonical); !digest.empty() && found != digest)
    return corrupt(fmt::format(
        "its digest is {}, wanted is {}: this is another image, or a changed one", found, digest));
  if (auto genuine = io::verify(signing_public_pem, canonical, signature); !genuine)
    return fail(ErrorCode::Denied,
                "image index: the signature is not of the expected key; the image is refused (" +
                    genuine.error().text() + ")");
  return indexFrom(object);
}

Result<PackIndex> readIndex(std::string_view text) {
  const json object = jsonOrNone(text, kIndexJson);
  if (!object.is_object()) return corrupt("it is not a JSON object");
  return indexFrom(object);
}

Result<void> checkIndex(const PackIndex& index) {
  if (index.chunk_bytes == 0 || index.chunk_bytes > kMaxPackChunkBytes ||
      index.chunk_bytes % 4096 != 0)
    return corrupt(fmt::format("chunks of {} bytes are not possible", index.chunk_bytes));
  if (index.size_bytes == 0 || index.size_bytes > kMaxImageBytes || index.size_bytes % 4096 != 0)
    return corrupt(fmt::format("a file system of {} bytes is not possible", index.size_bytes));
  if (const std::uint64_t count = (index.size_bytes + index.chunk_bytes - 1) / index.chunk_bytes;
      index.chunks.size() != count)
    return corrupt(fmt::format("{} chunks are listed, {} are needed", index.chunks.size(), count));
  if (index.sector_bytes != 0 && index.kind != PackKind::Disk)
    return corrupt("\"sector_bytes\" is of whole disks only");
  if (!index.predecessor.empty() && (index.kind != PackKind::RootFs || !isHash(index.predecessor)))
    return corrupt("\"predecessor\" is the digest of an image, and of root file systems only");
  if (!isHash(index.pack_sha256)) return corrupt("\"pack_sha256\" is not a SHA-256");
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < index.chunks.size(); ++i) {
    const PackChunk& chunk = index.chunks[i];
    if (!isHash(chunk.sha256))
      return corrupt(fmt::format("chunk {}: \"sha256\" is not a SHA-256", i));
    if (index.format > 1 && !chunk.zero && !isHash(chunk.packed_sha256))
      return corrupt(fmt::format("chunk {}: \"packed\" is not a SHA-256", i));
    if (chunk.zero ? chunk.length != 0
                   : (chunk.length == 0 ||
                      chunk.length > index.chunk_bytes + (index.chunk_bytes >> 4) + 1024))
      return corrupt(
          fmt::format("chunk {}: a length of {} bytes is not possible", i, chunk.length));
    if (chunk.offset != end)
      return corrupt(fmt::format("chunk {}: starts at {} instead of {}", i, chunk.offset, end));
    end += chunk.length;
  }
  if (end != index.pack_bytes)
    return corrupt(fmt::format("the chunks fill {} bytes, the pack has {}", end, index.pack_bytes));
  return {};
}

}  // namespace muster::wire
