// SPDX-License-Identifier: Apache-2.0
// Which of a node's keys are accepted: docs/adr/0105.
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
  struct KeySlot {
    bool open = true;  ///< no key is known (a store of an earlier version, or forgetKeys): the
                       ///< first one that polls is accepted
    std::string now,
        next;  ///< `next` becomes `now`, and the former is refused, when it polls for the first
               ///< time

    bool holds(const std::string& key) const { return !key.empty() && (now == key || next == key); }
    bool empty() const { return !open && now.empty() && next.empty(); }
  };
  KeySlot ram, disk;
  /// The installed system's keys as they were when the order with this id was sent: they are
  /// restored when nothing was written after all.
  struct Retired {
    KeySlot slot;
    std::string order;  ///< empty: there is none
  };
  Retired retired;

  /// A poll. `ram_calls`: the node's RAM OS polls, so its former installed system cannot be
  /// running.
  Result<bool> admitPoll(const std::string& key, wire::Mode mode, bool ram_calls);
  /// The RAM OS's key has enrolled: former keys of its RAM OS are refused.
  bool enrolled(const std::string& key);
  /// Two machines claimed to be the node: this key of its RAM OS is refused.
  bool endRam(const std::string& key);
  /// A certificate for the system being installed, when the RAM OS asks, and the systems before are
  /// over; else the caller's own next one.
  Result<bool> certified(const std::string& caller, const std::string& key);
  /// The RAM OS's own next one.
  Result<bool> renewedRam(const std::string& caller, const std::string& key);
  /// The installed system is about to be written over. An order that is sent twice may have been
  /// carried out the first time: it restores nothing.
  bool endInstalled(const std::string& order);
  /// The RAM OS reports that it touched no disk.
  bool restoreInstalled(const std::string& order);

  std::string str() const;
  static Result<NodeKeys> parse(const std::string& text);

 private:
  void activateNext();
};

/// Errors: of the store, Corrupt
Result<NodeKeys> loadKeys(lifecycle::Store& store, const NodeName& node);
/// `change` may run more than once. Errors: its own, of the store, Conflict (others change it all
/// the time: retry)
Result<void> changeKeys(lifecycle::Store& store, const NodeName& node,
                        const std::function<Result<bool>(NodeKeys&)>& change);

/// An operator's request. Every key of the node is refused until it enrolls again in its RAM OS.
Result<void> revokeKeys(lifecycle::Store& store, const NodeName& node);
/// The first key that polls is accepted: for a store that was restored from a backup older than the
/// keys. Errors: of the store
Result<void> forgetKeys(lifecycle::Store& store, const NodeName& node);

}  // namespace muster::gateway
