// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/record.h"

#include "base/json_input.h"
#include "lifecycle/model/json.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

using nlohmann::json;

constexpr const char* kList = "rollout.list";
constexpr const char* kLast = "rollout.last";

std::string keyOf(const std::string& id, std::string_view part = {}) {
  return part.empty() ? "rollout." + id : fmt::format("rollout.{}.{}", id, part);
}
std::string pageKey(const std::string& id, std::size_t page) {
  return keyOf(id, fmt::format("nodes.{}", page));
}

std::string wipeReasonOf(const Rollout& rollout) {
  return fmt::format("rollout {}: {}", rollout.id, rollout.wipe_reason);
}

Error takenOver(const std::string& id) {
  return Error(ErrorCode::Conflict,
               fmt::format("another muster runs rollout {} now; this one stops", id));
}

Result<std::vector<std::string>> idsFrom(const std::optional<std::string>& text) {
  if (!text) return std::vector<std::string>{};
  const auto source = jsonOrNone(*text, kKeptJson);
  if (!source.is_array() ||
      !std::all_of(source.begin(), source.end(), [](const json& id) { return id.is_string(); }))
    return fail(ErrorCode::Corrupt, "the store's list of rollouts cannot be read");
  return source.get<std::vector<std::string>>();
}

Order orderFrom(const std::string& word) {
  return word == "pause" ? Order::Pause : word == "abort" ? Order::Abort : Order::None;
}

}  // namespace

std::string_view toString(Order order) {
  switch (order) {
    case Order::Pause:
      return "pause";
    case Order::Abort:
      return "abort";
    case Order::None:
      break;
  }
  return "none";
}

std::string RolloutRecord::key(std::string_view part) const { return keyOf(rollout_.id, part); }

const FrozenNode* RolloutRecord::frozen(const NodeName& node) const {
  const auto found = frozen_.find(node);
  return found == frozen_.end() ? nullptr : &found->second;
}

std::size_t RolloutRecord::count(RolloutNodeState state) const {
  return static_cast<std::size_t>(
      std::count_if(progress_.begin(), progress_.end(),
                    [state](const auto& p) { return p.second.state == state; }));
}

void RolloutRecord::number() {
  std::size_t index = 0;
  for (const auto& [node, progress] : progress_) {
    const auto page = index++ / kNodesPerPage;
    if (page == members_.size()) members_.emplace_back();
    members_[page].push_back(node);
    page_of_[node] = page;
  }
}

std::string RolloutRecord::pageText(std::size_t page) const {
  json nodes = json::object();
  for (const auto& node : members_[page]) nodes[node.str()] = toJson(progress_.at(node));
  return canonical({{"epoch", rollout_.epoch}, {"nodes", std::move(nodes)}});
}

RolloutRecord RolloutRecord::draft(Store& store, Rollout rollout,
                                   std::map<NodeName, FrozenNode> frozen,
                                   std::map<NodeName, NodeProgress> progress) {
  RolloutRecord record(store);
  record.rollout_ = std::move(rollout);
  record.frozen_ = std::move(frozen);
  record.progress_ = std::move(progress);
  record.number();
  return record;
}

Result<void> RolloutRecord::begin() {
  json frozen_text = json::object();
  for (const auto& [node, what] : frozen_) frozen_text[node.str()] = toJson(what);
  const auto& id = rollout_.id;
  TRY_OK(store_->putValue(key("frozen"), canonical(frozen_text)));
  for (std::size_t page = 0; page < members_.size(); ++page) {
    pages_.push_back(pageText(page));
    TRY_OK(store_->putValue(pageKey(id, page), pages_.back()));
  }
  text_ = canonical(toJson(rollout_));
  TRY_OK(store_->putValue(keyOf(id), text_));
  TRY(before, store_->getValue(kList));
  TRY_OK(noneIsOpen(*store_));  // one may have begun since the plan was frozen; what begins from
                                // here on changes the list
  TRY(ids, idsFrom(before));
  ids.push_back(id);
  TRY(listed, store_->exchangeValue(kList, before, canonical(ids)));
  if (!listed)
    return fail(
        ErrorCode::Conflict,
        "another rollout was started at the same moment; look at it with `muster rollout status`");
  return store_->putValue(kLast, id);
}

Result<RolloutRecord> RolloutRecord::open(Store& store, const std::string& id) {
  RolloutRecord record(store);
  TRY(text, store.getValue(keyOf(id)));
  if (!text) return fail(ErrorCode::NotFound, fmt::format("there is no rollout {}", id));
  TRY(rollout, rolloutFromJson(*text));
  record.text_ = *text;
  record.rollout_ = std::move(rollout);
  TRY(frozen_text, store.getValue(keyOf(id, "frozen")));
  TRY(frozen, frozenFromJson(frozen_text.value_or("")));
  record.frozen_ = std::move(frozen);
  for (std::size_t page = 0;; ++page) {
    TRY(one, store.getValue(pageKey(id, page)));
    if (!one) break;
    TRY(progress, progressFromJson(*one));
    record.progress_.merge(progress);
    record.pages_.push_back(std::move(*one));
  }
  record.number();
  if (record.members_.size() != record.pages_.size())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("the store's records of the nodes of rollout {} do not belong together", id));
  return record;
}

Result<std::vector<std::string>> RolloutRecord::list(Store& store) {
  TRY(text, store.getValue(kList));
  return idsFrom(text);
}

Result<void> RolloutRecord::noneIsOpen(Store& store) {
  TRY(ids, list(store));
  for (const auto& id : ids) {
    TRY(record, open(store, id));
    if (record.rollout().isOpen())
      return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}; go on with `muster rollout "
                                                   "resume`, or end it with `muster rollout abort`",
                                                   id, toString(record.rollout().state)));
  }
  return {};
}

Result<void> RolloutRecord::drop(Store& store, const std::vector<std::string>& ids) {
  if (ids.empty()) return {};
  TRY(before, store.getValue(kList));
  TRY(listed, idsFrom(before));
  std::erase_if(listed, [&ids](const std::string& id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  });
  TRY(done, store.exchangeValue(kList, before, canonical(listed)));
  if (!done)
    return fail(ErrorCode::Conflict, "the list of rollouts has changed meanwhile; try again");
  return {};
}

/// By the list, where there is one: a process that died may have written no more than that.
Result<RolloutRecord> RolloutRecord::newest(Store& store) {
  TRY(ids, list(store));
  if (!ids.empty()) return open(store, ids.back());
  TRY(id, store.getValue(kLast));
  if (!id)
    return fail(ErrorCode::NotFound,
                "no rollout was ever started; begin one with: muster rollout start --driver NAME "
                "--nodes HOSTLIST");
  return open(store, *id);
}

Result<RolloutRecord> RolloutRecord::current(Store& store) {
  TRY(ids, list(store));
  for (const auto& id : ids) {
    TRY(record, open(store, id));
    if (record.rollout().isOpen()) return record;
  }
  return newest(store);
}

Result<void> RolloutRecord::save(Rollout next) {
  auto text = canonical(toJson(next));
  TRY(saved, store_->exchangeValue(keyOf(rollout_.id), text_, text));
  if (!saved) return fail(takenOver(rollout_.id));
  text_ = std::move(text);
  rollout_ = std::move(next);
  return {};
}

Result<void> RolloutRecord::writePage(std::size_t page) {
  auto text = pageText(page);
  if (text == pages_[page]) return {};
  TRY(saved, store_->exchangeValue(pageKey(rollout_.id, page), pages_[page], text));
  if (!saved) return fail(takenOver(rollout_.id));
  pages_[page] = std::move(text);
  return {};
}

Result<void> RolloutRecord::takeOver(RolloutDirection direction) {
  Rollout next = rollout_;
  ++next.epoch;
  next.state = RolloutState::Running;
  next.direction = direction;
  next.reasons.clear();
  TRY_OK(save(std::move(next)));
  for (std::size_t page = 0; page < pages_.size(); ++page) TRY_OK(writePage(page));
  TRY(pending, order());
  if (pending.order == Order::Abort && direction == RolloutDirection::Forward) return {};
  return store_->putValue(key("order"), canonical({{"order", "none"}, {"by", ""}}));
}

Result<void> RolloutRecord::put(const NodeName& node, NodeProgress progress) {
  const auto before = std::exchange(progress_.at(node), std::move(progress));
  auto written = writePage(page_of_.at(node));
  if (!written) progress_.at(node) = before;
  return written;
}

Result<void> RolloutRecord::grantWipe(const NodeName& node, WallTime at) {
  return store_->grantWipe(node, wipeReasonOf(rollout_), at);
}

Result<bool> RolloutRecord::revokeWipe(const NodeName& node) {
  if (rollout_.wipe_reason.empty()) return false;
  TRY(now, store_->getValue(keyOf(rollout_.id)));
  if (now != text_) return fail(takenOver(rollout_.id));  // the grant is the other runner's by now
  return store_->revokeWipe(node, wipeReasonOf(rollout_));
}

Result<GivenOrder> RolloutRecord::order() const {
  TRY(text, store_->getValue(key("order")));
  if (!text) return GivenOrder{};
  const auto source = jsonOrNone(*text, kKeptJson);
  if (!source.is_object())
    return fail(ErrorCode::Corrupt, "the order to the rollout cannot be read");
  return GivenOrder{orderFrom(source.value("order", "")), source.value("by", "")};
}

Result<void> RolloutRecord::give(GivenOrder order) {
  return store_->putValue(key("order"),
                          canonical({{"order", toString(order.order)}, {"by", order.by}}));
}

}  // namespace muster::lifecycle
