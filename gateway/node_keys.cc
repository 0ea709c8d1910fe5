// SPDX-License-Identifier: Apache-2.0
#include "gateway/node_keys.h"

#include "wire/fields.h"

#include <utility>

// As the store has them: {"disk","ended"?,"ram"}.
namespace muster::wire {

using gateway::NodeKeys;

constexpr Text kKeyId{128};

template <>
inline constexpr auto kFields<NodeKeys::KeySlot> = std::tuple(
    field("open", &NodeKeys::KeySlot::open, Flag{}).optional(),
    field("now", &NodeKeys::KeySlot::now, kKeyId), field("next", &NodeKeys::KeySlot::next, kKeyId));

template <>
inline constexpr auto kFields<NodeKeys::Retired> =
    std::tuple(field("seat", &NodeKeys::Retired::slot, Object{}),
               field("order", &NodeKeys::Retired::order, Text{kMaxNameBytes}));

template <>
inline constexpr auto kFields<NodeKeys> =
    std::tuple(field("ram", &NodeKeys::ram, Object{}), field("disk", &NodeKeys::disk, Object{}),
               field("ended", &NodeKeys::retired, Object{}).omittedIf([](const NodeKeys& keys) {
                 return keys.retired.order.empty();
               }));

}  // namespace muster::wire

namespace muster::gateway {
namespace {

constexpr int kMaxTries =
    200;  ///< each means that somebody else has changed the same node's keys in between

std::string keyOf(const NodeName& node) { return "agent.keys." + node.str(); }

const NodeKeys::KeySlot kNoKey{false, {}, {}};

std::unexpected<Error> earlierInstallation(const char* system) {
  return fail(
      ErrorCode::Denied,
      fmt::format(
          "its key is not that of the node's {}: it is of an earlier installation of the node",
          system));
}

}  // namespace

/// The next key of the installed system has called. One that the RAM OS was given for it ends the
/// RAM OS's own.
void NodeKeys::activateNext() {
  if (disk.now.empty()) ram = kNoKey;
  disk = {false, disk.next, {}};
}

Result<bool> NodeKeys::admitPoll(const std::string& key, wire::Mode mode, bool ram_calls) {
  const bool installed = mode == wire::Mode::Disk;
  auto& slot = installed ? disk : ram;
  const auto& other = installed ? ram : disk;
  if (key.empty() || other.holds(key) || (!slot.open && !slot.holds(key)))
    return earlierInstallation(installed ? "installed system" : "RAM OS");
  if (installed && ram_calls && !ram.empty() && !(slot.now.empty() && slot.next == key))
    return fail(ErrorCode::Conflict,
                "the node's RAM OS is running: its installed system cannot be");
  if (slot.now == key) return false;
  if (slot.next == key) {
    if (installed)
      activateNext();
    else
      slot = {false, key, {}};
    return true;
  }
  slot = {false, key, {}};
  return true;
}

bool NodeKeys::enrolled(const std::string& key) {
  if (ram.holds(key)) return false;
  ram = {false, key, {}};
  retired = {};
  return true;
}

bool NodeKeys::endRam(const std::string& key) {
  if (!ram.holds(key)) return false;
  ram = kNoKey;
  return true;
}

Result<bool> NodeKeys::certified(const std::string& caller, const std::string& key) {
  if (ram.holds(caller)) {
    disk = {false, {}, key};
    retired = {};
    return true;
  }
  if (!disk.holds(caller) && (!disk.open || caller.empty()))
    return earlierInstallation("RAM OS or installed system");
  if (disk.next == caller) activateNext();
  disk = {false, caller, key};
  return true;
}

Result<bool> NodeKeys::renewedRam(const std::string& caller, const std::string& key) {
  if (!ram.holds(caller) && (!ram.open || caller.empty() || disk.holds(caller)))
    return earlierInstallation("RAM OS");
  ram = {false, caller, key};
  return true;
}

bool NodeKeys::endInstalled(const std::string& order) {
  if (disk.empty()) return !std::exchange(retired, {}).order.empty();
  retired = {disk, order};
  disk = kNoKey;
  return true;
}

bool NodeKeys::restoreInstalled(const std::string& order) {
  if (order.empty() || retired.order != order) return false;
  if (disk.empty()) disk = retired.slot;
  retired = {};
  return true;
}

std::string NodeKeys::str() const { return wire::printMessage(*this); }

Result<NodeKeys> NodeKeys::parse(const std::string& text) {
  TRY(object, wire::parseObject(text, wire::kMaxMessageBytes, "stored keys"));
  wire::JsonReader reader(object, "keys");
  NodeKeys keys{kNoKey, kNoKey, {kNoKey, {}}};  // what is not said to be open is not
  wire::readFields(reader, keys);
  TRY_OK(reader.finish());
  return keys;
}

Result<NodeKeys> loadKeys(lifecycle::Store& store, const NodeName& node) {
  TRY(stored, store.getValue(keyOf(node)));
  return stored ? NodeKeys::parse(*stored) : NodeKeys{};
}

Result<void> changeKeys(lifecycle::Store& store, const NodeName& node,
                        const std::function<Result<bool>(NodeKeys&)>& change) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    TRY(stored, store.getValue(keyOf(node)));
    NodeKeys keys;
    if (stored) {
      TRY(parsed, NodeKeys::parse(*stored));
      keys = std::move(parsed);
    }
    TRY(changed, change(keys));
    if (!changed) return {};
    TRY(set, store.exchangeValue(keyOf(node), stored, keys.str()));
    if (set) return {};
  }
  return fail(Error(ErrorCode::Conflict,
                    fmt::format("the keys of {} are changed by others all the time", node.str()))
                  .retryable(true));
}

Result<void> revokeKeys(lifecycle::Store& store, const NodeName& node) {
  return changeKeys(store, node, [](NodeKeys& keys) -> Result<bool> {
    keys = {kNoKey, kNoKey};
    return true;
  });
}

Result<void> forgetKeys(lifecycle::Store& store, const NodeName& node) {
  return changeKeys(store, node, [](NodeKeys& keys) -> Result<bool> {
    keys = NodeKeys{};
    return true;
  });
}

}  // namespace muster::gateway
