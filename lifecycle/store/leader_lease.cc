// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/leader_lease.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::lifecycle {
namespace {

constexpr const char* kServes = "site/serves";

std::string textOf(const SiteHolder& holder) {
  return jsonText(nlohmann::json{{"holder", holder.holder},
                                 {"address", holder.address},
                                 {"term", holder.term},
                                 {"beat", holder.beat}});
}

Result<SiteHolder> parse(const std::string& text) {
  const auto object = jsonOrNone(text, kKeptJson);
  SiteHolder out;
  try {
    object.at("holder").get_to(out.holder);
    object.at("address").get_to(out.address);
    object.at("term").get_to(out.term);
    object.at("beat").get_to(out.beat);
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the store's value {} says who serves the site and cannot be read: {}",
                            kServes, text.substr(0, 200)));
  }
  return out;
}

}  // namespace

Result<SiteHolder> SiteLease::take() {
  TRY(stored, store_.getValue(kServes));
  SiteHolder now;
  if (stored) {
    TRY(read, parse(*stored));
    now = std::move(read);
  }
  const bool free = !stored || now.holder == holder_;
  if (!free && (!other_ || other_->text != *stored))
    other_ = Seen{*stored, clock_.steady(), other_.has_value()};
  if (!free && clock_.steady() - other_->since < kSiteLease) {
    now.lives = other_->moved;
    return now;
  }
  SiteHolder next{holder_, address_, now.term + 1, 0, true, false};
  TRY(taken, store_.exchangeValue(kServes, stored, textOf(next)));
  if (!taken) {
    now.lives = true;  // somebody else was faster, or it renews again
    return now;
  }
  other_.reset();
  mine_ = textOf(next);
  return next;
}

Result<void> SiteLease::renew() {
  TRY(next, parse(mine_));
  ++next.beat;
  TRY(renewed, store_.exchangeValue(kServes, mine_, textOf(next)));
  if (renewed) {
    mine_ = textOf(next);
    return {};
  }
  TRY(now, siteHolder(store_));
  if (now && now->holder == holder_ &&
      now->term == next.term) {  // an earlier renewal was made, and only its answer lost
    mine_ = textOf(*now);
    return {};
  }
  return fail(ErrorCode::Conflict,
              now ? fmt::format("{} serves the site now, at {}", now->holder, now->address)
                  : "the store does not know any more that this host serves the site");
}

Result<std::optional<SiteHolder>> siteHolder(Store& store) {
  TRY(stored, store.getValue(kServes));
  if (!stored) return std::optional<SiteHolder>();
  TRY(read, parse(*stored));
  return std::optional(std::move(read));
}

Result<std::string> agreedOnSite(Store& store, const std::string& key, const std::string& mine) {
  TRY_OK(store.exchangeValue(key, std::nullopt, mine));
  TRY(stored, store.getValue(key));
  return stored.value_or(mine);
}

}  // namespace muster::lifecycle
