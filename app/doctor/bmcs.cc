// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/checks.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

namespace muster::app::doctor {
namespace {

constexpr std::size_t kMostBmcs = 512;  ///< connections at one time; a larger fleet is sampled
constexpr std::chrono::milliseconds kBmcPatience{3000};
constexpr std::size_t kNamed = 8;

struct BmcPlace {
  std::string node, host, port;
};

std::optional<BmcPlace> placeOf(const inventory::Node& node) {
  const std::string_view url = node.bmc.url;
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos || !url.starts_with("http")) return std::nullopt;
  auto rest = url.substr(scheme + 3);
  rest = rest.substr(0, rest.find('/'));
  BmcPlace out{node.name.str(), std::string(rest), url.starts_with("https") ? "443" : "80"};
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    out.host = std::string(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (rest.starts_with(':')) out.port = std::string(rest.substr(1));
  } else if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
    out.host = std::string(rest.substr(0, colon));
    out.port = std::string(rest.substr(colon + 1));
  }
  return out;
}

struct Attempt {
  BmcPlace place;
  io::Fd fd;
  std::string trouble;  ///< empty while it is not decided, and when it is connected
  bool done = false;
};

/// `names_fail`: no name server answers; each further name would cost its whole patience.
Attempt begin(BmcPlace place, bool& names_fail) {
  Attempt out{std::move(place), {}, {}, false};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (names_fail ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  if (const int error =
          ::getaddrinfo(out.place.host.c_str(), out.place.port.c_str(), &hints, &found);
      error != 0) {
    out.trouble =
        names_fail ? "its name was not looked up: no name server answers" : ::gai_strerror(error);
    names_fail = names_fail || error == EAI_AGAIN;
    out.done = true;
    return out;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  out.fd = io::Fd(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(out.fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    out.trouble = std::strerror(errno);
    out.done = true;
  }
  return out;
}

void waitForAll(std::vector<Attempt>& attempts) {
  const auto end = std::chrono::steady_clock::now() + kBmcPatience;
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<Attempt*> of;
    for (auto& attempt : attempts)
      if (!attempt.done) {
        waiting.push_back({attempt.fd.get(), POLLOUT, 0});
        of.push_back(&attempt);
      }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (waiting.empty()) return;
    if (left.count() <= 0 ||
        ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) {
      for (auto* attempt : of) {
        attempt->trouble = "no answer";
        attempt->done = true;
      }
      return;
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(of[i]->fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) of[i]->trouble = std::strerror(error);
      of[i]->done = true;
    }
  }
}

}  // namespace

void lookAtBmcs(const inventory::Cluster& cluster, Lines& out) {
  std::vector<Attempt> attempts;
  std::size_t all = 0;
  bool names_fail = false;
  for (const auto& node : cluster.nodes) {
    auto place = placeOf(node);
    if (!place) continue;
    ++all;
    if (attempts.size() < kMostBmcs) attempts.push_back(begin(std::move(*place), names_fail));
  }
  if (attempts.empty()) return;
  waitForAll(attempts);
  std::vector<std::string> bad;
  std::size_t bad_count = 0;
  const Attempt* first = nullptr;
  for (const auto& attempt : attempts) {
    if (attempt.trouble.empty()) continue;
    if (!first) first = &attempt;
    if (++bad_count <= kNamed)
      bad.push_back(
          fmt::format("{} ({}: {})", attempt.place.node, attempt.place.host, attempt.trouble));
  }
  const auto looked = attempts.size() == all
                          ? fmt::format("{}", all)
                          : fmt::format("{} of {} (the first ones)", attempts.size(), all);
  if (!first) return ok(out, "bmcs", fmt::format("{} can be reached", looked));
  out.push_back(
      {"bmcs", DoctorVerdict::Bad,
       fmt::format("{} of {} BMCs cannot be reached: {}{}", bad_count, looked, fmt::join(bad, ", "),
                   bad_count > kNamed ? ", …" : ""),
       "nodes are neither switched nor updated; their plan says the same",
       fmt::format("ip route get {0}; then: curl -k https://{0}/redfish/v1/", first->place.host)});
}

}  // namespace muster::app::doctor
