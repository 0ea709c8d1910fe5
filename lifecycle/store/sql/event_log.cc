// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/event_log.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "lifecycle/model/json.h"

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

namespace {

constexpr std::string_view kArchivedKey =
    "audit.archived";  ///< {link, hash} of the last archived entry

}  // namespace

Result<std::int64_t> EventLog::addEvent(const Event& event) {
  return db_.write("storing an event", [&]() -> Result<std::int64_t> { return append(event); });
}

Result<std::int64_t> EventLog::append(const Event& event) {
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
  db_.ask(
      "INSERT INTO events (at_ms, kind, subject, action_id, text, fraction, link, hash) VALUES "
      "(:a, :k, :s, :i, :t, :f, :l, :h)"
      " RETURNING sequence",
      std::tie(sequence), toMillis(event.at), std::string(toString(event.kind)),
      event.subject.str(), event.action_id, kept.text, event.fraction, entry.link, entry.hash);
  return std::int64_t{sequence};
}

EventLog::Head& EventLog::head() {
  if (head_) return *head_;
  Head read;
  db_.ask(std::string("SELECT link, hash FROM audit_head WHERE one = 1") + db_.backend().takeRow(),
          std::tie(read.link, read.hash));
  return head_.emplace(std::move(read));
}

void EventLog::commits() {
  if (head_ && std::exchange(head_->moved, false))
    db_.run("UPDATE audit_head SET link = :l, hash = :h WHERE one = 1", head_->link, head_->hash);
}

Result<std::vector<Event>> EventLog::readEvents(const std::string& tail, std::int64_t after,
                                                std::size_t limit, const Subject* subject) {
  return db_.read("reading events", [&]() -> Result<std::vector<Event>> {
    std::vector<Event> out;
    long long sequence = 0, at = 0;
    const long long rows_max = bounded(limit), first = after;
    std::string kind, name, action_id, text;
    double fraction = -1;
    const std::string wanted = subject ? subject->str() : "";
    const std::string filter = subject ? " AND subject = :s" : " AND :s = ''";
    db_.each(
        "SELECT sequence, at_ms, kind, subject, action_id, text, fraction FROM events WHERE "
        "sequence > :a" +
            filter + tail + " LIMIT :l",
        std::tie(sequence, at, kind, name, action_id, text, fraction),
        [&] {
          out.push_back(Event{sequence, fromMillis(at),
                              parseEventKind(kind).value_or(EventKind::Note), Subject::parse(name),
                              action_id, text, fraction});
        },
        first, wanted, rows_max);
    return out;
  });
}

Result<std::vector<Event>> EventLog::events(std::int64_t after_sequence, std::size_t limit,
                                            const Subject* subject) {
  return readEvents(" ORDER BY sequence", after_sequence, limit, subject);
}

Result<std::vector<Event>> EventLog::lastEvents(std::size_t limit, const Subject* subject) {
  TRY(events, readEvents(" ORDER BY sequence DESC", 0, limit, subject));
  return std::vector<Event>(events.rbegin(), events.rend());
}

Result<std::vector<AuditEntry>> EventLog::auditTrail(std::int64_t after_sequence,
                                                     std::size_t limit) {
  return db_.read("reading the log", [&]() -> Result<std::vector<AuditEntry>> {
    std::vector<AuditEntry> out;
    const long long first = after_sequence, rows_max = bounded(limit);
    long long sequence = 0, at = 0, link = 0;
    std::string kind, subject, action_id, text, hash;
    double fraction = -1;
    soci::statement rows =
        (db_.sql().prepare
             << "SELECT sequence, at_ms, kind, subject, action_id, text, fraction, link, "
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

Result<AuditEnds> EventLog::auditEnds() {
  TRY(archived, values_.getValue(std::string(kArchivedKey)));
  return db_.read("reading the log's ends", [&]() -> Result<AuditEnds> {
    AuditEnds out;
    if (archived) {
      const auto mark = jsonOrNone(*archived, kKeptJson);
      if (!mark.is_object())
        return fail(db_.unreadable("the record of the archived part of the log is lost"));
      out.archived = {mark.value("link", std::int64_t{0}), mark.value("hash", "")};
    }
    long long begins_after = 0, link = 0;
    soci::statement row =
        (db_.sql().prepare << "SELECT begins_after, link, hash FROM audit_head WHERE one = 1",
         into(begins_after), into(link), into(out.hash));
    row.execute();
    if (!row.fetch()) return fail(db_.unreadable("the head of the log is gone"));
    out.begins_after = begins_after;
    out.link = link;
    return out;
  });
}

Result<void> EventLog::dropArchived(std::int64_t through_sequence, const AuditMark& end) {
  return db_.write("letting go of archived events", [&]() -> Result<void> {
    (void)head();  // whoever appends waits until this is done
    long long link = 0;
    std::string hash;
    const long long through = through_sequence;
    soci::statement row = (db_.sql().prepare << "SELECT link, hash FROM events WHERE sequence = :s",
                           use(through), into(link), into(hash));
    row.execute();
    if (!row.fetch() || link != end.link || hash != end.hash)
      return fail(
          ErrorCode::Conflict,
          fmt::format(
              "the log has no entry #{} with link {} and the archive's hash; nothing was dropped",
              through, end.link));
    db_.sql() << "DELETE FROM events WHERE sequence <= :s", use(through);
    db_.sql() << "UPDATE audit_head SET begins_after = :s WHERE one = 1", use(through);
    const std::string key(kArchivedKey),
        mark = jsonText(nlohmann::json{{"link", end.link}, {"hash", end.hash}});
    db_.sql()
        << "INSERT INTO vals (key, value) VALUES (:k, :v) ON CONFLICT (key) DO UPDATE SET value = "
           "excluded.value",
        use(key), use(mark);
    return {};
  });
}

void EventLog::dropOldEvents() {
  const auto keep = static_cast<long long>(kMaxStoredEvents);
  db_.sql() << "DELETE FROM events WHERE hash = '' AND sequence <= (SELECT max(sequence) FROM "
               "events) - :keep",
      use(keep);
}

}  // namespace muster::lifecycle::sql
