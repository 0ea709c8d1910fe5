// SPDX-License-Identifier: Apache-2.0
// Idempotency-Key: an order that a client sends again, because it did not see the answer, is
// answered as before and not done again. Kept in the store for 24 h, so a restart forgets none.
//
// What is remembered is written after the order was done: a crash between the two leaves an order
// that a repetition does again. Orders are such that this changes nothing (a set, a grant) or says
// so (a name that is taken).
#pragma once

#include "api/route.h"
#include "lifecycle/store/store.h"

#include <chrono>
#include <optional>
#include <string>

namespace muster::api {

inline constexpr std::chrono::hours kOrdersKept{24};
inline constexpr std::size_t kMaxOrdersKept = 1'000;  ///< the oldest go first

struct IdempotentOrder {
  std::string principal, key;
  std::string what;  ///< method, target and body
};

class IdempotentOrders {
 public:
  explicit IdempotentOrders(lifecycle::Store& store) : store_(store) {}
  /// The answer that this order got. Errors: 409 (the key was of another order), 400 (the key)
  std::expected<std::optional<Answer>, Problem> find(const IdempotentOrder& order, WallTime now);
  Result<void> remember(const IdempotentOrder& order, const Answer& answer, WallTime now);

 private:
  lifecycle::Store& store_;
};

}  // namespace muster::api
