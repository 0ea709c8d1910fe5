// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/locate_led.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxChassisAsked = 8;
constexpr int kMaxReads = 5;
constexpr auto kReadAgainAfter = 1000ms;
constexpr const char *kActive = "LocationIndicatorActive", *kWord = "IndicatorLED";

}  // namespace

std::optional<LocateLed::Led> LocateLed::ledOf(const std::string& uri, const RedfishReply& reply,
                                               bool lit_is_idle) {
  if (const auto active = boolAt(reply.body, kActive))
    return Led{uri, reply.etag(), *active, false};
  const auto word = textAt(reply.body, kWord);
  if (word.empty() || word == "Unknown") return std::nullopt;
  return Led{uri, reply.etag(), word == "Blinking" || (word == "Lit" && !lit_is_idle), true};
}

Async<LocateLed::Led> LocateLed::find() {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(system, co_await resources_.readSystem());
  if (auto led = ledOf(at.system, *system, at.quirks.lit_is_idle)) co_return std::move(*led);
  auto chassis = linksAt(system->body, "Links/Chassis");
  if (chassis.size() > kMaxChassisAsked) chassis.resize(kMaxChassisAsked);
  for (const auto& uri : chassis) {
    auto box = co_await resources_.session().get(uri);
    if (!box && box.error().code() == ErrorCode::NotFound) continue;
    if (!box) co_return fail(std::move(box.error()));
    if (auto led = ledOf(uri, *box, at.quirks.lit_is_idle)) co_return std::move(*led);
  }
  co_return fail(ErrorCode::NotFound,
                 "the BMC at " + resources_.address() + " shows no LED to locate the machine by");
}

Async<bool> LocateLed::isOn() {
  CO_TRY(led, co_await find());
  co_return led.on;
}

Async<void> LocateLed::set(bool on) {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(led, co_await find());
  if (led.on == on) co_return Result<void>();
  Json body = Json::object();
  if (led.by_word)
    body[kWord] = at.quirks.lit_is_idle ? (on ? "Blinking" : "Lit") : (on ? "Lit" : "Off");
  else
    body[kActive] = on;
  CO_TRY_OK(co_await resources_.session().patch(led.uri, std::move(body), led.etag));
  for (int attempt = 0; attempt < kMaxReads; ++attempt) {
    CO_TRY(now, co_await find());
    if (now.on == on) co_return Result<void>();
    co_await resources_.clock().sleep(kReadAgainAfter);
  }
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("{} accepted the LED {} but still shows it {}", led.uri,
                             on ? "on" : "off", on ? "off" : "on"));
}

}  // namespace muster::bmc
