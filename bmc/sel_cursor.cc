// SPDX-License-Identifier: Apache-2.0
#include "bmc/sel_cursor.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::bmc {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxMarks = 256;
constexpr const char* kUnnamed = "";

}  // namespace

bool isSignificant(const std::string& severity) {
  return severity == "Critical" || severity == "Warning";
}

EventLogCursor EventLogCursor::parse(const std::string& text) {
  EventLogCursor mark;
  const auto root = jsonOrNone(text, kKeptJson);
  if (!root.is_object()) return mark;
  // Before there were several logs, their one mark had no name.
  if (root.contains("id")) mark.marks[kUnnamed] = {root.value("id", ""), root.value("created", "")};
  const auto logs = root.value("logs", json::object());
  for (const auto& [name, at] : logs.items())
    if (at.is_object() && mark.marks.size() < kMaxMarks)
      mark.marks[name] = {at.value("id", ""), at.value("created", "")};
  for (const auto& entry : root.value("kept", json::array()))
    if (const auto seen = parseWallTime(entry.value("seen", "")); seen)
      mark.kept.push_back({*seen, entry.value("created", ""), entry.value("severity", ""),
                           entry.value("message", ""), entry.value("event", false),
                           entry.value("log", ""), entry.value("resolution", "")});
  return mark;
}

std::string EventLogCursor::str() const {
  json out = {{"logs", json::object()}, {"kept", json::array()}};
  for (const auto& [name, at] : marks) out["logs"][name] = {{"id", at.id}, {"created", at.created}};
  for (const auto& entry : kept)
    out["kept"].push_back({{"seen", muster::toString(entry.seen)},
                           {"created", entry.created},
                           {"severity", entry.severity},
                           {"message", entry.message},
                           {"event", entry.from_event},
                           {"log", entry.log},
                           {"resolution", entry.resolution}});
  return jsonText(out);
}

/// A log entry takes the place of the event that told it first. An event told twice, and an entry
/// that stands in two logs, have the same time of their own.
bool EventLogCursor::isKept(const LogEntry& entry, WallTime now, bool as_event) {
  const auto same = [&](const Kept& other) {
    if (other.message != entry.message || other.severity != entry.severity) return false;
    if (other.created == entry.created && (as_event || other.log != entry.log)) return true;
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
  kept.push_back(
      {now, entry.created, entry.severity, entry.message, from_event, entry.log, entry.resolution});
  if (kept.size() > kLogKept) kept.erase(kept.begin(), kept.end() - kLogKept);
}

bool EventLogCursor::take(const EventLog& log, WallTime now) {
  std::erase_if(kept, [&](const Kept& entry) { return now - entry.seen > kLogFindingFor; });
  bool news = false;
  for (const auto& name : log.logs) news = takeOne(name, log, now) || news;
  if (!log.logs.empty() && std::ranges::find(log.logs, kUnnamed) == log.logs.end())
    marks.erase(kUnnamed);
  return news;
}

bool EventLogCursor::takeOne(const std::string& name, const EventLog& log, WallTime now) {
  std::vector<const LogEntry*> entries;
  for (const auto& entry : log.entries)
    if (entry.log == name) entries.push_back(&entry);
  auto mark = marks.find(name);
  const bool met = mark != marks.end();
  if (!met) mark = marks.find(kUnnamed);
  if (!met && marks.size() >= kMaxMarks) return false;
  auto next = entries.end();
  if (mark != marks.end()) {
    next = std::find_if(entries.rbegin(), entries.rend(), [&](const LogEntry* entry) {
             return entry->id == mark->second.id && entry->created == mark->second.created;
           }).base();
    if (next == entries.begin() && !met)
      next = entries.end();  // else: the log was cleared, or more is new than was read
  }
  bool news = false;
  for (; next != entries.end(); ++next) {
    if (!isSignificant((*next)->severity) || isKept(**next, now, false)) continue;
    keep(**next, now, false);
    news = true;
  }
  if (!entries.empty())
    marks[name] = {entries.back()->id, entries.back()->created};
  else if (!met)
    marks[name] = {};
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
