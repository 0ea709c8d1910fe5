// The journal, events and findings.
#include "lifecycle/json.h"
#include "lifecycle/sql/sql_store.h"

#include <algorithm>

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

// ---- the journal -------------------------------------------------------------------------------------------------------

Result<void> SqlStore::openIntent(const Intent& intent) {
  return write("opening an intent", [&]() -> Result<void> {
    const auto& subject = intent.action.facet.subject.str();
    const auto action = canonical(toJson(intent.action));
    const auto state = std::string(toString(IntentState::Open));
    const long long opened = toMillis(intent.opened_at), closed = 0;
    const int uses_wipe = intent.uses_wipe ? 1 : 0;
    sql_ << "INSERT INTO intents (id, plan_hash, inventory_digest, subject, action, operation, state, outcome, uses_wipe, opened_at_ms, "
            "closed_at_ms)"
            " VALUES (:i, :p, :d, :s, :a, :o, :t, '', :u, :b, :c)",
        use(intent.id), use(intent.plan_hash), use(intent.inventory_digest), use(subject), use(action), use(intent.operation), use(state),
        use(uses_wipe), use(opened), use(closed);
    if (intent.uses_wipe) {
      soci::statement take =
          (sql_.prepare << "UPDATE wipe_permissions SET used_by = :i WHERE node = :n AND used_by = ''", use(intent.id), use(subject));
      take.execute(true);
      if (take.get_affected_rows() != 1) return fail(ErrorCode::Denied, fmt::format("nobody allows {} to be wiped now", subject));
    }
    return {};
  });
}

Result<void> SqlStore::recordOperation(const std::string& intent_id, const std::string& operation) {
  return write("recording an operation", [&]() -> Result<void> {
    const auto kept = storable(operation);
    soci::statement update =
        (sql_.prepare << "UPDATE intents SET operation = :o WHERE id = :i AND state = 'open'", use(kept), use(intent_id));
    update.execute(true);
    if (update.get_affected_rows() != 1) return fail(ErrorCode::NotFound, fmt::format("the journal has no open intent {}", intent_id));
    return {};
  });
}

Result<void> SqlStore::closeIntent(const std::string& intent_id, IntentState state, const std::string& outcome, WallTime at) {
  return write("closing an intent", [&]() -> Result<void> {
    const auto word = std::string(toString(state)), words = storable(outcome);
    const long long closed = toMillis(at);
    soci::statement update =
        (sql_.prepare << "UPDATE intents SET state = :s, outcome = :o, closed_at_ms = :a WHERE id = :i AND state = 'open'", use(word),
         use(words), use(closed), use(intent_id));
    update.execute(true);
    if (update.get_affected_rows() != 1) return fail(ErrorCode::NotFound, fmt::format("the journal has no open intent {}", intent_id));
    return {};
  });
}

Result<std::vector<Intent>> SqlStore::readIntents(const std::string& where, const std::string& tail, const Subject* subject,
                                                  std::size_t limit) {
  return read("reading the journal", [&]() -> Result<std::vector<Intent>> {
    std::vector<Intent> out;
    std::string id, plan, digest, action, operation, state, outcome;
    long long opened = 0, closed = 0;
    int uses_wipe = 0;
    const long long rows_max = bounded(limit);
    const std::string name = subject ? subject->str() : "";
    soci::statement rows = (sql_.prepare << "SELECT id, plan_hash, inventory_digest, action, operation, state, outcome, uses_wipe, "
                                            "opened_at_ms, closed_at_ms FROM intents"
                                            " WHERE " +
                                                where + (subject ? " AND subject = :s" : " AND :s = ''") + tail + " LIMIT :l",
                            use(name, "s"), use(rows_max, "l"), into(id), into(plan), into(digest), into(action), into(operation),
                            into(state), into(outcome), into(uses_wipe), into(opened), into(closed));
    rows.execute();
    while (rows.fetch()) {
      auto parsed = actionFromJson(nlohmann::json::parse(action, nullptr, false));
      auto known = parseIntentState(state);
      if (!parsed || !known) return fail(unreadable("intent " + id + " cannot be read"));
      out.push_back(
          Intent{id, plan, digest, std::move(*parsed), operation, *known, outcome, uses_wipe != 0, fromMillis(opened), fromMillis(closed)});
    }
    return out;
  });
}

Result<std::vector<Intent>> SqlStore::openIntents() { return readIntents("state = 'open'", " ORDER BY sequence", nullptr, kMaxRows); }

Result<std::vector<Intent>> SqlStore::intentsOf(const Subject& subject, std::size_t limit) {
  return readIntents("sequence > 0", " ORDER BY sequence DESC", &subject, limit);
}

// ---- events and findings -----------------------------------------------------------------------------------------------

Result<std::int64_t> SqlStore::addEvent(const Event& event) {
  return write("storing an event", [&]() -> Result<std::int64_t> {
    const long long at = toMillis(event.at);
    const auto kind = std::string(toString(event.kind)), text = storable(event.text);
    long long sequence = 0;
    sql_ << "INSERT INTO events (at_ms, kind, subject, action_id, text, fraction) VALUES (:a, :k, :s, :i, :t, :f) RETURNING sequence",
        use(at), use(kind), use(event.subject.str()), use(event.action_id), use(text), use(event.fraction), into(sequence);
    return std::int64_t{sequence};
  });
}

Result<std::vector<Event>> SqlStore::readEvents(const std::string& tail, std::int64_t after, std::size_t limit, const Subject* subject) {
  return read("reading events", [&]() -> Result<std::vector<Event>> {
    std::vector<Event> out;
    long long sequence = 0, at = 0;
    const long long rows_max = bounded(limit), first = after;
    std::string kind, name, action_id, text;
    double fraction = -1;
    const std::string wanted = subject ? subject->str() : "";
    const std::string filter = subject ? " AND subject = :s" : " AND :s = ''";
    soci::statement rows =
        (sql_.prepare << "SELECT sequence, at_ms, kind, subject, action_id, text, fraction FROM events WHERE sequence > :a" + filter +
                             tail + " LIMIT :l",
         use(first, "a"), use(wanted, "s"), use(rows_max, "l"), into(sequence), into(at), into(kind), into(name), into(action_id),
         into(text), into(fraction));
    rows.execute();
    while (rows.fetch())
      out.push_back(
          Event{sequence, fromMillis(at), parseEventKind(kind).value_or(EventKind::Note), Subject::parse(name), action_id, text, fraction});
    return out;
  });
}

Result<std::vector<Event>> SqlStore::events(std::int64_t after_sequence, std::size_t limit, const Subject* subject) {
  return readEvents(" ORDER BY sequence", after_sequence, limit, subject);
}

Result<std::vector<Event>> SqlStore::lastEvents(std::size_t limit, const Subject* subject) {
  TRY(events, readEvents(" ORDER BY sequence DESC", 0, limit, subject));
  return std::vector<Event>(events.rbegin(), events.rend());
}

Result<void> SqlStore::addFinding(const Finding& finding) {
  return write("storing a finding", [&]() -> Result<void> {
    const long long at = toMillis(finding.at);
    const int severity = static_cast<int>(finding.severity);
    const auto text = storable(finding.text), evidence = storable(finding.evidence), what_to_do = storable(finding.what_to_do);
    sql_ << "INSERT INTO findings (subject, facet, severity, text, evidence, what_to_do, at_ms) VALUES (:s, :f, :v, :t, :e, :w, :a)",
        use(finding.facet.subject.str()), use(finding.facet.facet.str()), use(severity), use(text), use(evidence), use(what_to_do), use(at);
    return {};
  });
}

Result<std::vector<Finding>> SqlStore::findings(const Subject* subject) {
  return read("reading findings", [&]() -> Result<std::vector<Finding>> {
    std::vector<Finding> out;
    std::string name, facet, text, evidence, what_to_do;
    int severity = 0;
    long long at = 0;
    const std::string wanted = subject ? subject->str() : "";
    const std::string filter = subject ? "subject = :s" : ":s = ''";
    soci::statement rows =
        (sql_.prepare << "SELECT subject, facet, severity, text, evidence, what_to_do, at_ms FROM findings WHERE " + filter +
                             " ORDER BY sequence DESC",
         use(wanted, "s"), into(name), into(facet), into(severity), into(text), into(evidence), into(what_to_do), into(at));
    rows.execute();
    while (rows.fetch())
      out.push_back(Finding{{Subject::parse(name), FacetName(facet)},
                            static_cast<Severity>(std::clamp(severity, 0, 2)),
                            text,
                            evidence,
                            what_to_do,
                            fromMillis(at)});
    return out;
  });
}

Result<void> SqlStore::clearFindings(const FacetRef& facet) {
  return write("clearing findings", [&]() -> Result<void> {
    sql_ << "DELETE FROM findings WHERE subject = :s AND facet = :f", use(facet.subject.str()), use(facet.facet.str());
    return {};
  });
}

}  // namespace muster::lifecycle::sql
