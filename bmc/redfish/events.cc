// SPDX-License-Identifier: Apache-2.0
// Listening to a BMC: found by its EventService, held open beside all requests.
#include "bmc/redfish/redfish_bmc.h"

namespace muster::bmc {

Async<EventStreamPosition> RedfishBmc::listen(EventStreamPosition from,
                                              std::function<void()> opened,
                                              std::function<void(std::vector<LogEntry>)> told) {
  CO_TRY(root, co_await session_->get("/redfish/v1/"));
  const auto path = linkAt(root.body, "EventService");
  if (path.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + address() + " has no EventService");
  auto read = session_->get(path);  // with the login, so that the token below holds
  CO_TRY(service, co_await std::move(read));
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
  auto ended = co_await session_->stream(uri, from.last_id, std::move(sink));
  if (!reader.lastId().empty()) from.last_id = reader.lastId();
  if (reader.retry()) from.reconnect_after = *reader.retry();
  if (!ended && !stands) co_return fail(std::move(ended.error()));
  co_return from;  // broken off by a restart, or by silence: the next one goes on from there
}

}  // namespace muster::bmc
