// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/redfish_service.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "lab/vbmc/messages.h"
#include "lab/vbmc/patch_body.h"
#include "lab/vbmc/protocol.h"
#include "lab/vbmc/resource_names.h"

#include <fmt/ranges.h>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

namespace muster::lab::vbmc {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kMaxLatency{600'000};

std::string tidyPath(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool open(const std::string& method, const std::string& path) {
  const bool reads = method == "GET" || method == "HEAD";
  if (reads &&
      (path == "/redfish" || path == kRoot || path == kMetadata || path == kServiceDocument))
    return true;
  return method == "POST" && (path == kSessions || path == kSessions + "/Members");
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
    : bmc_(clock, workers, machine, std::move(options), std::move(state)) {}

Result<std::unique_ptr<RedfishService>> RedfishService::make(Clock& clock, Workers& workers,
                                                             Machine& machine,
                                                             ServiceOptions options) {
  TRY(state, options.state_file.empty()
                 ? BmcState::fresh(*options.vendor_profile)
                 : BmcState::load(options.state_file, *options.vendor_profile));
  std::unique_ptr<RedfishService> service(
      new RedfishService(clock, workers, machine, std::move(options), std::move(state)));
  service->bmc_.save();
  return service;
}

std::vector<io::Route> RedfishService::routes() {
  auto handler = [this](io::ServerRequest request) { return handle(std::move(request)); };
  return {{"*", "/redfish", handler},
          {"*", "/redfish/", handler},
          {"POST", kIloUpload, handler},
          {"*", kFaults, handler}};
}

void RedfishService::stop() {
  bmc_.stopping = true;
  bmc_.wake();
}

Task<io::ServerResponse> RedfishService::handle(io::ServerRequest request) {
  if (bmc_.away)
    co_return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", "The BMC is restarting.",
                           "Try again in some seconds.");
  storage_.tick();
  const auto shown = tidyPath(request.path());
  const auto path = bmc_.inside(shown);
  auto rule = path == kFaults ? std::nullopt : bmc_.faults.take(request.method, shown);
  if (!rule && path != shown) rule = bmc_.faults.take(request.method, path);
  if (rule && rule->latency.count() > 0) {
    co_await bmc_.clock.sleep(std::min(rule->latency, kMaxLatency));
  }
  if (rule && rule->drop && !rule->after) dropConnection();
  if (rule && rule->status != 0 && !rule->after)
    co_return redfishError(rule->status, "Base.1.8.GeneralError",
                           "A fault was set for this request.");
  const auto method = request.method;
  auto refused = path == kFaults ? std::nullopt : refuseProtocol(request);
  auto response = refused ? std::move(*refused) : co_await serve(std::move(request), path);
  addProtocolHeaders(response, method, methodsOf(path));
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
  Caller caller;
  const bool uploads = request.method == "POST" && path == kIloUpload;
  if (path == kRoot && request.method != "GET" && request.method != "HEAD")
    co_return refuseMethod(request.method, path);
  if (!uploads && !open(request.method, path)) {
    if (auto refusal = refuseUnknown(request, caller)) co_return std::move(*refusal);
    if (!accounts_.permits(caller, request.method, path))
      co_return redfishError(403, "Base.1.8.InsufficientPrivilege",
                             "The role of this account does not allow it.",
                             "Ask with an account of another role.");
  }
  if (path == kFaults) co_return setFaults(request);
  if (request.method == "GET" && path == kEventStream &&
      bmc_.options.vendor_profile->tells_events) {
    co_return co_await events_.stream(std::move(request));
  }
  if (request.method == "GET" || request.method == "HEAD") {
    co_return co_await get(request.target);
  }
  if (request.method == "POST") {
    co_return co_await post(std::move(request), path);
  }
  if (request.method == "PATCH") co_return patch(request, path, caller);
  if (request.method == "DELETE") co_return remove(path);
  co_return refuseMethod(request.method, path);
}

std::vector<std::string> RedfishService::methodsOf(const std::string& path) const {
  const bool action = path.find("/Actions/") != std::string::npos;
  if (action || path == kUpload || path == kIloUpload || path == kSimpleUpdate) return {"POST"};
  if (path == "/redfish" || path == kRoot || path == kMetadata || path == kServiceDocument)
    return {"GET", "HEAD"};
  if (path == kEventStream) return {"GET"};
  std::vector<std::string> methods = {"GET", "HEAD"};
  if (path == kSessions || path == kAccounts || path == kSubscriptions ||
      storage_.isCollection(path))
    methods.emplace_back("POST");
  if (accounts_.isAccount(path) || boot_.takes(path) || path == kBios + "/Settings" ||
      (path == kManager && bmc_.behaviour.goes_back == GoesBack::ByActiveImage))
    methods.emplace_back("PATCH");
  for (const auto& members : {kSessions, kAccounts, kSubscriptions, kJobs})
    if (path.starts_with(members + "/")) methods.emplace_back("DELETE");
  if (storage_.isVolume(path)) methods.emplace_back("DELETE");
  return methods;
}

io::ServerResponse RedfishService::refuseMethod(const std::string& method,
                                                const std::string& path) const {
  return redfishError(405, "Base.1.8.OperationNotAllowed",
                      fmt::format("{} is not possible on {}.", method, path));
}

io::ServerResponse RedfishService::remove(const std::string& path) {
  if (path.starts_with(kSessions + "/"))
    return bmc_.guard.logout(path.substr(kSessions.size() + 1)) ? noContent() : notFound(path);
  if (path.starts_with(kJobs + "/")) return intake_.deleteJob(path);
  if (accounts_.isAccount(path)) return accounts_.remove(path);
  if (storage_.isVolume(path)) return storage_.remove(path);
  if (auto done = events_.remove(path)) return std::move(*done);
  return resources_.find(path, true) ? refuseMethod("DELETE", path) : notFound(path);
}

/// Not Redfish: how the lab makes this BMC misbehave.
io::ServerResponse RedfishService::setFaults(const io::ServerRequest& request) {
  if (request.method == "GET") return io::ServerResponse::json(200, jsonText(bmc_.faults.toJson()));
  const auto set =
      bmc_.faults.set(jsonOrNone(request.method == "DELETE" ? "{}" : request.body, kRequestJson));
  return set ? io::ServerResponse::json(200, jsonText(bmc_.faults.toJson()))
             : redfishError(400, "Base.1.8.PropertyValueError", set.error().text());
}

std::optional<io::ServerResponse> RedfishService::refuseUnknown(const io::ServerRequest& request,
                                                                Caller& caller) {
  auto token = headerOf(request.headers, "X-Auth-Token");
  if (!token.empty())
    if (const auto* session = bmc_.guard.find(token)) {
      caller = {session->account, session->id};
      return std::nullopt;
    }
  auto answer = LoginAnswer::WrongPassword;
  if (auto basic = basicCredentials(request.headers)) {
    answer = bmc_.guard.check(basic->first, basic->second, caller.account);
    bmc_.save();
    if (answer == LoginAnswer::Accepted) return std::nullopt;
  }
  return unauthorized(answer, bmc_.guard.limits().lockout_duration);
}

Task<io::ServerResponse> RedfishService::get(std::string target) {
  const auto query = target.find('?');
  const auto path = bmc_.inside(tidyPath(target.substr(0, query)));
  if (path.starts_with(kJobs + "/"))
    for (auto& [id, task] : bmc_.tasks)
      if (path.ends_with("/" + task.job) && task.young_reads > 0 && task.young_reads-- > 0)
        co_return notFound(path);
  if (path == kServiceDocument)
    co_return io::ServerResponse::json(200,
                                       jsonText(serviceDocument(*resources_.find(kRoot, false))));
  if (path == kMetadata) {
    auto response = io::ServerResponse::text(
        200, metadataDocument(typesBelow(
                 kRoot, [this](const std::string& at) { return resources_.find(at, true); })));
    response.headers["Content-Type"] = "application/xml";
    co_return response;
  }
  const auto on = co_await bmc_.machine.isOn();
  if (!on && path == kSystem)
    co_return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", on.error().str());
  auto found = resources_.find(path, on.value_or(false));
  if (!found) co_return notFound(path);
  if (found->contains("@Muster.status"))
    co_return redfishError((*found)["@Muster.status"], (*found)["code"], (*found)["message"]);
  if (query != std::string::npos && target.find("$expand", query) != std::string::npos &&
      found->contains("Members"))
    co_return expand(std::move(*found), on.value_or(false));
  renameOutside(*found, bmc_.behaviour.names);
  auto response = io::ServerResponse::json(200, found->dump());
  response.headers["ETag"] = bmc_.etagOf(path);
  if (auto schema = describedBy(*found); !schema.empty())
    response.headers["Link"] = std::move(schema);
  co_return response;
}

/// Members in full; where the dialect says so, without fields that a reader would need.
io::ServerResponse RedfishService::expand(json collection, bool on) const {
  for (auto& member : collection["Members"]) {
    auto whole = resources_.find(member.value("@odata.id", ""), on);
    if (!whole || whole->contains("@Muster.status")) continue;
    if (bmc_.behaviour.expand_drops_fields) whole->erase("Id"), whole->erase("Version");
    member = std::move(*whole);
  }
  renameOutside(collection, bmc_.behaviour.names);
  return io::ServerResponse::json(200, jsonText(collection));
}

/// A weak tag is not the strong one that this BMC compares with.
std::optional<io::ServerResponse> RedfishService::refuseOldEtag(const io::ServerRequest& request,
                                                                const std::string& path) const {
  const auto given = headerOf(request.headers, "If-Match");
  if (bmc_.behaviour.order_if_none_match && path == kSystemSettings &&
      request.body.find("\"BootOrder\"") != std::string::npos)
    return headerOf(request.headers, "If-None-Match").empty()
               ? std::optional(redfishError(428, "Base.1.8.PreconditionRequired",
                                            "If-None-Match is needed for the boot order."))
               : std::nullopt;
  if (given.empty() && bmc_.behaviour.if_match_required)
    return redfishError(428, "Base.1.8.PreconditionRequired", "If-Match is needed.");
  if (!given.empty() && given != "*" && given != bmc_.etagOf(path))
    return redfishError(412, "Base.1.8.PreconditionFailed", "The ETag does not fit.");
  return std::nullopt;
}

io::ServerResponse RedfishService::patch(const io::ServerRequest& request, const std::string& path,
                                         const Caller& caller) {
  if (!resources_.find(path, true)) return notFound(path);
  const auto on_manager = path == kManager && bmc_.behaviour.goes_back == GoesBack::ByActiveImage;
  if (!accounts_.isAccount(path) && !on_manager && !boot_.takes(path) &&
      path != kBios + "/Settings")
    return refuseMethod("PATCH", path);
  if (auto refusal = refuseOldEtag(request, path)) return std::move(*refusal);
  io::ServerResponse response;
  if (accounts_.isAccount(path)) {
    response = accounts_.patch(request, path, caller);
  } else if (on_manager) {
    response = patchManager(request);
  } else if (path == kBios + "/Settings") {
    response = patchBios(request);
  } else {
    response = boot_.patch(request, path, [&] {
      auto now = *resources_.find(path, false);
      renameOutside(now, bmc_.behaviour.names);
      return now;
    });
  }
  if (response.status < 300) response.headers["ETag"] = bmc_.etagOf(path);
  return response;
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
  const std::string own(bmc_.options.vendor_profile->bmc);
  if (id != own && !(bmc_.isPrevious(id) && bmc_.slotOf(id) == own))
    return badValue("ActiveSoftwareImage", uri);
  auto& slot = bmc_.state.slots[own];
  slot.staged_version = id == own ? "" : slot.previous_version;
  bmc_.save();
  return noContent();
}

io::ServerResponse RedfishService::patchBios(const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  if (!body.is_object() || !body.contains("Attributes") || !body["Attributes"].is_object())
    return redfishError(400, "Base.1.8.PropertyMissing", "Attributes are missing.");
  const auto when = body.value(json::json_pointer("/@Redfish.SettingsApplyTime/ApplyTime"), "");
  const bool by_job = bmc_.options.vendor_profile->bios_by_job;
  if (!by_job && body.contains("@Redfish.SettingsApplyTime"))
    return redfishError(400, "Base.1.8.PropertyUnknown",
                        "@Redfish.SettingsApplyTime is not known.");
  if (by_job && !when.empty() && when != "OnReset") return badValue("ApplyTime", when);
  if (bmc_.state.bios_job)
    return redfishError(400, "IDRAC.2.14.SYS011", "Pending values are committed already.",
                        "Restart the machine, or delete the job.");
  for (const auto& [name, value] : body["Attributes"].items())
    if (!bmc_.state.bios.contains(name) || !value.is_string())
      return badValue(name, jsonText(value));
  for (const auto& [name, value] : body["Attributes"].items())
    bmc_.state.staged_bios[name] = value.get<std::string>();
  bmc_.state.bios_job = by_job && when == "OnReset";
  bmc_.save();
  return noContent();
}

Task<io::ServerResponse> RedfishService::post(io::ServerRequest request, std::string path) {
  constexpr std::string_view kMembers = "/Members";  // DSP0266 7.9: the same as the collection
  if (path.ends_with(kMembers)) path.resize(path.size() - kMembers.size());
  if (path == kSessions) co_return login(request);
  if (path == kAccounts) co_return accounts_.create(request);
  if (storage_.isCollection(path)) co_return storage_.create(request);
  auto of_media = co_await media_.post(request, path);
  if (of_media) co_return std::move(*of_media);
  if (auto answer = events_.post(request, path)) co_return std::move(*answer);
  if (auto answer = intake_.post(request, path)) co_return std::move(*answer);
  if (auto answer = trust_.post(request, path)) co_return std::move(*answer);
  if (path == kManager + "/Actions/Manager.Reset") co_return resetManager(request);
  if (path == kSystem + "/Actions/ComputerSystem.Reset" || isVendorCut(bmc_.behaviour.cut, path)) {
    co_return co_await resetSystem(std::move(request));
  }
  co_return resources_.find(path, false) ? refuseMethod("POST", path) : notFound(path);
}

io::ServerResponse RedfishService::login(const io::ServerRequest& request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  auto username = stringAt(body, "UserName"), password = stringAt(body, "Password");
  if (username.empty())
    return redfishError(400, "Base.1.8.PropertyMissing",
                        "UserName and Password are needed to open a session.");
  Session session;
  auto answer = bmc_.guard.login(username, password, session);
  bmc_.save();
  if (answer != LoginAnswer::Accepted)
    return unauthorized(answer, bmc_.guard.limits().lockout_duration);
  auto path = kSessions + "/" + session.id;
  auto response = io::ServerResponse::json(201, resources_.find(path, false)->dump());
  response.headers["X-Auth-Token"] = session.token;
  response.headers["Location"] = path;
  return response;
}

io::ServerResponse RedfishService::resetManager(const io::ServerRequest& request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  auto type = stringAt(body, "ResetType");
  if (type != "GracefulRestart" &&
      (type != "ForceRestart" || bmc_.behaviour.manager_reset == "GracefulRestart"))
    return badValue("ResetType", type);
  if (bmc_.job) return bmc_.refuseBusy();
  bmc_.begin(Job{.work = Work::ManagerReset});
  return noContent();
}

Task<io::ServerResponse> RedfishService::resetSystem(io::ServerRequest request) {
  auto body = jsonOrNone(request.body, kRequestJson);
  auto type = stringAt(body, "ResetType");
  const bool vendor_cut = isVendorCut(bmc_.behaviour.cut, bmc_.inside(tidyPath(request.path())));
  const auto& allowed = bmc_.options.vendor_profile->resets;
  if (vendor_cut ? type != bmc_.behaviour.cut.value
                 : std::find(allowed.begin(), allowed.end(), type) == allowed.end())
    co_return redfishError(400, "Base.1.8.ActionParameterValueNotInList",
                           fmt::format("'{}' is not an allowed ResetType.", type),
                           "Use one of the values in ResetActionInfo.");
  const auto on = co_await bmc_.machine.isOn();
  if (!on) co_return redfishError(500, "Base.1.8.InternalError", on.error().str());
  if (type == "FullPowerCycle" || vendor_cut) {
    if (vendor_cut && bmc_.behaviour.cut.host_off && *on)
      co_return redfishError(400, "OpenBMC.0.4.ChassisPowerStateOffRequired",
                             "The host must be off.", "Switch it off first.");
    if (bmc_.job) co_return bmc_.refuseBusy();
    bmc_.begin(Job{.work = Work::AcCycle});
    co_return noContent();
  }
  if (type == "Nmi") {
    bmc_.note("NMI");
    co_return noContent();
  }
  Result<void> done;
  if (type == "GracefulShutdown") {
    done = co_await bmc_.machine.pressButton();
  } else {
    if (type != "On") {
      if (*on) jobs_.noteCut("power was cut");
      done = co_await bmc_.machine.stop();
    }
    if (done && type != "ForceOff") {
      done = co_await startMachine();
    }
  }
  if (!done) co_return redfishError(500, "Base.1.8.InternalError", done.error().str());
  co_return noContent();
}

void RedfishService::takeBiosOver() {
  if (bmc_.options.vendor_profile->bios_by_job && !bmc_.state.bios_job) return;
  for (const auto& [name, value] : bmc_.state.staged_bios) bmc_.state.bios[name] = value;
  bmc_.state.staged_bios.clear();
  bmc_.state.bios_job = false;
}

Async<void> RedfishService::startMachine() {
  CO_TRY(on, co_await bmc_.machine.isOn());
  if (on) co_return Result<void>();
  jobs_.activate(Becomes::PowerCycle);
  storage_.atStart();
  takeBiosOver();
  bmc_.note("System power on");
  auto options = boot_.beginStart();
  if (const auto bios = bmc_.state.slots.find(std::string(bmc_.options.vendor_profile->bios));
      bios != bmc_.state.slots.end())
    options.bios_version = bios->second.version;
  CO_TRY_OK(co_await bmc_.machine.start(options));
  boot_.endStart();
  ++bmc_.state.starts;
  bmc_.adapter_starting = bmc_.adapter_fault != UpdateFault::None;
  if (bmc_.adapter_fault == UpdateFault::AdapterStarting) bmc_.adapter_fault = UpdateFault::None;
  bmc_.save();
  const auto& cut =
      bmc_.behaviour.cut;  // iDRAC: POST takes the attribute over, and the power goes once
  if (cut.owner == StandbyCut::Owner::BiosAttribute && !bmc_.job &&
      bmc_.state.bios[std::string(cut.action)] == cut.value) {
    bmc_.state.bios[std::string(cut.action)] = "None";
    bmc_.begin(Job{.work = Work::AcCycle});
  }
  co_return Result<void>();
}

}  // namespace muster::lab::vbmc
