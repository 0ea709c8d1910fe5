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
std::string recordKey(const std::string& id, std::size_t record) {
  return keyOf(id, fmt::format("nodes.{}", record));
}

std::string wipeWords(const Rollout& rollout) {
  return fmt::format("rollout {}: {}", rollout.id, rollout.wipe_reason);
}

Error overtaken(const std::string& id) {
  return Error(ErrorCode::Conflict,
               fmt::format("another muster has taken rollout {} over; this one stops", id));
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

std::string RolloutBook::key(std::string_view part) const { return keyOf(rollout_.id, part); }

const FrozenNode* RolloutBook::frozen(const NodeName& node) const {
  const auto found = frozen_.find(node);
  return found == frozen_.end() ? nullptr : &found->second;
}

std::size_t RolloutBook::count(NodeState state) const {
  return static_cast<std::size_t>(
      std::count_if(progress_.begin(), progress_.end(),
                    [state](const auto& p) { return p.second.state == state; }));
}

void RolloutBook::number() {
  std::size_t index = 0;
  for (const auto& [node, progress] : progress_) {
    const auto record = index++ / kNodesPerRecord;
    if (record == members_.size()) members_.emplace_back();
    members_[record].push_back(node);
    record_of_[node] = record;
  }
}

std::string RolloutBook::recordText(std::size_t record) const {
  json nodes = json::object();
  for (const auto& node : members_[record]) nodes[node.str()] = toJson(progress_.at(node));
  return canonical({{"epoch", rollout_.epoch}, {"nodes", std::move(nodes)}});
}

RolloutBook RolloutBook::draft(Store& store, Rollout rollout, std::map<NodeName, FrozenNode> frozen,
                               std::map<NodeName, NodeProgress> progress) {
  RolloutBook book(store);
  book.rollout_ = std::move(rollout);
  book.frozen_ = std::move(frozen);
  book.progress_ = std::move(progress);
  book.number();
  return book;
}

Result<void> RolloutBook::begin() {
  json frozen_text = json::object();
  for (const auto& [node, what] : frozen_) frozen_text[node.str()] = toJson(what);
  const auto& id = rollout_.id;
  TRY_OK(store_->putValue(key("frozen"), canonical(frozen_text)));
  for (std::size_t record = 0; record < members_.size(); ++record) {
    records_.push_back(recordText(record));
    TRY_OK(store_->putValue(recordKey(id, record), records_.back()));
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

Result<RolloutBook> RolloutBook::open(Store& store, const std::string& id) {
  RolloutBook book(store);
  TRY(text, store.getValue(keyOf(id)));
  if (!text) return fail(ErrorCode::NotFound, fmt::format("there is no rollout {}", id));
  TRY(rollout, rolloutFromJson(*text));
  book.text_ = *text;
  book.rollout_ = std::move(rollout);
  TRY(frozen_text, store.getValue(keyOf(id, "frozen")));
  TRY(frozen, frozenFromJson(frozen_text.value_or("")));
  book.frozen_ = std::move(frozen);
  for (std::size_t record = 0;; ++record) {
    TRY(one, store.getValue(recordKey(id, record)));
    if (!one) break;
    TRY(progress, progressFromJson(*one));
    book.progress_.merge(progress);
    book.records_.push_back(std::move(*one));
  }
  book.number();
  if (book.members_.size() != book.records_.size())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("the store's records of the nodes of rollout {} do not belong together", id));
  return book;
}

Result<std::vector<std::string>> RolloutBook::list(Store& store) {
  TRY(text, store.getValue(kList));
  return idsFrom(text);
}

Result<void> RolloutBook::noneIsOpen(Store& store) {
  TRY(ids, list(store));
  for (const auto& id : ids) {
    TRY(book, open(store, id));
    if (book.rollout().isOpen())
      return fail(ErrorCode::Conflict, fmt::format("rollout {} is {}; go on with `muster rollout "
                                                   "resume`, or end it with `muster rollout abort`",
                                                   id, toString(book.rollout().state)));
  }
  return {};
}

Result<void> RolloutBook::drop(Store& store, const std::vector<std::string>& ids) {
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
Result<RolloutBook> RolloutBook::newest(Store& store) {
  TRY(ids, list(store));
  if (!ids.empty()) return open(store, ids.back());
  TRY(id, store.getValue(kLast));
  if (!id)
    return fail(ErrorCode::NotFound,
                "no rollout was ever started; begin one with: muster rollout start --driver NAME "
                "--nodes HOSTLIST");
  return open(store, *id);
}

Result<RolloutBook> RolloutBook::current(Store& store) {
  TRY(ids, list(store));
  for (const auto& id : ids) {
    TRY(book, open(store, id));
    if (book.rollout().isOpen()) return book;
  }
  return newest(store);
}

Result<void> RolloutBook::save(Rollout next) {
  auto text = canonical(toJson(next));
  TRY(saved, store_->exchangeValue(keyOf(rollout_.id), text_, text));
  if (!saved) return fail(overtaken(rollout_.id));
  text_ = std::move(text);
  rollout_ = std::move(next);
  return {};
}

Result<void> RolloutBook::writeRecord(std::size_t record) {
  auto text = recordText(record);
  if (text == records_[record]) return {};
  TRY(saved, store_->exchangeValue(recordKey(rollout_.id, record), records_[record], text));
  if (!saved) return fail(overtaken(rollout_.id));
  records_[record] = std::move(text);
  return {};
}

Result<void> RolloutBook::takeOver(RolloutWay way) {
  Rollout next = rollout_;
  ++next.epoch;
  next.state = RolloutState::Running;
  next.way = way;
  next.reasons.clear();
  TRY_OK(save(std::move(next)));
  for (std::size_t record = 0; record < records_.size(); ++record) TRY_OK(writeRecord(record));
  TRY(pending, order());
  if (pending.order == Order::Abort && way == RolloutWay::Forward) return {};
  return store_->putValue(key("order"), canonical({{"order", "none"}, {"by", ""}}));
}

Result<void> RolloutBook::put(const NodeName& node, NodeProgress progress) {
  const auto before = std::exchange(progress_.at(node), std::move(progress));
  auto written = writeRecord(record_of_.at(node));
  if (!written) progress_.at(node) = before;
  return written;
}

Result<void> RolloutBook::allowWipe(const NodeName& node, WallTime at) {
  return store_->allowWipe(node, wipeWords(rollout_), at);
}

Result<bool> RolloutBook::takeBackWipe(const NodeName& node) {
  if (rollout_.wipe_reason.empty()) return false;
  TRY(now, store_->getValue(keyOf(rollout_.id)));
  if (now != text_) return fail(overtaken(rollout_.id));  // the leave is the other runner's by now
  return store_->takeBackWipe(node, wipeWords(rollout_));
}

Result<GivenOrder> RolloutBook::order() const {
  TRY(text, store_->getValue(key("order")));
  if (!text) return GivenOrder{};
  const auto source = jsonOrNone(*text, kKeptJson);
  if (!source.is_object())
    return fail(ErrorCode::Corrupt, "the order to the rollout cannot be read");
  return GivenOrder{orderFrom(source.value("order", "")), source.value("by", "")};
}

Result<void> RolloutBook::give(GivenOrder order) {
  return store_->putValue(key("order"),
                          canonical({{"order", toString(order.order)}, {"by", order.by}}));
}

}  // namespace muster::lifecycle
