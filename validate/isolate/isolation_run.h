// SPDX-License-Identifier: Apache-2.0
// One isolation from its first round to its verdict, kept on disk round by round.
#pragma once

#include "validate/isolate/run_log.h"
#include "validate/isolate/runner.h"

#include <map>

namespace muster::validate::isolate {

struct IsolationRun {
  Begun begun;
  Verdict verdict;
  nlohmann::json rounds = nlohmann::json::array();  ///< evidence: every test, in the site's names
  std::map<std::pair<int, int>, double>
      best;          ///< (node, rail) → Gb/s of its best pair test: what it can do
  int taken_up = 0;  ///< rounds that had been run before
};

/// Told of each round before it begins.
using RoundBegins = std::function<void(const Round& round)>;

/// Takes up what `log` holds of it, runs the rest, and logs each round. The log stays: whoever has
/// kept the outcome removes it. Errors: Conflict, Corrupt (the log is not of such a run; what to
/// remove)
Async<IsolationRun> runIsolation(Begun begun, RunLog& log, gateway::AgentGateway& agents,
                                 RoundBegins begins);

/// The whole of it as one document; `matrixOf` (report/) reads it.
nlohmann::json toJson(const IsolationRun& run);

}  // namespace muster::validate::isolate
