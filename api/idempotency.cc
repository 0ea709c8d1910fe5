// SPDX-License-Identifier: Apache-2.0
#include "api/idempotency.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <algorithm>

namespace muster::api {
namespace {

constexpr const char* kOrdersKey = "api.orders";  ///< {ID: {at, what, status, location, body}}
constexpr std::size_t kMaxKeyBytes = 64;
constexpr std::size_t kMaxKeptBytes = 64u << 10;  ///< of one answer; a longer one is not kept
constexpr int kExchangeAttempts = 16;

std::string idOf(const IdempotentOrder& order) {
  return io::sha256Hex(order.principal + '\n' + order.key).substr(0, 32);
}

bool isOver(const nlohmann::json& kept, WallTime now) {
  const auto at = parseWallTime(kept.value("at", ""));
  return !at || *at + kOrdersKept < now;
}

Result<nlohmann::json> parsed(const std::optional<std::string>& text) {
  TRY(json, parseJson(text.value_or("{}"), kKeptJson));
  if (!json.is_object()) return fail(ErrorCode::Corrupt, "the store's orders are no object");
  return std::move(json);
}

/// What is over goes, and of the rest the oldest where there are too many.
void prune(nlohmann::json& all, WallTime now) {
  std::vector<std::pair<std::string, std::string>> by_age;
  for (auto at = all.begin(); at != all.end();) {
    if (isOver(*at, now)) {
      at = all.erase(at);
      continue;
    }
    by_age.emplace_back(at->value("at", ""), at.key());
    ++at;
  }
  std::ranges::sort(by_age);
  for (std::size_t i = 0; i + kMaxOrdersKept < by_age.size() + 1; ++i) all.erase(by_age[i].second);
}

}  // namespace

std::expected<std::optional<Answer>, Problem> IdempotentOrders::find(const IdempotentOrder& order,
                                                                     WallTime now) {
  if (order.key.size() > kMaxKeyBytes)
    return std::unexpected(
        Problem(400, "invalid-input", "Idempotency-Key is longer than 64 characters"));
  TRY(text, store_.getValue(kOrdersKey));
  TRY(all, parsed(text));
  const auto found = all.find(idOf(order));
  if (found == all.end() || isOver(*found, now)) return std::nullopt;
  if (found->value("what", "") != io::sha256Hex(order.what))
    return std::unexpected(Problem(409, "conflict",
                                   "this Idempotency-Key was of another order within 24 h",
                                   "give each order a key of its own"));
  Answer out{found->value("status", 200), found->value("body", nlohmann::json())};
  if (const auto location = found->value("location", ""); !location.empty())
    out.headers["Location"] = location;
  out.headers["Idempotent-Replayed"] = "true";
  return out;
}

Result<void> IdempotentOrders::remember(const IdempotentOrder& order, const Answer& answer,
                                        WallTime now) {
  if (jsonText(answer.body).size() > kMaxKeptBytes) return {};
  const auto location = answer.headers.find("Location");
  const nlohmann::json kept = {
      {"at", muster::toString(now)},
      {"what", io::sha256Hex(order.what)},
      {"status", answer.status},
      {"location", location == answer.headers.end() ? "" : location->second},
      {"body", answer.body}};
  for (int attempt = 0; attempt < kExchangeAttempts; ++attempt) {
    TRY(before, store_.getValue(kOrdersKey));
    TRY(all, parsed(before));
    prune(all, now);
    all[idOf(order)] = kept;
    TRY(done, store_.exchangeValue(kOrdersKey, before, jsonText(all)));
    if (done) return {};
  }
  return fail(ErrorCode::Unavailable, "others give orders all the time; try again");
}

}  // namespace muster::api
