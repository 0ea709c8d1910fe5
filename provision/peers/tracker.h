// SPDX-License-Identifier: Apache-2.0
// muster's own tracker: who is told of whom. Pure: no I/O, the time and the dice are the caller's.
//
// Nodes of the same rack come first, then those of the same pod, then a few of elsewhere: racks
// must hear of each other, or a piece that one rack has would have to come from the server again. A
// node that has too few near it gets more from afar.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace muster::provision {

inline constexpr std::size_t kRackPeers = 8, kPodPeers = 4,
                             kFarPeers = 2;     ///< of each at most, as long as
inline constexpr std::size_t kEnoughPeers = 8;  ///< there are so many in all
inline constexpr std::chrono::seconds kAnnounceEvery{10}, kAnnounceAtLeast{2};
inline constexpr std::chrono::seconds kSilentPeerAfter{35};  ///< three announces and a bit

/// Where a node stands, as far as the network goes. Empty: not known, and then near nobody.
struct Place {
  std::string rack, pod;
};

/// One HTTP announce (BEP 3), taken strictly.
struct Announce {
  enum class Event { None, Started, Completed, Stopped };
  std::string info_hash, peer_id;  ///< 20 bytes each
  std::uint16_t port = 0;
  std::uint64_t left_bytes = 0;
  Event event = Event::None;
  std::size_t wanted = 50;
};
/// `target`: path and query. Errors: InvalidInput naming the key
Result<Announce> parseAnnounce(std::string_view target);

struct PeerAddress {
  Ipv4 address;
  std::uint16_t port = 0;
  friend bool operator==(const PeerAddress&, const PeerAddress&) = default;
};

class Tracker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit Tracker(std::uint64_t dice) : dice_(dice) {}

  /// Keeps the peer and answers whom it should know, the nearest first. One node is one peer: a new
  /// one replaces its last.
  std::vector<PeerAddress> announce(const NodeName& node, const Place& place, Ipv4 address,
                                    const Announce& announce, Time now);
  void forget(const NodeName& node);
  /// Peers of one torrent that have been heard lately: with everything, and without.
  std::pair<std::size_t, std::size_t> count(const std::string& info_hash, Time now) const;

 private:
  struct Peer {
    PeerAddress at;
    Place place;
    bool complete = false;
    Time heard{};
  };
  using Swarm = std::map<NodeName, Peer>;
  void dropSilent(Swarm& swarm, Time now);

  std::map<std::string, Swarm> swarms_;  ///< by info hash; bounded by the nodes that are admitted
  std::mt19937_64 dice_;
};

/// The answer to an announce, bencoded, with compact peers (BEP 23).
std::string announceAnswer(const std::vector<PeerAddress>& peers,
                           std::pair<std::size_t, std::size_t> complete_incomplete);
/// The answer that a BitTorrent client understands as a refusal.
std::string announceRefusal(std::string_view why);

}  // namespace muster::provision
