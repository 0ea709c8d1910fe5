// SPDX-License-Identifier: Apache-2.0
// Messages to a receiver of webhooks, signed as Standard Webhooks 1.0 says
// (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md).
#pragma once

#include "base/io/http.h"
#include "base/log.h"
#include "inventory/model/notifications.h"
#include "lifecycle/model/finding.h"
#include "lifecycle/store/store.h"

#include <optional>
#include <string>

namespace muster::monitor {

struct WebhookMessage {
  std::string id;    ///< the same whenever it is sent again, so that its receiver can tell
  std::string body;  ///< JSON: type, timestamp, data
};

/// A new key, as text.
Secret newWebhookSecret();

/// webhook-id, webhook-timestamp (seconds since 1970), webhook-signature ("v1," and base64 of the
/// HMAC-SHA-256 of "id.timestamp.body").
io::Headers webhookHeaders(const WebhookMessage& message, WallTime sent, const Secret& key);

/// Nothing: the receiver is not told of it.
std::optional<WebhookMessage> messageOf(const lifecycle::Event& event,
                                        const inventory::NotificationReceiver& receiver,
                                        const std::string& cluster);

/// What tells one finding from all others, also from an earlier one of the same facet.
std::string findingId(const lifecycle::Finding& finding, const std::string& cluster);
bool isTold(const lifecycle::Finding& finding, const inventory::NotificationReceiver& receiver);
WebhookMessage raisedMessage(const lifecycle::Finding& finding, const std::string& cluster);
/// `id`: of the finding; `words`: its subject and facet, "gpu001 health.gpu".
WebhookMessage overMessage(const std::string& id, const std::string& words,
                           const std::string& cluster, WallTime seen);

}  // namespace muster::monitor
