// SPDX-License-Identifier: Apache-2.0
// Idempotency-Key: an order that a client sends again, because it did not see the answer, is
// answered as before and not done again. Kept in the store for 24 h, so a restart forgets none.
//
// The key is written before the order is done, and the answer afterwards: of an order whose process
// died in between nobody knows whether it was done, and it is never done again under its key. The
// answer then says so, unless the order's own place in the store knows the key (a run's row).
// docs/adr/0337
#pragma once

#include "api/route.h"
#include "lifecycle/store/store.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace muster::api {

inline constexpr std::chrono::hours kOrdersKept{24};
inline constexpr std::size_t kMaxOrdersAtOnePlace = 500;  ///< of 256 places; further are refused

struct IdempotentOrder {
  std::string principal, key;
  std::string what;  ///< method, target and body
};

class IdempotentOrders {
 public:
  explicit IdempotentOrders(lifecycle::Store& store) : store_(store) {}
  enum class Known {
    No,       ///< it is noted now, and may be done
    Begun,    ///< by a process that has not said how it ended
    Answered  ///< with `answer`, or with one that was not kept
  };
  struct Found {
    Known known = Known::No;
    std::optional<Answer> answer;
  };
  /// Notes that the order is about to be done, unless it is known. Errors: 409 (the key was of
  /// another order), 400 (the key), 429 (too many within 24 h), 503 (the store)
  std::expected<Found, Problem> begin(const IdempotentOrder& order, WallTime now);
  /// One that is long or has a secret is not kept: only that there was one.
  Result<void> remember(const IdempotentOrder& order, const Answer& answer, WallTime now);
  /// It was refused, and nothing was done: the key may be used again.
  Result<void> forget(const IdempotentOrder& order);

 private:
  Result<void> change(const IdempotentOrder& order,
                      const std::function<void(nlohmann::json&)>& edit);
  lifecycle::Store& store_;
};

}  // namespace muster::api
