// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/claim_table.h"

#include "base/io/crypto.h"

#include <algorithm>

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

std::string ClaimTable::nowPlus(std::chrono::milliseconds duration) const {
  return fmt::format("{} + {}", db_.backend().nowMs(), duration.count());
}

bool ClaimTable::isLive(const std::string& session) {
  int count = 0;
  db_.sql() << fmt::format(
      "SELECT count(*) FROM controllers WHERE session = :s AND expires_at_ms > {}",
      db_.backend().nowMs()),
      use(session), into(count);
  return count != 0;
}

bool ClaimTable::extendLease() {
  return db_.run(fmt::format("UPDATE controllers SET expires_at_ms = {} WHERE session = :s",
                             nowPlus(lease_)),
                 session_) == 1;
}

/// What was right once stays so until the transaction ends: the row is locked, or this transaction
/// itself changes it.
Result<void> ClaimTable::fence(const Subject& subject) {
  if (fenced_.contains(subject)) return {};
  std::string holder, session;
  long long token = 0;
  const bool known =
      db_.ask(std::string("SELECT holder, session, token FROM claims WHERE subject = :s") +
                  db_.backend().shareRow(),
              std::tie(holder, session, token), subject.str());
  const auto mine = held_.find(subject);
  if (mine != held_.end()) {
    if (known && session == session_ && token == mine->second) {
      fenced_.insert(subject);
      return {};
    }
    return fail(ErrorCode::Conflict, fmt::format("{} was taken over by {} (token {}, ours is {}); "
                                                 "this controller did not renew its lease in time",
                                                 subject.str(), holder, token, mine->second));
  }
  if (!known || session.empty() || session == session_ || !isLive(session)) return {};
  return fail(ErrorCode::Conflict,
              fmt::format("{} is worked on by {}; let it finish", subject.str(), holder));
}

std::set<std::string> ClaimTable::heldByOthers() {
  std::set<std::string> out;
  std::string subject;
  soci::statement rows =
      (db_.sql().prepare << fmt::format(
           "SELECT c.subject FROM claims c JOIN controllers k ON k.session = c.session"
           " WHERE c.session <> :s AND k.expires_at_ms > {}",
           db_.backend().nowMs()),
       use(session_), into(subject));
  rows.execute();
  while (rows.fetch()) out.insert(subject);
  return out;
}

void ClaimTable::holds(const Subject& subject, std::optional<std::int64_t> token) {
  const std::lock_guard lock(held_mutex_);
  const auto mine = held_.find(subject);
  if (db_.isGrouping())
    held_before_.emplace_back(subject,
                              mine == held_.end() ? std::nullopt : std::optional(mine->second));
  if (token)
    held_[subject] = *token;
  else if (mine != held_.end())
    held_.erase(mine);
}

void ClaimTable::groupUndone() {
  const std::lock_guard lock(held_mutex_);
  for (; !held_before_.empty(); held_before_.pop_back()) {
    const auto& [subject, token] = held_before_.back();
    if (token)
      held_[subject] = *token;
    else
      held_.erase(subject);
  }
}

Result<void> ClaimTable::signOn(const std::string& holder, std::chrono::milliseconds lease) {
  const std::lock_guard lock(db_.mutex());
  const auto session = io::randomToken(12);
  TRY_OK(db_.write("signing on", [&]() -> Result<void> {
    db_.sql()
        << "UPDATE claims SET session = '', token = token + 1 WHERE holder = :h AND session <> ''",
        use(holder);
    db_.sql() << fmt::format("DELETE FROM controllers WHERE holder = :h OR expires_at_ms < {}",
                             nowPlus(-std::chrono::milliseconds(kForgetControllers))),
        use(holder);
    db_.sql() << fmt::format(
        "INSERT INTO controllers (session, holder, expires_at_ms) VALUES (:s, :h, {})",
        nowPlus(lease)),
        use(session), use(holder);
    return {};
  }));
  holder_ = holder;
  session_ = session;
  lease_ = lease;
  const std::lock_guard held_lock(held_mutex_);
  held_.clear();
  return {};
}

Result<void> ClaimTable::renewLease() {
  return db_.write("renewing the lease", [&]() -> Result<void> {
    if (session_.empty())
      return fail(ErrorCode::Internal, "a controller signs on before it renews");
    if (extendLease()) return {};
    return fail(ErrorCode::Conflict, fmt::format("another process has signed on as {}", holder_));
  });
}

Result<Claim> ClaimTable::claim(const Subject& subject) {
  const std::lock_guard lock(db_.mutex());
  if (session_.empty()) return fail(ErrorCode::Internal, "a controller signs on before it claims");
  auto taken = db_.write("claiming " + subject.str(), [&]() -> Result<Claim> {
    Claim out{subject, "", 0, false, ""};
    if (!extendLease())
      return fail(ErrorCode::Conflict, fmt::format("another process has signed on as {}", holder_));
    db_.run(
        "INSERT INTO claims (subject, holder, session, token) VALUES (:s, '', '', 0) ON CONFLICT "
        "DO NOTHING",
        subject.str());
    std::string session;
    long long token = 0;
    const std::string query = "SELECT holder, session, token FROM claims WHERE subject = :s";
    auto look = [&](const std::string& lock) {
      return db_.ask(query + lock, std::tie(out.holder, session, token), subject.str());
    };
    const bool locked = look(db_.backend().takeFreeRow());
    if (!locked && !look("")) return out;
    out.token = token;
    out.ours = session == session_ && held_.contains(subject);
    if (!locked || out.ours || (!session.empty() && session != session_ && isLive(session)))
      return out;
    if (out.holder != holder_) out.taken_from = out.holder;
    out.token = ++token;
    out.holder = holder_;
    out.ours = true;
    db_.run("UPDATE claims SET holder = :h, session = :e, token = :t WHERE subject = :s", holder_,
            session_, token, subject.str());
    return out;
  });
  if (taken && taken->ours) holds(subject, taken->token);
  return taken;
}

Result<void> ClaimTable::release(const Subject& subject) {
  const std::lock_guard lock(db_.mutex());
  const auto mine = held_.find(subject);
  if (mine == held_.end()) return {};
  const long long token = mine->second;
  holds(subject, std::nullopt);
  fenced_.erase(subject);
  return db_.write("releasing " + subject.str(), [&]() -> Result<void> {
    db_.run("UPDATE claims SET session = '' WHERE subject = :s AND session = :e AND token = :t",
            subject.str(), session_, token);
    return {};
  });
}

Result<void> ClaimTable::checkClaim(const Subject& subject) {
  return db_.write("checking the claim of " + subject.str(), [&]() -> Result<void> {
    if (!held_.contains(subject))
      return fail(ErrorCode::Conflict,
                  fmt::format("{} is not claimed by this controller", subject.str()));
    TRY_OK(fence(subject));
    if (extendLease()) return {};
    return fail(ErrorCode::Conflict, fmt::format("another process has signed on as {}", holder_));
  });
}

Result<std::vector<Claim>> ClaimTable::claims() {
  return db_.read("reading claims", [&]() -> Result<std::vector<Claim>> {
    std::vector<Claim> out;
    std::string subject, holder, session;
    long long token = 0;
    soci::statement rows = (db_.sql().prepare << fmt::format(
                                "SELECT c.subject, c.holder, c.session, c.token FROM claims c "
                                "JOIN controllers k ON k.session = "
                                "c.session WHERE k.expires_at_ms > {}",
                                db_.backend().nowMs()),
                            into(subject), into(holder), into(session), into(token));
    rows.execute();
    while (rows.fetch())
      out.push_back(Claim{Subject::parse(subject), holder, token, session == session_, ""});
    std::sort(out.begin(), out.end(),
              [](const Claim& a, const Claim& b) { return a.subject < b.subject; });
    return out;
  });
}

std::int64_t ClaimTable::fenceOf(const Subject& subject) const {
  const std::lock_guard lock(held_mutex_);
  const auto mine = held_.find(subject);
  return mine == held_.end() ? 0 : mine->second;
}

}  // namespace muster::lifecycle::sql
