// SPDX-License-Identifier: Apache-2.0
#include "wire/pack_index.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

// The library's code itself: nothing to carry into the RAM OS.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
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

constexpr std::array kKinds{PackKind::RootFs, PackKind::Disk, PackKind::Live};

json asJson(const PackIndex& index) {
  json chunks = json::array();
  for (const PackChunk& chunk : index.chunks) {
    json entry{{"offset", chunk.offset},
               {"length", chunk.length},
               {"sha256", chunk.sha256},
               {"zero", chunk.zero}};
    if (index.format > 1 && !chunk.zero) {
      entry["packed"] = chunk.packed_sha256;
      entry["quick"] = fmt::format("{:016x}", chunk.quick);
    }
    chunks.push_back(std::move(entry));
  }
  json object{{"format", index.format > 1 ? kPackFormat : kFirstPackFormat},
              {"name", index.name},
              {"size_bytes", index.size_bytes},
              {"chunk_bytes", index.chunk_bytes},
              {"pack_bytes", index.pack_bytes},
              {"pack_sha256", index.pack_sha256},
              {"chunks", std::move(chunks)},
              {"root_fs", index.root_fs}};
  if (index.format > 1) object["kind"] = toString(index.kind);
  if (index.sector_bytes != 0) object["sector_bytes"] = index.sector_bytes;
  return object;
}

/// A member of the right type; json's exceptions end here.
template <class T>
Result<T> member(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return corrupt(fmt::format("\"{}\" is missing", key));
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return corrupt(fmt::format("\"{}\" is not text", key));
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) return corrupt(fmt::format("\"{}\" is not true or false", key));
  } else {
    if (!found->is_number_unsigned())
      return corrupt(fmt::format("\"{}\" is not a whole number", key));
  }
  return found->get<T>();
}

Result<std::uint64_t> quickFrom(const std::string& text) {
  std::uint64_t quick = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quick, 16);
  if (text.size() != kQuickHexChars || error != std::errc() || end != text.data() + text.size())
    return corrupt("\"quick\" is not 16 hex digits");
  return quick;
}

Result<PackKind> kindFrom(const std::string& text) {
  for (const PackKind kind : kKinds)
    if (text == toString(kind)) return kind;
  return corrupt(fmt::format("kind \"{}\" is not known", text));
}

Result<PackChunk> chunkFrom(const json& object, int format) {
  if (!object.is_object()) return corrupt("a chunk is not an object");
  TRY(offset, member<std::uint64_t>(object, "offset"));
  TRY(length, member<std::uint64_t>(object, "length"));
  TRY(sha256, member<std::string>(object, "sha256"));
  TRY(zero, member<bool>(object, "zero"));
  PackChunk chunk{offset, length, std::move(sha256), zero};
  if (format == 1 || zero) return chunk;
  TRY(packed, member<std::string>(object, "packed"));
  TRY(quick_text, member<std::string>(object, "quick"));
  TRY(quick, quickFrom(quick_text));
  chunk.packed_sha256 = std::move(packed);
  chunk.quick = quick;
  return chunk;
}

Result<PackIndex> indexFrom(const json& object) {
  TRY(format, member<std::string>(object, "format"));
  if (format != kPackFormat && format != kFirstPackFormat)
    return corrupt(fmt::format("format is \"{}\", this muster reads \"{}\" and \"{}\"", format,
                               kPackFormat, kFirstPackFormat));
  PackIndex index;
  index.format = format == kPackFormat ? 2 : 1;
  if (index.format > 1) {
    TRY(kind_text, member<std::string>(object, "kind"));
    TRY(kind, kindFrom(kind_text));
    index.kind = kind;
  }
  if (object.contains("sector_bytes")) {
    TRY(sector_bytes, member<std::uint64_t>(object, "sector_bytes"));
    if (index.kind != PackKind::Disk || (sector_bytes != 512 && sector_bytes != 4096))
      return corrupt(fmt::format("sectors of {} bytes are not possible", sector_bytes));
    index.sector_bytes = static_cast<int>(sector_bytes);
  }
  TRY(name, member<std::string>(object, "name"));
  TRY(root_fs, member<std::string>(object, "root_fs"));
  TRY(size_bytes, member<std::uint64_t>(object, "size_bytes"));
  TRY(chunk_bytes, member<std::uint64_t>(object, "chunk_bytes"));
  TRY(pack_bytes, member<std::uint64_t>(object, "pack_bytes"));
  TRY(pack_sha256, member<std::string>(object, "pack_sha256"));
  index.name = std::move(name);
  index.root_fs = std::move(root_fs);
  index.size_bytes = size_bytes;
  index.chunk_bytes = chunk_bytes;
  index.pack_bytes = pack_bytes;
  index.pack_sha256 = std::move(pack_sha256);
  const auto chunks = object.find("chunks");
  if (chunks == object.end() || !chunks->is_array()) return corrupt("\"chunks\" is not a list");
  index.chunks.reserve(chunks->size());
  for (const json& entry : *chunks) {
    TRY(chunk, chunkFrom(entry, index.format));
    index.chunks.push_back(std::move(chunk));
  }
  return index;
}

}  // namespace

std::string_view toString(PackKind kind) {
  switch (kind) {
    case PackKind::RootFs:
      return "rootfs";
    case PackKind::Disk:
      return "disk";
    case PackKind::Live:
      return "live";
  }
  return "";
}

bool allZero(std::string_view data) {
  return data.empty() ||
         (data[0] == 0 && std::memcmp(data.data(), data.data() + 1, data.size() - 1) == 0);
}

std::uint64_t quickSum(std::string_view data) { return XXH3_64bits(data.data(), data.size()); }

std::uint64_t PackIndex::rawBytes(std::size_t chunk) const {
  const std::uint64_t start = chunk * chunk_bytes;
  return std::min(chunk_bytes, size_bytes - std::min(start, size_bytes));
}

std::string canonicalJson(const PackIndex& index) { return jsonText(asJson(index)); }

std::string digestOf(const PackIndex& index) { return io::sha256Hex(canonicalJson(index)); }

Result<std::string> signedJson(const PackIndex& index, const io::SigningKey& key) {
  json object = asJson(index);
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
  TRY(signature, member<std::string>(object, "signature"));
  object.erase("signature");
  const std::string canonical = jsonText(object);
  if (const std::string found = io::sha256Hex(canonical); !digest.empty() && found != digest)
    return corrupt(fmt::format(
        "its digest is {}, wanted is {}: this is another image, or a changed one", found, digest));
  if (auto genuine = io::verify(signing_public_pem, canonical, signature); !genuine)
    return fail(ErrorCode::Denied,
                "image index: the signature is not of the expected key; the image is refused (" +
                    genuine.error().text() + ")");
  TRY(index, indexFrom(object));
  TRY_OK(checkIndex(index));
  return index;
}

Result<PackIndex> readIndex(std::string_view text) {
  const json object = jsonOrNone(text, kIndexJson);
  if (!object.is_object()) return corrupt("it is not a JSON object");
  TRY(index, indexFrom(object));
  TRY_OK(checkIndex(index));
  return index;
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
