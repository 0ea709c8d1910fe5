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

constexpr auto kGoesDownLimit = 120s;  ///< a BMC that accepted its reset is gone by then
constexpr auto kComesBackLimit = 480s; ///< Ironic's limit
constexpr auto kAdaptersLimit = 120s;  ///< so long network adapters are waited for after a reset of the BMC alone
constexpr auto kResetPoll = 500ms;

std::string lastSegment(const std::string& uri) {
  auto end = uri.find_last_not_of('/');
  if (end == std::string::npos) return {};
  auto slash = uri.rfind('/', end);
  return uri.substr(slash + 1, end - slash);
}

constexpr std::string_view kInstalled = "Installed-", kPrevious = "Previous-", kUpdating = "Updating";

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
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  if (inventory_.empty()) {
    auto read = session_->get(at.update_service);
    CO_TRY(service, co_await std::move(read));
    inventory_ = linkAt(service.body, "FirmwareInventory");
    if (inventory_.empty()) inventory_ = at.update_service + "/FirmwareInventory";
  }
  auto list = members(inventory_, kMaxInventory, at.quirks.inventory_read, Want::Expanded);
  CO_TRY(listed, co_await std::move(list));
  const auto& found = listed.found;

  std::map<std::string, int> uses;
  for (const Member& m : found) ++uses[memberName(m.uri, m.json, at.quirks.inventory_key)];
  Inventory inventory;
  for (const Member& m : found) {
    std::string name = memberName(m.uri, m.json, at.quirks.inventory_key);
    if (name.empty() && at.quirks.rollback == RollbackWay::UpdateFromPrevious) inventory.previous[fqddOf(lastSegment(m.uri), kPrevious)] = m;
    if (name.empty()) continue;
    if (uses[name] > 1) name = lastSegment(m.uri);
    inventory.items.push_back({name, textAt(m.json, "Version"), boolAt(m.json, "Updateable").value_or(false), {}, textAt(m.json, "Status/State") == kUpdating});
    inventory.uri_by_name[name] = m.uri;
    if (auto related = linksAt(m.json, "RelatedItem"); !related.empty()) inventory.related_by_name[name] = std::move(related.front());
  }
  for (const Unread& m : listed.unread) {
    const std::string name = memberName(m.uri, Json::object(), at.quirks.inventory_key);
    if (!name.empty()) inventory.items.push_back({name, {}, false, m.why.str()});
  }
  co_return inventory;
}

Async<std::vector<FirmwareItem>> RedfishBmc::firmware() {
  auto read = readInventory();
  CO_TRY(inventory, co_await std::move(read));
  co_return std::move(inventory.items);
}

// ---- the BMC itself

Async<void> RedfishBmc::resetBmc() {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto read = session_->get(at.manager);
  CO_TRY(manager, co_await std::move(read));
  const Json* action = find(manager.body, "Actions/#Manager.Reset");
  if (!action) co_return fail(ErrorCode::InvalidInput, at.manager + " of " + address() + " cannot be reset");
  auto ask = allowedResets(*action);
  CO_TRY(allowed, co_await std::move(ask));
  std::string type = at.quirks.manager_reset.empty() ? "ForceRestart" : at.quirks.manager_reset;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end()) type = allowed.front();
  std::string target = linkAt(*action, "target");
  if (target.empty()) target = at.manager + "/Actions/Manager.Reset";

  auto reset = resetThrough(std::move(target), std::move(type), at.manager, textAt(manager.body, "LastResetTime"));
  co_return co_await std::move(reset);
}

Async<void> RedfishBmc::resetThrough(std::string target, std::string type, std::string manager, std::string reset_time_before) {
  Json body = Json::object();
  body["ResetType"] = type;
  auto post = session_->post(target, std::move(body));
  auto answer = co_await std::move(post);
  if (!answer && !answer.error().canRetry()) co_return fail(std::move(answer.error()));  // an answer lost on the way may well be the reset
  forgetPlaces();
  auto wait = waitForReset(std::move(manager), std::move(reset_time_before), kGoesDownLimit);
  CO_TRY_OK(co_await std::move(wait));
  auto calm = settle();
  co_return co_await std::move(calm);
}

// The reset has happened when the BMC was away, has forgotten the session, or says so itself.
Async<void> RedfishBmc::waitForReset(std::string manager, std::string reset_time_before, std::chrono::seconds limit) {
  const auto until = clock_.steady() + limit;
  while (clock_.steady() < until) {
    auto look = session_->peek(manager, true);
    auto reply = co_await std::move(look);
    if (!reply && reply.error().code() == ErrorCode::Denied) co_return fail(std::move(reply.error()));
    if (!reply || reply->status == 401 || reply->status >= 500) co_return Result<void>();
    const std::string now = textAt(reply->body, "LastResetTime");
    if (!now.empty() && now != reset_time_before) co_return Result<void>();
    auto pause = clock_.sleep(kResetPoll);
    co_await std::move(pause);
  }
  co_return fail(ErrorCode::Timeout, "the BMC at " + address() + " accepted its reset but did not restart");
}

// First without a login: an account service that is still starting might refuse the right password. Then all that comes up behind it,
// kGoodReads times in a row. Adapters that are late are not the BMC's: whoever restarts the host sees to them.
Async<void> RedfishBmc::settle() {
  const auto until = clock_.steady() + kComesBackLimit;
  std::optional<std::chrono::steady_clock::time_point> back_since;
  std::string last = "no answer";
  for (int good = 0; good < 2 * kGoodReads;) {
    if (clock_.steady() >= until) {
      co_return fail(ErrorCode::Timeout, fmt::format("the BMC at {} did not come back within {} s of its reset; last: {}", address(), kComesBackLimit.count(), last));
    }
    bool answered = false;
    if (good < kGoodReads) {
      auto look = session_->peek("/redfish/v1/", false);
      auto reply = co_await std::move(look);
      if (!reply && reply.error().code() == ErrorCode::Denied) co_return fail(std::move(reply.error()));
      answered = reply && (reply->ok() || reply->status == 401);
      last = reply ? fmt::format("status {}", reply->status) : reply.error().str();
    } else {
      if (!back_since) back_since = clock_.steady();
      auto look = whatIsNotBack(clock_.steady() < *back_since + kAdaptersLimit);
      CO_TRY(missing, co_await std::move(look));
      answered = missing.empty();
      last = std::move(missing);
    }
    // A late adapter does not take back what is known of the BMC; an error does.
    good = answered ? good + 1 : good > kGoodReads && places_ ? kGoodReads : 0;
    if (good == 2 * kGoodReads) break;
    auto pause = clock_.sleep(good < kGoodReads || !places_ ? kResetPoll : places_->quirks.settle_gap);
    co_await std::move(pause);
  }
  co_return Result<void>();
}

/// "": system, manager and, where they are asked for, network adapters are read, and none is still starting. Errors: Denied
Async<std::string> RedfishBmc::whatIsNotBack(bool adapters_too) {
  auto where = places();
  auto at = co_await std::move(where);
  if (!at && at.error().code() == ErrorCode::Denied) co_return fail(std::move(at.error()));
  if (!at) co_return at.error().str();
  auto now = readSystem();
  const auto system = co_await std::move(now);
  if (!system) co_return system.error().str();
  auto read = session_->get(at->manager);
  if (const auto manager = co_await std::move(read); !manager) co_return manager.error().str();
  if (!adapters_too || isOff((*system)->body)) co_return std::string();
  auto ask = lateAdapters();
  const auto devices = co_await std::move(ask);
  if (!devices) co_return devices.error().str();
  co_return devices->empty() ? std::string() : fmt::format("{} is {}", devices->front().name, devices->front().state);
}

// ---- what comes up behind it

Async<std::vector<DeviceState>> RedfishBmc::notReady() {
  auto now = readSystem();
  CO_TRY(system, co_await std::move(now));
  if (isOff(system->body)) co_return std::vector<DeviceState>();
  auto ask = lateAdapters();
  co_return co_await std::move(ask);
}

Async<std::vector<DeviceState>> RedfishBmc::lateAdapters() {
  std::vector<DeviceState> out;
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  auto collections = adapters_.value_or(std::vector<std::string>());
  if (!adapters_) {
    auto list = members(at.chassis, kMaxChassis, RedfishSession::kRequestTimeout);
    CO_TRY(chassis, co_await std::move(list));
    for (const Member& box : chassis.found)
      if (auto link = linkAt(box.json, "NetworkAdapters"); !link.empty()) collections.push_back(std::move(link));
    if (chassis.unread.empty()) adapters_ = collections;  // else: asked again the next time
  }
  for (const auto& collection : collections) {
    auto list = members(collection, kMaxAdapters, at.quirks.inventory_read, Want::Expanded);
    const auto adapters = co_await std::move(list);
    if (!adapters && adapters.error().code() == ErrorCode::NotFound) continue;  // linked and not there
    if (!adapters) co_return fail(adapters.error());
    for (const Member& adapter : adapters->found)
      if (const auto state = textAt(adapter.json, "Status/State"); state == kStarting || state == kUpdating) out.push_back({lastSegment(adapter.uri), state});
    for (const Unread& adapter : adapters->unread) out.push_back({lastSegment(adapter.uri), "unreadable"});
  }
  co_return out;
}

}  // namespace muster::bmc
