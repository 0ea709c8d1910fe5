// SPDX-License-Identifier: Apache-2.0
// Finding things, the system, and power.
#include "bmc/redfish/redfish_bmc.h"

#include "base/async/poll.h"
#include "base/limits.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxSystems = 32;
constexpr std::size_t kMaxManagers = 32;
constexpr std::size_t kMaxInterfaces = 64;
constexpr int kMaxPages = 64;
constexpr std::string_view kExpand =
    "?$expand=.($levels=1)";  ///< DSP0266: subordinate resources, not those in Links

constexpr auto kStillTrue = 500ms;  ///< answers of BMCs are on their way for 100–500 ms
constexpr auto kPowerLimit = 120s;
constexpr auto kGracefulLimit = 180s;
constexpr auto kPowerFirstPoll = 100ms, kPowerPoll = 1000ms;
constexpr auto kPowerRepeat =
    10s;  ///< iDRAC10 refuses On for some seconds after off (ironic power.py: 6 × 10 s)
constexpr int kMaxPowerRepeats = 6;
constexpr int kMaxOverrideReads = 3;
constexpr const char* kContinuous = "Continuous";

PowerState parsePower(const std::string& text) {
  if (text == "On") return PowerState::On;
  if (text == "Off") return PowerState::Off;
  return PowerState::Unknown;  // PoweringOn, PoweringOff, Paused, absent
}

std::string_view toString(PowerState state) {
  return state == PowerState::On ? "On" : state == PowerState::Off ? "Off" : "unknown";
}

std::string resetType(PowerAction action) {
  switch (action) {
    case PowerAction::On:
      return "On";
    case PowerAction::ForceOff:
      return "ForceOff";
    case PowerAction::GracefulShutdown:
      return "GracefulShutdown";
    case PowerAction::ForceRestart:
      return "ForceRestart";
  }
  return "On";
}

std::string_view redfishName(BootTarget target) {
  switch (target) {
    case BootTarget::None:
      return "None";
    case BootTarget::Pxe:
      return "Pxe";
    case BootTarget::Disk:
      return "Hdd";
    case BootTarget::UefiHttp:
      return "UefiHttp";
  }
  return "None";
}

BootTarget overrideOf(const Json& system) {
  const std::string enabled = textAt(system, "Boot/BootSourceOverrideEnabled");
  if (enabled.empty() || enabled == "Disabled") return BootTarget::None;
  const std::string target = textAt(system, "Boot/BootSourceOverrideTarget");
  for (auto known : {BootTarget::Pxe, BootTarget::Disk, BootTarget::UefiHttp}) {
    if (target == redfishName(known)) return known;
  }
  return BootTarget::None;
}

/// How much a system looks like the host: it can be reset, it boots, it is physical.
/// HGX_Baseboard_0 has neither actions nor boot.
int hostScore(const Json& system) {
  int score = 0;
  if (find(system, "Actions/#ComputerSystem.Reset")) score += 8;
  if (find(system, "Boot/BootSourceOverrideTarget")) score += 4;
  if (textAt(system, "SystemType") == "Physical" || textAt(system, "SystemType").empty())
    score += 1;
  return score;
}

}  // namespace

RedfishBmc::RedfishBmc(std::unique_ptr<RedfishSession> session, inventory::BootMode boot_mode,
                       Clock& clock, FirmwareImages& images)
    : session_(std::move(session)), boot_mode_(boot_mode), clock_(clock), images_(images) {}

// ---- finding things

Async<RedfishBmc::Members> RedfishBmc::members(std::string collection, std::size_t limit,
                                               std::chrono::milliseconds timeout, Want want) {
  Members out;
  std::size_t seen = 0;
  auto busy = RedfishSession::Busy::Wait;
  std::string next =
      want == Want::Expanded && expand_ ? collection + std::string(kExpand) : collection;
  for (int page = 0; page < kMaxPages && !next.empty(); ++page) {
    auto answer = co_await session_->get(next, timeout);
    if (!answer && next != collection && page == 0 && answer.error().code() != ErrorCode::Denied) {
      expand_ = false;  // offered and refused, or too much at once
      next = collection;
      continue;
    }
    CO_TRY(reply, std::move(answer));
    next = linkAt(reply.body, "Members@odata.nextLink");
    const auto list = reply.body.find("Members");
    if (list == reply.body.end() || !list->is_array()) break;
    for (Json& entry : *list) {
      const std::string uri = linkAt(entry, "@odata.id");
      if (uri.empty() || seen++ >= limit) continue;
      if (entry.contains("Id")) {  // already expanded
        out.found.push_back({uri, std::move(entry)});
        continue;
      }
      auto member = co_await session_->get(uri, timeout, busy);
      if (member) {
        out.found.push_back({uri, std::move(member->body)});
      } else if (member.error().code() == ErrorCode::Denied) {
        co_return fail(std::move(member.error()));
      } else if (member.error().code() != ErrorCode::NotFound) {  // else: gone since it was listed
        // A DGX without its host has fifty such members: patience with each would take an hour.
        if (member.error().code() == ErrorCode::Unavailable) busy = RedfishSession::Busy::Answer;
        out.unread.push_back({uri, std::move(member.error())});
      }
    }
  }
  if (out.found.empty() && !out.unread.empty()) co_return fail(out.unread.back().why);
  co_return out;
}

Async<RedfishBmc::Member> RedfishBmc::pickSystem(std::string collection) {
  CO_TRY(listed, co_await members(collection, kMaxSystems, RedfishSession::kRequestTimeout));
  auto& systems = listed.found;
  auto best = std::max_element(
      systems.begin(), systems.end(),
      [](const Member& a, const Member& b) { return hostScore(a.json) < hostScore(b.json); });
  if (best == systems.end() || !find(best->json, "Actions/#ComputerSystem.Reset")) {
    co_return fail(
        ErrorCode::NotFound,
        fmt::format(
            "none of the {} systems of {} can be reset; muster finds no host behind this BMC",
            systems.size(), address()));
  }
  co_return std::move(*best);
}

Async<RedfishBmc::Member> RedfishBmc::pickManager(std::string collection, Member system) {
  CO_TRY(listed, co_await members(collection, kMaxManagers, RedfishSession::kRequestTimeout));
  auto& managers = listed.found;
  const auto managed_by = linksAt(system.json, "Links/ManagedBy");
  auto score = [&](const Member& m) {
    int points = 0;
    if (find(m.json, "Actions/#Manager.Reset")) points += 4;
    if (std::find(managed_by.begin(), managed_by.end(), m.uri) != managed_by.end()) points += 2;
    if (textAt(m.json, "ManagerType") == "BMC") points += 1;
    return points;
  };
  auto best =
      std::max_element(managers.begin(), managers.end(),
                       [&](const Member& a, const Member& b) { return score(a) < score(b); });
  if (best == managers.end())
    co_return fail(ErrorCode::NotFound, "the service at " + address() + " lists no manager");
  co_return std::move(*best);
}

Async<RedfishBmc::Places> RedfishBmc::places() {
  if (places_) co_return *places_;
  CO_TRY(root, co_await session_->get("/redfish/v1/"));
  auto place = [&](std::string_view name, const char* fallback) {
    auto link = linkAt(root.body, name);
    return link.empty() ? std::string(fallback) : link;
  };
  Places found;
  found.update_service = place("UpdateService", "/redfish/v1/UpdateService");
  found.tasks = place("Tasks", "/redfish/v1/TaskService");
  found.chassis = place("Chassis", "/redfish/v1/Chassis");
  CO_TRY(system, co_await pickSystem(place("Systems", "/redfish/v1/Systems")));
  CO_TRY(manager, co_await pickManager(place("Managers", "/redfish/v1/Managers"), system));
  found.system = system.uri;
  found.manager = manager.uri;

  BmcIdentity who{vendorOf(root.body), textAt(system.json, "Manufacturer"),
                  textAt(system.json, "Model"), textAt(manager.json, "FirmwareVersion")};
  found.quirks = quirksOf(who);
  const std::string features = "ProtocolFeaturesSupported/ExpandQuery/";
  expand_ = found.quirks.expand && (boolAt(root.body, features + "NoLinks").value_or(false) ||
                                    boolAt(root.body, features + "ExpandAll").value_or(false));
  places_ = found;
  co_return found;
}

Async<std::vector<std::string>> RedfishBmc::allowedResets(Json action) {
  auto values = textsAt(action, "ResetType@Redfish.AllowableValues");
  const std::string info = linkAt(action, "@Redfish.ActionInfo");
  if (!values.empty() || info.empty()) co_return values;
  if (const auto known = resets_.find(info); known != resets_.end()) co_return known->second;
  auto reply = co_await session_->get(info);
  if (!reply) co_return values;  // not knowing is not refusing
  const Json* parameters = find(reply->body, "Parameters");
  if (!parameters || !parameters->is_array()) co_return values;
  for (const Json& parameter : *parameters) {
    if (textAt(parameter, "Name") == "ResetType") values = textsAt(parameter, "AllowableValues");
  }
  resets_[info] = values;
  co_return values;
}

void RedfishBmc::forgetPlaces() {
  places_.reset();
  read_.reset();
  ++reads_sent_;
  inventory_.clear();
  task_collection_.clear();
  adapters_.reset();
  resets_.clear();
}

// ---- system

Async<std::vector<std::string>> RedfishBmc::macs(std::string collection) {
  std::vector<std::string> found;
  if (collection.empty()) co_return found;
  CO_TRY(interfaces, co_await members(collection, kMaxInterfaces, RedfishSession::kRequestTimeout));
  if (!interfaces.unread.empty())
    co_return fail(interfaces.unread.front()
                       .why);  // a part of the list would say that the others are not there
  for (const Member& nic : interfaces.found) {
    for (std::string_view field : {"PermanentMACAddress", "MACAddress"}) {
      auto mac = Mac::parse(textAt(nic.json, field));
      if (mac && std::find(found.begin(), found.end(), mac->str()) == found.end())
        found.push_back(mac->str());
    }
  }
  co_return found;
}

/// As old as kStillTrue at most, when nothing was written since.
Async<SystemInfo> RedfishBmc::system() {
  CO_TRY(reply, co_await systemAsRead());
  const Json& json = reply->body;
  if (!macs_) {
    auto seen = co_await macs(linkAt(json, "EthernetInterfaces"));
    if (seen && !seen->empty()) macs_ = std::move(*seen);  // else: asked again the next time
  }
  SystemInfo info;
  info.power = parsePower(textAt(json, "PowerState"));
  info.manufacturer = textAt(json, "Manufacturer");
  info.model = textAt(json, "Model");
  info.serial = textAt(json, "SerialNumber");
  info.uuid = textAt(json, "UUID");
  info.macs = macs_.value_or(std::vector<std::string>());
  info.boot_override = overrideOf(json);
  co_return info;
}

// ---- power

Async<RedfishBmc::Seen> RedfishBmc::readSystem() {
  CO_TRY(at, co_await places());
  read_.reset();
  const auto writes = session_->writes();
  const auto now = clock_.steady();
  const auto mine = ++reads_sent_;
  CO_TRY(answer, co_await session_->get(at.system));
  const auto reply = std::make_shared<const RedfishReply>(std::move(answer));
  // Answers overtake one another: one that was asked for earlier never takes the place of a later
  // one.
  if (mine == reads_sent_ && writes == session_->writes()) read_ = SystemRead{reply, now, writes};
  co_return reply;
}

Async<RedfishBmc::Seen> RedfishBmc::systemAsRead() {
  if (read_ && read_->writes == session_->writes() && clock_.steady() - read_->at <= kStillTrue)
    co_return read_->reply;
  co_return co_await readSystem();
}

// A restart is off and on, each verified: after Redfish's ForceRestart the state is On as before,
// which proves nothing (DGX H100 answers success and does not restart, iLO maps it to a graceful
// one).
Async<void> RedfishBmc::power(PowerAction action) {
  if (action != PowerAction::ForceRestart) {
    const auto wanted = action == PowerAction::On ? PowerState::On : PowerState::Off;
    CO_TRY_OK(
        co_await reach(wanted, resetType(action),
                       action == PowerAction::GracefulShutdown ? kGracefulLimit : kPowerLimit));
    co_return Result<void>();
  }
  CO_TRY(at, co_await places());
  CO_TRY(seen, co_await reach(PowerState::Off, resetType(PowerAction::ForceOff), kPowerLimit));
  co_await clock_.sleep(at.quirks.off_on_pause);
  CO_TRY_OK(
      co_await reach(PowerState::On, resetType(PowerAction::On), kPowerLimit, std::move(seen)));
  co_return Result<void>();
}

/// Nothing can be read that would prove it: a host that was hung stays On.
Async<void> RedfishBmc::interrupt() {
  CO_TRY(at, co_await places());
  CO_TRY(system, co_await session_->get(at.system));
  if (parsePower(textAt(system.body, "PowerState")) == PowerState::Off)
    co_return fail(ErrorCode::Conflict, "the machine behind " + address() +
                                            " is off: nothing there would take an interrupt");
  CO_TRY(offered, co_await offeredResets(system.body));
  if (std::find(offered.begin(), offered.end(), "Nmi") == offered.end())
    co_return fail(ErrorCode::NotFound, fmt::format("{} offers no Nmi; it offers {}", at.system,
                                                    fmt::join(offered, ", ")));
  auto target = linkAt(system.body, "Actions/#ComputerSystem.Reset/target");
  if (target.empty()) target = at.system + "/Actions/ComputerSystem.Reset";
  Json body = Json::object();
  body["ResetType"] = "Nmi";
  CO_TRY_OK(co_await session_->post(std::move(target), std::move(body)));
  co_return Result<void>();
}

Async<RedfishBmc::Seen> RedfishBmc::reach(PowerState wanted, std::string type,
                                          std::chrono::seconds limit, Seen seen) {
  CO_TRY(at, co_await places());
  if (!seen) {
    CO_TRY(system, co_await systemAsRead());
    seen = std::move(system);
  }
  if (parsePower(textAt(seen->body, "PowerState")) == wanted) co_return seen;
  const Json* action = find(seen->body, "Actions/#ComputerSystem.Reset");
  if (!action) co_return fail(ErrorCode::NotFound, at.system + " offers no reset action");
  CO_TRY(allowed, co_await allowedResets(*action));
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
    co_return fail(ErrorCode::InvalidInput, fmt::format("{} does not offer {}; it offers {}",
                                                        at.system, type, fmt::join(allowed, ", ")));
  }
  std::string target = linkAt(*action, "target");
  if (target.empty()) target = at.system + "/Actions/ComputerSystem.Reset";

  const auto until = clock_.steady() + limitHere(clock_, limit);
  for (int repeat = 0;; ++repeat) {
    Json body = Json::object();
    body["ResetType"] = type;
    auto answer = co_await session_->post(target, body);
    if (answer) break;
    // 409 is "already so" for one vendor and "not yet" for another; a lost answer may have worked.
    // The state decides.
    auto now = co_await readSystem();
    if (now && parsePower(textAt((*now)->body, "PowerState")) == wanted) co_return std::move(*now);
    const bool may_repeat =
        answer.error().code() == ErrorCode::Conflict || answer.error().canRetry();
    if (!may_repeat || repeat >= kMaxPowerRepeats || clock_.steady() + kPowerRepeat > until)
      co_return fail(std::move(answer.error()));
    co_await clock_.sleep(kPowerRepeat);
  }
  co_return co_await waitForPower(wanted, until, type);
}

Async<RedfishBmc::Seen> RedfishBmc::waitForPower(PowerState wanted,
                                                 std::chrono::steady_clock::time_point until,
                                                 std::string after) {
  std::string last = "nothing";
  const auto begun = clock_.steady();
  while (true) {
    auto now = co_await readSystem();
    const auto state = now ? parsePower(textAt((*now)->body, "PowerState")) : PowerState::Unknown;
    if (state == wanted) co_return std::move(*now);
    if (!now && !now.error().canRetry()) co_return fail(std::move(now.error()));
    last = now ? std::string(toString(state)) : now.error().str();
    if (clock_.steady() >= until) break;
    co_await clock_.sleep(lookAgainAfter(clock_.steady() - begun, kPowerFirstPoll, kPowerPoll));
  }
  co_return fail(ErrorCode::Timeout,
                 fmt::format("{} accepted {} but its power state did not become {}; last seen: {}",
                             address(), after, toString(wanted), last));
}

// ---- boot override

Async<void> RedfishBmc::bootOnce(BootTarget target) {
  co_return co_await boot({target, false, {}});
}

Async<void> RedfishBmc::boot(BootOverride what) {
  CO_TRY(at, co_await places());
  std::string uri = at.system;
  if (at.quirks.boot_override_on_settings) {
    CO_TRY(system, co_await session_->get(at.system));
    auto settings = linkAt(system.body, "@Redfish.Settings/SettingsObject");
    if (!settings.empty()) uri = settings;
  }
  CO_TRY_OK(co_await writeBoot(uri, what));
  std::string seen;
  for (int attempt = 0; attempt < kMaxOverrideReads; ++attempt) {
    CO_TRY(answer, co_await readBootPlace(uri));
    const Json& now = answer->body;
    const auto enabled = textAt(now, "Boot/BootSourceOverrideEnabled"),
               uri_now = textAt(now, "Boot/HttpBootUri");
    const bool lasts = enabled == kContinuous || what.target == BootTarget::None;
    if (overrideOf(now) == what.target && (!what.persistent || lasts) &&
        (what.http_uri.empty() || uri_now == what.http_uri))
      co_return Result<void>();
    seen = fmt::format("{} {} {}", enabled, textAt(now, "Boot/BootSourceOverrideTarget"), uri_now);
    co_await clock_.sleep(kPowerPoll);
  }
  co_return fail(ErrorCode::Unavailable,
                 fmt::format("{} accepted the boot override {} but shows \"{}\"", uri,
                             redfishName(what.target), seen));
}

Async<RedfishBmc::Seen> RedfishBmc::readBootPlace(std::string uri) {
  CO_TRY(at, co_await places());
  if (uri == at.system) {
    co_return co_await readSystem();
  }
  CO_TRY(answer, co_await session_->get(uri));
  co_return std::make_shared<const RedfishReply>(std::move(answer));
}

Async<void> RedfishBmc::writeBoot(std::string uri, BootOverride what) {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  CO_TRY(now, co_await (uri == at.system ? systemAsRead() : readBootPlace(uri)));
  Json boot = Json::object();
  const auto target = what.target;
  boot["BootSourceOverrideEnabled"] = target == BootTarget::None ? "Disabled"
                                      : what.persistent          ? kContinuous
                                                                 : "Once";
  boot["BootSourceOverrideTarget"] = redfishName(target);
  if (!what.http_uri.empty()) boot["HttpBootUri"] = what.http_uri;
  // Sent with every write where the property exists: some BMCs fall back to the other mode without
  // it (Supermicro).
  if (at.quirks.boot_mode && find(now->body, "Boot/BootSourceOverrideMode")) {
    const bool uefi = boot_mode_ == inventory::BootMode::Uefi || target == BootTarget::UefiHttp;
    boot["BootSourceOverrideMode"] = uefi ? "UEFI" : "Legacy";
  }
  Json body = Json::object();
  body["Boot"] = std::move(boot);
  CO_TRY_OK(co_await session_->patch(uri, std::move(body), now->etag()));
  co_return Result<void>();
}

}  // namespace muster::bmc
