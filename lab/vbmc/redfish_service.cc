// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/redfish_service.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "lab/vbmc/messages.h"
#include "lab/vbmc/resource_names.h"

#include <fmt/ranges.h>
#include <boost/system/system_error.hpp>

#include <array>

namespace muster::lab::vbmc {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kMaxLatency{600'000};
constexpr std::array kBootTargets = {"None", "Pxe", "Hdd", "UefiHttp"};

std::string tidyPath(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool open(const std::string& method, const std::string& path) {
  if (method == "GET" && (path == "/redfish" || path == kRoot)) return true;
  return method == "POST" && path == kSessions;
}

/// Name and password of an Authorization: Basic header.
std::optional<std::pair<std::string, std::string>> basicCredentials(const io::Headers& headers) {
  auto found = headers.find("Authorization");
  if (found == headers.end() || !found->second.starts_with("Basic ")) return std::nullopt;
  auto text = io::fromBase64(std::string_view(found->second).substr(6));
  if (!text) return std::nullopt;
  auto colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return std::pair{text->substr(0, colon), text->substr(colon + 1)};
}

std::string headerOf(const io::Headers& headers, const std::string& name) {
  auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::string stringAt(const json& object, const char* key) {
  if (!object.is_object()) return {};
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

io::ServerResponse unauthorized(LoginAnswer answer, std::chrono::seconds lockout) {
  if (answer == LoginAnswer::Locked)
    return redfishError(
        401, "MusterBmc.1.0.AccountLocked",
        fmt::format("The account is locked for up to {} s after too many wrong passwords.",
                    lockout.count()),
        "Wait until the lock-out ends; check the password before the next try.");
  if (answer == LoginAnswer::TooManySessions)
    return redfishError(503, "Base.1.8.SessionLimitExceeded",
                        "All sessions that this BMC allows are in use.",
                        "Delete a session that is no longer needed.");
  return redfishError(401, "Base.1.8.NoValidSession",
                      "No valid session, or the name or the password is wrong.", "Log in again.");
}

io::ServerResponse noContent() { return io::ServerResponse::text(204, ""); }

io::ServerResponse notFound(const std::string& path) {
  return redfishError(404, "Base.1.8.ResourceMissingAtURI",
                      fmt::format("There is nothing at {}.", path));
}

io::ServerResponse badValue(const std::string& property, const std::string& value) {
  return redfishError(400, "Base.1.8.PropertyValueNotInList",
                      fmt::format("'{}' is not an allowed value of {}.", value, property),
                      "Use one of the allowable values.");
}

/// Breaks the connection: to the client it looks as if the BMC had died.
[[noreturn]] void dropConnection() {
  throw boost::system::system_error(asio::error::operation_aborted);
}

/// Where the vendor has it; the action's own path decides which reset types it takes.
bool isVendorCut(const StandbyCut& way, const std::string& path) {
  const auto hash = way.action.find('#');
  if (way.owner == StandbyCut::Owner::None || way.owner == StandbyCut::Owner::BiosAttribute ||
      hash == std::string_view::npos)
    return false;
  return path.ends_with("/Actions/Oem/" + std::string(way.action.substr(hash + 1)));
}

}  // namespace

RedfishService::RedfishService(Clock& clock, Workers& workers, Machine& machine,
                               ServiceOptions options, BmcState state)
    : clock_(clock),
      workers_(workers),
      machine_(machine),
      options_(std::move(options)),
      behaviour_(options_.vendor_profile->behaviour()),
      state_(std::move(state)),
      guard_(clock, options_.account, options_.logins) {
  guard_.setFailedLogins(state_.failed_logins);
  if (!state_.account_sha256.empty())
    guard_.setAccount({options_.account.username, state_.account_salt, state_.account_sha256});
}

Result<std::unique_ptr<RedfishService>> RedfishService::make(Clock& clock, Workers& workers,
                                                             Machine& machine,
                                                             ServiceOptions options) {
  TRY(state, options.state_file.empty()
                 ? BmcState::fresh(*options.vendor_profile)
                 : BmcState::load(options.state_file, *options.vendor_profile));
  std::unique_ptr<RedfishService> service(
      new RedfishService(clock, workers, machine, std::move(options), std::move(state)));
  service->save();
  return service;
}

std::vector<io::Route> RedfishService::routes() {
  auto handler = [this](io::ServerRequest request) { return handle(std::move(request)); };
  return {{"*", "/redfish", handler},
          {"*", "/redfish/", handler},
          {"POST", kIloUpload, handler},
          {"*", kFaults, handler}};
}

Task<io::ServerResponse> RedfishService::handle(io::ServerRequest request) {
  if (away_)
    co_return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", "The BMC is restarting.",
                           "Try again in some seconds.");
  const auto shown = tidyPath(request.path());
  const auto path = inside(shown);
  auto rule = path == kFaults ? std::nullopt : faults_.take(request.method, shown);
  if (!rule && path != shown) rule = faults_.take(request.method, path);
  if (rule && rule->latency.count() > 0) {
    co_await clock_.sleep(std::min(rule->latency, kMaxLatency));
  }
  if (rule && rule->drop && !rule->after) dropConnection();
  if (rule && rule->status != 0 && !rule->after)
    co_return redfishError(rule->status, "Base.1.8.GeneralError",
                           "A fault was set for this request.");
  auto response = co_await serve(std::move(request), path);
  if (rule && rule->drop) dropConnection();
  if (rule && rule->status != 0)
    co_return redfishError(rule->status, "Base.1.8.GeneralError",
                           "A fault was set for this request.");
  if (rule && rule->merge.is_object() && response.status < 300) {
    auto* text = std::get_if<std::string>(&response.body);
    auto body = jsonOrNone(text ? *text : "", kKeptJson);
    if (body.is_object()) {
      body.merge_patch(rule->merge);
      *text = jsonText(body);
    }
  }
  co_return response;
}

Task<io::ServerResponse> RedfishService::serve(io::ServerRequest request, std::string path) {
  if (path == "/redfish" || path == kRoot || (request.method == "POST" && path == kIloUpload)) {
  } else if (!open(request.method, path)) {
    if (auto refusal = refuseUnknown(request)) co_return std::move(*refusal);
  }
  if (path == kFaults) co_return setFaults(request);
  if (request.method == "GET" && path == kEventStream && options_.vendor_profile->tells_events) {
    co_return co_await streamEvents(std::move(request));
  }
  if (request.method == "GET" || request.method == "HEAD") {
    co_return co_await get(request.target);
  }
  if (request.method == "POST") {
    co_return co_await post(std::move(request), path);
  }
  if (request.method == "PATCH") co_return patch(request, path);
  if (request.method == "DELETE" && path.starts_with(kSessions + "/"))
    co_return guard_.logout(path.substr(kSessions.size() + 1)) ? noContent() : notFound(path);
  if (request.method == "DELETE" && path.starts_with(kJobs + "/")) co_return deleteJob(path);
  co_return redfishError(405, "Base.1.8.OperationNotAllowed",
                         fmt::format("{} is not possible on {}.", request.method, path));
}

/// Not Redfish: how the lab makes this BMC misbehave.
io::ServerResponse RedfishService::setFaults(const io::ServerRequest& request) {
  if (request.method == "GET") return io::ServerResponse::json(200, jsonText(faults_.toJson()));
  const auto set =
      faults_.set(jsonOrNone(request.method == "DELETE" ? "{}" : request.body, kRequestJson));
  return set ? io::ServerResponse::json(200, jsonText(faults_.toJson()))
             : redfishError(400, "Base.1.8.PropertyValueError", set.error().text());
}

std::optional<io::ServerResponse> RedfishService::refuseUnknown(const io::ServerRequest& request) {
  auto token = headerOf(request.headers, "X-Auth-Token");
  if (!token.empty() && guard_.find(token)) return std::nullopt;
  auto answer = LoginAnswer::WrongPassword;
  if (auto basic = basicCredentials(request.headers)) {
    answer = guard_.check(basic->first, basic->second);
    save();
    if (answer == LoginAnswer::Accepted) return std::nullopt;
  }
  return unauthorized(answer, guard_.limits().lockout_duration);
}

Task<io::ServerResponse> RedfishService::get(std::string target) {
  const auto query = target.find('?');
  const auto path = inside(tidyPath(target.substr(0, query)));
  if (path.starts_with(kJobs + "/"))
    for (auto& [id, task] : tasks_)
      if (path.ends_with("/" + task.job) && task.young_reads > 0 && task.young_reads-- > 0)
        co_return notFound(path);
  const auto on = co_await machine_.isOn();
  if (!on && path == kSystem)
    co_return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", on.error().str());
  auto found = resource(path, on.value_or(false));
  if (!found) co_return notFound(path);
  if (found->contains("@Muster.status"))
    co_return redfishError((*found)["@Muster.status"], (*found)["code"], (*found)["message"]);
  if (query != std::string::npos && target.find("$expand", query) != std::string::npos &&
      found->contains("Members"))
    co_return expand(std::move(*found), on.value_or(false));
  renameOutside(*found, behaviour_.names);
  auto response = io::ServerResponse::json(200, found->dump());
  response.headers["ETag"] = etagOf(path);
  co_return response;
}

/// Members in full; where the dialect says so, without fields that a reader would need.
io::ServerResponse RedfishService::expand(json collection, bool on) const {
  for (auto& member : collection["Members"]) {
    auto whole = resource(member.value("@odata.id", ""), on);
    if (!whole || whole->contains("@Muster.status")) continue;
    if (behaviour_.expand_drops_fields) whole->erase("Id"), whole->erase("Version");
    member = std::move(*whole);
  }
  renameOutside(collection, behaviour_.names);
  return io::ServerResponse::json(200, jsonText(collection));
}

std::string RedfishService::inside(std::string path) const {
  return insideName(std::move(path), behaviour_.names);
}

std::string RedfishService::etagOf(const std::string& path) const {
  std::string key = path;
  if (path.starts_with(kSystem))
    key += state_.boot_once +
           fmt::format("{}{}", fmt::join(state_.staged_bios, ","), fmt::join(state_.bios, ","));
  if (path == kInventory) key += fmt::format("{}", fmt::join(inventoryIds(), ","));
  return fmt::format("\"{:016x}\"", std::hash<std::string>()(key));
}

/// A weak tag is not the strong one that this BMC compares with.
std::optional<io::ServerResponse> RedfishService::refuseOldEtag(const io::ServerRequest& request,
                                                                const std::string& path) const {
  const auto given = headerOf(request.headers, "If-Match");
  if (given.empty() && behaviour_.if_match_required)
    return redfishError(428, "Base.1.8.PreconditionRequired", "If-Match is needed.");
  if (!given.empty() && given != "*" && given != etagOf(path))
    return redfishError(412, "Base.1.8.PreconditionFailed", "The ETag does not fit.");
  return std::nullopt;
}

io::ServerResponse RedfishService::patch(const io::ServerRequest& request,
                                         const std::string& path) {
  const auto& boots = behaviour_.override_on_settings ? kSystemSettings : kSystem;
  if (path == kAccount) {
    if (auto refusal = refuseOldEtag(request, path)) return std::move(*refusal);
    return patchAccount(request);
  }
  if (path == kManager && behaviour_.goes_back == GoesBack::ByActiveImage) {
    if (auto refusal = refuseOldEtag(request, path)) return std::move(*refusal);
    return patchManager(request);
  }
  if (path != boots && path != kBios + "/Settings")
    return redfishError(405, "Base.1.8.OperationNotAllowed",
                        fmt::format("PATCH is not possible on {}.", path));
  if (auto refusal = refuseOldEtag(request, path)) return std::move(*refusal);
  return path == boots ? patchSystem(request) : patchBios(request);
}

/// Another of its images runs after the next reset of the BMC.
io::ServerResponse RedfishService::patchManager(const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  const auto uri =
      body.is_object()
          ? body.value(json::json_pointer("/Links/ActiveSoftwareImage/@odata.id"), std::string())
          : std::string();
  const auto id =
      uri.starts_with(kInventory + "/") ? uri.substr(kInventory.size() + 1) : std::string();
  const std::string own(options_.vendor_profile->bmc);
  if (id != own && !(isPrevious(id) && slotOf(id) == own))
    return badValue("ActiveSoftwareImage", uri);
  auto& slot = state_.slots[own];
  slot.staged_version = id == own ? "" : slot.previous_version;
  save();
  return noContent();
}

io::ServerResponse RedfishService::patchBios(const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  if (!body.is_object() || !body.contains("Attributes") || !body["Attributes"].is_object())
    return redfishError(400, "Base.1.8.PropertyMissing", "Attributes are missing.");
  const auto when = body.value(json::json_pointer("/@Redfish.SettingsApplyTime/ApplyTime"), "");
  const bool by_job = options_.vendor_profile->bios_by_job;
  if (!by_job && body.contains("@Redfish.SettingsApplyTime"))
    return redfishError(400, "Base.1.8.PropertyUnknown",
                        "@Redfish.SettingsApplyTime is not known.");
  if (by_job && !when.empty() && when != "OnReset") return badValue("ApplyTime", when);
  if (state_.bios_job)
    return redfishError(400, "IDRAC.2.14.SYS011", "Pending values are committed already.",
                        "Restart the machine, or delete the job.");
  for (const auto& [name, value] : body["Attributes"].items())
    if (!state_.bios.contains(name) || !value.is_string()) return badValue(name, jsonText(value));
  for (const auto& [name, value] : body["Attributes"].items())
    state_.staged_bios[name] = value.get<std::string>();
  state_.bios_job = by_job && when == "OnReset";
  save();
  return noContent();
}

Task<io::ServerResponse> RedfishService::post(io::ServerRequest request, std::string path) {
  if (path == kSessions) co_return login(request);
  if (path == kUpload && behaviour_.flash_state.empty() &&
      options_.vendor_profile->takes == Takes::Multipart)
    co_return acceptUpload(request);
  if (path == kInventory && options_.vendor_profile->takes == Takes::Push)
    co_return acceptReady(request);
  if (path == kSimpleUpdate && options_.vendor_profile->takes == Takes::Fetch)
    co_return acceptUrl(request);
  if (path == kIloUpload && !behaviour_.flash_state.empty()) co_return acceptForm(request);
  if (path == kRoot + "/UpdateService/Actions/UpdateService.StartUpdate" && behaviour_.two_phase)
    co_return startVerified();
  if (path == kSimpleUpdate && behaviour_.goes_back == GoesBack::ByPreviousMember)
    co_return updateFromPrevious(request);
  if (path == kRoot + "/UpdateService/Actions/Oem/NvidiaUpdateService.CommitImage" &&
      !behaviour_.commit_action.empty())
    co_return commitImage(request);
  if (auto answer = postTrust(request, path)) co_return std::move(*answer);
  if (path == kManager + "/Actions/Manager.Reset") co_return resetManager(request);
  if (path == kSystem + "/Actions/ComputerSystem.Reset" || isVendorCut(behaviour_.cut, path)) {
    co_return co_await resetSystem(std::move(request));
  }
  co_return resource(path, false) ? redfishError(405, "Base.1.8.OperationNotAllowed",
                                                 fmt::format("POST is not possible on {}.", path))
                                  : notFound(path);
}

io::ServerResponse RedfishService::login(const io::ServerRequest& request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  auto username = stringAt(body, "UserName"), password = stringAt(body, "Password");
  if (username.empty())
    return redfishError(400, "Base.1.8.PropertyMissing",
                        "UserName and Password are needed to open a session.");
  Session session;
  auto answer = guard_.login(username, password, session);
  save();
  if (answer != LoginAnswer::Accepted)
    return unauthorized(answer, guard_.limits().lockout_duration);
  auto path = kSessions + "/" + session.id;
  auto response = io::ServerResponse::json(201, resource(path, false)->dump());
  response.headers["X-Auth-Token"] = session.token;
  response.headers["Location"] = path;
  return response;
}

io::ServerResponse RedfishService::patchSystem(const io::ServerRequest& request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  if (!body.is_object() || !body.contains("Boot") || !body["Boot"].is_object())
    return redfishError(400, "Base.1.8.PropertyMissing",
                        "Only Boot can be changed on this system.");
  auto target = stringAt(body["Boot"], "BootSourceOverrideTarget"),
       enabled = stringAt(body["Boot"], "BootSourceOverrideEnabled");
  if (target.empty()) target = enabled == "Disabled" ? "None" : state_.boot_once;
  if (enabled.empty()) enabled = target == "None" ? "Disabled" : "Once";
  if (std::find(kBootTargets.begin(), kBootTargets.end(), target) == kBootTargets.end())
    return badValue("BootSourceOverrideTarget", target);
  if (enabled != "Once" && enabled != "Continuous" && enabled != "Disabled")
    return badValue("BootSourceOverrideEnabled", enabled);
  state_.boot_once = enabled == "Disabled" ? "None" : target;
  state_.boot_lasts = enabled == "Continuous";
  if (auto uri = stringAt(body["Boot"], "HttpBootUri"); !uri.empty())
    state_.boot_uri = std::move(uri);
  save();
  return noContent();
}

io::ServerResponse RedfishService::resetManager(const io::ServerRequest& request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  auto type = stringAt(body, "ResetType");
  if (type != "GracefulRestart" &&
      (type != "ForceRestart" || behaviour_.manager_reset == "GracefulRestart"))
    return badValue("ResetType", type);
  if (job_) return refuseBusy();
  job_.emplace(Job{.work = Work::ManagerReset});
  wake_();
  return noContent();
}

Task<io::ServerResponse> RedfishService::resetSystem(io::ServerRequest request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  auto type = stringAt(body, "ResetType");
  const bool vendor_cut = isVendorCut(behaviour_.cut, inside(tidyPath(request.path())));
  const auto& allowed = options_.vendor_profile->resets;
  if (vendor_cut ? type != behaviour_.cut.value
                 : std::find(allowed.begin(), allowed.end(), type) == allowed.end())
    co_return redfishError(400, "Base.1.8.ActionParameterValueNotInList",
                           fmt::format("'{}' is not an allowed ResetType.", type),
                           "Use one of the values in ResetActionInfo.");
  const auto on = co_await machine_.isOn();
  if (!on) co_return redfishError(500, "Base.1.8.InternalError", on.error().str());
  if (type == "FullPowerCycle" || vendor_cut) {
    if (vendor_cut && behaviour_.cut.host_off && *on)
      co_return redfishError(400, "OpenBMC.0.4.ChassisPowerStateOffRequired",
                             "The host must be off.", "Switch it off first.");
    if (job_) co_return refuseBusy();
    job_.emplace(Job{.work = Work::AcCycle});
    wake_();
    co_return noContent();
  }
  if (type == "Nmi") {
    note("NMI");
    co_return noContent();
  }
  Result<void> done;
  if (type == "GracefulShutdown") {
    done = co_await machine_.pressButton();
  } else {
    if (type != "On") {
      if (*on) noteCut("power was cut");
      done = co_await machine_.stop();
    }
    if (done && type != "ForceOff") {
      done = co_await startMachine();
    }
  }
  if (!done) co_return redfishError(500, "Base.1.8.InternalError", done.error().str());
  co_return noContent();
}

void RedfishService::takeBiosOver() {
  if (options_.vendor_profile->bios_by_job && !state_.bios_job) return;
  for (const auto& [name, value] : state_.staged_bios) state_.bios[name] = value;
  state_.staged_bios.clear();
  state_.bios_job = false;
}

Async<void> RedfishService::startMachine() {
  CO_TRY(on, co_await machine_.isOn());
  if (on) co_return Result<void>();
  activate(Becomes::PowerCycle);
  takeBiosOver();
  note("System power on");
  StartOptions options;
  options.first = state_.boot_once == "Pxe" || state_.boot_once == "UefiHttp" ? BootDevice::Network
                                                                              : BootDevice::Disk;
  options.bios_version = state_.slots.contains("BIOS") ? state_.slots.at("BIOS").version : "";
  CO_TRY_OK(co_await machine_.start(options));
  if (!state_.boot_lasts) state_.boot_once = "None";
  ++state_.starts;
  adapter_starting_ = adapter_fault_ != UpdateFault::None;
  if (adapter_fault_ == UpdateFault::AdapterStarting) adapter_fault_ = UpdateFault::None;
  save();
  const auto& cut =
      behaviour_.cut;  // iDRAC: POST takes the attribute over, and the power goes once
  if (cut.owner == StandbyCut::Owner::BiosAttribute && !job_ &&
      state_.bios[std::string(cut.action)] == cut.value) {
    state_.bios[std::string(cut.action)] = "None";
    job_.emplace(Job{.work = Work::AcCycle});
    wake_();
  }
  co_return Result<void>();
}

}  // namespace muster::lab::vbmc
