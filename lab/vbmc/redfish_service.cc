#include "lab/vbmc/redfish_service.h"

#include "lab/vbmc/messages.h"

#include <array>

namespace muster::lab::vbmc {

namespace {

using nlohmann::json;

constexpr std::array kResetTypes = {"On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"};
constexpr std::array kBootTargets = {"None", "Pxe", "Hdd"};

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
    return redfishError(401, "MusterBmc.1.0.AccountLocked",
                        fmt::format("The account is locked for up to {} s after too many wrong passwords.", lockout.count()),
                        "Wait until the lock-out ends; check the password before the next try.");
  if (answer == LoginAnswer::TooManySessions)
    return redfishError(503, "Base.1.8.SessionLimitExceeded", "All sessions that this BMC allows are in use.",
                        "Delete a session that is no longer needed.");
  return redfishError(401, "Base.1.8.NoValidSession", "No valid session, or the name or the password is wrong.", "Log in again.");
}

io::ServerResponse noContent() { return io::ServerResponse::text(204, ""); }

io::ServerResponse notFound(const std::string& path) {
  return redfishError(404, "Base.1.8.ResourceMissingAtURI", fmt::format("There is nothing at {}.", path));
}

io::ServerResponse badValue(const std::string& property, const std::string& value) {
  return redfishError(400, "Base.1.8.PropertyValueNotInList", fmt::format("'{}' is not an allowed value of {}.", value, property),
                      "Use one of the allowable values.");
}

}  // namespace

RedfishService::RedfishService(Clock& clock, Workers& workers, Machine& machine, ServiceOptions options, BmcState state)
    : clock_(clock),
      workers_(workers),
      machine_(machine),
      options_(std::move(options)),
      state_(std::move(state)),
      guard_(clock, options_.account, options_.logins) {
  guard_.setFailedLogins(state_.failed_logins);
}

Result<std::unique_ptr<RedfishService>> RedfishService::make(Clock& clock, Workers& workers, Machine& machine, ServiceOptions options) {
  TRY(state, options.state_file.empty() ? BmcState::fresh() : BmcState::load(options.state_file));
  std::unique_ptr<RedfishService> service(new RedfishService(clock, workers, machine, std::move(options), std::move(state)));
  service->save();
  return service;
}

std::vector<io::Route> RedfishService::routes() {
  auto handler = [this](io::ServerRequest request) { return handle(std::move(request)); };
  return {{"*", "/redfish", handler}, {"*", "/redfish/", handler}};
}

Task<io::ServerResponse> RedfishService::handle(io::ServerRequest request) {
  if (away_) co_return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", "The BMC is restarting.", "Try again in some seconds.");
  auto path = tidyPath(request.path());
  if (!open(request.method, path))
    if (auto refusal = refuseUnknown(request)) co_return std::move(*refusal);
  if (request.method == "GET" || request.method == "HEAD") {
    auto answer = get(path);
    co_return co_await std::move(answer);
  }
  if (request.method == "POST") {
    auto answer = post(std::move(request), path);
    co_return co_await std::move(answer);
  }
  if (request.method == "PATCH" && path == kSystem) co_return patchSystem(request);
  if (request.method == "DELETE" && path.starts_with(kSessions + "/"))
    co_return guard_.logout(path.substr(kSessions.size() + 1)) ? noContent() : notFound(path);
  co_return redfishError(405, "Base.1.8.OperationNotAllowed", fmt::format("{} is not possible on {}.", request.method, path));
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

Task<io::ServerResponse> RedfishService::get(std::string path) {
  bool on = false;
  if (path == kSystem) {
    auto asked = machine_.isOn();
    auto answer = co_await std::move(asked);
    if (!answer) co_return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", answer.error().str());
    on = *answer;
  }
  auto found = resource(path, on);
  co_return found ? io::ServerResponse::json(200, found->dump()) : notFound(path);
}

Task<io::ServerResponse> RedfishService::post(io::ServerRequest request, std::string path) {
  if (path == kSessions) co_return login(request);
  if (path == kUpload) co_return acceptUpload(request);
  if (path == kManager + "/Actions/Manager.Reset") co_return resetManager(request);
  if (path == kSystem + "/Actions/ComputerSystem.Reset") {
    auto answer = resetSystem(std::move(request));
    co_return co_await std::move(answer);
  }
  co_return resource(path, false) ? redfishError(405, "Base.1.8.OperationNotAllowed", fmt::format("POST is not possible on {}.", path))
                                  : notFound(path);
}

io::ServerResponse RedfishService::login(const io::ServerRequest& request) {
  auto body = json::parse(request.body, nullptr, false);
  auto username = stringAt(body, "UserName"), password = stringAt(body, "Password");
  if (username.empty()) return redfishError(400, "Base.1.8.PropertyMissing", "UserName and Password are needed to open a session.");
  Session session;
  auto answer = guard_.login(username, password, session);
  save();
  if (answer != LoginAnswer::Accepted) return unauthorized(answer, guard_.limits().lockout_duration);
  auto path = kSessions + "/" + session.id;
  auto response = io::ServerResponse::json(201, resource(path, false)->dump());
  response.headers["X-Auth-Token"] = session.token;
  response.headers["Location"] = path;
  return response;
}

io::ServerResponse RedfishService::patchSystem(const io::ServerRequest& request) {
  auto body = json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("Boot") || !body["Boot"].is_object())
    return redfishError(400, "Base.1.8.PropertyMissing", "Only Boot can be changed on this system.");
  auto target = stringAt(body["Boot"], "BootSourceOverrideTarget"), enabled = stringAt(body["Boot"], "BootSourceOverrideEnabled");
  if (target.empty()) target = enabled == "Disabled" ? "None" : state_.boot_once;
  if (enabled.empty()) enabled = target == "None" ? "Disabled" : "Once";
  if (std::find(kBootTargets.begin(), kBootTargets.end(), target) == kBootTargets.end())
    return badValue("BootSourceOverrideTarget", target);
  if (enabled != "Once" && enabled != "Disabled") return badValue("BootSourceOverrideEnabled", enabled);
  state_.boot_once = enabled == "Disabled" ? "None" : target;
  save();
  return noContent();
}

io::ServerResponse RedfishService::resetManager(const io::ServerRequest& request) {
  auto body = json::parse(request.body, nullptr, false);
  auto type = stringAt(body, "ResetType");
  if (type != "GracefulRestart" && type != "ForceRestart") return badValue("ResetType", type);
  if (job_)
    return redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", "A firmware update or a reset is running.",
                        "Wait until it has ended.");
  job_.emplace().manager_reset = true;
  wake_();
  return noContent();
}

Task<io::ServerResponse> RedfishService::resetSystem(io::ServerRequest request) {
  auto body = json::parse(request.body, nullptr, false);
  auto type = stringAt(body, "ResetType");
  if (std::find(kResetTypes.begin(), kResetTypes.end(), type) == kResetTypes.end()) {
    co_return redfishError(400, "Base.1.8.ActionParameterValueNotInList", fmt::format("'{}' is not an allowed ResetType.", type),
                           "Use one of the values in ResetActionInfo.");
  }
  Result<void> done;
  if (type == "GracefulShutdown") {
    auto press = machine_.pressButton();
    done = co_await std::move(press);
  } else {
    if (type != "On") {
      auto stop = machine_.stop();
      done = co_await std::move(stop);
    }
    if (done && type != "ForceOff") {
      auto start = startMachine();
      done = co_await std::move(start);
    }
  }
  if (!done) co_return redfishError(500, "Base.1.8.InternalError", done.error().str());
  co_return noContent();
}

Async<void> RedfishService::startMachine() {
  auto asked = machine_.isOn();
  CO_TRY(on, co_await std::move(asked));
  if (on) co_return Result<void>();
  activate("BIOS");
  StartOptions options;
  options.first = state_.boot_once == "Pxe" ? BootDevice::Network : BootDevice::Disk;
  options.bios_version = state_.slots["BIOS"].version;
  auto start = machine_.start(options);
  CO_TRY_OK(co_await std::move(start));
  state_.boot_once = "None";
  ++state_.starts;
  save();
  co_return Result<void>();
}

}  // namespace muster::lab::vbmc
