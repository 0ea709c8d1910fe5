// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: the connections of a server by the address of their peer, and which of them
// is given up when there is no room.
//
// Connections are dropped at the address that has most of them: whoever opens thousands loses its
// own, and another address is always served. Nothing here takes time that grows with the number of
// connections.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace muster::io {

/// What a connection is doing, in the order in which connections are given up.
enum class ConnectionUse {
  Waiting,    ///< for its peer: a handshake, a request or the rest of one
  Answering,  ///< for somebody without a certificate
  Serving,    ///< for the holder of a certificate: never given up
};

template <class Session>
class ConnectionTable {
 public:
  using Shared = std::shared_ptr<Session>;

 private:
  struct Entry;
  using Place = typename std::list<Entry>::iterator;
  struct Peer {
    std::string address;
    std::array<std::list<Entry>, 3> by_use;  ///< each the one that began first in front
    std::size_t count = 0;
    std::list<Entry>& of(ConnectionUse use) { return by_use[static_cast<std::size_t>(use)]; }
  };
  struct Entry {
    Shared session;
    Peer* peer;
    ConnectionUse use;
  };

 public:
  /// Of one connection, until it is removed. Copies are the same ticket.
  using Ticket = Place;

  std::size_t size() const { return size_; }
  std::size_t countOf(const std::string& address) const {
    const auto found = peers_.find(address);
    return found == peers_.end() ? 0 : found->second->count;
  }

  Ticket add(const std::string& address, Shared session) {
    auto& peer = peers_[address];
    if (!peer) {
      peer = std::make_unique<Peer>();
      peer->address = address;
    }
    count(*peer, peer->count + 1);
    ++size_;
    auto& waiting = peer->of(ConnectionUse::Waiting);
    return waiting.insert(waiting.end(),
                          Entry{std::move(session), peer.get(), ConnectionUse::Waiting});
  }

  void use(Ticket ticket, ConnectionUse use) {
    auto& peer = *ticket->peer;
    auto& to = peer.of(use);
    to.splice(to.end(), peer.of(ticket->use), ticket);
    ticket->use = use;
  }

  void remove(Ticket ticket) {
    auto& peer = *ticket->peer;
    peer.of(ticket->use).erase(ticket);
    --size_;
    count(peer, peer.count - 1);
    if (peer.count == 0) peers_.erase(std::string(peer.address));
  }

  /// Of this address's own connections the one that has waited longest; null: all of them work.
  Shared longestWaitingOf(const std::string& address) const {
    const auto found = peers_.find(address);
    if (found == peers_.end()) return nullptr;
    auto& waiting = found->second->of(ConnectionUse::Waiting);
    return waiting.empty() ? nullptr : waiting.front().session;
  }

  /// Whose place a new connection of `address` takes; null: it is refused, as nobody has more than
  /// it would have.
  Shared victimFor(const std::string& address) const {
    const auto own = countOf(address);
    std::size_t looks = 0;
    for (auto at = by_count_.rbegin(); at != by_count_.rend() && looks < kLooks; ++at, ++looks) {
      auto& peer = *at->second;
      if (peer.count <= own && peer.address != address) break;
      for (const auto use : {ConnectionUse::Waiting, ConnectionUse::Answering})
        if (auto& list = peer.of(use); !list.empty()) return list.front().session;
    }
    return longestWaitingOf(address);
  }

  /// Every session, for the end of the server.
  template <class Do>
  void each(Do&& what) const {
    for (const auto& [address, peer] : peers_)
      for (const auto& list : peer->by_use)
        for (const auto& entry : list) what(entry.session);
  }

 private:
  static constexpr std::size_t kLooks =
      64;  ///< addresses that a newcomer's victim is looked for at

  void count(Peer& peer, std::size_t now) {
    if (peer.count > 0) by_count_.erase({peer.count, &peer});
    peer.count = now;
    if (now > 0) by_count_.emplace(now, &peer);
  }

  std::unordered_map<std::string, std::unique_ptr<Peer>> peers_;
  std::set<std::pair<std::size_t, Peer*>> by_count_;
  std::size_t size_ = 0;
};

}  // namespace muster::io
