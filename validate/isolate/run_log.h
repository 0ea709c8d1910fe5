// SPDX-License-Identifier: Apache-2.0
// What an isolation has done so far, in a folder of its own: a process that is killed goes on with
// the round that was cut off. The planner is pure and tasks have names of their own, so the same
// rounds are planned again and no test that has ended runs twice.
#pragma once

#include "base/clock.h"
#include "validate/isolate/engine.h"
#include "validate/isolate/site.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace muster::validate::isolate {

/// All that rounds follow from.
struct Begun {
  std::string run_id;  ///< begins the ids of its tasks
  WallTime at{};
  Engine engine;
  std::uint64_t seed = 0;
  std::optional<double> least_gbits;
  Proof until = Proof::Cleared;
  Site site;
};

struct LoggedRound {
  RoundResult result;
  nlohmann::json evidence;  ///< for people
};

/// Where a log is as well, for a process on another host: texts by the names of its files.
class RunLogCopy {
 public:
  virtual ~RunLogCopy() = default;
  virtual Result<void> put(const std::string& name, const std::string& text) = 0;
  /// Nullopt: there is none.
  virtual Result<std::optional<std::string>> get(const std::string& name) = 0;
  virtual Result<void> forget(const std::string& name) = 0;
};

class RunLog {
 public:
  /// `folder` belongs to one wish (the same nodes, engine, floor): what was begun there by it, and
  /// not ended. `copy`: borrowed; null: none
  explicit RunLog(std::filesystem::path folder, RunLogCopy* copy = nullptr)
      : folder_(std::move(folder)), copy_(copy) {}

  /// Of a folder in which nothing is under way: what another host has begun, and done. Errors:
  /// those of the copy and of the folder
  Result<void> fetch();
  /// Nullopt: nothing is under way. Errors: Corrupt, with what to remove
  Result<std::optional<Begun>> begun() const;
  Result<void> begin(const Begun& begun);
  /// Those that were answered, in order; a round whose file was cut off was not.
  Result<std::vector<LoggedRound>> rounds() const;
  Result<void> add(int number, const LoggedRound& round);
  /// It is over, or not wanted any more.
  Result<void> remove();
  const std::filesystem::path& folder() const { return folder_; }

 private:
  Result<void> write(const std::string& name, const std::string& text) const;
  std::filesystem::path folder_;
  RunLogCopy* copy_ = nullptr;
};

}  // namespace muster::validate::isolate
