// SPDX-License-Identifier: Apache-2.0
// The log of events with its chain of hashes, and who asked for what.
//
// Appending to the chain locks its head, so that entries of several controllers form one chain.
// Progress is not chained.
#include "base/json_input.h"
#include "base/json_output.h"
#include "lifecycle/audit/audit.h"
#include "lifecycle/model/json.h"
#include "lifecycle/store/sql/sql_store.h"

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

namespace {
constexpr std::string_view kArchivedKey =
    "audit.archived";  ///< {link, hash} of the last archived entry
}

// ---- events
// ------------------------------------------------------------------------------------------------------------

Result<std::int64_t> SqlStore::addEvent(const Event& event) {
  return write("storing an event", [&]() -> Result<std::int64_t> {
    Event kept = event;
    kept.text = storable(event.text);
    AuditEntry entry{kept, 0, ""};
    if (isChained(event.kind)) {
      auto& last = head();
      entry.link = last.link + 1;
      entry.hash = chainHash(last.hash, entry);
      last = Head{entry.link, entry.hash, true};
    }
    long long sequence = 0;
    ask("INSERT INTO events (at_ms, kind, subject, action_id, text, fraction, link, hash) VALUES "
        "(:a, :k, :s, :i, :t, :f, :l, :h)"
        " RETURNING sequence",
        std::tie(sequence), toMillis(event.at), std::string(toString(event.kind)),
        event.subject.str(), event.action_id, kept.text, event.fraction, entry.link, entry.hash);
    return std::int64_t{sequence};
  });
}

/// The end of the chain, ours until the transaction ends.
SqlStore::Head& SqlStore::head() {
  if (head_) return *head_;
  Head read;
  ask(std::string("SELECT link, hash FROM audit_head WHERE one = 1") + backend_->takeRow(),
      std::tie(read.link, read.hash));
  return head_.emplace(std::move(read));
}

void SqlStore::storeHead() {
  if (head_ && std::exchange(head_->moved, false))
    run("UPDATE audit_head SET link = :l, hash = :h WHERE one = 1", head_->link, head_->hash);
}

Result<std::vector<Event>> SqlStore::readEvents(const std::string& tail, std::int64_t after,
                                                std::size_t limit, const Subject* subject) {
  return read("reading events", [&]() -> Result<std::vector<Event>> {
    std::vector<Event> out;
    long long sequence = 0, at = 0;
    const long long rows_max = bounded(limit), first = after;
    std::string kind, name, action_id, text;
    double fraction = -1;
    const std::string wanted = subject ? subject->str() : "";
    const std::string filter = subject ? " AND subject = :s" : " AND :s = ''";
    soci::statement rows =
        (sql_.prepare << "SELECT sequence, at_ms, kind, subject, action_id, text, fraction FROM "
                         "events WHERE sequence > :a" +
                             filter + tail + " LIMIT :l",
         use(first, "a"), use(wanted, "s"), use(rows_max, "l"), into(sequence), into(at),
         into(kind), into(name), into(action_id), into(text), into(fraction));
    rows.execute();
    while (rows.fetch())
      out.push_back(Event{sequence, fromMillis(at), parseEventKind(kind).value_or(EventKind::Note),
                          Subject::parse(name), action_id, text, fraction});
    return out;
  });
}

Result<std::vector<Event>> SqlStore::events(std::int64_t after_sequence, std::size_t limit,
                                            const Subject* subject) {
  return readEvents(" ORDER BY sequence", after_sequence, limit, subject);
}

Result<std::vector<Event>> SqlStore::lastEvents(std::size_t limit, const Subject* subject) {
  TRY(events, readEvents(" ORDER BY sequence DESC", 0, limit, subject));
  return std::vector<Event>(events.rbegin(), events.rend());
}

// ---- the chain
// ---------------------------------------------------------------------------------------------------------

Result<std::vector<AuditEntry>> SqlStore::auditTrail(std::int64_t after_sequence,
                                                     std::size_t limit) {
  return read("reading the log", [&]() -> Result<std::vector<AuditEntry>> {
    std::vector<AuditEntry> out;
    const long long first = after_sequence, rows_max = bounded(limit);
    long long sequence = 0, at = 0, link = 0;
    std::string kind, subject, action_id, text, hash;
    double fraction = -1;
    soci::statement rows =
        (sql_.prepare << "SELECT sequence, at_ms, kind, subject, action_id, text, fraction, link, "
                         "hash FROM events"
                         " WHERE sequence > :a ORDER BY sequence LIMIT :l",
         use(first), use(rows_max), into(sequence), into(at), into(kind), into(subject),
         into(action_id), into(text), into(fraction), into(link), into(hash));
    rows.execute();
    while (rows.fetch()) {
      const Event event{sequence,
                        fromMillis(at),
                        parseEventKind(kind).value_or(EventKind::Note),
                        Subject::parse(subject),
                        action_id,
                        text,
                        fraction};
      out.push_back(AuditEntry{event, link, hash});
    }
    return out;
  });
}

Result<AuditEnds> SqlStore::auditEnds() {
  TRY(archived, getValue(std::string(kArchivedKey)));
  return read("reading the log's ends", [&]() -> Result<AuditEnds> {
    AuditEnds out;
    if (archived) {
      const auto mark = jsonOrNone(*archived, kKeptJson);
      if (!mark.is_object())
        return fail(unreadable("the record of the archived part of the log is lost"));
      out.archived = {mark.value("link", std::int64_t{0}), mark.value("hash", "")};
    }
    long long begins_after = 0, link = 0;
    soci::statement row =
        (sql_.prepare << "SELECT begins_after, link, hash FROM audit_head WHERE one = 1",
         into(begins_after), into(link), into(out.hash));
    row.execute();
    if (!row.fetch()) return fail(unreadable("the head of the log is gone"));
    out.begins_after = begins_after;
    out.link = link;
    return out;
  });
}

Result<void> SqlStore::dropArchived(std::int64_t through_sequence, const AuditMark& end) {
  return write("letting go of archived events", [&]() -> Result<void> {
    (void)head();  // whoever appends waits until this is done
    long long link = 0;
    std::string hash;
    const long long through = through_sequence;
    soci::statement row = (sql_.prepare << "SELECT link, hash FROM events WHERE sequence = :s",
                           use(through), into(link), into(hash));
    row.execute();
    if (!row.fetch() || link != end.link || hash != end.hash)
      return fail(
          ErrorCode::Conflict,
          fmt::format(
              "the log has no entry #{} with link {} and the archive's hash; nothing was dropped",
              through, end.link));
    sql_ << "DELETE FROM events WHERE sequence <= :s", use(through);
    sql_ << "UPDATE audit_head SET begins_after = :s WHERE one = 1", use(through);
    const std::string key(kArchivedKey),
        mark = jsonText(nlohmann::json{{"link", end.link}, {"hash", end.hash}});
    sql_ << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO UPDATE SET value = "
            "excluded.value",
        use(key), use(mark);
    return {};
  });
}

// ---- requests
// ----------------------------------------------------------------------------------------------------------

Result<void> SqlStore::openRequest(const Request& request) {
  return write("storing who asked", [&]() -> Result<void> {
    const long long at = toMillis(request.at);
    const auto user = storable(request.user), host = storable(request.host),
               command = storable(request.command);
    sql_ << "INSERT INTO requests (id, at_ms, asked_by, host, command, plan_hash, outcome, "
            "ended_at_ms)"
            " VALUES (:i, :a, :u, :h, :c, :p, '', 0)",
        use(request.id), use(at), use(user), use(host), use(command), use(request.plan_hash);
    return {};
  });
}

Result<void> SqlStore::closeRequest(const std::string& id, const std::string& outcome,
                                    WallTime at) {
  return write("storing how a request ended", [&]() -> Result<void> {
    const long long ended = toMillis(at);
    const auto words = storable(outcome);
    soci::statement update =
        (sql_.prepare << "UPDATE requests SET outcome = :o, ended_at_ms = :a WHERE id = :i",
         use(words), use(ended), use(id));
    update.execute(true);
    if (update.get_affected_rows() != 1)
      return fail(ErrorCode::NotFound, "there is no request " + id);
    return {};
  });
}

Result<std::vector<Request>> SqlStore::requests(std::size_t limit) {
  return read("reading requests", [&]() -> Result<std::vector<Request>> {
    std::vector<Request> out;
    const long long rows_max = bounded(limit);
    Request row;
    long long at = 0, ended = 0;
    soci::statement rows = (sql_.prepare << "SELECT id, at_ms, asked_by, host, command, plan_hash, "
                                            "outcome, ended_at_ms FROM requests"
                                            " ORDER BY sequence DESC LIMIT :l",
                            use(rows_max), into(row.id), into(at), into(row.user), into(row.host),
                            into(row.command), into(row.plan_hash), into(row.outcome), into(ended));
    rows.execute();
    while (rows.fetch()) {
      row.at = fromMillis(at);
      row.ended_at = fromMillis(ended);
      out.push_back(row);
    }
    return out;
  });
}

}  // namespace muster::lifecycle::sql
