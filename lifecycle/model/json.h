// SPDX-License-Identifier: Apache-2.0
// The words of lifecycle as JSON: what plans, the journal and `--json` views write. Keys are
// sorted, times are RFC 3339, durations whole seconds. Text that is not UTF-8 (output of broken
// tools) is written with replacement characters.
#pragma once

#include "lifecycle/model/plan.h"
#include "lifecycle/store/store.h"

#include <nlohmann/json.hpp>

namespace muster::lifecycle {

nlohmann::json toJson(const Action& action);
nlohmann::json toJson(const Goal& goal);
nlohmann::json toJson(const Fact& fact);
nlohmann::json toJson(const Finding& finding);
std::string_view severityWord(Severity severity);
nlohmann::json toJson(const Intent& intent);
nlohmann::json toJson(const Request& request);
nlohmann::json toJson(const Event& event);

/// Errors: Corrupt naming the key that is missing or wrong
Result<Action> actionFromJson(const nlohmann::json& json);

/// What toJson has written; an inventory_digest is not in it. Errors: as actionFromJson
Result<Intent> intentFromJson(const nlohmann::json& json);
Result<Request> requestFromJson(const nlohmann::json& json);

/// One line, keys sorted: equal values give equal bytes.
std::string canonical(const nlohmann::json& json);
/// The bytes of canonical(toJson(action)), without a tree: a fleet's plan has millions.
void appendCanonical(std::string& out, const Action& action);

/// Evidence of something that failed or is late, with what the subject's console said last; what
/// may be older than `since` is marked.
std::string evidenceWithConsole(nlohmann::json evidence, const ConsoleLines& console,
                                const Subject& subject, WallTime since);

}  // namespace muster::lifecycle
