// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/events.h"

#include "bmc/redfish/log_content.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxLogs = 32;  ///< of one owner
constexpr std::size_t kMaxEntriesListed =
    4'000;                            ///< of a log; BMCs keep some hundred to some thousand
constexpr std::size_t kSampled = 16;  ///< entries by which a log is evaluated
constexpr std::size_t kMaxBaseboards = 4;

/// A baseboard says "later" for as long as its host is off.
RedfishSession::Busy patience(bool baseboard) {
  return baseboard ? RedfishSession::Busy::Answer : RedfishSession::Busy::Wait;
}

}  // namespace

Async<std::vector<RedfishEvents::Log>> RedfishEvents::logsOf(ResourceUris at) {
  std::vector<std::string> owners{at.system, at.manager};
  const auto optional = owners.size();
  at.baseboards.resize(std::min(at.baseboards.size(), kMaxBaseboards));
  owners.insert(owners.end(), at.baseboards.begin(), at.baseboards.end());
  std::vector<Log> out;
  std::set<std::string> met;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const bool baseboard = i >= optional;
    // Its logs are read when its host is on.
    const auto isLeftOut = [baseboard](const Error& why) {
      return baseboard && why.code() != ErrorCode::Denied;
    };
    auto resource = co_await resources_.session().get(owners[i], RedfishSession::kRequestTimeout,
                                                      patience(baseboard));
    if (!resource && isLeftOut(resource.error())) continue;
    if (!resource) co_return fail(std::move(resource.error()));
    const auto services = linkAt(resource->body, "LogServices");
    if (services.empty() || !met.insert(services).second) continue;  // Lenovo: both link the same
    auto logs = co_await resources_.members(services, kMaxLogs, RedfishSession::kRequestTimeout,
                                            RedfishResources::Want::AsListed, patience(baseboard));
    if (!logs && isLeftOut(logs.error())) continue;
    if (!logs) co_return fail(std::move(logs.error()));
    for (const Member& log : logs->found) {
      auto entries = linkAt(log.json, "Entries");  // Lenovo links none while there are none
      if (!entries.empty())
        out.push_back({log.uri, std::move(entries), declaredScore(log.json), baseboard});
    }
  }
  co_return out;
}

Async<std::optional<std::vector<Json>>> RedfishEvents::hardwareEntries(Log log) {
  const auto* known = hardware_.get(resources_);
  auto kinds = known ? *known : std::map<std::string, bool>();
  const auto kind = kinds.find(log.uri);
  if (kind != kinds.end() && !kind->second) co_return std::nullopt;
  CO_TRY(at, co_await resources_.uris());
  const auto read = [this, &log, &at](std::size_t limit) {
    return resources_.members(log.entries, limit, at.quirks.inventory_read,
                              RedfishResources::Want::FirstPages, patience(log.baseboard));
  };
  const bool known_kind = kind != kinds.end();
  CO_TRY(entries, co_await read(known_kind ? kMaxEntriesListed : kSampled));
  std::vector<Json> out;
  if (entries.found.empty())
    co_return known_kind || log.declared > 0 ? std::optional(std::move(out)) : std::nullopt;
  const bool declared = log.declared >= kDeclared;
  const auto isHardware = [declared](const Member& entry) {
    return isHardwareEntry(entry.json).value_or(declared);
  };
  if (!known_kind) {
    const bool hardware = std::ranges::any_of(entries.found, isHardware);
    kinds[log.uri] = hardware;
    hardware_.set(resources_, std::move(kinds));
    if (!hardware) co_return std::nullopt;
    if (entries.found.size() + entries.unread.size() >= kSampled) {
      CO_TRY(all, co_await read(kMaxEntriesListed));
      entries = std::move(all);
    }
  }
  for (Member& entry : entries.found)
    if (isHardware(entry)) out.push_back(std::move(entry.json));
  co_return out;
}

Async<EventLog> RedfishEvents::eventLog(std::size_t limit) {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(logs, co_await logsOf(at));
  const auto older = [](const LogEntry& a, const LogEntry& b) { return a.created < b.created; };
  EventLog out;
  std::optional<Error>
      unread;  // of one log: the others count (a DGX's DecodedLog is never readable)
  for (Log& log : logs) {
    auto read = co_await hardwareEntries(log);
    if (!read && read.error().code() == ErrorCode::Denied) co_return fail(std::move(read.error()));
    if (!read && read.error().code() != ErrorCode::NotFound)  // else: linked, and not there
      unread = std::move(read.error());
    if (!read || !*read) continue;
    std::vector<LogEntry> entries;
    for (const Json& entry : **read) {
      entries.push_back(logEntryOf(entry));
      entries.back().log = log.uri;
    }
    // RFC 3339 of one clock sorts as text; which end a BMC lists first differs.
    std::ranges::stable_sort(entries, older);
    if (entries.size() > limit)
      entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(limit));
    std::ranges::move(entries, std::back_inserter(out.entries));
    out.logs.push_back(std::move(log.uri));
  }
  if (out.logs.empty() && unread) co_return fail(std::move(*unread));
  if (out.logs.empty())
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + address() + " shows no log of its hardware");
  std::ranges::stable_sort(out.entries, older);
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
      [this, &reader, &stands, &opened, &told](std::string_view piece) -> Result<void> {
    if (!std::exchange(stands, true)) opened();
    TRY(events, reader.take(piece));
    for (const auto& event : events) {
      auto body = parseLenient(event.data);
      resources_.session().withhold(body);
      if (auto entries = entriesOf(body); !entries.empty()) told(std::move(entries));
    }
    return {};
  };
  auto ended = co_await resources_.session().stream(uri, from.last_id, std::move(sink));
  if (!reader.lastId().empty()) from.last_id = reader.lastId();
  if (reader.retry()) from.reconnect_after = *reader.retry();
  if (!ended && !stands) co_return fail(std::move(ended.error()));
  co_return from;  // broken off by a restart, or by silence: the next one goes on from there
}

}  // namespace muster::bmc
