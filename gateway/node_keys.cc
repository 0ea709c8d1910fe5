// SPDX-License-Identifier: Apache-2.0
#include "gateway/node_keys.h"

#include "base/json_output.h"
#include "wire/json_reader.h"

#include <utility>

namespace muster::gateway {
namespace {

constexpr int kMaxTries =
    200;  ///< each means that somebody else has changed the same node's keys in between
constexpr std::size_t kMaxKeyIdBytes = 128;

std::string keyOf(const NodeName& node) { return "agent.keys." + node.str(); }

const NodeKeys::Seat kNobody{false, {}, {}};

std::unexpected<Error> earlierLife(const char* system) {
  return fail(
      ErrorCode::Denied,
      fmt::format("its key is not that of the node's {}: it is of an earlier life of the node",
                  system));
}

nlohmann::json describe(const NodeKeys::Seat& seat) {
  return {{"open", seat.open}, {"now", seat.now}, {"next", seat.next}};
}

NodeKeys::Seat readSeat(wire::JsonReader& reader, const char* key) {
  wire::JsonReader inner(reader.object(key, wire::kMaxTasks), std::string("keys.") + key);
  NodeKeys::Seat seat{inner.flag("open", false), inner.text("now", kMaxKeyIdBytes),
                      inner.text("next", kMaxKeyIdBytes)};
  if (const auto read = inner.finish(); !read) reader.take(read.error());
  return seat;
}

}  // namespace

/// The next key of the installed system has called. One that the RAM OS was given for it ends the
/// RAM OS's own.
void NodeKeys::takeOver() {
  if (disk.now.empty()) ram = kNobody;
  disk = {false, disk.next, {}};
}

Result<bool> NodeKeys::called(const std::string& key, wire::Mode mode, bool ram_calls) {
  const bool installed = mode == wire::Mode::Disk;
  auto& seat = installed ? disk : ram;
  const auto& other = installed ? ram : disk;
  if (key.empty() || other.holds(key) || (!seat.open && !seat.holds(key)))
    return earlierLife(installed ? "installed system" : "RAM OS");
  if (installed && ram_calls && !ram.empty() && !(seat.now.empty() && seat.next == key))
    return fail(ErrorCode::Conflict,
                "the node's RAM OS is running: its installed system cannot be");
  if (seat.now == key) return false;
  if (seat.next == key) {
    if (installed)
      takeOver();
    else
      seat = {false, key, {}};
    return true;
  }
  seat = {false, key, {}};
  return true;
}

bool NodeKeys::enrolled(const std::string& key) {
  if (ram.holds(key)) return false;
  ram = {false, key, {}};
  ended = {};
  return true;
}

bool NodeKeys::endRam(const std::string& key) {
  if (!ram.holds(key)) return false;
  ram = kNobody;
  return true;
}

Result<bool> NodeKeys::certified(const std::string& caller, const std::string& key) {
  if (ram.holds(caller)) {
    disk = {false, {}, key};
    ended = {};
    return true;
  }
  if (!disk.holds(caller) && (!disk.open || caller.empty()))
    return earlierLife("RAM OS or installed system");
  if (disk.next == caller) takeOver();
  disk = {false, caller, key};
  return true;
}

Result<bool> NodeKeys::renewedRam(const std::string& caller, const std::string& key) {
  if (!ram.holds(caller) && (!ram.open || caller.empty() || disk.holds(caller)))
    return earlierLife("RAM OS");
  ram = {false, caller, key};
  return true;
}

bool NodeKeys::endInstalled(const std::string& order) {
  if (disk.empty()) return !std::exchange(ended, {}).order.empty();
  ended = {disk, order};
  disk = kNobody;
  return true;
}

bool NodeKeys::giveBack(const std::string& order) {
  if (order.empty() || ended.order != order) return false;
  if (disk.empty()) disk = ended.seat;
  ended = {};
  return true;
}

std::string NodeKeys::str() const {
  nlohmann::json out{{"ram", describe(ram)}, {"disk", describe(disk)}};
  if (!ended.order.empty()) out["ended"] = {{"seat", describe(ended.seat)}, {"order", ended.order}};
  return jsonText(out);
}

Result<NodeKeys> NodeKeys::parse(const std::string& text) {
  TRY(object, wire::parseObject(text, wire::kMaxMessageBytes, "stored keys"));
  wire::JsonReader reader(object, "keys");
  NodeKeys keys;
  keys.ram = readSeat(reader, "ram");
  keys.disk = readSeat(reader, "disk");
  if (object.contains("ended")) {
    wire::JsonReader inner(reader.object("ended", wire::kMaxTasks), "keys.ended");
    keys.ended = {readSeat(inner, "seat"), inner.text("order", wire::kMaxNameBytes)};
    TRY_OK(inner.finish());
  }
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
    keys = {kNobody, kNobody};
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
