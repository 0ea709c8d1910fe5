// SPDX-License-Identifier: Apache-2.0
// What a service tells systemd (Type=notify): that it is ready, what it does, that it lives.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace muster::app {

/// Sends "READY=1", "STATUS=…", "WATCHDOG=1", "STOPPING=1" to $NOTIFY_SOCKET. Nothing happens where
/// there is none. Answers whether it was sent. Source: sd_notify(3)
bool notifyService(std::string_view state);
/// "STATUS=" with text on one line.
void notifyStatus(std::string_view text);
/// How often the service must say WATCHDOG=1; nothing: nobody waits for it. Source:
/// sd_watchdog_enabled(3)
std::optional<std::chrono::microseconds> watchdogPeriod();

}  // namespace muster::app
