// SPDX-License-Identifier: Apache-2.0
// Which of a node's keys are listened to: docs/adr/0105.
//
// The store keeps per node, under "agent.keys.NODE", the keys of its RAM OS and of its installed
// system, each with the one that was handed out and has not called yet. A certificate that is
// signed and not expired opens nothing when its key is not among them: it is of an earlier life.
// Every change is one exchangeValue, so two controllers on one store never disagree.
#pragma once

#include "base/ids.h"
#include "lifecycle/store/store.h"
#include "wire/messages.h"

#include <functional>
#include <string>

namespace muster::gateway {

/// A value; changes answer whether there is something to be stored, or Denied with the reason.
struct NodeKeys {
  struct Seat {
    bool open = true;  ///< nobody is known (a store of an earlier version, or forgetKeys): the
                       ///< first to call sits down
    std::string now,
        next;  ///< `next` takes over, and `now` is refused, when it calls for the first time

    bool holds(const std::string& key) const { return !key.empty() && (now == key || next == key); }
    bool empty() const { return !open && now.empty() && next.empty(); }
  };
  Seat ram, disk;
  /// The installed system's seat as it was when the order with this id went out: it is given back
  /// when nothing was written after all.
  struct Ended {
    Seat seat;
    std::string order;  ///< empty: there is none
  };
  Ended ended;

  /// A poll. `ram_calls`: the node's RAM OS is heard, so that its installed system of before does
  /// not run.
  Result<bool> called(const std::string& key, wire::Mode mode, bool ram_calls);
  /// The RAM OS's key has enrolled: keys of RAM systems before are over.
  bool enrolled(const std::string& key);
  /// Two machines claimed to be the node: its RAM OS with this key is not listened to any more.
  bool endRam(const std::string& key);
  /// A certificate for the system being installed, when the RAM OS asks, and the systems before are
  /// over; else the caller's own next one.
  Result<bool> certified(const std::string& caller, const std::string& key);
  /// The RAM OS's own next one.
  Result<bool> renewedRam(const std::string& caller, const std::string& key);
  /// The installed system is about to be written over. Of an order that goes out again nobody knows
  /// what its first way out did: it gives nothing back.
  bool endInstalled(const std::string& order);
  /// The RAM OS says that it touched no disk.
  bool giveBack(const std::string& order);

  std::string str() const;
  static Result<NodeKeys> parse(const std::string& text);

 private:
  void takeOver();
};

/// Errors: of the store, Corrupt
Result<NodeKeys> loadKeys(lifecycle::Store& store, const NodeName& node);
/// `change` may run more than once. Errors: its own, of the store, Conflict (others change it all
/// the time: retry)
Result<void> changeKeys(lifecycle::Store& store, const NodeName& node,
                        const std::function<Result<bool>(NodeKeys&)>& change);

/// What a person says. No key of the node is listened to any more, until it enrols again in its RAM
/// OS.
Result<void> revokeKeys(lifecycle::Store& store, const NodeName& node);
/// The first key that calls is believed: after the store came back from a backup older than the
/// keys. Errors: of the store
Result<void> forgetKeys(lifecycle::Store& store, const NodeName& node);

}  // namespace muster::gateway
