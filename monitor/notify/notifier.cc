// SPDX-License-Identifier: Apache-2.0
#include "monitor/notify/notifier.h"

#include "base/async/await_all.h"
#include "base/io/system_roots.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/notifications.h"
#include "monitor/notify/alertmanager.h"
#include "monitor/notify/webhook.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::monitor {
namespace {

using inventory::NotificationFormat;
using inventory::NotificationReceiver;
using nlohmann::json;
using std::chrono::seconds;

constexpr std::string_view kPrefix = "notify.";  ///< of values in the store, and of facets
constexpr seconds kLookInterval{5};
constexpr seconds kFirstPause{5}, kLongestPause{300};  ///< after a refusal; doubled each time
constexpr seconds kToldAfter{180};                     ///< of nothing but refusals: a finding
constexpr seconds kAlertsAgain{60};
constexpr seconds kAlertsLast{300};  ///< without another word, Alertmanager takes them for over
constexpr std::chrono::milliseconds kAnswerWithin{15'000};  ///< as the specification advises
constexpr std::size_t kEventsAtOnce = 200, kMessagesACommit = 20, kMostCounted = 10'000;
constexpr std::size_t kMostAnswerBytes = 64 << 10;

Result<io::TlsTrust> trustOf(const NotificationReceiver& receiver) {
  io::TlsTrust trust;
  trust.ca_pem = receiver.ca_pem;
  if (!trust.ca_pem.empty() || receiver.url.starts_with("http://")) return trust;
  TRY(roots, io::systemRoots());
  trust.ca_pem = std::move(roots);
  return trust;
}

/// The secret may come from a command, which may hang: nobody else waits for it.
Async<Secret> secretOf(const NotificationReceiver& receiver, Workers& workers) {
  if (!receiver.secret) co_return fail(ErrorCode::InvalidInput, "no key is declared");
  co_return co_await offload<Result<Secret>>(workers,
                                             [secret = *receiver.secret] { return secret.read(); });
}

/// What a receiver's answer means. Errors: everything but 2xx
Result<void> taken(const io::HttpResponse& answer, const std::string& url) {
  if (answer.status / 100 == 2) return {};
  const auto words = answer.body.substr(0, std::min<std::size_t>(answer.body.find('\n'), 200));
  return fail(ErrorCode::Unavailable, fmt::format("{} answered {}{}{}", url, answer.status,
                                                  words.empty() ? "" : ": ", words));
}

/// Makes its client when it first sends: an outage of the way is no reason not to start.
class Sender {
 public:
  Sender(MakeClient make_client, const NotificationReceiver& receiver)
      : make_client_(std::move(make_client)), receiver_(receiver) {}

  Async<void> post(const std::string& path, io::Headers headers, std::string body) {
    if (!client_) {
      CO_TRY(trust, trustOf(receiver_));
      client_ = make_client_(std::move(trust));
    }
    CO_TRY(url, io::Url::parse(receiver_.url + path));
    headers.try_emplace("Content-Type", "application/json");
    headers.try_emplace("User-Agent", "muster");
    io::HttpRequest request{.method = "POST",
                            .url = std::move(url),
                            .headers = std::move(headers),
                            .body = std::move(body),
                            .timeout = kAnswerWithin,
                            .max_body_bytes = kMostAnswerBytes};
    auto answer = co_await client_->send(std::move(request));
    // The client's own words name the whole URL.
    if (!answer)
      co_return fail(answer.error().code(),
                     fmt::format("{} cannot be reached, or does not answer in time ({})",
                                 shownUrl(receiver_.url), toString(answer.error().code())));
    co_return taken(*answer, shownUrl(receiver_.url));
  }

 private:
  const MakeClient make_client_;
  const NotificationReceiver& receiver_;
  std::unique_ptr<io::HttpClient> client_;
};

/// Where Alertmanager takes alerts, and with what it is told who asks.
Async<void> postAlerts(Sender& sender, const NotificationReceiver& receiver, Workers& workers,
                       std::string body) {
  io::Headers headers;
  if (receiver.secret) {
    CO_TRY(token, co_await secretOf(receiver, workers));
    headers.emplace("Authorization", "Bearer " + token.reveal());
  }
  co_return co_await sender.post(receiver.url.ends_with('/') ? "api/v2/alerts" : "/api/v2/alerts",
                                 std::move(headers), std::move(body));
}

Async<Secret> keyOf(const NotificationReceiver& receiver, Workers& workers) {
  CO_TRY(secret, co_await secretOf(receiver, workers));
  co_return inventory::webhookKey(secret);
}

/// The key of one receiver. It may come from a command, so it is read at the first look of the
/// process, which says what is wrong with it, and then only when something is due.
class DueKey {
 public:
  DueKey(const NotificationReceiver& receiver, Workers& workers)
      : receiver_(receiver), workers_(workers) {}

  Async<void> lookOnce() {
    if (was_good_) co_return Result<void>();
    CO_TRY_OK(co_await read());
    co_return Result<void>();
  }
  /// Good until `forget`.
  Async<const Secret*> get() {
    if (!key_) CO_TRY_OK(co_await read());
    co_return &*key_;
  }
  void forget() { key_.reset(); }

 private:
  Async<void> read() {
    CO_TRY(key, co_await keyOf(receiver_, workers_));
    key_ = std::move(key);
    was_good_ = true;
    co_return Result<void>();
  }

  const NotificationReceiver& receiver_;
  Workers& workers_;
  std::optional<Secret> key_;
  bool was_good_ = false;
};

std::string markKey(const std::string& name) { return std::string(kPrefix) + name; }

lifecycle::FacetRef troubleFacet(const std::string& name) {
  return {lifecycle::Subject::cluster(), FacetName(std::string(kPrefix) + name)};
}

// ---- webhooks

/// What the receiver has taken.
struct Mark {
  std::int64_t sequence = -1;                   ///< of the last event; -1: it was never told of any
  std::map<std::string, std::string> findings;  ///< ids of those that it knows → "SUBJECT FACET"

  static Result<Mark> parse(const std::string& text) {
    const auto object = jsonOrNone(text, kKeptJson);
    const auto known = object.is_object() ? object.value("findings", json()) : json();
    if (!known.is_object() || !object.contains("sequence") ||
        !object["sequence"].is_number_integer())
      return fail(ErrorCode::Corrupt, "what the receiver has taken is not readable in the store");
    Mark out{.sequence = object["sequence"].get<std::int64_t>(), .findings = {}};
    for (const auto& [id, words] : known.items())
      if (words.is_string()) out.findings.emplace(id, words.get<std::string>());
    return out;
  }
  std::string str() const { return jsonText(json{{"sequence", sequence}, {"findings", findings}}); }
};

class WebhookDelivery final : public Delivery {
 public:
  WebhookDelivery(const NotifierServices& services, const std::string& name,
                  const NotificationReceiver& receiver)
      : services_(services),
        receiver_(receiver),
        mark_key_(markKey(name)),
        key_(receiver, services.workers),
        sender_(services.make_client, receiver) {}

  Async<void> deliver() override {
    CO_TRY(mark, readMark());
    CO_TRY_OK(co_await key_.lookOnce());
    auto sent = co_await deliverFindings(mark);
    if (sent) sent = co_await deliverEvents(mark);
    key_.forget();  // one that is changed counts from the next look on
    // What was taken stays taken, also where the next one was refused.
    if (const auto kept = keep(mark); !kept && sent) co_return kept;
    co_return sent;
  }

 private:
  /// A receiver that is new is told of what happens from now on, and of what is open now.
  Result<Mark> readMark() {
    TRY(text, services_.store.getValue(mark_key_));
    if (text) {
      TRY(mark, Mark::parse(*text));
      kept_ = *text;
      return mark;
    }
    TRY(last, services_.store.lastEvents(1, nullptr));
    return Mark{.sequence = last.empty() ? 0 : last.back().sequence, .findings = {}};
  }

  Result<void> keep(const Mark& mark) {
    auto text = mark.str();
    if (text == kept_) return {};
    TRY_OK(services_.store.putValue(mark_key_, text));
    kept_ = std::move(text);
    return {};
  }

  Async<void> send(const WebhookMessage& message) {
    CO_TRY(key, co_await key_.get());
    co_return co_await sender_.post("", webhookHeaders(message, services_.clock.now(), *key),
                                    message.body);
  }

  Async<void> deliverFindings(Mark& mark) {
    if (!receiver_.tells(inventory::NotifiedEvent::Finding)) co_return Result<void>();
    CO_TRY(findings, services_.store.findings(nullptr));
    std::map<std::string, const lifecycle::Finding*> open;
    for (const auto& finding : findings)
      if (isTold(finding, receiver_))
        open.emplace(findingId(finding, services_.cluster.name), &finding);
    std::size_t since_kept = 0;
    for (const auto& [id, finding] : open) {
      if (mark.findings.contains(id)) continue;
      CO_TRY_OK(co_await send(raisedMessage(*finding, services_.cluster.name)));
      mark.findings.emplace(id, finding->facet.subject.str() + " " + finding->facet.facet.str());
      if (++since_kept % kMessagesACommit == 0) CO_TRY_OK(keep(mark));
    }
    const auto known = mark.findings;
    for (const auto& [id, words] : known) {
      if (open.contains(id)) continue;
      CO_TRY_OK(
          co_await send(overMessage(id, words, services_.cluster.name, services_.clock.now())));
      mark.findings.erase(id);
      if (++since_kept % kMessagesACommit == 0) CO_TRY_OK(keep(mark));
    }
    co_return Result<void>();
  }

  Async<void> deliverEvents(Mark& mark) {
    std::size_t since_kept = 0;
    for (;;) {
      CO_TRY(events, services_.store.events(mark.sequence, kEventsAtOnce, nullptr));
      for (const auto& event : events) {
        if (const auto message = messageOf(event, receiver_, services_.cluster.name)) {
          CO_TRY_OK(co_await send(*message));
          ++since_kept;
        }
        mark.sequence = event.sequence;
        if (since_kept == kMessagesACommit) {
          CO_TRY_OK(keep(mark));
          since_kept = 0;
        }
      }
      if (events.size() < kEventsAtOnce) co_return Result<void>();
    }
  }

  const NotifierServices services_;
  const NotificationReceiver& receiver_;
  const std::string mark_key_;
  std::string kept_;
  DueKey key_;
  Sender sender_;
};

// ---- Alertmanager

class AlertmanagerDelivery final : public Delivery {
 public:
  AlertmanagerDelivery(const NotifierServices& services, const NotificationReceiver& receiver)
      : services_(services), receiver_(receiver), sender_(services.make_client, receiver) {}

  Async<void> deliver() override {
    if (!looked_ && receiver_.secret) CO_TRY_OK(co_await secretOf(receiver_, services_.workers));
    looked_ = true;
    CO_TRY(findings, services_.store.findings(nullptr));
    auto open = alertsOf(findings, services_.cluster, receiver_);
    const auto now = services_.clock.steady();
    if (sent_ && open == before_ && now - *sent_ < kAlertsAgain) co_return Result<void>();
    if (!open.empty() || !before_.empty()) {
      const auto at = services_.clock.now();
      auto body = postedAlerts(open, before_, at, at + kAlertsLast);
      CO_TRY_OK(co_await postAlerts(sender_, receiver_, services_.workers, std::move(body)));
    }
    before_ = std::move(open);
    sent_ = now;
    co_return Result<void>();
  }

 private:
  const NotifierServices services_;
  const NotificationReceiver& receiver_;
  bool looked_ = false;  ///< at the token, so that one that cannot be read is said at once
  Alerts before_;        ///< as taken
  std::optional<std::chrono::steady_clock::time_point> sent_;
  Sender sender_;
};

// ---- one receiver, for ever

/// Whether a receiver takes what it is sent, as a finding of the cluster.
class Trouble {
 public:
  Trouble(const NotifierServices& services, const std::string& name)
      : services_(services), name_(name), facet_(troubleFacet(name)) {}

  void refused(const Error& error) {
    const auto now = services_.clock.steady();
    if (!since_) {
      since_ = now;
      logWarning("notify", "{}: {}", name_, error.str());
    }
    if (told_ || now - *since_ < kToldAfter) return;
    told_ = services_.store
                .addFinding(
                    {facet_, Severity::Warning,
                     fmt::format("the receiver {} takes no messages: {}", name_, error.str()), "",
                     fmt::format("mend it, or correct notifications.{} in the inventory; "
                                 "what it has not taken is sent when it does",
                                 name_),
                     services_.clock.now(), lifecycle::kMonitorSource})
                .has_value();
  }

  void accepted() {
    if (since_) logInfo("notify", "{}: messages are taken again", name_);
    since_.reset();
    // One of the process before is over as well.
    if (told_ || first_) told_ = !services_.store.clearFindings(facet_).has_value();
    first_ = false;
  }

 private:
  const NotifierServices services_;
  const std::string name_;
  const lifecycle::FacetRef facet_;
  std::optional<std::chrono::steady_clock::time_point> since_;  ///< refused since; none: it takes
  bool told_ = false, first_ = true;
};

/// Those of receivers that are declared no more.
void clearTroubleOfOthers(const NotifierServices& services) {
  const auto findings = services.store.findings(nullptr);
  if (!findings) return;
  for (const auto& finding : *findings) {
    const auto& facet = finding.facet.facet.str();
    if (finding.facet.subject.isCluster() && facet.starts_with(kPrefix) &&
        !services.cluster.notifications.contains(facet.substr(kPrefix.size())))
      (void)services.store.clearFindings(finding.facet);  // tried again at the next start
  }
}

Task<void> notifyOne(NotifierServices services, std::string name,
                     const NotificationReceiver& receiver) {
  const auto delivery = makeDelivery(services, name, receiver);
  Trouble trouble(services, name);
  seconds pause = kFirstPause;
  for (;;) {
    const auto sent = co_await delivery->deliver();
    if (sent)
      trouble.accepted();
    else
      trouble.refused(sent.error());
    co_await services.clock.sleep(sent ? kLookInterval : pause);
    pause = sent ? kFirstPause : std::min(pause * 2, kLongestPause);
  }
}

}  // namespace

std::unique_ptr<Delivery> makeDelivery(const NotifierServices& services, const std::string& name,
                                       const NotificationReceiver& receiver) {
  if (receiver.format == NotificationFormat::Alertmanager)
    return std::make_unique<AlertmanagerDelivery>(services, receiver);
  return std::make_unique<WebhookDelivery>(services, name, receiver);
}

Task<void> notifyReceivers(NotifierServices services) {
  clearTroubleOfOthers(services);
  std::vector<Task<void>> all;
  for (const auto& [name, receiver] : services.cluster.notifications)
    all.push_back(notifyOne(services, name, receiver));
  co_await async::awaitAll(std::move(all));
  for (;;) co_await services.clock.sleep(std::chrono::hours(1));  // nobody is declared
}

Async<void> sendTrial(const inventory::Cluster& cluster, Clock& clock, Workers& workers,
                      MakeClient make_client, std::string name) {
  const auto found = cluster.notifications.find(name);
  if (found == cluster.notifications.end())
    co_return fail(ErrorCode::NotFound, fmt::format("the inventory has no notifications.{}", name));
  const auto& receiver = found->second;
  const auto at = clock.now();
  const lifecycle::Finding trial{{lifecycle::Subject::cluster(), FacetName("notify.trial")},
                                 Severity::Error,  // also for those who want nothing less
                                 "a trial of muster notify test: nothing is wrong",
                                 "",
                                 "nothing; it is over by itself",
                                 at,
                                 lifecycle::kMonitorSource};
  Sender sender(std::move(make_client), receiver);
  if (receiver.format == NotificationFormat::Alertmanager) {
    const auto alerts = alertsOf({trial}, cluster, receiver);
    co_return co_await postAlerts(sender, receiver, workers,
                                  postedAlerts(alerts, {}, at, at + kAlertsAgain));
  }
  CO_TRY(key, co_await keyOf(receiver, workers));
  const auto message = raisedMessage(trial, cluster.name);
  CO_TRY_OK(co_await sender.post("", webhookHeaders(message, at, key), message.body));
  // An incident that it opened is over at once.
  const auto over = overMessage(findingId(trial, cluster.name), "@cluster notify.trial",
                                cluster.name, clock.now());
  co_return co_await sender.post("", webhookHeaders(over, clock.now(), key), over.body);
}

std::string shownUrl(const std::string& url) {
  const auto host = url.find("://");
  return host == std::string::npos ? url : url.substr(0, url.find_first_of("/?#", host + 3));
}

Result<Backlog> backlogOf(lifecycle::Store& store, const inventory::Cluster& cluster,
                          const std::string& name) {
  Backlog out;
  TRY(findings, store.findings(nullptr));
  const auto facet = troubleFacet(name);
  for (const auto& finding : findings)
    if (finding.facet == facet) out.trouble = finding.text;
  const auto& receiver = cluster.notifications.at(name);
  TRY(text, store.getValue(markKey(name)));
  if (receiver.format == NotificationFormat::Alertmanager || !text) return out;
  TRY(mark, Mark::parse(*text));
  out.is_told = true;
  if (receiver.tells(inventory::NotifiedEvent::Finding)) {
    std::size_t open = 0, known = 0;
    for (const auto& finding : findings) {
      if (!isTold(finding, receiver)) continue;
      ++open;
      known += mark.findings.contains(findingId(finding, cluster.name)) ? 1 : 0;
    }
    out.waiting = open - known + (mark.findings.size() - known);
  }
  for (auto after = mark.sequence; out.waiting < kMostCounted;) {
    TRY(events, store.events(after, kEventsAtOnce, nullptr));
    for (const auto& event : events)
      out.waiting += messageOf(event, receiver, cluster.name) ? 1 : 0;
    if (events.size() < kEventsAtOnce) break;
    after = events.back().sequence;
  }
  return out;
}

}  // namespace muster::monitor
