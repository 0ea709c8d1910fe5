// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/events.h"

#include <algorithm>
#include <array>
#include <functional>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxLogs = 32;
constexpr std::size_t kMaxEntriesListed =
    4'000;  ///< of a log; BMCs keep some hundred to some thousand

/// How much a log looks like the hardware's event log. Its name differs: Dell Sel, Supermicro and
/// AMI SEL or Log1, HPE IML, OpenBMC EventLog. Its type alone says little: iDRAC gives it to
/// FaultList and AMI to BIOS too, and both are empty (captures).
int logScore(const Json& log) {
  constexpr std::array<std::string_view, 6> kNames = {"Sel",  "SEL",      "IML",
                                                      "Log1", "EventLog", "IEL"};
  const auto at = std::find(kNames.begin(), kNames.end(), textAt(log, "Id"));
  const int named = at == kNames.end() ? 0 : at - kNames.begin() < 3 ? 2 : 1;
  return (textAt(log, "LogEntryType") == "SEL" ? 3 : 0) + named;
}

}  // namespace

Async<std::vector<LogEntry>> RedfishEvents::eventLog(std::size_t limit) {
  CO_TRY(at, co_await resources_.uris());
  std::vector<Json> candidates;
  for (const auto& owner : {at.system, at.manager}) {
    CO_TRY(resource, co_await resources_.session().get(owner));
    const auto services = linkAt(resource.body, "LogServices");
    if (services.empty()) continue;
    CO_TRY(logs, co_await resources_.members(services, kMaxLogs));
    for (auto& log : logs.found)
      if (logScore(log.json) > 0 && !linkAt(log.json, "Entries").empty())
        candidates.push_back(std::move(log.json));  // Lenovo links no entries while there are none
  }
  if (candidates.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no system event log");
  std::ranges::stable_sort(candidates, std::ranges::greater(), logScore);
  std::vector<LogEntry> out;
  for (const auto& log : candidates) {  // the first that has something to say
    CO_TRY(entries, co_await resources_.members(linkAt(log, "Entries"), kMaxEntriesListed,
                                                at.quirks.inventory_read));
    for (const auto& entry : entries.found)
      out.push_back({textAt(entry.json, "Id"), textAt(entry.json, "Created"),
                     textAt(entry.json, "Severity"), textAt(entry.json, "Message")});
    if (!out.empty()) break;
  }
  // RFC 3339 of one clock sorts as text; which end a BMC lists first differs.
  std::stable_sort(out.begin(), out.end(),
                   [](const LogEntry& a, const LogEntry& b) { return a.created < b.created; });
  if (out.size() > limit) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(limit));
  co_return out;
}

// ---- the stream, found by the EventService

Async<EventStreamPosition> RedfishEvents::listen(EventStreamPosition from,
                                                 std::function<void()> opened,
                                                 std::function<void(std::vector<LogEntry>)> told) {
  CO_TRY(root, co_await resources_.session().get("/redfish/v1/"));
  const auto path = linkAt(root.body, "EventService");
  if (path.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " has no EventService");
  // With the login, so that the token below holds.
  CO_TRY(service, co_await resources_.session().get(path));
  const auto uri = pathOnly(textAt(service.body, "ServerSentEventUri"));
  if (uri.empty() || !boolAt(service.body, "ServiceEnabled").value_or(true))
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " offers no stream of events");
  EventReader reader;
  bool stands = false;
  std::function<Result<void>(std::string_view)> sink =
      [&reader, &stands, &opened, &told](std::string_view piece) -> Result<void> {
    if (!std::exchange(stands, true)) opened();
    TRY(events, reader.take(piece));
    for (const auto& event : events)
      if (auto entries = entriesOf(parseLenient(event.data)); !entries.empty())
        told(std::move(entries));
    return {};
  };
  auto ended = co_await resources_.session().stream(uri, from.last_id, std::move(sink));
  if (!reader.lastId().empty()) from.last_id = reader.lastId();
  if (reader.retry()) from.reconnect_after = *reader.retry();
  if (!ended && !stands) co_return fail(std::move(ended.error()));
  co_return from;  // broken off by a restart, or by silence: the next one goes on from there
}

}  // namespace muster::bmc
