// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/login_guard.h"

#include "base/io/crypto.h"

namespace muster::lab::vbmc {

Account Account::make(std::string username, std::string_view password) {
  auto salt = io::randomToken(12);
  auto hash = io::sha256Hex(salt + std::string(password));
  return {std::move(username), std::move(salt), std::move(hash)};
}

LoginGuard::LoginGuard(Clock& clock, Account account, LoginLimits limits)
    : clock_(clock), account_(std::move(account)), limits_(limits) {}

bool LoginGuard::locked() const { return clock_.steady() < locked_until_; }

LoginAnswer LoginGuard::check(std::string_view username, std::string_view password) {
  if (locked()) return LoginAnswer::Locked;
  auto hash = io::sha256Hex(account_.salt + std::string(password));
  // Both are compared whatever the first one says.
  const bool name_matches = io::equalConstantTime(username, account_.username);
  const bool hash_matches = io::equalConstantTime(hash, account_.password_sha256);
  const bool right = name_matches && hash_matches;
  if (right) {
    failures_in_a_row_ = 0;
    return LoginAnswer::Accepted;
  }
  ++failed_logins_;
  if (++failures_in_a_row_ >= limits_.lockout_threshold) {
    failures_in_a_row_ = 0;
    locked_until_ = clock_.steady() + limits_.lockout_duration;
  }
  return LoginAnswer::WrongPassword;
}

LoginAnswer LoginGuard::login(std::string_view username, std::string_view password,
                              Session& session) {
  auto answer = check(username, password);
  if (answer != LoginAnswer::Accepted) return answer;
  expireSessions();
  if (sessions_.size() >= limits_.max_sessions) return LoginAnswer::TooManySessions;
  session = {io::randomToken(6), io::randomToken(24), account_.username, clock_.steady()};
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

void LoginGuard::expireSessions() {
  auto oldest = clock_.steady() - limits_.session_idle;
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.last_used < oldest; });
}

}  // namespace muster::lab::vbmc
