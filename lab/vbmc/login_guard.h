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
  std::string role = "Administrator";
  bool enabled = true;
  static Account make(std::string username, std::string_view password);
};

struct LoginLimits {
  int lockout_threshold = 5;  ///< wrong passwords in a row, of one account
  std::chrono::seconds lockout_duration{600};
  std::size_t max_sessions = 8;
  std::chrono::seconds session_idle{1800};
};

enum class LoginAnswer { Accepted, WrongPassword, Locked, TooManySessions };

struct Session {
  std::string id;
  std::string token;
  std::string account;  ///< its id
  std::string username;
  std::chrono::steady_clock::time_point last_used;
};

class LoginGuard {
 public:
  /// Id of the account that the BMC is delivered with.
  static constexpr const char* kFirstAccount = "1";

  LoginGuard(Clock& clock, Account account, LoginLimits limits);

  /// Checks name and password; counts a wrong one. A locked account refuses the right password too.
  /// `account` is set to whose it was when Accepted.
  LoginAnswer check(std::string_view username, std::string_view password, std::string& account);
  /// check, then a session. `session` is set when Accepted.
  LoginAnswer login(std::string_view username, std::string_view password, Session& session);
  /// The session that a token belongs to, and marks it used; nullptr when there is none.
  const Session* find(std::string_view token);
  bool logout(const std::string& id);
  void dropSessions() { sessions_.clear(); }
  void dropSessionsOf(const std::string& account);

  // ---- accounts, by id
  const std::map<std::string, Account>& accounts() const { return accounts_; }
  const Account* account(const std::string& id) const;
  void setAccount(const std::string& id, Account account);
  void setPassword(const std::string& id, std::string_view password);
  void removeAccount(const std::string& id);
  bool locked(const std::string& id) const;
  void unlock(const std::string& id) { attempts_.erase(id); }

  std::uint64_t failedLogins() const { return failed_logins_; }
  void setFailedLogins(std::uint64_t count) { failed_logins_ = count; }
  const std::map<std::string, Session>& sessions() const { return sessions_; }
  const LoginLimits& limits() const { return limits_; }

 private:
  struct Attempts {
    int failures_in_a_row = 0;
    std::chrono::steady_clock::time_point locked_until{};
  };
  void expireSessions();

  Clock& clock_;
  std::map<std::string, Account> accounts_;
  LoginLimits limits_;
  std::map<std::string, Session> sessions_;   ///< by id
  std::map<std::string, Attempts> attempts_;  ///< by account
  std::uint64_t failed_logins_ = 0;
};

}  // namespace muster::lab::vbmc
