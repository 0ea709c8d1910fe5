// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/login.h"

#include "base/json_output.h"
#include "bmc/redfish/answers.h"
#include "bmc/redfish/basic_authentication.h"

#include <optional>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kLogoutLimit = 3s;
constexpr auto kReconnectPause = 500ms;
constexpr int kMaxLoginResets = 2;  ///< a broken connection does not use up a password

}  // namespace

Async<void> RedfishLogin::renew(std::string stale) {
  auto permit = co_await one_at_a_time_.enter();
  if (!token_.empty() && token_ != stale)
    co_return Result<void>();  // another request has logged in meanwhile
  token_.clear();
  CO_TRY(passwords, candidates());
  std::optional<std::string> path;
  bool refused = false;
  for (auto& candidate : passwords) {
    if (const auto may = memory_.mayTry(address_, account_.username, candidate.password);
        !may && (candidate.last || may.error().code() != ErrorCode::Denied)) {
      co_return fail(may.error());
    } else if (!may) {
      continue;
    }
    const bool remembered = !path && !sessions_.empty();
    if (!path) {
      CO_TRY(found, co_await sessionsPath());
      path = std::move(found);
    }
    auto taken = co_await tryPassword(*path, candidate);
    if (!taken) sessions_.clear();  // they may be elsewhere now
    if (!taken && remembered && taken.error().code() == ErrorCode::NotFound) {
      CO_TRY(found, co_await sessionsPath());
      path = std::move(found);
      taken = co_await tryPassword(*path, candidate);
    }
    if (!taken && !refused && !path->empty() && taken.error().code() == ErrorCode::NotFound) {
      const auto none = co_await hasNoSessionService(*path);
      if (none && *none) {
        path->clear();
        taken = co_await tryPassword(*path, candidate);
      }
    }
    if (!taken) co_return fail(std::move(taken.error()));
    if (*taken) co_return Result<void>();
    refused = true;  // by what has sessions, then: a 404 behind it is no word that there are none
  }
  co_return fail(memory_.refused(address_, account_.username));
}

/// One password, but while a change to the next one was interrupted: then both are tried, the new
/// one first.
Result<std::vector<RedfishLogin::Candidate>> RedfishLogin::candidates() {
  TRY(never, memory_.neverRotated());
  if (account_.next_password && !never) {
    TRY(next, account_.next_password());
    TRY(state, memory_.rotation(account_.username, next));
    if (state == Rotation::Done) return std::vector<Candidate>{{next, true}};
    if (state == Rotation::Interrupted) {
      TRY(password, account_.password());
      return std::vector<Candidate>{{next, true, false}, {password, false}};
    }
  }
  TRY(password, account_.password());
  return std::vector<Candidate>{{password}};
}

Async<bool> RedfishLogin::tryPassword(std::string path, Candidate candidate) {
  if (path.empty()) co_return co_await tryBasic(std::move(candidate));
  const auto& password = candidate.password;
  Json account = Json::object();
  account["UserName"] = account_.username;
  account["Password"] = password.reveal();
  const RedfishCall request{.method = "POST",
                            .path = path,
                            .body = jsonText(account),
                            .repeatable = false,
                            .of_login = true};
  for (int waits = 0, resets = 0;; ++waits) {
    auto answer = co_await connections_.exchange(request, std::string());
    if (!answer && answer.error().code() == ErrorCode::Unavailable && resets++ < kMaxLoginResets) {
      co_await clock_.sleep(kReconnectPause);  // the connection broke, which says nothing of it
      continue;
    }
    CO_TRY(reply, std::move(answer));
    if (reply.status == 401 || reply.status == 403) {
      CO_TRY_OK(memory_.rememberRefusal(account_.username, password));
      co_return false;
    }
    if (reply.ok()) {
      CO_TRY_OK(co_await accepted(std::move(reply), path, candidate));
      co_return true;
    }
    // The service's words are left out: some echo the request.
    reply.body = Json();
    if (waits >= kMaxBusyWaits || !saysLater(reply))
      co_return fail(errorOf(reply, "logging in at " + address_));
    co_await clock_.sleep(busyWait(reply, waits));
  }
}

Async<void> RedfishLogin::accepted(RedfishReply reply, std::string path, Candidate candidate) {
  CO_TRY_OK(keepToken(reply, path));
  // A process that was killed left its session behind; BMCs have places for a handful of them.
  CO_TRY(left_open, co_await rememberSession(session_path_));
  if (!left_open.empty() && left_open != session_path_) {
    (void)co_await closeSession(left_open, token_);
  }
  uses_next_ = candidate.is_next;
  co_return forgetRefusals(candidate);
}

Result<void> RedfishLogin::forgetRefusals(const Candidate& taken) {
  const bool both = taken.is_next || !taken.last || account_.next_password;
  return both ? memory_.forgetRefusalOf(account_.username, taken.password)
              : memory_.forgetRefusal();
}

/// A root may link a service that is not there. Its absence is the service's own word, told without
/// a secret: whatever else it answers (401, a page, nothing) sends no password with every request.
/// Not kept: a BMC that is still starting may answer so, and is asked anew by the next login.
/// Source: DSP0266 13.3.4, a service may have either way of logging in; docs/adr/0421
Async<bool> RedfishLogin::hasNoSessionService(std::string sessions_path) {
  const auto& path = session_service_.empty() ? sessions_path : session_service_;
  CO_TRY(reply, co_await connections_.exchange({.method = "GET", .path = path}, std::string()));
  co_return reply.status == 404;
}

/// Proved by a resource that needs it: the service root answers anybody.
Async<bool> RedfishLogin::tryBasic(Candidate candidate) {
  const auto token = basicToken(account_.username, candidate.password.reveal());
  CO_TRY(reply,
         co_await connections_.exchange({.method = "GET", .path = "/redfish/v1/Systems"}, token));
  if (reply.status == 401 || reply.status == 403) {
    CO_TRY_OK(memory_.rememberRefusal(account_.username, candidate.password));
    co_return false;
  }
  if (!reply.ok()) co_return fail(errorOf(reply, "reading the systems of " + address_));
  token_ = token;
  session_path_.clear();
  uses_next_ = candidate.is_next;
  CO_TRY_OK(forgetRefusals(candidate));
  co_return true;
}

Result<void> RedfishLogin::keepToken(const RedfishReply& reply, const std::string& sessions_path) {
  token_ = reply.header("X-Auth-Token");
  session_path_ = pathOnly(reply.header("Location"));
  if (session_path_.empty()) session_path_ = linkAt(reply.body, "@odata.id");
  if (session_path_.empty() && !textAt(reply.body, "Id").empty())
    session_path_ = sessions_path + "/" + textAt(reply.body, "Id");
  if (token_.empty())
    return fail(ErrorCode::Corrupt,
                "the BMC at " + address_ + " accepted the login but gave no X-Auth-Token");
  return {};
}

/// Read once: sessions stay where they are, also over restarts of the BMC.
Async<std::string> RedfishLogin::sessionsPath() {
  if (!sessions_.empty()) co_return sessions_;
  CO_TRY(root,
         co_await connections_.exchange({.method = "GET", .path = "/redfish/v1/"}, std::string()));
  if (!root.ok() && root.status != 401)
    co_return fail(errorOf(root, "reading the service root of " + address_));
  if (root.ok()) CO_TRY_OK(expectResource(root, "/redfish/v1/"));
  if (root.ok()) sessions_ = sessionsOf(root.body);
  session_service_ = pathOnly(linkAt(root.body, "SessionService"));
  co_return sessionsOf(root.body);
}

void RedfishLogin::forget() {
  token_.clear();
  session_path_.clear();
}

Async<void> RedfishLogin::close() {
  if (token_.empty() || session_path_.empty()) co_return Result<void>();
  CO_TRY_OK(co_await closeSession(std::exchange(session_path_, {}), std::exchange(token_, {})));
  CO_TRY_OK(co_await rememberSession(""));
  co_return Result<void>();
}

Async<std::string> RedfishLogin::rememberSession(std::string path) {
  journal_.attach(co_await asio::this_coro::executor);
  co_return co_await memory_.exchangeSession(journal_, std::move(path));
}

Async<void> RedfishLogin::closeSession(std::string path, std::string token) {
  RedfishCall request{.method = "DELETE",
                      .path = std::move(path),
                      .timeout = kLogoutLimit,
                      .repeatable = false,
                      .wait_busy = false,
                      .of_login = true};
  CO_TRY_OK(co_await connections_.exchange(std::move(request), std::move(token)));
  co_return Result<void>();
}

}  // namespace muster::bmc
