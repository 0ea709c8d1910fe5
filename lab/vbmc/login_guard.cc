// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/login_guard.h"

#include "base/io/crypto.h"

namespace muster::lab::vbmc {

Account Account::make(std::string username, std::string_view password) {
  auto salt = io::randomToken(12);
  auto hash = io::sha256Hex(salt + std::string(password));
  return {
      .username = std::move(username), .salt = std::move(salt), .password_sha256 = std::move(hash)};
}

LoginGuard::LoginGuard(Clock& clock, Account account, LoginLimits limits)
    : clock_(clock), accounts_{{kFirstAccount, std::move(account)}}, limits_(limits) {}

const Account* LoginGuard::account(const std::string& id) const {
  const auto found = accounts_.find(id);
  return found == accounts_.end() ? nullptr : &found->second;
}

void LoginGuard::setAccount(const std::string& id, Account account) {
  accounts_[id] = std::move(account);
}

void LoginGuard::setPassword(const std::string& id, std::string_view password) {
  auto& account = accounts_[id];
  const auto made = Account::make(account.username, password);
  account.salt = made.salt;
  account.password_sha256 = made.password_sha256;
}

void LoginGuard::removeAccount(const std::string& id) {
  dropSessionsOf(id);
  attempts_.erase(id);
  accounts_.erase(id);
}

bool LoginGuard::locked(const std::string& id) const {
  const auto found = attempts_.find(id);
  return found != attempts_.end() && clock_.steady() < found->second.locked_until;
}

LoginAnswer LoginGuard::check(std::string_view username, std::string_view password,
                              std::string& account) {
  std::string named;
  for (const auto& [id, candidate] : accounts_)
    if (io::equalConstantTime(username, candidate.username)) named = id;
  if (named.empty()) {
    ++failed_logins_;
    return LoginAnswer::WrongPassword;
  }
  if (locked(named)) return LoginAnswer::Locked;
  const auto& found = accounts_.at(named);
  const auto hash = io::sha256Hex(found.salt + std::string(password));
  if (io::equalConstantTime(hash, found.password_sha256) && found.enabled) {
    attempts_.erase(named);
    account = named;
    return LoginAnswer::Accepted;
  }
  ++failed_logins_;
  auto& attempts = attempts_[named];
  if (++attempts.failures_in_a_row >= limits_.lockout_threshold) {
    attempts.failures_in_a_row = 0;
    attempts.locked_until = clock_.steady() + limits_.lockout_duration;
  }
  return LoginAnswer::WrongPassword;
}

LoginAnswer LoginGuard::login(std::string_view username, std::string_view password,
                              Session& session) {
  std::string account;
  auto answer = check(username, password, account);
  if (answer != LoginAnswer::Accepted) return answer;
  expireSessions();
  if (sessions_.size() >= limits_.max_sessions) return LoginAnswer::TooManySessions;
  session = {io::randomToken(6), io::randomToken(24), account, accounts_.at(account).username,
             clock_.steady()};
  sessions_[session.id] = session;
  return LoginAnswer::Accepted;
}

const Session* LoginGuard::find(std::string_view token) {
  expireSessions();
  for (auto& [id, session] : sessions_) {
    if (!io::equalConstantTime(session.token, token)) continue;
    session.last_used = clock_.steady();
    return &session;
  }
  return nullptr;
}

bool LoginGuard::logout(const std::string& id) { return sessions_.erase(id) > 0; }

void LoginGuard::dropSessionsOf(const std::string& account) {
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.account == account; });
}

void LoginGuard::expireSessions() {
  auto oldest = clock_.steady() - limits_.session_idle;
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.last_used < oldest; });
}

}  // namespace muster::lab::vbmc
