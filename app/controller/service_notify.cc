// SPDX-License-Identifier: Apache-2.0
#include "app/controller/service_notify.h"

#include "base/io/files.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace muster::app {
namespace {

constexpr std::size_t kMaxStatusBytes = 1'000;

std::optional<std::uint64_t> numberOf(const char* text) {
  if (!text) return std::nullopt;
  std::uint64_t out = 0;
  const auto* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, out);
  return error == std::errc() && at == end ? std::optional(out) : std::nullopt;
}

}  // namespace

bool notifyService(std::string_view state) {
  const char* name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string_view path = name ? name : "";
  if (path.empty() || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
    return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';  // of the abstract namespace
  const io::Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  return socket.valid() &&
         ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                  reinterpret_cast<const sockaddr*>(&address), size) >= 0;
}

void notifyStatus(std::string_view text) {
  std::string line = "STATUS=" + std::string(text.substr(0, kMaxStatusBytes));
  std::ranges::replace(line, '\n', ' ');
  (void)notifyService(line);
}

std::optional<std::chrono::microseconds> watchdogPeriod() {
  const auto pid = numberOf(std::getenv("WATCHDOG_PID"));
  if (pid && *pid != static_cast<std::uint64_t>(::getpid())) return std::nullopt;
  const auto period = numberOf(std::getenv("WATCHDOG_USEC"));
  if (!period || *period == 0) return std::nullopt;
  return std::chrono::microseconds(*period);
}

}  // namespace muster::app
