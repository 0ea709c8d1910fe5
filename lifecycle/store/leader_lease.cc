// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/leader_lease.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::lifecycle {
namespace {

constexpr const char* kServes = "site/serves";

std::string textOf(const Leader& holder) {
  nlohmann::json out{{"holder", holder.holder},
                     {"address", holder.address},
                     {"term", holder.term},
                     {"beat", holder.heartbeat}};
  if (!holder.api_url.empty()) out["api_url"] = holder.api_url;
  return jsonText(out);
}

Result<Leader> parse(const std::string& text) {
  const auto object = jsonOrNone(text, kKeptJson);
  Leader out;
  try {
    object.at("holder").get_to(out.holder);
    object.at("address").get_to(out.address);
    object.at("term").get_to(out.term);
    object.at("beat").get_to(out.heartbeat);
    if (object.contains("api_url")) object.at("api_url").get_to(out.api_url);  // since 0390
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the store's value {} says who serves the site and cannot be read: {}",
                            kServes, text.substr(0, 200)));
  }
  return out;
}

}  // namespace

Result<Leader> LeaderLease::take() {
  TRY(stored, store_.getValue(kServes));
  Leader now;
  if (stored) {
    TRY(read, parse(*stored));
    now = std::move(read);
  }
  const bool free = !stored || now.holder == holder_;
  if (!free && (!other_ || other_->text != *stored))
    other_ = ObservedValue{*stored, clock_.steady(), other_.has_value()};
  if (!free && clock_.steady() - other_->since < kLeaderLease) {
    now.alive = other_->moved;
    return now;
  }
  Leader next{holder_, address_, api_url_, now.term + 1, 0, true, false};
  TRY(taken, store_.exchangeValue(kServes, stored, textOf(next)));
  if (!taken) {
    now.alive = true;  // somebody else was faster, or it renews again
    return now;
  }
  other_.reset();
  own_text_ = textOf(next);
  return next;
}

Result<void> LeaderLease::renew() {
  TRY(next, parse(own_text_));
  ++next.heartbeat;
  TRY(renewed, store_.exchangeValue(kServes, own_text_, textOf(next)));
  if (renewed) {
    own_text_ = textOf(next);
    return {};
  }
  TRY(now, currentLeader(store_));
  if (now && now->holder == holder_ &&
      now->term == next.term) {  // an earlier renewal was made, and only its answer lost
    own_text_ = textOf(*now);
    return {};
  }
  return fail(ErrorCode::Conflict,
              now ? fmt::format("{} serves the site now, at {}", now->holder, now->address)
                  : "the store no longer names this host as the leader of the site");
}

Result<std::optional<Leader>> currentLeader(Store& store) {
  TRY(stored, store.getValue(kServes));
  if (!stored) return std::optional<Leader>();
  TRY(read, parse(*stored));
  return std::optional(std::move(read));
}

Result<std::string> agreedSiteValue(Store& store, const std::string& key, const std::string& mine) {
  TRY_OK(store.exchangeValue(key, std::nullopt, mine));
  TRY(stored, store.getValue(key));
  return stored.value_or(mine);
}

}  // namespace muster::lifecycle
