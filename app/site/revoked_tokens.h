// SPDX-License-Identifier: Apache-2.0
// Which API tokens count no more, for work that rests on what somebody said with one. The API keeps
// its tokens in the store (api/tokens.h); here only that is read of them.
#pragma once

#include "lifecycle/runs/run.h"
#include "lifecycle/store/store.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::app {

/// The store's value that holds the tokens: a JSON array of objects.
inline constexpr const char* kTokensKey = "api.tokens";

class RevokedTokens {
 public:
  /// Errors: Corrupt, those of the store
  static Result<RevokedTokens> read(lifecycle::Store& store);
  /// Why what this actor has said counts no more; empty: it counts. Who came without a token always
  /// counts, and so does a login at a provider that was not revoked: it ends by itself and by its
  /// owner. A token that the store has forgotten does not. What an older muster has written down
  /// has no id: there each revoked token of that name counts.
  std::string whyVoid(const lifecycle::RunActor& actor) const;
  /// Whether the actor came by something that can be revoked.
  static bool mayKnow(const lifecycle::RunActor& actor);
  /// Strikes out what was said with tokens that count no more. Answers why, one line each.
  std::vector<std::string> strikeOut(lifecycle::Run& run) const;

 private:
  std::set<std::string> good_ids_, revoked_ids_, revoked_names_;
};

}  // namespace muster::app
