// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/event_service.h"

#include "base/json_output.h"
#include "lab/vbmc/resource_parts.h"

#include <charconv>

namespace muster::lab::vbmc {

namespace {

constexpr std::chrono::milliseconds kEventPoll{100}, kEventWait{20'000};
constexpr std::size_t kMaxEventsKept = 256;
constexpr int kComeBackMs = 100;

}  // namespace

void EventService::report(const std::string& severity, const std::string& message, SentEvent told) {
  events_.push_back({++last_event_, muster::toString(bmc_.clock.now()), severity, message});
  if (events_.size() > kMaxEventsKept) events_.pop_front();
  if (told == SentEvent::ByEventAndLog) bmc_.note(fmt::format("[{}] {}", severity, message));
}

std::optional<nlohmann::json> EventService::resource(const std::string& path) const {
  if (path != kEventService) return std::nullopt;
  json result = head(path, "EventService.v1_7_0.EventService", "Event Service");
  result["ServiceEnabled"] = true;
  result["Status"] = healthy();
  if (bmc_.options.vendor_profile->tells_events) result["ServerSentEventUri"] = kEventStream;
  return result;
}

Task<io::ServerResponse> EventService::stream(io::ServerRequest request) {
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
  const auto until = bmc_.clock.steady() + kEventWait;
  while (last_event_ == from && bmc_.clock.steady() < until && !bmc_.away && !bmc_.stopping) {
    co_await bmc_.clock.sleep(kEventPoll);
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
