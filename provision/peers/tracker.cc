// SPDX-License-Identifier: Apache-2.0
#include "provision/peers/tracker.h"

#include "base/ip_address.h"

#include "base/io/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace muster::provision {

namespace {

constexpr std::size_t kHashBytes = 20;
constexpr std::size_t kMaxWanted = 200;
constexpr std::size_t kMaxTargetBytes = 4096;

std::unexpected<Error> wrong(std::string_view key, std::string_view why) {
  return fail(ErrorCode::InvalidInput, fmt::format("announce: {} {}", key, why));
}

Result<std::uint64_t> numberOf(const std::map<std::string, std::string>& query,
                               const std::string& key, std::uint64_t most) {
  const auto found = query.find(key);
  if (found == query.end()) return wrong(key, "is missing");
  std::uint64_t value = 0;
  const auto* last = found->second.data() + found->second.size();
  const auto [end, error] = std::from_chars(found->second.data(), last, value);
  if (error != std::errc() || end != last || value > most)
    return wrong(key, fmt::format("is no number up to {}", most));
  return value;
}

}  // namespace

Result<Announce> parseAnnounce(std::string_view target) {
  if (target.size() > kMaxTargetBytes) return wrong("it", "is too long");
  const auto query = io::queryOf(target);
  Announce announce;
  for (auto [key, out] :
       {std::pair("info_hash", &announce.info_hash), std::pair("peer_id", &announce.peer_id)}) {
    const auto found = query.find(key);
    if (found == query.end()) return wrong(key, "is missing");
    if (found->second.size() != kHashBytes) return wrong(key, "has not 20 bytes");
    *out = found->second;
  }
  TRY(port, numberOf(query, "port", 65535));
  if (port == 0) return wrong("port", "is 0");
  announce.port = static_cast<std::uint16_t>(port);
  TRY(left, numberOf(query, "left", ~std::uint64_t{0}));
  announce.left_bytes = left;
  if (query.contains("numwant")) {
    TRY(wanted, numberOf(query, "numwant", ~std::uint32_t{0}));
    announce.wanted = std::min<std::size_t>(wanted, kMaxWanted);
  }
  const auto event = query.contains("event") ? query.at("event") : std::string();
  using enum Announce::Event;
  constexpr std::array words{std::pair("", None), std::pair("empty", None),
                             std::pair("started", Started), std::pair("completed", Completed),
                             std::pair("stopped", Stopped)};
  const auto known =
      std::ranges::find_if(words, [&event](const auto& word) { return event == word.first; });
  if (known == words.end()) return wrong("event", "is none");
  announce.event = known->second;
  return announce;
}

std::vector<PeerAddress> Tracker::announce(const NodeName& node, const Place& place, Ipv4 address,
                                           const Announce& said, Time now) {
  for (auto& [hash, swarm] : swarms_)  // it is in one swarm at a time
    if (hash != said.info_hash) swarm.erase(node);
  Swarm& swarm = swarms_[said.info_hash];
  dropSilent(swarm, now);
  swarm.erase(node);
  if (said.event == Announce::Event::Stopped) {
    std::erase_if(swarms_, [](const auto& entry) { return entry.second.empty(); });
    return {};
  }
  std::array<std::vector<PeerAddress>, 3> near;  // rack, pod, elsewhere
  for (const auto& [name, peer] : swarm) {
    if (said.left_bytes == 0 && peer.complete) continue;  // they have nothing for each other
    const bool rack = !place.rack.empty() && place.rack == peer.place.rack,
               pod = !place.pod.empty() && place.pod == peer.place.pod;
    near[rack ? 0 : pod ? 1 : 2].push_back(peer.at);
  }
  swarm[node] = Peer{{address, said.port}, place, said.left_bytes == 0, now};

  constexpr std::array most{kRackPeers, kPodPeers, kFarPeers};
  std::vector<PeerAddress> chosen, spare;
  for (std::size_t ring = 0; ring < near.size(); ++ring) {
    std::ranges::shuffle(near[ring], dice_);
    const auto taken = std::min(near[ring].size(), most[ring]);
    chosen.insert(chosen.end(), near[ring].begin(),
                  near[ring].begin() + static_cast<std::ptrdiff_t>(taken));
    spare.insert(spare.end(), near[ring].begin() + static_cast<std::ptrdiff_t>(taken),
                 near[ring].end());
  }
  for (std::size_t i = 0; i < spare.size() && chosen.size() < kEnoughPeers; ++i)
    chosen.push_back(spare[i]);
  if (chosen.size() > said.wanted) chosen.resize(said.wanted);
  return chosen;
}

void Tracker::dropSilent(Swarm& swarm, Time now) {
  std::erase_if(swarm,
                [now](const auto& entry) { return now - entry.second.heard > kSilentPeerAfter; });
}

void Tracker::forget(const NodeName& node) {
  for (auto& [hash, swarm] : swarms_) swarm.erase(node);
  std::erase_if(swarms_, [](const auto& entry) { return entry.second.empty(); });
}

std::pair<std::size_t, std::size_t> Tracker::count(const std::string& info_hash, Time now) const {
  std::pair<std::size_t, std::size_t> counted{0, 0};
  const auto found = swarms_.find(info_hash);
  if (found == swarms_.end()) return counted;
  for (const auto& [name, peer] : found->second)
    if (now - peer.heard <= kSilentPeerAfter) ++(peer.complete ? counted.first : counted.second);
  return counted;
}

std::string announceAnswer(const std::vector<PeerAddress>& peers,
                           std::pair<std::size_t, std::size_t> counted) {
  std::string compact;
  for (const auto& peer : peers) {
    const auto address = peer.address.value();
    for (const int shift : {24, 16, 8, 0}) compact += static_cast<char>(address >> shift & 0xff);
    compact += static_cast<char>(peer.port >> 8);
    compact += static_cast<char>(peer.port & 0xff);
  }
  return fmt::format("d8:completei{}e10:incompletei{}e8:intervali{}e12:min intervali{}e5:peers{}:",
                     counted.first, counted.second, kAnnounceEvery.count(),
                     kAnnounceAtLeast.count(), compact.size()) +
         compact + "e";
}

std::string announceRefusal(std::string_view why) {
  return fmt::format("d14:failure reason{}:{}e", why.size(), why);
}

}  // namespace muster::provision
