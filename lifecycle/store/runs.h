// SPDX-License-Identifier: Apache-2.0
// RunStore: the rows of runs (lifecycle/runs/run.h). They live in the store's database, by a
// connection of their own: commands of other processes write them while a controller works. Every
// change is by comparison with what was read and is journaled in the same commit.
#pragma once

#include "lifecycle/runs/run.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::lifecycle {

inline constexpr std::string_view kRunEventPrefix =
    "run/";  ///< begins Event::action_id of what is said of a run itself
/// A longer plan is not kept: it is shown as numbers only.
inline constexpr std::size_t kMaxKeptPlanBytes = 32u << 20;
inline constexpr std::size_t kMaxOpenRuns = 1'000;

struct RunFilter {
  bool open_only = false;
  bool loud_only = false;  ///< those with an override that nobody has acknowledged
  std::size_t limit = 100;
  std::int64_t before = 0;  ///< only those asked for before this event (Run::first_event); 0: all
  std::optional<RunKind> kind = {};  ///< only these; nothing: of every kind
};

/// The newest plan of a run, as JSON (Plan::toJson).
struct KeptPlan {
  std::string hash, json;
};

class RunStore {
 public:
  virtual ~RunStore() = default;

  /// Writes a new run down, with `note` for the journal. Where its author has used its idempotency
  /// key before, nothing is written and the earlier run is the answer. Errors: Conflict (the id
  /// exists), Unavailable (kMaxOpenRuns are open)
  virtual Result<Run> add(Run run, const std::string& note) = 0;
  /// Writes the run if its row is still as it was read (`revision`). `note`: for the journal;
  /// empty: nothing is journaled. Answers the run as it is stored; nullopt: the row was changed
  /// meanwhile.
  virtual Result<std::optional<Run>> exchange(Run run, const std::string& note) = 0;

  virtual Result<std::optional<Run>> read(const std::string& id) = 0;
  /// Newest first. A row that cannot be read has an id, and says why (Run::unreadable).
  virtual Result<std::vector<Run>> list(const RunFilter& filter) = 0;

  virtual Result<void> putPlan(const std::string& id, const KeptPlan& plan) = 0;
  virtual Result<std::optional<KeptPlan>> plan(const std::string& id) = 0;
};

/// `url` as for openStore; migrates as it does.
Result<std::unique_ptr<RunStore>> openRuns(const std::string& url);

}  // namespace muster::lifecycle
