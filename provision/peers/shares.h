// SPDX-License-Identifier: Apache-2.0
// Which pieces a node fetches from a server, so that the nodes together fetch each once and bring
// them to each other. Pure.
//
// Left to themselves, nodes that share an image ask a server for the same pieces at the same time:
// every BitTorrent engine that was measured made it send the image twice (docs/adr/0027). Here each
// piece is handed out once, in the order of the image, so that writers can go on. What a node still
// lacks long after it was handed out went with the node that had it, or the swarm is slower than
// the server: it is handed out again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::provision {

inline constexpr std::chrono::seconds kShareAgainAfter{8};
inline constexpr std::uint32_t kMaxSharePieces = 64;

struct Share {
  std::uint32_t first = 0, count = 0;
  friend bool operator==(const Share&, const Share&) = default;
};

class Shares {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Shares(std::uint32_t pieces) : given_(pieces) {}
  std::uint32_t pieces() const { return static_cast<std::uint32_t>(given_.size()); }

  /// The next pieces for a node. `unneeded`: a bit a piece, the first in the highest bit of the
  /// first byte; set for what it has or does not want; what is missing at the end counts as not
  /// set. Nothing: let others bring the rest.
  std::optional<Share> next(std::string_view unneeded, std::uint32_t most, Time now);

 private:
  struct Given {
    std::uint32_t times = 0;
    Time last{};
  };
  std::vector<Given> given_;
};

}  // namespace muster::provision
