// SPDX-License-Identifier: Apache-2.0
// The table of `notifications`: who outside is told what happens.
#include "base/io/crypto.h"
#include "base/io/http.h"
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

constexpr std::size_t kMaxUrlBytes = 2048;

Result<void> checkReceiverUrl(std::string_view text) {
  const auto say = [](std::string words) {
    return fail(ErrorCode::InvalidInput, std::move(words));
  };
  if (text.size() > kMaxUrlBytes) return say(fmt::format("at most {} characters", kMaxUrlBytes));
  const auto fragment = text.find('#');
  if (fragment != std::string_view::npos)
    return say("leave out what follows the '#': a fragment is never sent");
  const auto authority = text.substr(0, text.find_first_of("/?", text.find("://") + 3));
  if (text.find("://") != std::string_view::npos && authority.find('@') != std::string_view::npos)
    return say("no user and password in a URL: messages are signed; declare secret instead");
  const auto url = io::Url::parse(text);
  if (!url) return say(url.error().text());
  const auto in_a_host = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == ':';
  };
  if (!std::ranges::all_of(url->host, in_a_host))
    return say(
        "a host has letters, digits, '.' and '-'; a name in other letters has a form that "
        "begins with xn--");
  return {};
}

constexpr TextFormat kReceiverUrl{"an http or https URL, without user and password",
                                  R"(^https?://[A-Za-z0-9._\[\]:-]+([/?][!-"$-~]*)?$)",
                                  "https://alerts.example.com/hooks/muster", checkReceiverUrl};

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
  // Of a command only its user may know: `muster notify list` and the monitor say it.
  const bool is_command =
      receiver.secret && std::holds_alternative<std::string>(receiver.secret->source);
  if (webhook && receiver.secret && receiver.secret->declared() && !is_command)
    if (const auto secret = receiver.secret->read())
      if (const auto key = webhookKey(*secret); !key)
        reader.error(place(map, "secret"), key.error().text(),
                     "(umask 077; muster notify secret > FILE)");
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
