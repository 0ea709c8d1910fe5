// SPDX-License-Identifier: Apache-2.0
// The login of a session: logs in once and reuses the token, never repeats a refused password, and
// leaves no session behind on the BMC.
#pragma once

#include "bmc/redfish/connections.h"
#include "bmc/trust.h"

#include <functional>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishLogin {
 public:
  struct Account {
    std::string username;
    std::function<Result<Secret>()> password;            ///< read at the moment of the login
    std::function<Result<Secret>()> next_password = {};  ///< that it is to be changed to; empty:
                                                         ///< none is declared
  };

  RedfishLogin(std::string address, Account account, TrustMemory& memory,
               lifecycle::Journal& journal, Clock& clock, RedfishConnections& connections)
      : address_(std::move(address)),
        account_(std::move(account)),
        memory_(memory),
        journal_(journal),
        clock_(clock),
        connections_(connections) {}

  /// Of the session, or what stands in its place (basic_authentication.h); "" before the login.
  const std::string& token() const { return token_; }
  /// Another token than `stale`: "" when there is none at all. Errors: Denied, those of the service
  Async<void> renew(std::string stale);
  /// Drops the token; the session on the BMC stays as it is.
  void forget();
  /// Logs out. Best effort.
  Async<void> close();

  const Account& account() const { return account_; }
  /// Whether the last login was with the next password.
  bool usesNextPassword() const { return uses_next_; }

 private:
  struct Candidate {
    Secret password;
    bool is_next = false;
    bool last = true;  ///< there is no other one
  };
  Result<std::vector<Candidate>> candidates();
  /// Whether the BMC took it. Errors: what says nothing about the password
  Async<bool> tryPassword(std::string path, Candidate candidate);
  Async<bool> tryBasic(Candidate candidate);  ///< where the service has no sessions
  /// Of a login that was answered with 404: whether the service itself is answered so, too.
  Async<bool> hasNoSessionService(std::string sessions_path);
  Async<void> accepted(RedfishReply reply, std::string path, Candidate candidate);
  Result<void> forgetRefusals(const Candidate& taken);
  Result<void> keepToken(const RedfishReply& reply, const std::string& sessions_path);
  Async<std::string> sessionsPath();  ///< "": the service has none
  /// Answers the session that was remembered until now.
  Async<std::string> rememberSession(std::string path);
  /// Logs out of a session with the token of another; best effort.
  Async<void> closeSession(std::string path, std::string token);

  std::string address_;
  Account account_;
  TrustMemory& memory_;
  lifecycle::Journal& journal_;
  Clock& clock_;
  RedfishConnections& connections_;
  AsyncSemaphore one_at_a_time_{1};
  std::string token_, session_path_;
  std::string sessions_;         ///< where they are made; "": the service root is to be asked
  std::string session_service_;  ///< what the service root names so; "": nothing
  bool uses_next_ = false;
};

}  // namespace muster::bmc
