// SPDX-License-Identifier: Apache-2.0
// The log of events with its chain of hashes.
//
// Appending to the chain locks its head, so that entries of several controllers form one chain.
// Progress is not chained.
#pragma once

#include "lifecycle/audit/audit.h"
#include "lifecycle/store/sql/value_table.h"

namespace muster::lifecycle::sql {

class EventLog final : public TransactionPart {
 public:
  EventLog(SqlConnection& db, ValueTable& values) : db_(db), values_(values) { db_.join(*this); }

  Result<std::int64_t> addEvent(const Event& event);
  /// The same within a transaction that the caller has begun (SqlConnection::write).
  Result<std::int64_t> append(const Event& event);
  Result<std::vector<Event>> events(std::int64_t after_sequence, std::size_t limit,
                                    const Subject* subject);
  Result<std::vector<Event>> lastEvents(std::size_t limit, const Subject* subject);
  Result<std::vector<AuditEntry>> auditTrail(std::int64_t after_sequence, std::size_t limit);
  Result<AuditEnds> auditEnds();
  Result<void> dropArchived(std::int64_t through_sequence, const AuditMark& end);
  /// Only what is not in the chain, when the store is opened. May throw soci_error.
  void dropOldEvents();

  void begins() override { head_.reset(); }
  void commits() override;

 private:
  /// Known within a transaction.
  struct Head {
    long long link = 0;
    std::string hash;
    bool moved = false;
  };
  Result<std::vector<Event>> readEvents(const std::string& tail, std::int64_t after,
                                        std::size_t limit, const Subject* subject);
  /// The end of the chain, ours until the transaction ends.
  Head& head();

  SqlConnection& db_;
  ValueTable& values_;
  std::optional<Head> head_;
};

}  // namespace muster::lifecycle::sql
