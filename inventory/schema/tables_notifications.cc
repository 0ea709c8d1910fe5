// SPDX-License-Identifier: Apache-2.0
// The table of `notifications`: who outside is told what happens.
#include "base/io/crypto.h"
#include "base/io/regular_file.h"
#include "inventory/model/notifications.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {
namespace {

constexpr std::size_t kMaxCaBytes = 1u << 20;

constexpr TextFormat kReceiverUrl{"an http or https URL, without user and password",
                                  R"(^https?://[A-Za-z0-9.\[\]:-]+(/[!-~]*)?$)",
                                  "https://alerts.example.com/hooks/muster"};

void readCa(NotificationReceiver& receiver, const Value& value, const Shape& shape,
            Reader& reader) {
  std::filesystem::path path;
  const std::size_t errors = reader.errors;
  readInto(path, value, shape, reader);
  if (reader.errors != errors) return;
  auto pem = io::readRegularFile(path, kMaxCaBytes);
  if (!pem || !io::describeCertificate(*pem))
    return reader.error(
        value, fmt::format("{} cannot be read, or holds no certificate in PEM", path.string()),
        "name a PEM file with the root certificate; the path starts at the inventory's folder");
  receiver.ca_pem = std::move(*pem);
}

void checkReceiver(NotificationReceiver& receiver, const Value& map, Reader& reader) {
  const bool webhook = receiver.format == NotificationFormat::StandardWebhooks;
  if (webhook && !receiver.secret)
    reader.error(map, "webhooks are signed, so that their receiver knows from whom they are",
                 "add secret: {file: …}; `muster notify secret` makes one");
  if (const Value* events = map.findKey("events"); events && !webhook)
    reader.error(*events, "events is for webhooks only: Alertmanager gets the open findings",
                 "remove it");
  if (receiver.secret && receiver.url.starts_with("http://"))
    reader.warning(place(map, "url"),
                   webhook ? "what is told travels in the clear" : "the token travels in the clear",
                   "use https://");
  if (const Value* ca = map.findKey("ca"); ca && receiver.url.starts_with("http://"))
    reader.error(*ca, "ca is for https only", "remove it, or use https://");
  auto events = receiver.events;
  std::ranges::sort(events);
  if (std::ranges::adjacent_find(events) != events.end())
    reader.error(place(map, "events"), "an event is listed twice", "remove one");
}

ObjectSpec make_notificationSpec() {
  return Table<NotificationReceiver>(
             "notification", "notification",
             "Somebody outside who is told what happens; docs/notifications.md.")
      .required("url", &NotificationReceiver::url, text(kReceiverUrl),
                "Where it is sent to. Of Alertmanager without /api/v2/alerts.")
      .optional("format", &NotificationReceiver::format,
                choice({"standard-webhooks", "alertmanager"}),
                "standard-webhooks: each message as a signed POST, until it is taken. "
                "alertmanager: open findings as alerts, by Alertmanager's API.")
      .optional("secret", &NotificationReceiver::secret, object(secretSpec),
                "For webhooks the key of their signatures, as text that begins with whsec_; for "
                "Alertmanager a bearer token.")
      .custom("ca", false, text(kPath),
              "Certificates (PEM) that the receiver's must lead to; absent: the system's.", readCa)
      .prints([](const NotificationReceiver& receiver, const Printer&) -> nlohmann::json {
        return receiver.ca_pem;
      })
      .optional(
          "events", &NotificationReceiver::events,
          listOf(choice({"finding", "failed", "blocked", "plan-finished", "note"}), 1),
          "What a webhook is told of; absent: finding and failed. A finding is told when it is "
          "raised and when it is over.")
      .optional("least_severity", &NotificationReceiver::least_severity,
                choice({"warning", "error"}), "Of the findings that are told.")
      .printsAlways()
      .check(checkReceiver)
      .spec();
}

}  // namespace

MUSTER_SPEC(notificationSpec)

}  // namespace muster::inventory
