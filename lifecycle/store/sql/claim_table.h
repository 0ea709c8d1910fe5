// SPDX-License-Identifier: Apache-2.0
// Leased claims with fencing tokens (docs/adr/0010).
//
// controllers: one row a session, with the end of its lease by the database's clock. claims: one
// row a subject for ever, with the session that holds it ('' when free) and a token that only
// grows. A lease is renewed in one row, however much it holds. `fence` locks the subject's row for
// the rest of a write: nobody can take it between the check and the commit.
#pragma once

#include "lifecycle/store/sql/connection.h"

#include <map>
#include <set>

namespace muster::lifecycle::sql {

inline constexpr std::chrono::hours kForgetControllers{
    24 * 7};  ///< rows of controllers that have not come back

class ClaimTable final : public TransactionPart {
 public:
  explicit ClaimTable(SqlConnection& db) : db_(db) { db_.join(*this); }

  Result<void> signOn(const std::string& holder, std::chrono::milliseconds lease);
  Result<void> renewLease();
  Result<Claim> claim(const Subject& subject);
  Result<void> release(const Subject& subject);
  Result<void> checkClaim(const Subject& subject);
  Result<std::vector<Claim>> claims();
  /// Never waits for a batch. 0: it is not claimed.
  std::int64_t fenceOf(const Subject& subject) const;
  bool isHeld(const Subject& subject) const { return held_.contains(subject); }

  // Inside a transaction.
  /// May this store write about the subject? Nobody can take it from here to the commit. Errors:
  /// Conflict
  Result<void> fence(const Subject& subject);
  std::set<std::string> heldByOthers();

  void begins() override { fenced_.clear(); }
  void groupUndone() override;
  void groupKept() override { held_before_.clear(); }

 private:
  std::string nowPlus(std::chrono::milliseconds duration) const;
  bool isLive(const std::string& session);
  bool extendLease();
  void holds(const Subject& subject, std::optional<std::int64_t> token);

  SqlConnection& db_;
  std::string holder_, session_;  ///< of signOn
  std::chrono::milliseconds lease_{};
  std::map<Subject, std::int64_t> held_;  ///< subject → token
  mutable std::mutex held_mutex_;  ///< taken with the connection's to change held_, alone to read
                                   ///< it: a look never waits for a batch
  std::vector<std::pair<Subject, std::optional<std::int64_t>>>
      held_before_;  ///< what the group has changed in held_, oldest first
  std::set<Subject> fenced_;
};

}  // namespace muster::lifecycle::sql
