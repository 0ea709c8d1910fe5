// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/event_service.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "lab/vbmc/resource_parts.h"

#include <charconv>

namespace muster::lab::vbmc {

namespace {

constexpr std::chrono::milliseconds kEventPoll{100}, kEventWait{20'000};
constexpr std::size_t kMaxEventsKept = 256, kMaxSubscriptions = 16;
constexpr int kComeBackMs = 100;

}  // namespace

void EventService::report(const std::string& severity, const std::string& message, SentEvent told) {
  events_.push_back({++last_event_, muster::toString(bmc_.clock.now()), severity, message});
  if (events_.size() > kMaxEventsKept) events_.pop_front();
  if (bmc_.options.deliver)
    for (const auto& [id, subscription] : subscriptions_) {
      auto body = eventBody(events_.back());
      if (!subscription.context.empty()) body["Context"] = subscription.context;
      bmc_.options.deliver(subscription.destination, jsonText(body));
    }
  if (told == SentEvent::ByEventAndLog) bmc_.note(fmt::format("[{}] {}", severity, message));
}

nlohmann::json EventService::eventBody(const Event& event) {
  json record{{"EventId", std::to_string(event.id)},
              {"EventType", "Alert"},
              {"EventTimestamp", event.created},
              {"MessageSeverity", event.severity},
              {"Message", event.message},
              {"MessageId", "MusterBmc.1.0.Reported"},
              {"MemberId", "0"}};
  return {{"@odata.type", "#Event.v1_7_0.Event"},
          {"Id", std::to_string(event.id)},
          {"Name", "Event"},
          {"Events", json::array({std::move(record)})}};
}

std::optional<nlohmann::json> EventService::resource(const std::string& path) const {
  if (path == kEventService) {
    json result = head(path, "EventService.v1_7_0.EventService", "Event Service");
    result["ServiceEnabled"] = true;
    result["Status"] = healthy();
    result["Subscriptions"] = linkTo(kSubscriptions);
    result["EventFormatTypes"] = {"Event"};
    if (bmc_.options.vendor_profile->tells_events) result["ServerSentEventUri"] = kEventStream;
    result["Actions"]["#EventService.SubmitTestEvent"]["target"] = kTestEvent;
    return result;
  }
  if (path == kSubscriptions)
    return collection(path, "EventDestinationCollection", keysOf(subscriptions_));
  const auto id = path.substr(path.rfind('/') + 1);
  const auto found = subscriptions_.find(id);
  if (found == subscriptions_.end() || path != kSubscriptions + "/" + id) return std::nullopt;
  json result = head(path, "EventDestination.v1_11_0.EventDestination", "Event Subscription");
  result["Destination"] = found->second.destination;
  result["Context"] = found->second.context;
  result["Protocol"] = "Redfish";
  result["SubscriptionType"] = "RedfishEvent";
  result["EventFormatType"] = "Event";
  result["Status"] = healthy();
  return result;
}

io::ServerResponse EventService::subscribe(const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  const auto text = [&](const char* name) {
    const auto found = body.is_object() ? body.find(name) : body.end();
    return found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  for (const char* field : {"Destination", "Protocol"})
    if (text(field).empty())
      return redfishError(400, "Base.1.8.CreateFailedMissingReqProperties",
                          fmt::format("{} is missing.", field), "Name it in the request.");
  if (text("Protocol") != "Redfish")
    return redfishError(400, "Base.1.8.PropertyValueNotInList",
                        fmt::format("'{}' is not an allowed value of Protocol.", text("Protocol")),
                        "Use Redfish.");
  const auto url = io::Url::parse(text("Destination"));
  if (!url || (url->scheme != "http" && url->scheme != "https"))
    return redfishError(400, "Base.1.8.PropertyValueFormatError",
                        "Destination is not an HTTP or HTTPS URL.");
  if (subscriptions_.size() >= kMaxSubscriptions)
    return redfishError(400, "Base.1.8.CreateLimitReachedForResource",
                        fmt::format("This BMC holds at most {} subscriptions.", kMaxSubscriptions),
                        "Delete one that is no longer needed.");
  const auto id = std::to_string(++last_subscription_);
  subscriptions_[id] = {text("Destination"), text("Context")};
  auto response = io::ServerResponse::json(201, jsonText(*resource(kSubscriptions + "/" + id)));
  response.headers["Location"] = kSubscriptions + "/" + id;
  return response;
}

std::optional<io::ServerResponse> EventService::post(const io::ServerRequest& request,
                                                     const std::string& path) {
  if (path == kSubscriptions) return subscribe(request);
  if (path != kTestEvent) return std::nullopt;
  report("OK", "A test event was asked for.", SentEvent::ByEvent);
  return io::ServerResponse::text(204, "");
}

std::optional<io::ServerResponse> EventService::remove(const std::string& path) {
  if (!path.starts_with(kSubscriptions + "/") ||
      subscriptions_.erase(path.substr(kSubscriptions.size() + 1)) == 0)
    return std::nullopt;
  return io::ServerResponse::text(204, "");
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
    body += fmt::format("id: {}\ndata: {}\n\n", event.id, jsonText(eventBody(event)));
  }
  body += ": so far\n\n";
  co_return response;
}

}  // namespace muster::lab::vbmc
