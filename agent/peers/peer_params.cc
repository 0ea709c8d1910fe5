// SPDX-License-Identifier: Apache-2.0
#include "agent/peers/peer_params.h"

#include "wire/json_reader.h"
#include "wire/pack_index.h"

namespace muster::agent {

namespace {

constexpr std::size_t kMaxUrlBytes = 1024;
constexpr std::size_t kDigestHexBytes = 64;

}  // namespace

Result<std::optional<PeerParams>> parsePeerParams(const nlohmann::json& task) {
  if (!task.is_object() || !task.contains("peers")) return std::optional<PeerParams>();
  wire::JsonReader reader(task.at("peers"), "peers");
  PeerParams params;
  params.metainfo_url = reader.text("metainfo_url", kMaxUrlBytes);
  params.metainfo_sha256 = reader.text("metainfo_sha256", kDigestHexBytes);
  params.announce_url = reader.text("announce_url", kMaxUrlBytes);
  params.share_url = reader.text("share_url", kMaxUrlBytes);
  params.pack_bytes = reader.unsignedNumber("pack_bytes", wire::kMaxImageBytes);
  TRY_OK(reader.finish());
  if (params.metainfo_sha256.size() != kDigestHexBytes)
    return fail(ErrorCode::InvalidInput, "peers: \"metainfo_sha256\" is no SHA-256");
  if (params.pack_bytes == 0) return fail(ErrorCode::InvalidInput, "peers: \"pack_bytes\" is 0");
  return std::optional(std::move(params));
}

}  // namespace muster::agent
