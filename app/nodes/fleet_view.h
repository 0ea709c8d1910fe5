// SPDX-License-Identifier: Apache-2.0
// FleetView: the rows of all nodes, kept in memory. What the log names is read again, and of the
// others a few with each look, so that a change of one node does not cost a reading of the site.
#pragma once

#include "app/nodes/status.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::app {

/// What one look has done.
struct FleetLook {
  bool is_anew = false;      ///< the whole store was read
  std::size_t named = 0;     ///< subjects that the log has named since the last look
  std::size_t in_turn = 0;   ///< nodes that were read because it was their turn
  std::size_t computed = 0;  ///< rows that were made from them
};

/// Belongs to one session: with another inventory, or other rollouts over it, make another view.
class FleetView {
 public:
  /// `session` is borrowed.
  explicit FleetView(Session& session);

  /// Brings the rows up to the log's end. The whole store is read at the first look, when the log
  /// is shorter than it was (another store) and when it has run away (kMostFollowed).
  /// `in_turn`: of the nodes that the log does not name, so many are read, round about: what nobody
  /// has written down (an image that was built, a file of a person) is seen within one round.
  /// Errors: those of the store; the rows stay as they were, and the next look reads all
  Result<FleetLook> follow(std::size_t in_turn);

  /// This subject's facts and findings as the store has them now; after a look. Rows that depend on
  /// it follow. Errors: those of the store
  Result<void> readNow(const lifecycle::Subject& subject);

  /// Nodes in the order of the inventory. Valid until the next look.
  const SiteStatus& status() const { return status_; }
  /// What is known of all subjects, as the rows were made from it. Valid until the next look.
  const lifecycle::FactSet& facts() const { return facts_; }
  /// Grows when the row does not say what it said.
  std::uint64_t revision(std::size_t row) const { return revisions_[row]; }

  static constexpr std::size_t kMostFollowed = 20'000;  ///< entries of the log

 private:
  Result<FleetLook> readAll();
  Result<std::set<std::string>> named();
  Result<void> readIntents(std::set<std::size_t>& rows);
  /// Its facts and findings. Rows that depend on it and on which it may show: into `rows`.
  Result<void> readAgain(const std::string& subject, std::set<std::size_t>& rows);
  void compute(std::size_t row);

  Session& session_;
  SiteStatus status_;
  std::vector<std::uint64_t> revisions_;
  std::map<std::string, std::size_t> rows_of_;  ///< by node
  /// Rows whose goals were made from facts of others: by whose.
  std::map<std::string, std::set<std::size_t>> readers_;
  std::vector<std::set<std::string>> read_by_row_;
  lifecycle::FactSet facts_;
  std::map<std::string, std::vector<lifecycle::Finding>> findings_;
  std::map<std::string, std::vector<lifecycle::Intent>> intents_;
  std::int64_t last_event_ = 0;
  std::size_t turn_ = 0;
  bool is_whole_ = false;  ///< everything was read once, and no look has failed since
};

}  // namespace muster::app
