// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/network_change.h"

#include "agent/network/network_change.h"
#include "agent/network/network_files.h"
#include "agent/tasks/systemd.h"
#include "base/log.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kToolLimit{60}, kLookEvery{2};
constexpr const char* kNetworkd = "systemd-networkd";
constexpr const char* kNotes = "run/systemd/netif/links";
constexpr int kAnswersInARow = 2;
constexpr const char* kTimer = "muster-network-undo";
/// systemd counts from when it is told; the agent gives up before.
constexpr std::chrono::seconds kTimerAfter = kNetworkConfirmLimit + std::chrono::seconds(10);

/// Errors: InvalidInput
Result<void> checkPossible(const fs::path& root, const wire::NodeNetwork& next) {
  if (const auto stack = networkStackOf(root); stack != NetworkStack::Networkd)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} configures this system, and a running node's network is changed "
                            "for systemd-networkd alone: image the node again",
                            toString(stack)));
  std::error_code error;
  for (const auto& link : next.links)
    if (link.kind == wire::LinkKind::Ethernet &&
        !fs::exists(root / "sys/class/net" / link.name, error))
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("no NIC is named {} now, and NICs get new names only when the machine "
                      "starts: image the node again, or keep the names it has",
                      link.name));
  return {};
}

/// The script decides whether there is anything to take back.
Async<void> takeBack(TaskTools tools) {
  std::vector<std::string> args = {(tools.root / kNetworkBack).string(), "now"};
  CO_TRY_OK(co_await runTool(tools, "sh", std::move(args), kToolLimit));
  std::vector<std::string> stop = {"stop", std::string(kTimer) + ".timer"};
  (void)co_await systemctl(tools, std::move(stop), kToolLimit);  // it may have run, and be gone
  co_return Result<void>();
}

/// A timer of systemd's and a unit before the network at the next start: neither needs this agent.
Async<void> arm(TaskTools tools) {
  std::vector<std::string> args = {fmt::format("--on-active={}", kTimerAfter.count()),
                                   "--timer-property=AccuracySec=1s",
                                   fmt::format("--unit={}", kTimer),
                                   "--collect",
                                   "/bin/sh",
                                   fmt::format("/{}", kNetworkBack),
                                   "now"};
  CO_TRY_OK(co_await runTool(tools, "systemd-run", std::move(args), kToolLimit));
  std::vector<std::string> reload = {"daemon-reload"};
  CO_TRY_OK(co_await systemctl(tools, std::move(reload), kToolLimit));
  std::vector<std::string> enable = {"enable", fs::path(kNetworkBackUnit).filename().string()};
  CO_TRY_OK(co_await systemctl(tools, std::move(enable), kToolLimit));
  co_return Result<void>();
}

/// Without what systemd-networkd noted of its links before: what it notes afterwards is of now. And
/// without addresses and routes of before: it keeps what it did not set itself since it was
/// started, and the controller would be reached by them until the machine is restarted.
Async<void> putIntoForce(TaskTools tools, std::vector<std::string> gone,
                         std::vector<std::string> links) {
  std::vector<std::string> stop = {"stop", "systemd-networkd.socket", kNetworkd};
  CO_TRY_OK(co_await systemctl(tools, std::move(stop), kToolLimit));
  std::error_code error;
  std::vector<fs::path> notes;
  for (const auto& note : fs::directory_iterator(tools.root / kNotes, error))
    notes.push_back(note.path());
  for (const auto& note : notes) fs::remove(note, error);
  for (const auto& link : gone) {
    std::vector<std::string> args = {"link", "delete", "dev", link};
    (void)co_await runTool(tools, "ip", std::move(args), kToolLimit);  // it need not be there
  }
  for (const auto& link : links) {
    const std::vector<std::vector<std::string>> flushes = {
        {"address", "flush", "dev", link, "scope", "global"},
        {"-4", "route", "flush", "dev", link},
        {"-6", "route", "flush", "dev", link, "proto", "static"}};
    for (auto args : flushes) (void)co_await runTool(tools, "ip", std::move(args), kToolLimit);
  }
  std::vector<std::string> start = {"start", "systemd-networkd.socket", kNetworkd};
  CO_TRY_OK(co_await systemctl(tools, std::move(start), kToolLimit));
  co_return Result<void>();
}

std::string wordIn(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

/// The first link that systemd-networkd still works on; empty: none. One without a carrier has
/// nothing to wait for, unless the controller is behind it.
std::string unsettledLink(const fs::path& root, const wire::NodeNetwork& next) {
  for (const auto& link : next.links) {
    const auto device = root / "sys/class/net" / link.name;
    const auto index = wordIn(device / "ifindex");
    std::ifstream note(root / kNotes / index);
    bool done = false;
    for (std::string line; !index.empty() && std::getline(note, line);)
      done = done || line == "ADMIN_STATE=configured" || line == "ADMIN_STATE=failed";
    const bool waits_for_cable =
        link.name != next.provisioning.link && !index.empty() && wordIn(device / "carrier") != "1";
    if (!done && !waits_for_cable) return link.name;
  }
  return {};
}

/// Until the controller answers by the new network, twice in a row: an answer that came while the
/// old one was still there says nothing. Errors: Unavailable, with what was seen last
Async<void> reach(TaskTools tools, wire::NodeNetwork next) {
  const auto until = tools.clock.steady() + kNetworkConfirmLimit;
  std::string last = "nothing was tried";
  int in_a_row = 0;
  while (tools.clock.steady() < until) {
    if (const auto link = unsettledLink(tools.root, next); !link.empty()) {
      in_a_row = 0;
      last = "systemd-networkd has not configured " + link;
    } else if (const auto answered = co_await tools.reach_controller(); answered) {
      if (++in_a_row == kAnswersInARow) co_return Result<void>();
    } else {
      in_a_row = 0;
      last = answered.error().str();
    }
    co_await tools.clock.sleep(kLookEvery);
  }
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("the controller was not reached within {} s: {}",
                             kNetworkConfirmLimit.count(), last));
}

Async<void> change(TaskTools tools, std::optional<wire::NodeNetwork> now, wire::NodeNetwork next,
                   TaskContextPtr context) {
  CO_TRY_OK(beginNetworkChange(tools.root, now, next));
  if (const auto armed = co_await arm(tools); !armed) {
    (void)confirmNetworkChange(tools.root);  // nothing was changed
    co_return fail(Error(armed.error()).within("the way back could not be prepared"));
  }
  context->progress(0.3, "changing the network; it comes back by itself if this does not go on");
  CO_TRY_OK(putNetwork(tools.root, next));
  auto gone = now ? linksToDelete(*now, next) : std::vector<std::string>();
  auto links = linksOf(now.value_or(wire::NodeNetwork()), next);
  CO_TRY_OK(co_await putIntoForce(tools, std::move(gone), std::move(links)));
  context->progress(0.6, "looking for the controller");
  CO_TRY_OK(co_await reach(tools, next));
  CO_TRY_OK(confirmNetworkChange(tools.root));
  std::vector<std::string> stop = {"stop", std::string(kTimer) + ".timer"};
  (void)co_await systemctl(tools, std::move(stop), kToolLimit);  // it would find nothing to do
  co_return Result<void>();
}

}  // namespace

Async<nlohmann::json> changeNetwork(TaskTools tools, wire::NodeServiceParams params,
                                    TaskContextPtr context) {
  const auto file = params.files.find(kNetworkFileName);
  if (file == params.files.end())
    co_return fail(ErrorCode::InvalidInput, "params.files has no network.json");
  CO_TRY(next, wire::parseNodeNetwork(file->second));
  if (wire::digestOf(next) != params.value)
    co_return fail(ErrorCode::InvalidInput, "params.value is not the digest of network.json");
  if (!tools.reach_controller)
    co_return fail(ErrorCode::Internal, "this agent has no way to ask its controller");
  CO_TRY_OK(checkPossible(tools.root, next));
  if (isNetworkChangePending(tools.root)) {
    context->progress(0.1, "taking back a change that was never confirmed");
    CO_TRY_OK(co_await takeBack(tools));
  }
  const auto result = [&](bool started) {
    return nlohmann::json{
        {"service", kNetworkService}, {"value", params.value}, {"started", started}};
  };
  const auto given = givenNetwork(tools.root);
  if (given && *given == next && changedNetworkFile(tools.root, next).empty())
    co_return result(false);
  auto now = given ? std::optional(*given) : std::nullopt;
  const auto changed = co_await change(tools, std::move(now), std::move(next), context);
  if (changed) co_return result(true);
  if (!isNetworkChangePending(tools.root)) co_return fail(changed.error());
  const auto words = co_await lastWords(tools, kNetworkd);
  const auto back = co_await takeBack(tools);
  logWarning("network", "{}; {}", changed.error().str(),
             back ? "the network before is back" : back.error().str());
  co_return fail(Error(ErrorCode::Unavailable,
                       fmt::format("{}; {}. What systemd-networkd said: {}", changed.error().str(),
                                   back ? "the network before is back"
                                        : "taking it back failed (" + back.error().str() +
                                              "), a timer tries again",
                                   words))
                     .retryable(false));
}

std::string networkProbe(const fs::path& root) {
  if (isNetworkChangePending(root)) return "pending";
  const auto given = givenNetwork(root);
  if (!given) return given.error().code() == ErrorCode::NotFound ? "" : "changed:network.json";
  const auto changed = changedNetworkFile(root, *given);
  return changed.empty() ? wire::digestOf(*given) : "changed:" + changed;
}

}  // namespace muster::agent
