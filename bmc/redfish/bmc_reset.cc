// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/bmc_reset.h"

#include "bmc/readiness.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kGoesDownLimit = 120s;   ///< a BMC that accepted its reset is gone by then
constexpr auto kComesBackLimit = 480s;  ///< Ironic's limit
constexpr auto kAdaptersLimit =
    120s;  ///< so long network adapters are waited for after a reset of the BMC alone
constexpr auto kResetPoll = 500ms;

}  // namespace

Async<void> BmcReset::reset() {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(manager, co_await resources_.session().get(at.manager));
  const Json* action = find(manager.body, "Actions/#Manager.Reset");
  if (!action)
    co_return fail(ErrorCode::InvalidInput,
                   at.manager + " of " + resources_.address() + " cannot be reset");
  CO_TRY(allowed, co_await resources_.allowedResets(*action));
  std::string type = at.quirks.manager_reset.empty() ? "ForceRestart" : at.quirks.manager_reset;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end())
    type = allowed.front();
  std::string target = linkAt(*action, "target");
  if (target.empty()) target = at.manager + "/Actions/Manager.Reset";

  co_return co_await resetThrough(std::move(target), std::move(type), at.manager,
                                  textAt(manager.body, "LastResetTime"));
}

Async<void> BmcReset::resetThrough(std::string target, std::string type, std::string manager,
                                   std::string reset_time_before) {
  Json body = Json::object();
  body["ResetType"] = type;
  auto answer = co_await resources_.session().post(target, std::move(body));
  if (!answer && !answer.error().canRetry())
    co_return fail(std::move(answer.error()));  // an answer lost on the way may well be the reset
  resources_.forget();
  CO_TRY_OK(
      co_await waitForReset(std::move(manager), std::move(reset_time_before), kGoesDownLimit));
  co_return co_await stabilize();
}

// The reset has happened when the BMC was away, has forgotten the session, or says so itself.
Async<void> BmcReset::waitForReset(std::string manager, std::string reset_time_before,
                                   std::chrono::seconds limit) {
  const auto until = resources_.clock().steady() + limit;
  while (resources_.clock().steady() < until) {
    auto reply = co_await resources_.session().peek(manager, true);
    if (!reply && reply.error().code() == ErrorCode::Denied)
      co_return fail(std::move(reply.error()));
    if (!reply || reply->status == 401 || reply->status >= 500) co_return Result<void>();
    const std::string now = textAt(reply->body, "LastResetTime");
    if (!now.empty() && now != reset_time_before) co_return Result<void>();
    co_await resources_.clock().sleep(kResetPoll);
  }
  co_return fail(ErrorCode::Timeout,
                 "the BMC at " + resources_.address() + " accepted its reset but did not restart");
}

// First without a login: an account service that is still starting might refuse the right password.
// Then all that comes up behind it, kReadsUntilReady times in a row. Adapters that are late are not
// the BMC's: whoever restarts the host sees to them.
Async<void> BmcReset::stabilize() {
  const auto until = resources_.clock().steady() + kComesBackLimit;
  std::optional<std::chrono::steady_clock::time_point> back_since;
  std::string last = "no answer";
  for (int good = 0; good < 2 * kReadsUntilReady;) {
    if (resources_.clock().steady() >= until) {
      co_return fail(
          ErrorCode::Timeout,
          fmt::format("the BMC at {} did not come back within {} s of its reset; last: {}",
                      resources_.address(), kComesBackLimit.count(), last));
    }
    bool answered = false;
    if (good < kReadsUntilReady) {
      auto reply = co_await resources_.session().peek("/redfish/v1/", false);
      if (!reply && reply.error().code() == ErrorCode::Denied)
        co_return fail(std::move(reply.error()));
      answered = reply && (reply->ok() || reply->status == 401);
      last = reply ? fmt::format("status {}", reply->status) : reply.error().str();
    } else {
      if (!back_since) back_since = resources_.clock().steady();
      CO_TRY(missing,
             co_await whatIsNotBack(resources_.clock().steady() < *back_since + kAdaptersLimit));
      answered = missing.empty();
      last = std::move(missing);
    }
    // A late adapter does not take back what is known of the BMC; an error does.
    good = answered                                            ? good + 1
           : good > kReadsUntilReady && resources_.knownUris() ? kReadsUntilReady
                                                               : 0;
    if (good == 2 * kReadsUntilReady) break;
    co_await resources_.clock().sleep(good < kReadsUntilReady || !resources_.knownUris()
                                          ? kResetPoll
                                          : resources_.knownUris()->quirks.stabilize_gap);
  }
  co_return Result<void>();
}

/// "": system, manager and, where they are asked for, network adapters are read, and none is still
/// starting. Errors: Denied
Async<std::string> BmcReset::whatIsNotBack(bool adapters_too) {
  const bool finds = !resources_.knownUris();  // by reading system and manager
  auto at = co_await resources_.uris();
  if (!at && at.error().code() == ErrorCode::Denied) co_return fail(std::move(at.error()));
  if (!at) co_return at.error().str();
  const auto system = finds ? co_await resources_.cachedSystem() : co_await resources_.readSystem();
  if (!system) co_return system.error().str();
  if (!finds)
    if (const auto manager = co_await resources_.session().get(at->manager); !manager)
      co_return manager.error().str();
  if (!adapters_too || powerStateOf((*system)->body) == PowerState::Off) co_return std::string();
  const auto devices = co_await inventory_.lateAdapters();
  if (!devices) co_return devices.error().str();
  co_return devices->empty()
      ? std::string()
      : fmt::format("{} is {}", devices->front().name, devices->front().state);
}

}  // namespace muster::bmc
