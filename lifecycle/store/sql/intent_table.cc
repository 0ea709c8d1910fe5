// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/intent_table.h"

#include "base/json_input.h"
#include "lifecycle/model/json.h"

namespace muster::lifecycle::sql {
namespace {

/// The cause always stands there: what lacks it is from a muster that began the reason with it.
constexpr const char* kCause = "cause";

std::string storedAction(const Action& action) {
  auto json = toJson(action);
  json[kCause] = toString(action.cause);
  return canonical(json);
}

Result<Action> readAction(const std::string& text) {
  const auto json = jsonOrNone(text, kKeptJson);
  auto action = actionFromJson(json);
  if (!action || json.contains(kCause)) return action;
  auto old = parsePoolReason(action->reason);
  if (old.cause == ActionCause::Declared) return action;
  constexpr std::string_view kHasFailed = " has failed: ";
  if (old.cause == ActionCause::Recovery) old.about = old.text.substr(0, old.text.find(kHasFailed));
  if (old.about.size() == old.text.size() || old.about.find(' ') != std::string::npos)
    old.about.clear();
  action->cause = old.cause;
  action->about = FacetName(old.about);
  action->reason = old.text;
  return action;
}

}  // namespace

using soci::into;
using soci::use;

Result<void> IntentTable::openIntent(const Intent& intent) {
  return db_.write("opening an intent", [&]() -> Result<void> {
    const auto& subject = intent.action.facet.subject.str();
    TRY_OK(claims_.fence(intent.action.facet.subject));
    db_.run(
        "INSERT INTO intents (id, plan_hash, inventory_digest, subject, action, operation, state, "
        "outcome, uses_wipe, opened_at_ms, "
        "closed_at_ms, request, fence) VALUES (:i, :p, :d, :s, :a, :o, :t, '', :u, :b, 0, :r, :f)",
        intent.id, intent.plan_hash, intent.inventory_digest, subject, storedAction(intent.action),
        intent.operation, std::string(toString(IntentState::Open)), intent.uses_wipe ? 1 : 0,
        toMillis(intent.opened_at), intent.request, claims_.fenceOf(intent.action.facet.subject));
    if (!intent.uses_wipe) return {};
    soci::statement take =
        (db_.sql().prepare
             << "UPDATE wipe_permissions SET used_by = :i WHERE node = :n AND used_by = ''",
         use(intent.id), use(subject));
    take.execute(true);
    if (take.get_affected_rows() != 1)
      return fail(ErrorCode::Denied, fmt::format("there is no wipe grant for {}", subject));
    return {};
  });
}

Result<void> IntentTable::recordOperation(const std::string& intent_id,
                                          const std::string& operation) {
  return db_.write("recording an operation", [&]() -> Result<void> {
    std::string subject;
    if (!db_.ask(
            "UPDATE intents SET operation = :o WHERE id = :i AND state = 'open' RETURNING subject",
            std::tie(subject), storable(operation), intent_id))
      return fail(ErrorCode::NotFound, fmt::format("the journal has no open intent {}", intent_id));
    return claims_.fence(Subject::parse(subject));
  });
}

Result<void> IntentTable::closeIntent(const std::string& intent_id, IntentState state,
                                      const std::string& outcome, WallTime at) {
  return db_.write("closing an intent", [&]() -> Result<void> {
    std::string subject;
    if (!db_.ask("UPDATE intents SET state = :s, outcome = :o, closed_at_ms = :a WHERE id = :i AND "
                 "state = 'open' RETURNING subject",
                 std::tie(subject), std::string(toString(state)), storable(outcome), toMillis(at),
                 intent_id))
      return fail(ErrorCode::NotFound, fmt::format("the journal has no open intent {}", intent_id));
    return claims_.fence(Subject::parse(subject));
  });
}

Result<std::vector<Intent>> IntentTable::readIntents(const std::string& where_and_order,
                                                     const std::string& text, std::size_t limit) {
  return db_.read("reading the journal", [&]() -> Result<std::vector<Intent>> {
    std::vector<Intent> out;
    std::string id, plan, digest, action, operation, state, outcome, request;
    long long opened = 0, closed = 0, fence = 0;
    int uses_wipe = 0;
    const long long rows_max = bounded(limit);
    std::string unreadable;
    db_.each(
        "SELECT id, plan_hash, inventory_digest, action, operation, state, outcome, uses_wipe, "
        "opened_at_ms, closed_at_ms, request, fence FROM intents WHERE " +
            where_and_order + " LIMIT :l",
        std::tie(id, plan, digest, action, operation, state, outcome, uses_wipe, opened, closed,
                 request, fence),
        [&] {
          auto parsed = readAction(action);
          auto known = parseIntentState(state);
          if (!parsed || !known) {
            unreadable = id;
            return;
          }
          out.push_back(Intent{id, plan, digest, std::move(*parsed), operation, *known, outcome,
                               uses_wipe != 0, fromMillis(opened), fromMillis(closed), request,
                               fence});
        },
        text, rows_max);
    if (!unreadable.empty())
      return fail(db_.unreadable("intent " + unreadable + " cannot be read"));
    return out;
  });
}

Result<std::vector<Intent>> IntentTable::openIntents() {
  return readIntents("state = 'open' AND :s = '' ORDER BY sequence", "", kMaxRows);
}

Result<std::vector<Intent>> IntentTable::openIntentsOf(const Subject& subject) {
  return readIntents("state = 'open' AND subject = :s ORDER BY sequence", subject.str(), kMaxRows);
}

Result<std::vector<Intent>> IntentTable::intentsOf(const Subject& subject, std::size_t limit) {
  return readIntents("subject = :s ORDER BY sequence DESC", subject.str(), limit);
}

Result<std::vector<Intent>> IntentTable::intentsOfPlan(const std::string& hash_prefix,
                                                       std::size_t limit) {
  return readIntents(
      "substr(plan_hash, 1, " + std::to_string(hash_prefix.size()) + ") = :s ORDER BY sequence",
      hash_prefix, limit);
}

}  // namespace muster::lifecycle::sql
