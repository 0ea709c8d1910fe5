// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/notifications.h"

#include "base/io/crypto.h"

#include <fmt/format.h>

namespace muster::inventory {
namespace {

constexpr std::string_view kKeyPrefix = "whsec_";
constexpr std::size_t kLeastKeyBytes = 24, kMostKeyBytes = 64;  ///< of the specification

}  // namespace

Result<Secret> webhookKey(const Secret& secret) {
  const std::string_view text = secret.reveal();
  const auto wrong = [](std::string_view what) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("the key of a webhook {}; a new one: muster notify secret", what));
  };
  if (!text.starts_with(kKeyPrefix)) return wrong("begins with whsec_");
  auto bytes = io::fromBase64(text.substr(kKeyPrefix.size()));
  if (!bytes) return wrong("is base64 after whsec_");
  if (bytes->size() < kLeastKeyBytes || bytes->size() > kMostKeyBytes)
    return wrong(fmt::format("has {} to {} bytes, and this one {}", kLeastKeyBytes, kMostKeyBytes,
                             bytes->size()));
  return Secret(std::move(*bytes));
}

Result<void> checkReceiverSecret(const NotificationReceiver& receiver) {
  if (!receiver.secret) {
    if (receiver.format == NotificationFormat::Alertmanager) return {};
    return fail(ErrorCode::InvalidInput, "no key is declared");
  }
  TRY(secret, receiver.secret->read());
  if (receiver.format == NotificationFormat::StandardWebhooks) TRY_OK(webhookKey(secret));
  return {};
}

}  // namespace muster::inventory
