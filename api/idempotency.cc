// SPDX-License-Identifier: Apache-2.0
#include "api/idempotency.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <algorithm>

namespace muster::api {
namespace {

/// Before the first two letters of an order's ID: {ID: {at, what, status, location, body}}. Each
/// order rewrites one of 256 values and no other's.
constexpr const char* kOrdersKey = "api.orders.";
constexpr std::size_t kMaxKeyBytes = 64;
constexpr std::size_t kMaxKeptBytes = 64u << 10;  ///< of one answer; a longer one is not kept
constexpr int kExchangeAttempts = 16;

std::string idOf(const IdempotentOrder& order) {
  return io::sha256Hex(order.principal + '\n' + order.key).substr(0, 32);
}

std::string placeOf(const IdempotentOrder& order) { return kOrdersKey + idOf(order).substr(0, 2); }

bool isOver(const nlohmann::json& kept, WallTime now) {
  const auto at = parseWallTime(kept.value("at", ""));
  return !at || *at + kOrdersKept < now;
}

Result<nlohmann::json> parsed(const std::optional<std::string>& text) {
  TRY(json, parseJson(text.value_or("{}"), kKeptJson));
  if (!json.is_object()) return fail(ErrorCode::Corrupt, "the store's orders are no object");
  return std::move(json);
}

void forgetOver(nlohmann::json& all, WallTime now) {
  for (auto at = all.begin(); at != all.end();) at = isOver(*at, now) ? all.erase(at) : ++at;
}

Error othersAllTheTime() {
  return Error(ErrorCode::Unavailable, "others give orders all the time; try again")
      .retryable(true);
}

/// What an entry of the store says.
IdempotentOrders::Found foundOf(const nlohmann::json& kept) {
  using Known = IdempotentOrders::Known;
  if (kept.value("begun", false)) return {Known::Begun, {}};
  if (!kept.contains("status")) return {Known::Answered, {}};
  Answer out{kept.value("status", 200), kept.value("body", nlohmann::json())};
  if (const auto location = kept.value("location", ""); !location.empty())
    out.headers["Location"] = location;
  out.headers["Idempotent-Replayed"] = "true";
  return {Known::Answered, std::move(out)};
}

}  // namespace

std::expected<IdempotentOrders::Found, Problem> IdempotentOrders::begin(
    const IdempotentOrder& order, WallTime now) {
  if (order.key.size() > kMaxKeyBytes)
    return std::unexpected(
        Problem(400, "invalid-input", "Idempotency-Key is longer than 64 characters"));
  const auto what = io::sha256Hex(order.what);
  for (int attempt = 0; attempt < kExchangeAttempts; ++attempt) {
    TRY(before, store_.getValue(placeOf(order)));
    TRY(all, parsed(before));
    const auto found = all.find(idOf(order));
    if (found != all.end() && !isOver(*found, now)) {
      if (found->value("what", "") == what) return foundOf(*found);
      return std::unexpected(Problem(409, "conflict",
                                     "this Idempotency-Key was of another order within 24 h",
                                     "give each order a key of its own"));
    }
    forgetOver(all, now);
    // None is forgotten before its time: its order would be done twice.
    if (all.size() >= kMaxOrdersAtOnePlace)
      return std::unexpected(Problem(
          429, "too-many-orders", "too many orders with an Idempotency-Key were given within 24 h",
          "give keys to the orders that may be sent again; nothing was done"));
    all[idOf(order)] = {{"at", muster::toString(now)}, {"what", what}, {"begun", true}};
    TRY(done, store_.exchangeValue(placeOf(order), before, jsonText(all)));
    if (done) return Found{};
  }
  return std::unexpected(Problem(othersAllTheTime()));
}

Result<void> IdempotentOrders::remember(const IdempotentOrder& order, const Answer& answer,
                                        WallTime now) {
  const auto location = answer.headers.find("Location");
  nlohmann::json kept = {{"at", muster::toString(now)}, {"what", io::sha256Hex(order.what)}};
  const bool has_secret = answer.headers.contains("Cache-Control");
  if (!has_secret && jsonText(answer.body).size() <= kMaxKeptBytes)
    kept.update({{"status", answer.status},
                 {"location", location == answer.headers.end() ? "" : location->second},
                 {"body", answer.body}});
  return change(order, [&](nlohmann::json& all) { all[idOf(order)] = kept; });
}

Result<void> IdempotentOrders::forget(const IdempotentOrder& order) {
  return change(order, [&](nlohmann::json& all) { all.erase(idOf(order)); });
}

Result<void> IdempotentOrders::change(const IdempotentOrder& order,
                                      const std::function<void(nlohmann::json&)>& edit) {
  for (int attempt = 0; attempt < kExchangeAttempts; ++attempt) {
    TRY(before, store_.getValue(placeOf(order)));
    TRY(all, parsed(before));
    edit(all);
    TRY(done, store_.exchangeValue(placeOf(order), before, jsonText(all)));
    if (done) return {};
  }
  return fail(othersAllTheTime());
}

}  // namespace muster::api
