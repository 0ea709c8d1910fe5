// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/resources.h"

#include "bmc/redfish/answers.h"
#include "bmc/redfish/identity.h"
#include "bmc/redfish/uri_reference.h"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxSystems = 32;
constexpr std::size_t kMaxManagers = 32;
constexpr std::size_t kMaxLinkedChassis = 8;
constexpr int kMaxPages = 64;
constexpr std::size_t kMaxCollectionBytes = 64u
                                            << 20;  ///< a log of some thousand entries has a few
constexpr std::string_view kExpand =
    "?$expand=.($levels=1)";  ///< DSP0266: subordinate resources, not those in Links

/// A service whose last page leads to an earlier one, or whose every page is the same, has no end.
class PagesSoFar {
 public:
  /// Whether a page names members, and only those that earlier ones have named.
  bool repeats(const Json& members) {
    bool any = false, fresh = false;
    for (const Json& entry : members) {
      const auto link = linkAt(entry, "@odata.id");
      if (link.empty()) continue;
      any = true;
      fresh = links_.insert(link).second || fresh;
    }
    return any && !fresh;
  }

 private:
  std::set<std::string> links_;
};

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

PowerState powerStateOf(const Json& system) {
  const auto text = textAt(system, "PowerState");
  return text == "On" ? PowerState::On : text == "Off" ? PowerState::Off : PowerState::Unknown;
}

std::string lastSegment(const std::string& uri) {
  auto end = uri.find_last_not_of('/');
  if (end == std::string::npos) return {};
  auto slash = uri.rfind('/', end);
  return uri.substr(slash + 1, end - slash);
}

RedfishResources::RedfishResources(std::unique_ptr<RedfishSession> session, Clock& clock,
                                   std::string system_id)
    : session_(std::move(session)), clock_(clock), system_id_(std::move(system_id)) {}

Async<Members> RedfishResources::members(std::string collection, std::size_t limit,
                                         std::chrono::milliseconds timeout, Want want,
                                         RedfishSession::Busy busy) {
  Members out;
  std::size_t seen = 0, bytes = 0;
  const auto fits = [&](const RedfishReply& reply) -> Result<void> {
    bytes += reply.bytes;
    if (bytes <= kMaxCollectionBytes) return {};
    return fail(ErrorCode::InvalidInput,
                fmt::format("the BMC at {} sends more than {} MiB for {}; it was not read to its "
                            "end; reset the BMC, or tell its vendor",
                            address(), kMaxCollectionBytes >> 20, collection));
  };
  std::string next =
      want == Want::Expanded && expand_ ? collection + std::string(kExpand) : collection;
  const auto enough = [&] { return want == Want::FirstPages && seen >= limit; };
  PagesSoFar pages;
  for (int page = 0; page < kMaxPages && !next.empty() && !enough(); ++page) {
    auto answer = co_await session_->get(next, timeout, busy);
    if (!answer && next != collection && page == 0 && answer.error().code() != ErrorCode::Denied) {
      expand_ = false;  // offered and refused, or too much at once
      next = collection;
      continue;
    }
    CO_TRY(reply, std::move(answer));
    CO_TRY_OK(fits(reply));
    const auto here = std::exchange(next, linkAt(reply.body, "Members@odata.nextLink"));
    if (!next.empty()) {
      CO_TRY(path, resolveReference(address(), here, next));
      next = std::move(path);
    }
    CO_TRY(list, membersOf(reply, here));
    if (pages.repeats(*list)) break;
    for (Json& entry : *list) {
      const std::string link = linkAt(entry, "@odata.id");
      if (link.empty() || seen++ >= limit) continue;
      CO_TRY(uri, resolveReference(address(), here, link));
      if (entry.contains("Id")) {  // already expanded
        out.found.push_back({uri, std::move(entry)});
        continue;
      }
      auto member = co_await session_->get(uri, timeout, busy);
      if (member) {
        CO_TRY_OK(fits(*member));
        auto etag = member->etag();
        out.found.push_back({uri, std::move(member->body), std::move(etag)});
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

Async<std::vector<std::string>> RedfishResources::listed(std::string collection,
                                                         std::size_t limit) {
  std::vector<std::string> out;
  std::string next = std::move(collection);
  PagesSoFar pages;
  for (int page = 0; page < kMaxPages && !next.empty() && out.size() < limit; ++page) {
    CO_TRY(reply, co_await session_->get(next, RedfishSession::kRequestTimeout,
                                         RedfishSession::Busy::Answer));
    const auto here = std::exchange(next, linkAt(reply.body, "Members@odata.nextLink"));
    if (!next.empty()) {
      CO_TRY(path, resolveReference(address(), here, next));
      next = std::move(path);
    }
    CO_TRY(list, membersOf(reply, here));
    if (pages.repeats(*list)) break;
    for (const Json& entry : *list) {
      const auto link = linkAt(entry, "@odata.id");
      if (link.empty() || out.size() >= limit) continue;
      CO_TRY(uri, resolveReference(address(), here, link));
      out.push_back(std::move(uri));
    }
  }
  co_return out;
}

Async<std::optional<std::vector<Member>>> RedfishResources::expanded(
    std::string collection, std::size_t limit, std::chrono::milliseconds timeout) {
  CO_TRY_OK(co_await uris());
  if (!expand_offered_) co_return std::nullopt;
  std::vector<Member> out;
  std::size_t bytes = 0;
  std::string next = collection + std::string(kExpand);
  PagesSoFar pages;
  for (int page = 0; page < kMaxPages && !next.empty() && out.size() < limit; ++page) {
    auto answer = co_await session_->get(next, timeout, RedfishSession::Busy::Answer);
    if (!answer) {
      const auto code = answer.error().code();
      if (code == ErrorCode::Denied || code == ErrorCode::Unavailable || code == ErrorCode::Timeout)
        co_return fail(std::move(answer.error()));
      co_return std::nullopt;
    }
    bytes += answer->bytes;
    if (bytes > kMaxCollectionBytes) co_return std::nullopt;
    const auto here = std::exchange(next, linkAt(answer->body, "Members@odata.nextLink"));
    if (!next.empty()) {
      CO_TRY(path, resolveReference(address(), here, next));
      next = std::move(path);
    }
    auto list = membersOf(*answer, here);
    if (!list) co_return std::nullopt;
    if (pages.repeats(**list)) break;
    for (Json& entry : **list) {
      const auto link = linkAt(entry, "@odata.id");
      if (link.empty() || out.size() >= limit) continue;
      if (entry.size() < 2) co_return std::nullopt;  // a link, as it is listed
      CO_TRY(uri, resolveReference(address(), here, link));
      out.push_back({std::move(uri), std::move(entry)});
    }
  }
  co_return out;
}

Async<Member> RedfishResources::pickSystem(std::string collection) {
  CO_TRY(listed, co_await members(collection, kMaxSystems));
  auto& systems = listed.found;
  baseboards_.clear();
  if (!system_id_.empty()) {
    std::string names;
    for (Member& each : systems) {
      if (lastSegment(each.uri) == system_id_) co_return std::move(each);
      names += (names.empty() ? "" : ", ") + lastSegment(each.uri);
    }
    for (const auto& each : listed.unread)
      if (lastSegment(each.uri) == system_id_) co_return fail(each.why);
    co_return fail(
        ErrorCode::NotFound,
        fmt::format("the BMC at {} has no system {}, which the inventory names; it has {}",
                    address(), system_id_, names.empty() ? "none" : names));
  }
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
  for (const Member& other : systems)
    if (!find(other.json, "Actions/#ComputerSystem.Reset")) baseboards_.push_back(other.uri);
  for (const auto& other : listed.unread) baseboards_.push_back(other.uri);  // 503: its host is off
  co_return std::move(*best);
}

/// What was read to choose it is a read of it.
Async<Member> RedfishResources::findSystem(std::string collection) {
  const auto now = clock_.steady();
  const auto writes = session_->writes();
  const auto mine = ++reads_sent_;
  CO_TRY(system, co_await pickSystem(std::move(collection)));
  if (mine == reads_sent_ && writes == session_->writes()) {
    RedfishReply reply{200, {}, system.json};
    if (!system.etag.empty()) reply.headers["ETag"] = system.etag;
    remember(std::make_shared<const RedfishReply>(std::move(reply)), now);
  }
  co_return system;
}

Async<Member> RedfishResources::pickManager(std::string collection, Member system) {
  CO_TRY(listed, co_await members(collection, kMaxManagers));
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

/// NVIDIA's Grace trays say in the system neither who made it nor what it is: the chassis that it
/// names, and Product, do (captures).
Async<BmcIdentity> RedfishResources::dialectOf(Json root, Member system, Member manager) {
  const auto own = systemIdentity(system.uri, system.json);
  BmcIdentity who{
      vendorOf(root), own.manufacturer, own.model, textAt(manager.json, "FirmwareVersion"), {}};
  if (own.model.empty()) {
    auto linked = linksAt(system.json, "Links/Chassis");
    if (linked.size() > kMaxLinkedChassis) linked.resize(kMaxLinkedChassis);
    for (const auto& uri : linked) {
      auto chassis = co_await session_->get(uri);
      if (!chassis && chassis.error().code() == ErrorCode::NotFound) continue;
      if (!chassis) co_return fail(std::move(chassis.error()));
      const auto box = chassisIdentity(uri, chassis->body, system.uri);
      who.other_models.push_back(box.model);
      if (who.manufacturer.empty()) who.manufacturer = box.manufacturer;
    }
  }
  who.other_models.push_back(serviceIdentity(root).model);
  co_return who;
}

Async<ResourceUris> RedfishResources::uris() {
  if (uris_) co_return *uris_;
  CO_TRY(root, co_await session_->get("/redfish/v1/"));
  auto place = [&](std::string_view name, const char* fallback) {
    const auto link = linkAt(root.body, name);
    const auto path = resolveReference(address(), "/redfish/v1/", link);
    return path ? *path : std::string(fallback);
  };
  ResourceUris found;
  found.update_service = place("UpdateService", "/redfish/v1/UpdateService");
  found.tasks = place("Tasks", "/redfish/v1/TaskService");
  found.chassis = place("Chassis", "/redfish/v1/Chassis");
  CO_TRY(system, co_await findSystem(place("Systems", "/redfish/v1/Systems")));
  CO_TRY(manager, co_await pickManager(place("Managers", "/redfish/v1/Managers"), system));
  found.system = system.uri;
  found.manager = manager.uri;
  found.baseboards = baseboards_;

  CO_TRY(who, co_await dialectOf(root.body, system, manager));
  found.quirks = quirksOf(who);
  reported_by_bmc_ = {managerIdentity(manager.uri, manager.json), serviceIdentity(root.body)};
  const std::string features = "ProtocolFeaturesSupported/ExpandQuery/";
  expand_offered_ = boolAt(root.body, features + "NoLinks").value_or(false) ||
                    boolAt(root.body, features + "ExpandAll").value_or(false);
  expand_ = found.quirks.expand && expand_offered_;
  uris_ = found;
  co_return found;
}

Async<std::vector<std::string>> RedfishResources::allowedResets(Json action) {
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

Async<std::vector<std::string>> RedfishResources::offeredResets(Json system) {
  const Json* action = find(system, "Actions/#ComputerSystem.Reset");
  if (!action) co_return std::vector<std::string>();
  co_return co_await allowedResets(*action);
}

void RedfishResources::forget() {
  uris_.reset();
  read_.reset();
  ++reads_sent_;
  ++generation_;
  resets_.clear();
}

// ---- the system

void RedfishResources::remember(const SystemSnapshot& reply,
                                std::chrono::steady_clock::time_point at) {
  session_->recent().keep(reply);
  read_ = SystemRead{reply, at, session_->writes()};
}

Async<SystemSnapshot> RedfishResources::readSystem() {
  CO_TRY(at, co_await uris());
  read_.reset();
  const auto writes = session_->writes();
  const auto now = clock_.steady();
  const auto mine = ++reads_sent_;
  CO_TRY(answer, co_await session_->get(at.system));
  const auto reply = std::make_shared<const RedfishReply>(std::move(answer));
  // Answers overtake one another: one that was asked for earlier never takes the place of a later
  // one.
  if (mine == reads_sent_ && writes == session_->writes()) remember(reply, now);
  co_return reply;
}

Async<SystemSnapshot> RedfishResources::cachedSystem() {
  CO_TRY_OK(co_await uris());
  if (read_ && read_->writes == session_->writes() && clock_.steady() - read_->at <= kReadHolds)
    if (auto reply = read_->reply.lock()) co_return reply;
  co_return co_await readSystem();
}

}  // namespace muster::bmc
