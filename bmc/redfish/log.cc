// SPDX-License-Identifier: Apache-2.0
// The system event log: what an on-call person asks a BMC for when nothing else explains a node.
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>
#include <array>

namespace muster::bmc {
namespace {

constexpr std::size_t kMaxLogs = 32;
constexpr std::size_t kMaxEntriesListed =
    4'000;  ///< of a log; BMCs keep some hundred to some thousand

/// How much a log looks like the hardware's event log. Its name differs: Dell Sel, Supermicro and
/// AMI SEL or Log1, HPE IML, OpenBMC EventLog.
int logScore(const Json& log) {
  if (textAt(log, "LogEntryType") == "SEL") return 3;
  constexpr std::array<std::string_view, 6> kNames = {"Sel",  "SEL",      "IML",
                                                      "Log1", "EventLog", "IEL"};
  const auto at = std::find(kNames.begin(), kNames.end(), textAt(log, "Id"));
  return at == kNames.end() ? 0 : at - kNames.begin() < 3 ? 2 : 1;
}

}  // namespace

/// A BMC that cannot even end a session has lost it already: the next request logs in.
Async<void> RedfishBmc::newSession() {
  forgetPlaces();
  macs_.reset();
  (void)co_await session_->close();
  co_return Result<void>();
}

Async<std::vector<LogEntry>> RedfishBmc::eventLog(std::size_t limit) {
  CO_TRY(at, co_await places());
  std::optional<Json> best;
  for (const auto& owner : {at.system, at.manager}) {
    CO_TRY(resource, co_await session_->get(owner));
    const auto services = linkAt(resource.body, "LogServices");
    if (services.empty()) continue;
    CO_TRY(logs, co_await members(services, kMaxLogs, RedfishSession::kRequestTimeout));
    for (auto& log : logs.found)
      if (logScore(log.json) > (best ? logScore(*best) : 0)) best = std::move(log.json);
  }
  if (!best)
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " shows no system event log");
  CO_TRY(entries,
         co_await members(linkAt(*best, "Entries"), kMaxEntriesListed, at.quirks.inventory_read));
  std::vector<LogEntry> out;
  for (const auto& entry : entries.found)
    out.push_back({textAt(entry.json, "Id"), textAt(entry.json, "Created"),
                   textAt(entry.json, "Severity"), textAt(entry.json, "Message")});
  // RFC 3339 of one clock sorts as text; which end a BMC lists first differs.
  std::stable_sort(out.begin(), out.end(),
                   [](const LogEntry& a, const LogEntry& b) { return a.created < b.created; });
  if (out.size() > limit) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(limit));
  co_return out;
}

}  // namespace muster::bmc
