// SPDX-License-Identifier: Apache-2.0
// Firmware inventory, and the reset of the BMC itself.
#include "bmc/readiness.h"
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxInventory = 1024;
constexpr std::size_t kMaxChassis = 128;
constexpr std::size_t kMaxAdapters = 64;  ///< of one chassis

constexpr auto kGoesDownLimit = 120s;   ///< a BMC that accepted its reset is gone by then
constexpr auto kComesBackLimit = 480s;  ///< Ironic's limit
constexpr auto kAdaptersLimit =
    120s;  ///< so long network adapters are waited for after a reset of the BMC alone
constexpr auto kResetPoll = 500ms;

std::string lastSegment(const std::string& uri) {
  auto end = uri.find_last_not_of('/');
  if (end == std::string::npos) return {};
  auto slash = uri.rfind('/', end);
  return uri.substr(slash + 1, end - slash);
}

constexpr std::string_view kInstalled = "Installed-", kPrevious = "Previous-",
                           kUpdating = "Updating";

bool isOff(const Json& system) { return textAt(system, "PowerState") == "Off"; }

/// What an iDRAC's id names: "Installed-0-1.4.0__BIOS.Setup.1-1".
std::string fqddOf(const std::string& id, std::string_view kind) {
  const auto mark = id.find("__");
  return id.starts_with(kind) && mark != std::string::npos ? id.substr(mark + 2) : std::string();
}

/// The name of a member under this rule; "" when the member is not installed firmware.
std::string memberName(const std::string& uri, const Json& json, InventoryKey key) {
  std::string id = textAt(json, "Id");
  if (id.empty()) id = lastSegment(uri);
  if (key == InventoryKey::Name && !textAt(json, "Name").empty()) return textAt(json, "Name");
  return key == InventoryKey::InstalledFqdd ? fqddOf(id, kInstalled) : id;
}

}  // namespace

// ---- inventory

Async<RedfishBmc::Inventory> RedfishBmc::readInventory() {
  CO_TRY(at, co_await places());
  if (inventory_.empty()) {
    CO_TRY(service, co_await session_->get(at.update_service));
    inventory_ = linkAt(service.body, "FirmwareInventory");
    if (inventory_.empty()) inventory_ = at.update_service + "/FirmwareInventory";
  }
  CO_TRY(listed,
         co_await members(inventory_, kMaxInventory, at.quirks.inventory_read, Want::Expanded));
  const auto& found = listed.found;

  std::map<std::string, int> uses;
  for (const Member& m : found) ++uses[memberName(m.uri, m.json, at.quirks.inventory_key)];
  Inventory inventory;
  for (const Member& m : found) {
    std::string name = memberName(m.uri, m.json, at.quirks.inventory_key);
    if (name.empty() && at.quirks.rollback == RollbackMethod::UpdateFromPrevious)
      inventory.previous[fqddOf(lastSegment(m.uri), kPrevious)] = m;
    if (name.empty()) continue;
    if (uses[name] > 1) name = lastSegment(m.uri);
    inventory.items.push_back({name,
                               textAt(m.json, "Version"),
                               boolAt(m.json, "Updateable").value_or(false),
                               {},
                               textAt(m.json, "Status/State") == kUpdating});
    inventory.uri_by_name[name] = m.uri;
    if (auto related = linksAt(m.json, "RelatedItem"); !related.empty())
      inventory.related_by_name[name] = std::move(related.front());
  }
  for (const Unread& m : listed.unread) {
    const std::string name = memberName(m.uri, Json::object(), at.quirks.inventory_key);
    if (!name.empty()) inventory.items.push_back({name, {}, false, m.why.str()});
  }
  co_return inventory;
}

Async<std::vector<FirmwareItem>> RedfishBmc::firmware() {
  CO_TRY(inventory, co_await readInventory());
  co_return std::move(inventory.items);
}

// ---- the BMC itself

Async<void> RedfishBmc::resetBmc() {
  CO_TRY(at, co_await places());
  CO_TRY(manager, co_await session_->get(at.manager));
  const Json* action = find(manager.body, "Actions/#Manager.Reset");
  if (!action)
    co_return fail(ErrorCode::InvalidInput, at.manager + " of " + address() + " cannot be reset");
  CO_TRY(allowed, co_await allowedResets(*action));
  std::string type = at.quirks.manager_reset.empty() ? "ForceRestart" : at.quirks.manager_reset;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end())
    type = allowed.front();
  std::string target = linkAt(*action, "target");
  if (target.empty()) target = at.manager + "/Actions/Manager.Reset";

  co_return co_await resetThrough(std::move(target), std::move(type), at.manager,
                                  textAt(manager.body, "LastResetTime"));
}

Async<void> RedfishBmc::resetThrough(std::string target, std::string type, std::string manager,
                                     std::string reset_time_before) {
  Json body = Json::object();
  body["ResetType"] = type;
  auto answer = co_await session_->post(target, std::move(body));
  if (!answer && !answer.error().canRetry())
    co_return fail(std::move(answer.error()));  // an answer lost on the way may well be the reset
  forgetPlaces();
  CO_TRY_OK(
      co_await waitForReset(std::move(manager), std::move(reset_time_before), kGoesDownLimit));
  co_return co_await stabilize();
}

// The reset has happened when the BMC was away, has forgotten the session, or says so itself.
Async<void> RedfishBmc::waitForReset(std::string manager, std::string reset_time_before,
                                     std::chrono::seconds limit) {
  const auto until = clock_.steady() + limit;
  while (clock_.steady() < until) {
    auto reply = co_await session_->peek(manager, true);
    if (!reply && reply.error().code() == ErrorCode::Denied)
      co_return fail(std::move(reply.error()));
    if (!reply || reply->status == 401 || reply->status >= 500) co_return Result<void>();
    const std::string now = textAt(reply->body, "LastResetTime");
    if (!now.empty() && now != reset_time_before) co_return Result<void>();
    co_await clock_.sleep(kResetPoll);
  }
  co_return fail(ErrorCode::Timeout,
                 "the BMC at " + address() + " accepted its reset but did not restart");
}

// First without a login: an account service that is still starting might refuse the right password.
// Then all that comes up behind it, kReadsUntilReady times in a row. Adapters that are late are not
// the BMC's: whoever restarts the host sees to them.
Async<void> RedfishBmc::stabilize() {
  const auto until = clock_.steady() + kComesBackLimit;
  std::optional<std::chrono::steady_clock::time_point> back_since;
  std::string last = "no answer";
  for (int good = 0; good < 2 * kReadsUntilReady;) {
    if (clock_.steady() >= until) {
      co_return fail(
          ErrorCode::Timeout,
          fmt::format("the BMC at {} did not come back within {} s of its reset; last: {}",
                      address(), kComesBackLimit.count(), last));
    }
    bool answered = false;
    if (good < kReadsUntilReady) {
      auto reply = co_await session_->peek("/redfish/v1/", false);
      if (!reply && reply.error().code() == ErrorCode::Denied)
        co_return fail(std::move(reply.error()));
      answered = reply && (reply->ok() || reply->status == 401);
      last = reply ? fmt::format("status {}", reply->status) : reply.error().str();
    } else {
      if (!back_since) back_since = clock_.steady();
      CO_TRY(missing, co_await whatIsNotBack(clock_.steady() < *back_since + kAdaptersLimit));
      answered = missing.empty();
      last = std::move(missing);
    }
    // A late adapter does not take back what is known of the BMC; an error does.
    good = answered ? good + 1 : good > kReadsUntilReady && places_ ? kReadsUntilReady : 0;
    if (good == 2 * kReadsUntilReady) break;
    co_await clock_.sleep(good < kReadsUntilReady || !places_ ? kResetPoll
                                                              : places_->quirks.stabilize_gap);
  }
  co_return Result<void>();
}

/// "": system, manager and, where they are asked for, network adapters are read, and none is still
/// starting. Errors: Denied
Async<std::string> RedfishBmc::whatIsNotBack(bool adapters_too) {
  auto at = co_await places();
  if (!at && at.error().code() == ErrorCode::Denied) co_return fail(std::move(at.error()));
  if (!at) co_return at.error().str();
  const auto system = co_await readSystem();
  if (!system) co_return system.error().str();
  if (const auto manager = co_await session_->get(at->manager); !manager)
    co_return manager.error().str();
  if (!adapters_too || isOff((*system)->body)) co_return std::string();
  const auto devices = co_await lateAdapters();
  if (!devices) co_return devices.error().str();
  co_return devices->empty()
      ? std::string()
      : fmt::format("{} is {}", devices->front().name, devices->front().state);
}

// ---- what comes up behind it

Async<std::vector<DeviceState>> RedfishBmc::notReady() {
  CO_TRY(system, co_await readSystem());
  if (isOff(system->body)) co_return std::vector<DeviceState>();
  co_return co_await lateAdapters();
}

Async<std::vector<DeviceState>> RedfishBmc::lateAdapters() {
  std::vector<DeviceState> out;
  CO_TRY(at, co_await places());
  auto collections = adapters_.value_or(std::vector<std::string>());
  if (!adapters_) {
    CO_TRY(chassis, co_await members(at.chassis, kMaxChassis, RedfishSession::kRequestTimeout));
    for (const Member& box : chassis.found)
      if (auto link = linkAt(box.json, "NetworkAdapters"); !link.empty())
        collections.push_back(std::move(link));
    if (chassis.unread.empty()) adapters_ = collections;  // else: asked again the next time
  }
  for (const auto& collection : collections) {
    const auto adapters =
        co_await members(collection, kMaxAdapters, at.quirks.inventory_read, Want::Expanded);
    if (!adapters && adapters.error().code() == ErrorCode::NotFound)
      continue;  // linked and not there
    if (!adapters) co_return fail(adapters.error());
    for (const Member& adapter : adapters->found)
      if (const auto state = textAt(adapter.json, "Status/State");
          state == kStarting || state == kUpdating)
        out.push_back({lastSegment(adapter.uri), state});
    for (const Unread& adapter : adapters->unread)
      out.push_back({lastSegment(adapter.uri), "unreadable"});
  }
  co_return out;
}

}  // namespace muster::bmc
