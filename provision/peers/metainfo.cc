// SPDX-License-Identifier: Apache-2.0
#include "provision/peers/metainfo.h"

#include "base/io/files.h"
#include "base/io/sha1.h"

#include <fmt/format.h>

#include <fstream>

namespace muster::provision {

Result<Metainfo> makeMetainfo(const std::filesystem::path& pack, const std::atomic<bool>& stop) {
  std::error_code error;
  const auto size = std::filesystem::file_size(pack, error);
  if (error)
    return fail(ErrorCode::NotFound, fmt::format("{}: {}", pack.string(), error.message()));
  if (size == 0)
    return fail(ErrorCode::NotFound,
                fmt::format("{} is empty: there is nothing to share", pack.string()));
  const auto piece_bytes = pieceBytesFor(size);
  std::ifstream file(pack, std::ios::binary);
  std::string hashes, piece(piece_bytes, '\0');
  hashes.reserve((size / piece_bytes + 1) * wire::kPieceHashBytes);
  for (std::uint64_t left = size; left > 0; left -= piece.size()) {
    if (stop) return fail(ErrorCode::Unavailable, "stopped");
    if (left < piece.size()) piece.resize(left);
    if (!file.read(piece.data(), static_cast<std::streamsize>(piece.size())))
      return fail(ErrorCode::Internal, fmt::format("{} cannot be read", pack.string()));
    hashes += io::sha1(piece);
  }
  return readMetainfo(wire::writeMetainfo(size, hashes));
}

Result<Metainfo> keptMetainfo(const std::filesystem::path& file, const std::filesystem::path& pack,
                              const std::atomic<bool>& stop) {
  std::error_code error;
  if (auto kept = io::readFile(file)) {
    auto info = readMetainfo(std::move(*kept));
    if (info && info->pack_bytes == std::filesystem::file_size(pack, error)) return info;
  }
  TRY(made, makeMetainfo(pack, stop));
  TRY_OK(io::writeFileAtomic(file, made.bytes));
  return made;
}

}  // namespace muster::provision
