// SPDX-License-Identifier: Apache-2.0
// Notifier: tells receivers outside what happens here. docs/notifications.md, docs/adr/0335
//
// A webhook's messages are an outbox: which event was taken last, and which findings its receiver
// knows of, are in the store, and move on only when the receiver has answered 2xx. So each message
// arrives at least once, in order, whatever dies; one that comes twice has the same id. A receiver
// that refuses or is silent holds up nobody but itself.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/http.h"
#include "lifecycle/store/store.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::inventory {
struct Cluster;
struct NotificationReceiver;
}  // namespace muster::inventory

namespace muster::monitor {

using MakeClient = std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)>;

/// Borrowed, but the function.
struct NotifierServices {
  const inventory::Cluster& cluster;
  lifecycle::Store& store;
  Clock& clock;
  Workers& workers;
  MakeClient make_client;
};

/// One receiver: what is due for it, sent.
class Delivery {
 public:
  virtual ~Delivery() = default;
  /// Sends what is due. Errors: of the receiver and of the way to it, in words for an operator;
  /// what it had not taken is sent again next time
  virtual Async<void> deliver() = 0;
};
std::unique_ptr<Delivery> makeDelivery(const NotifierServices& services, const std::string& name,
                                       const inventory::NotificationReceiver& receiver);

/// All receivers, each by itself. A receiver that has taken nothing for minutes is a finding
/// of the cluster, facet `notify.NAME`, until it takes something again.
Task<void> notifyReceivers(NotifierServices services);

/// The receiver gets a message that says that it is a trial. Errors: NotFound (not declared), and
/// as of deliver
Async<void> sendTrial(const inventory::Cluster& cluster, Clock& clock, Workers& workers,
                      MakeClient make_client, std::string name);

/// Scheme, host and port.
std::string shownUrl(const std::string& url);

struct Backlog {
  bool is_told = false;     ///< a webhook that has taken something once
  std::size_t waiting = 0;  ///< messages that a webhook has not taken yet, at most 10,000
  std::string trouble;      ///< the open finding of its refusals
};
/// Errors: of the store
Result<Backlog> backlogOf(lifecycle::Store& store, const inventory::Cluster& cluster,
                          const std::string& name);

}  // namespace muster::monitor
