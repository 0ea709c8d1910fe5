// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/account_service.h"

#include "base/json_output.h"
#include "lab/vbmc/patch_body.h"
#include "lab/vbmc/resource_parts.h"

#include <array>

namespace muster::lab::vbmc {

namespace {

constexpr std::size_t kMinPasswordBytes = 8, kMaxPasswordBytes = 64, kMaxAccounts = 16;
constexpr std::size_t kMaxNameBytes = 32;

struct RoleRow {
  std::string_view id;
  std::array<std::string_view, 5> privileges;  ///< "" at the end: no more
};
/// The predefined roles.
constexpr std::array<RoleRow, 3> kRoleRows = {
    {{"Administrator",
      {"Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"}},
     {"Operator", {"Login", "ConfigureSelf", "ConfigureComponents", "", ""}},
     {"ReadOnly", {"Login", "ConfigureSelf", "", "", ""}}}};

const RoleRow* findRole(std::string_view id) {
  const auto found = std::ranges::find(kRoleRows, id, &RoleRow::id);
  return found == kRoleRows.end() ? nullptr : &*found;
}

std::string idOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::optional<io::ServerResponse> refusePassword(const nlohmann::json& given) {
  const auto password = given.is_string() ? given.get<std::string>() : std::string();
  if (password.size() >= kMinPasswordBytes && password.size() <= kMaxPasswordBytes)
    return std::nullopt;
  // As some do, it repeats what it was given.
  return redfishError(400, "Base.1.8.PropertyValueFormatError",
                      fmt::format("The value '{}' of Password has another length than {} to {}.",
                                  password, kMinPasswordBytes, kMaxPasswordBytes));
}

std::optional<io::ServerResponse> refuseRole(const nlohmann::json& given) {
  const auto role = given.is_string() ? given.get<std::string>() : std::string();
  if (findRole(role)) return std::nullopt;
  return redfishError(400, "Base.1.8.PropertyValueNotInList",
                      fmt::format("'{}' is not an allowed value of RoleId.", role),
                      "Use the Id of a role.");
}

std::optional<io::ServerResponse> refuseName(const nlohmann::json& given) {
  const auto name = given.is_string() ? given.get<std::string>() : std::string();
  if (!name.empty() && name.size() <= kMaxNameBytes && name.find(':') == std::string::npos)
    return std::nullopt;
  return redfishError(400, "Base.1.8.PropertyValueFormatError",
                      fmt::format("UserName has 1 to {} bytes, and no colon.", kMaxNameBytes));
}

}  // namespace

bool AccountService::isAccount(const std::string& path) const {
  return path.starts_with(kAccounts + "/") && bmc_.guard.account(idOf(path)) != nullptr &&
         path == kAccounts + "/" + idOf(path);
}

nlohmann::json AccountService::accountResource(const std::string& id) const {
  const auto& account = *bmc_.guard.account(id);
  json result = head(kAccounts + "/" + id, "ManagerAccount.v1_6_2.ManagerAccount", "User Account");
  result["UserName"] = account.username;
  result["Password"] = nullptr;
  result["RoleId"] = account.role;
  result["Enabled"] = account.enabled;
  result["Locked"] = bmc_.guard.locked(id);
  result["AccountTypes"] = {"Redfish"};
  result["Links"]["Role"] = linkTo(kRoles + "/" + account.role);
  if (id == LoginGuard::kFirstAccount)
    result["Oem"]["Muster"]["FailedLogins"] = bmc_.guard.failedLogins();
  return result;
}

std::optional<nlohmann::json> AccountService::resource(const std::string& path) const {
  if (path == kRoot + "/AccountService") {
    json result = head(path, "AccountService.v1_7_2.AccountService", "Account Service");
    result["ServiceEnabled"] = true;
    result["AccountLockoutThreshold"] = bmc_.guard.limits().lockout_threshold;
    result["AccountLockoutDuration"] = bmc_.guard.limits().lockout_duration.count();
    result["MinPasswordLength"] = kMinPasswordBytes;
    result["MaxPasswordLength"] = kMaxPasswordBytes;
    result["Accounts"] = linkTo(kAccounts);
    result["Roles"] = linkTo(kRoles);
    return result;
  }
  if (path == kAccounts)
    return collection(path, "ManagerAccountCollection", keysOf(bmc_.guard.accounts()));
  if (isAccount(path)) return accountResource(idOf(path));
  if (path == kRoles) {
    std::vector<std::string> ids;
    for (const auto& row : kRoleRows) ids.emplace_back(row.id);
    return collection(path, "RoleCollection", ids);
  }
  const auto* role = path == kRoles + "/" + idOf(path) ? findRole(idOf(path)) : nullptr;
  if (!role) return std::nullopt;
  json result = head(path, "Role.v1_3_0.Role", std::string(role->id));
  result["RoleId"] = role->id;
  result["IsPredefined"] = true;
  result["AssignedPrivileges"] = json::array();
  for (const auto privilege : role->privileges)
    if (!privilege.empty()) result["AssignedPrivileges"].push_back(privilege);
  return result;
}

bool AccountService::permits(const Caller& caller, const std::string& method,
                             const std::string& path) const {
  const auto* account = bmc_.guard.account(caller.account);
  const auto* role = account ? findRole(account->role) : nullptr;
  if (!role) return false;
  const auto has = [&](std::string_view privilege) {
    return std::ranges::find(role->privileges, privilege) != role->privileges.end();
  };
  const bool own_account = path == kAccounts + "/" + caller.account;
  if (method == "GET" || method == "HEAD") {
    if (path.starts_with(kAccounts + "/") && !own_account)
      return has("ConfigureUsers") || has("ConfigureManager");
    return has("Login");
  }
  if (path.starts_with(kAccounts)) return has("ConfigureUsers") || own_account;
  if (path.starts_with(kSessions + "/"))
    return has("ConfigureManager") || path == kSessions + "/" + caller.session;
  for (const auto& area : {kRoles, kManager, kCertificateService, kEventService, kFaults})
    if (path.starts_with(area)) return has("ConfigureManager");
  return has("ConfigureComponents");
}

/// What must outlive a restart of the BMC.
void AccountService::keep() {
  const auto& first = *bmc_.guard.account(LoginGuard::kFirstAccount);
  bmc_.state.account_salt = first.salt;
  bmc_.state.account_sha256 = first.password_sha256;
  bmc_.state.accounts = bmc_.guard.accounts();
  bmc_.state.accounts.erase(LoginGuard::kFirstAccount);
  bmc_.save();
}

io::ServerResponse AccountService::create(const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  for (const char* field : {"UserName", "Password", "RoleId"})
    if (!body.is_object() || !body.contains(field))
      return redfishError(400, "Base.1.8.CreateFailedMissingReqProperties",
                          fmt::format("{} is missing.", field), "Name it in the request.");
  if (auto refusal = refuseName(body["UserName"])) return std::move(*refusal);
  if (auto refusal = refusePassword(body["Password"])) return std::move(*refusal);
  if (auto refusal = refuseRole(body["RoleId"])) return std::move(*refusal);
  const auto name = body["UserName"].get<std::string>();
  for (const auto& [id, account] : bmc_.guard.accounts())
    if (account.username == name)
      return redfishError(400, "Base.1.8.ResourceAlreadyExists",
                          fmt::format("There is an account {} already.", name));
  if (bmc_.guard.accounts().size() >= kMaxAccounts)
    return redfishError(400, "Base.1.8.CreateLimitReachedForResource",
                        fmt::format("This BMC holds at most {} accounts.", kMaxAccounts),
                        "Delete one that is no longer needed.");
  int free = 2;
  while (bmc_.guard.account(std::to_string(free))) ++free;
  const auto id = std::to_string(free);
  auto account = Account::make(name, body["Password"].get<std::string>());
  account.role = body["RoleId"].get<std::string>();
  if (const auto enabled = body.find("Enabled"); enabled != body.end() && enabled->is_boolean())
    account.enabled = enabled->get<bool>();
  bmc_.guard.setAccount(id, std::move(account));
  bmc_.note("an account was made");
  keep();
  auto response = io::ServerResponse::json(201, jsonText(accountResource(id)));
  response.headers["Location"] = kAccounts + "/" + id;
  response.headers["ETag"] = bmc_.etagOf(kAccounts + "/" + id);
  return response;
}

io::ServerResponse AccountService::patch(const io::ServerRequest& request, const std::string& path,
                                         const Caller& caller) {
  const auto id = idOf(path);
  auto body = PatchBody::read(request, {"Password", "RoleId", "Enabled", "UserName", "Locked"});
  if (auto refusal = body.refusal()) return std::move(*refusal);
  const auto& wanted = body.wanted();
  const auto* role = findRole(bmc_.guard.account(caller.account)->role);
  const bool administers =
      std::ranges::find(role->privileges, "ConfigureUsers") != role->privileges.end();
  for (const auto& [name, value] : wanted.items())  // ConfigureSelf is for the password only
    if (name != "Password" && !administers)
      return redfishError(403, "Base.1.8.InsufficientPrivilege",
                          fmt::format("The role does not allow to change {}.", name));
  auto account = *bmc_.guard.account(id);
  if (body.has("Password"))
    if (auto refusal = refusePassword(wanted["Password"])) return std::move(*refusal);
  if (body.has("RoleId")) {
    if (auto refusal = refuseRole(wanted["RoleId"])) return std::move(*refusal);
    account.role = wanted["RoleId"].get<std::string>();
  }
  if (body.has("UserName")) {
    if (auto refusal = refuseName(wanted["UserName"])) return std::move(*refusal);
    account.username = wanted["UserName"].get<std::string>();
  }
  for (const char* name : {"Enabled", "Locked"})
    if (body.has(name) && !wanted[name].is_boolean())
      return redfishError(400, "Base.1.8.PropertyValueTypeError",
                          fmt::format("{} is true or false.", name));
  if (body.has("Locked") && wanted["Locked"].get<bool>())
    return redfishError(400, "Base.1.8.PropertyValueNotInList", "Only a lock-out locks an account.",
                        "Use Enabled.");
  if (body.has("Enabled")) account.enabled = wanted["Enabled"].get<bool>();
  if (id == LoginGuard::kFirstAccount && (!account.enabled || account.role != "Administrator"))
    return redfishError(400, "Base.1.8.PropertyValueConflict",
                        "The first account stays an enabled administrator.");
  if (body.has("Locked")) bmc_.guard.unlock(id);
  bmc_.guard.setAccount(id, std::move(account));
  if (body.has("Password")) {
    bmc_.guard.setPassword(id, wanted["Password"].get<std::string>());
    bmc_.guard.dropSessionsOf(id);
    bmc_.note("the password was changed");
  }
  keep();
  return body.answer(accountResource(id));
}

io::ServerResponse AccountService::remove(const std::string& path) {
  const auto id = idOf(path);
  if (id == LoginGuard::kFirstAccount)
    return redfishError(400, "Base.1.8.ResourceCannotBeDeleted",
                        "The first account cannot be deleted.");
  bmc_.guard.removeAccount(id);
  bmc_.note("an account was deleted");
  keep();
  return io::ServerResponse::text(204, "");
}

}  // namespace muster::lab::vbmc
