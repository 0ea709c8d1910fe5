// SPDX-License-Identifier: Apache-2.0
// NotificationReceiver: who outside is told what happens here.
#pragma once

#include "base/diagnostic.h"
#include "inventory/model/credentials.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

enum class NotificationFormat {
  StandardWebhooks,  ///< a signed POST a message: www.standardwebhooks.com
  Alertmanager,      ///< open findings as alerts, by API v2 of Prometheus Alertmanager
};

/// What a webhook is told of. Findings are told when they are raised, and when they are over.
enum class NotifiedEvent { Finding, Failed, Blocked, PlanFinished, Note };

enum class NotifiedSeverity { Warning, Error };

struct NotificationReceiver {
  std::string url;
  NotificationFormat format = NotificationFormat::StandardWebhooks;
  std::optional<SecretRef> secret;  ///< the key that webhooks are signed with, or the bearer token
                                    ///< for Alertmanager
  std::string ca_pem;  ///< roots that its certificate must lead to; empty: the system's
  std::vector<NotifiedEvent> events;  ///< of a webhook; empty: findings and failures
  NotifiedSeverity least_severity = NotifiedSeverity::Warning;  ///< of findings

  bool tells(NotifiedEvent event) const {
    if (events.empty()) return event == NotifiedEvent::Finding || event == NotifiedEvent::Failed;
    return std::ranges::find(events, event) != events.end();
  }
};

/// The bytes of a key that webhooks are signed with: after "whsec_" base64, 24 to 64 of them.
/// Errors: InvalidInput, what to do
/// Source: github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md
Result<Secret> webhookKey(const Secret& secret);

/// Reads the secret, which may be a command's, and says what is wrong with it. Errors: NotFound (it
/// cannot be read), InvalidInput (it is no key)
Result<void> checkReceiverSecret(const NotificationReceiver& receiver);

}  // namespace muster::inventory
