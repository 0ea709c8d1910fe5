// SPDX-License-Identifier: Apache-2.0
// Accounts, sessions and the lock-out of a virtual BMC. Pure but for the clock.
#pragma once

#include "base/clock.h"

#include <cstdint>
#include <map>
#include <string>

namespace muster::lab::vbmc {

/// A BMC keeps a salted hash, not the password.
struct Account {
  std::string username;
  std::string salt;
  std::string password_sha256;  ///< hex of SHA-256(salt + password)
  static Account make(std::string username, std::string_view password);
};

struct LoginLimits {
  int lockout_threshold = 5;  ///< wrong passwords in a row
  std::chrono::seconds lockout_duration{600};
  std::size_t max_sessions = 8;
  std::chrono::seconds session_idle{1800};
};

enum class LoginAnswer { Accepted, WrongPassword, Locked, TooManySessions };

struct Session {
  std::string id;
  std::string token;
  std::string username;
  std::chrono::steady_clock::time_point last_used;
};

class LoginGuard {
 public:
  LoginGuard(Clock& clock, Account account, LoginLimits limits);

  /// Checks name and password; counts a wrong one. A locked account refuses the right password too.
  LoginAnswer check(std::string_view username, std::string_view password);
  /// check, then a session. `session` is set when Accepted.
  LoginAnswer login(std::string_view username, std::string_view password, Session& session);
  /// The session that a token belongs to, and marks it used; nullptr when there is none.
  const Session* find(std::string_view token);
  bool logout(const std::string& id);
  void dropSessions() { sessions_.clear(); }

  const Account& account() const { return account_; }
  void setAccount(Account account) { account_ = std::move(account); }
  void setPassword(std::string_view password) {
    account_ = Account::make(account_.username, password);
  }

  bool locked() const;
  std::uint64_t failedLogins() const { return failed_logins_; }
  void setFailedLogins(std::uint64_t count) { failed_logins_ = count; }
  const std::map<std::string, Session>& sessions() const { return sessions_; }
  const std::string& username() const { return account_.username; }
  const LoginLimits& limits() const { return limits_; }

 private:
  void expireSessions();

  Clock& clock_;
  Account account_;
  LoginLimits limits_;
  std::map<std::string, Session> sessions_;  ///< by id
  int failures_in_a_row_ = 0;
  std::uint64_t failed_logins_ = 0;
  std::chrono::steady_clock::time_point locked_until_{};
};

}  // namespace muster::lab::vbmc
