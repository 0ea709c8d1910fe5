// SPDX-License-Identifier: Apache-2.0
// The pack: one file system image as independently compressed chunks, and the signed index that
// describes it. The image store writes packs, the disk writer reads them; this header is all that
// they share. docs/adr/0006-pack-format.md
//
//   index.json
//   {"chunk_bytes","chunks":[{"length","offset","packed","quick","sha256","zero"}],"format":"muster-pack/2","kind","name",
//                "pack_bytes","pack_sha256","predecessor","root_fs","sector_bytes","size_bytes"} +
//                "signature"
//   pack        the chunks that are not zero, one zstd frame each, in order, without gaps
//
// "packed" is the SHA-256 of the stored bytes: who writes a chunk hashes a third of what it has
// unpacked. "quick" is the XXH3 of the raw chunk: against faults of memory and disks, never against
// people. Format 1 had neither, nor "kind"; it is still read. docs/adr/0024 "sector_bytes" is there
// for whole disks only, and not in indexes of older muster. docs/adr/0084 "predecessor" is there
// when the file system was laid out over that of another image. docs/adr/0239
//
// Canonical JSON is the object without "signature", keys sorted, no white space. `digest` is its
// SHA-256 and names the image.
#pragma once

#include "base/io/crypto.h"
#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

inline constexpr std::string_view kPackFormat = "muster-pack/2", kFirstPackFormat = "muster-pack/1";
inline constexpr std::uint64_t kPackChunkBytes = 1u
                                                 << 20;  ///< raw size of a chunk that muster makes
inline constexpr std::uint64_t kMaxPackChunkBytes =
    16u << 20;  ///< largest raw chunk that a reader accepts
inline constexpr std::uint64_t kMaxImageBytes = 1ull << 40;  ///< 1 TiB of file system
inline constexpr std::uint64_t kLiveRoomBytes =
    512ull
    << 20;  ///< of memory that a live image's system needs beside it: what runs, and what it writes
inline constexpr std::size_t kMaxIndexBytes = 288u << 20;  ///< of index.json

struct PackChunk {
  std::uint64_t offset = 0;  ///< of the compressed chunk in the pack, bytes
  std::uint64_t length = 0;  ///< compressed, bytes; 0 for a zero chunk
  std::string sha256;        ///< of the raw chunk, hex
  bool zero = false;         ///< all bytes are zero; nothing is stored
  std::string packed_sha256 =
      {};                   ///< of the stored bytes, hex; empty for a zero chunk and in format 1
  std::uint64_t quick = 0;  ///< quickSum of the raw chunk; 0 for a zero chunk and in format 1

  friend bool operator==(const PackChunk&, const PackChunk&) = default;
};

/// What the raw bytes are: a root file system, a whole disk with its partition table, or a squashfs
/// that is started in memory.
enum class PackKind { RootFs, Disk, Live };
std::string_view toString(PackKind kind);  ///< "rootfs", "disk", "live"

struct PackIndex {
  int format = 2;
  PackKind kind = PackKind::RootFs;
  std::string name;
  std::string root_fs = "ext4";  ///< of a root file system; of another kind empty
  std::uint64_t size_bytes = 0;  ///< of the file system
  std::uint64_t chunk_bytes = kPackChunkBytes;
  std::uint64_t pack_bytes = 0;
  std::string pack_sha256;  ///< of the whole pack file
  int sector_bytes = 0;     ///< what the partition table of a whole disk counts in, 512 or 4096; 0:
                            ///< not told (of older muster), or no disk
  std::string predecessor = {};   ///< digest of the image whose layout goes on in this one; empty:
                                  ///< laid out anew
  std::vector<PackChunk> chunks;  ///< chunk i covers [i·chunk_bytes, (i+1)·chunk_bytes) of the file
                                  ///< system; the last may be shorter

  std::uint64_t rawBytes(std::size_t chunk) const;
  /// Of a whole disk; what was made before this was told is taken for 512, as nearly all are. 0 of
  /// other kinds.
  int tableSectorBytes() const {
    return kind != PackKind::Disk ? 0 : sector_bytes == 0 ? 512 : sector_bytes;
  }
  friend bool operator==(const PackIndex&, const PackIndex&) = default;
};

/// Whether there is nothing but zero bytes.
bool allZero(std::string_view data);

/// XXH3, 64 bits.
std::uint64_t quickSum(std::string_view data);

std::string canonicalJson(const PackIndex& index);
std::string digestOf(const PackIndex& index);
/// index.json: the canonical object with its signature.
Result<std::string> signedJson(const PackIndex& index, const io::SigningKey& key);

/// Reads index.json and believes it only when the digest, the signature and the structure are
/// right. `digest`: the image that is wanted, hex; empty accepts any. Errors: Corrupt (malformed,
/// digest), Denied (signature of somebody else)
Result<PackIndex> openIndex(std::string_view json, std::string_view digest,
                            std::string_view signing_public_pem);

/// Reads an index whoever signed it, if anybody: for content that this machine made itself. Errors:
/// Corrupt
Result<PackIndex> readIndex(std::string_view json);

/// Whether the numbers of an index fit together. Errors: Corrupt
Result<void> checkIndex(const PackIndex& index);

}  // namespace muster::wire
