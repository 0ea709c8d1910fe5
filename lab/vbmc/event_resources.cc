// SPDX-License-Identifier: Apache-2.0
// Events of a virtual BMC: the EventService, and a stream of Server-Sent Events. An answer holds
// what happened since the id that the client names, or waits for it; then it ends, and the client
// comes back, as DSP0266 lets it after any end of the stream.
#include "base/json_output.h"
#include "lab/vbmc/redfish_service.h"
#include "lab/vbmc/resource_parts.h"

#include <charconv>

namespace muster::lab::vbmc {

namespace {

constexpr std::chrono::milliseconds kEventPoll{100}, kEventWait{20'000};
constexpr std::size_t kMaxEventsKept = 256;
constexpr int kComeBackMs = 100;

}  // namespace

void RedfishService::report(const std::string& severity, const std::string& message,
                            SentEvent told) {
  events_.push_back({++last_event_, muster::toString(clock_.now()), severity, message});
  if (events_.size() > kMaxEventsKept) events_.pop_front();
  if (told == SentEvent::ByEventAndLog) note(fmt::format("[{}] {}", severity, message));
}

std::optional<nlohmann::json> RedfishService::eventResource(const std::string& path) const {
  if (path != kEventService) return std::nullopt;
  json result = head(path, "EventService.v1_7_0.EventService", "Event Service");
  result["ServiceEnabled"] = true;
  result["Status"] = healthy();
  if (options_.vendor_profile->tells_events) result["ServerSentEventUri"] = kEventStream;
  return result;
}

/// The first answer of a new client only says where the stream stands, so that it misses nothing
/// from then on.
Task<io::ServerResponse> RedfishService::streamEvents(io::ServerRequest request) {
  auto response = io::ServerResponse::text(200, "");
  response.headers["Content-Type"] = "text/event-stream";
  response.headers["Cache-Control"] = "no-cache";
  auto& body = std::get<std::string>(response.body);
  body = fmt::format("retry: {}\n", kComeBackMs);
  const auto given = request.headers.find("Last-Event-ID");
  std::uint64_t from = 0;
  if (given == request.headers.end() ||
      std::from_chars(given->second.data(), given->second.data() + given->second.size(), from).ec !=
          std::errc() ||
      from > last_event_) {
    body += fmt::format("id: {}\n: from here on\n\n", last_event_);
    co_return response;
  }
  const auto until = clock_.steady() + kEventWait;
  while (last_event_ == from && clock_.steady() < until && !away_ && !stopping_) {
    co_await clock_.sleep(kEventPoll);
  }
  for (const auto& event : events_) {
    if (event.id <= from) continue;
    json record{{"EventId", std::to_string(event.id)},
                {"EventType", "Alert"},
                {"EventTimestamp", event.created},
                {"MessageSeverity", event.severity},
                {"Message", event.message},
                {"MessageId", "MusterBmc.1.0.Reported"},
                {"MemberId", "0"}};
    json whole = {{"@odata.type", "#Event.v1_7_0.Event"},
                  {"Id", std::to_string(event.id)},
                  {"Name", "Event"},
                  {"Events", json::array({std::move(record)})}};
    body += fmt::format("id: {}\ndata: {}\n\n", event.id, jsonText(whole));
  }
  body += ": so far\n\n";
  co_return response;
}

}  // namespace muster::lab::vbmc
