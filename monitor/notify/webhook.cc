// SPDX-License-Identifier: Apache-2.0
#include "monitor/notify/webhook.h"

#include "base/io/crypto.h"
#include "base/json_output.h"
#include "lifecycle/model/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::monitor {
namespace {

using inventory::NotifiedEvent;
using lifecycle::EventKind;
using nlohmann::json;

constexpr std::string_view kKeyPrefix = "whsec_";
constexpr std::size_t kMostEvidenceBytes = 8 << 10;

std::optional<NotifiedEvent> notifiedAs(EventKind kind) {
  switch (kind) {
    case EventKind::ActionFailed:
      return NotifiedEvent::Failed;
    case EventKind::ActionBlocked:
      return NotifiedEvent::Blocked;
    case EventKind::PlanFinished:
      return NotifiedEvent::PlanFinished;
    case EventKind::Note:
      return NotifiedEvent::Note;
    default:
      return std::nullopt;  // findings are told of by what is open, which the log does not hold
  }
}

const char* typeOf(NotifiedEvent event) {
  switch (event) {
    case NotifiedEvent::Failed:
      return "action.failed";
    case NotifiedEvent::Blocked:
      return "action.blocked";
    case NotifiedEvent::PlanFinished:
      return "plan.finished";
    case NotifiedEvent::Note:
      return "note";
    case NotifiedEvent::Finding:
      break;
  }
  return "finding.raised";
}

std::string bodyOf(const char* type, WallTime at, json data) {
  return jsonText(
      json{{"type", type}, {"timestamp", muster::toString(at)}, {"data", std::move(data)}});
}

}  // namespace

Secret newWebhookSecret() {
  return Secret(std::string(kKeyPrefix) + io::toBase64(io::randomBytes(32)));
}

io::Headers webhookHeaders(const WebhookMessage& message, WallTime sent, const Secret& key) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(sent.time_since_epoch()).count();
  const auto signed_text = fmt::format("{}.{}.{}", message.id, seconds, message.body);
  return {{"Content-Type", "application/json"},
          {"webhook-id", message.id},
          {"webhook-timestamp", std::to_string(seconds)},
          {"webhook-signature", "v1," + io::toBase64(io::hmacSha256(key.reveal(), signed_text))}};
}

std::optional<WebhookMessage> messageOf(const lifecycle::Event& event,
                                        const inventory::NotificationReceiver& receiver,
                                        const std::string& cluster) {
  const auto as = notifiedAs(event.kind);
  if (!as || !receiver.tells(*as)) return std::nullopt;
  json data{{"cluster", cluster},
            {"sequence", event.sequence},
            {"subject", event.subject.str()},
            {"text", event.text}};
  if (!event.action_id.empty()) data["action"] = event.action_id;
  return WebhookMessage{
      fmt::format("event-{}-{}", io::sha256Hex(cluster).substr(0, 12), event.sequence),
      bodyOf(typeOf(*as), event.at, std::move(data))};
}

std::string findingId(const lifecycle::Finding& finding, const std::string& cluster) {
  const json parts{cluster,      finding.facet.subject.str(),  finding.facet.facet.str(),
                   finding.text, muster::toString(finding.at), finding.source};
  return io::sha256Hex(jsonText(parts)).substr(0, 32);
}

bool isTold(const lifecycle::Finding& finding, const inventory::NotificationReceiver& receiver) {
  const auto least = receiver.least_severity == inventory::NotifiedSeverity::Error
                         ? Severity::Error
                         : Severity::Warning;
  return finding.severity >= least;
}

WebhookMessage raisedMessage(const lifecycle::Finding& finding, const std::string& cluster) {
  return {"finding-" + findingId(finding, cluster) + "-raised",
          bodyOf("finding.raised", finding.at,
                 {{"cluster", cluster},
                  {"subject", finding.facet.subject.str()},
                  {"facet", finding.facet.facet.str()},
                  {"severity", std::string(lifecycle::severityWord(finding.severity))},
                  {"text", finding.text},
                  {"what_to_do", finding.what_to_do},
                  {"evidence", finding.evidence.substr(0, kMostEvidenceBytes)},
                  {"source", finding.source}})};
}

WebhookMessage overMessage(const std::string& id, const std::string& words,
                           const std::string& cluster, WallTime seen) {
  const auto space = words.find(' ');
  return {"finding-" + id + "-over",
          bodyOf("finding.over", seen,
                 {{"cluster", cluster},
                  {"subject", words.substr(0, space)},
                  {"facet", space == std::string::npos ? "" : words.substr(space + 1)},
                  {"raised_by", "finding-" + id + "-raised"}})};
}

}  // namespace muster::monitor
