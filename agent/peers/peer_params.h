// SPDX-License-Identifier: Apache-2.0
// What the write-image task says of sharing the image among nodes: its member "peers".
#pragma once

#include "base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace muster::agent {

struct PeerParams {
  std::string metainfo_url;     ///< of the .torrent file
  std::string metainfo_sha256;  ///< of that file; the task came over mutual TLS, so the pieces'
                                ///< hashes are believed
  std::string announce_url;     ///< muster's tracker, with this node's own word in it
  std::string share_url;        ///< tells which pieces to fetch from a server
  std::uint64_t pack_bytes = 0;
};

/// Nothing where the task has no "peers". Errors: InvalidInput naming the member
Result<std::optional<PeerParams>> parsePeerParams(const nlohmann::json& task);

}  // namespace muster::agent
