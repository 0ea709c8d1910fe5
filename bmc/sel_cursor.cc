// SPDX-License-Identifier: Apache-2.0
#include "bmc/sel_cursor.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::bmc {

using nlohmann::json;

bool isSignificant(const std::string& severity) {
  return severity == "Critical" || severity == "Warning";
}

EventLogCursor EventLogCursor::parse(const std::string& text) {
  EventLogCursor mark;
  const auto root = jsonOrNone(text, kKeptJson);
  if (!root.is_object()) return mark;
  mark.met = root.value("met", true);
  mark.id = root.value("id", "");
  mark.created = root.value("created", "");
  for (const auto& entry : root.value("kept", json::array()))
    if (const auto seen = parseWallTime(entry.value("seen", "")); seen)
      mark.kept.push_back({*seen, entry.value("created", ""), entry.value("severity", ""),
                           entry.value("message", ""), entry.value("event", false)});
  return mark;
}

std::string EventLogCursor::str() const {
  json out = {{"met", met}, {"id", id}, {"created", created}, {"kept", json::array()}};
  for (const auto& entry : kept)
    out["kept"].push_back({{"seen", muster::toString(entry.seen)},
                           {"created", entry.created},
                           {"severity", entry.severity},
                           {"message", entry.message},
                           {"event", entry.from_event}});
  return jsonText(out);
}

/// A log entry takes the place of the event that told it first. An event told twice has the same
/// time of its own.
bool EventLogCursor::isKept(const LogEntry& entry, WallTime now, bool as_event) {
  const auto same = [&](const Kept& other) {
    if (other.message != entry.message || other.severity != entry.severity) return false;
    if (as_event && other.created == entry.created) return true;
    return other.from_event != as_event && now - other.seen <= kSameEventWithin;
  };
  const auto found = std::find_if(kept.begin(), kept.end(), same);
  if (found == kept.end()) return false;
  if (!as_event) {
    found->from_event = false;
    found->created = entry.created;
  }
  return true;
}

void EventLogCursor::keep(const LogEntry& entry, WallTime now, bool from_event) {
  kept.push_back({now, entry.created, entry.severity, entry.message, from_event});
  if (kept.size() > kLogKept) kept.erase(kept.begin(), kept.end() - kLogKept);
}

bool EventLogCursor::take(const std::vector<LogEntry>& entries, WallTime now) {
  std::erase_if(kept, [&](const Kept& entry) { return now - entry.seen > kLogFindingFor; });
  if (entries.empty()) return false;
  auto next = std::find_if(entries.rbegin(), entries.rend(), [this](const LogEntry& entry) {
                return entry.id == id && entry.created == created;
              }).base();
  if (next == entries.begin() && !met)
    next = entries.end();  // else: the log was cleared, or more is new than was read
  bool news = false;
  for (; next != entries.end(); ++next) {
    if (!isSignificant(next->severity) || isKept(*next, now, false)) continue;
    keep(*next, now, false);
    news = true;
  }
  met = true;
  id = entries.back().id;
  created = entries.back().created;
  return news;
}

bool EventLogCursor::takeEvents(const std::vector<LogEntry>& events, WallTime now) {
  bool news = false;
  for (const auto& event : events) {
    if (!isSignificant(event.severity) || isKept(event, now, true)) continue;
    keep(event, now, true);
    news = true;
  }
  return news;
}

}  // namespace muster::bmc
