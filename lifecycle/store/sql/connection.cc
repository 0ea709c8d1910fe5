// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/connection.h"

#include "base/utf8.h"
#include "lifecycle/store/sql/schema.h"

#include <algorithm>

namespace muster::lifecycle::sql {

std::string storable(const std::string& text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) > 0; });
  if (plain) return text;
  auto valid = validUtf8(text);
  for (auto nul = valid.find('\0'); nul != std::string::npos; nul = valid.find('\0', nul))
    valid.replace(nul, 1, "\uFFFD");
  return valid;
}

std::string Backend::dialect(std::string_view statement) const {
  std::string out(statement);
  for (const auto& [word, own] : words())
    for (auto at = out.find(word); at != std::string::npos; at = out.find(word, at))
      out.replace(at, word.size(), own);
  return out;
}

Transaction::~Transaction() {
  if (done_) return;
  try {
    sql_ << "ROLLBACK";
  } catch (const soci::soci_error&) {  // the database has rolled back by itself
  }
}

void Transaction::commit() {
  sql_ << "COMMIT";
  done_ = true;
}

Result<void> SqlConnection::connected() {
  if (connected_) return {};
  prepared_.forget();
  prepared_.keepThem(backend_->keepsStatements());
  sql_.close();
  TRY_OK(backend_->connect(sql_));
  connected_ = true;
  return {};
}

Result<void> SqlConnection::intact() {
  auto lost = backend_->loss();
  if (!lost) return {};
  backend_->abandon(sql_);
  return fail(std::move(*lost));
}

std::optional<Error> SqlConnection::recover(const soci::soci_error& thrown, std::string_view doing,
                                            Steady::time_point until) {
  auto failure = backend_->explain(thrown, sql_);
  if (failure.lost_connection) connected_ = false;
  if (!(failure.lost_connection || failure.collided) || Steady::now() + kReconnectPause > until)
    return std::move(failure.error).within(std::string(doing));
  std::this_thread::sleep_for(kReconnectPause);
  return std::nullopt;
}

Result<bool> SqlConnection::outcomeOf(const std::string& mark, Steady::time_point until) {
  for (;;) {
    try {
      TRY_OK(connected());
      auto done = backend_->committed(sql_, mark);
      if (done || Steady::now() > until) return done;
      std::this_thread::sleep_for(kReconnectPause);
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, "asking whether the last write was done", until))
        return fail(std::move(*error));
    }
  }
}

Error SqlConnection::unreadable(const std::string& what) const {
  return Error(
      ErrorCode::Corrupt,
      fmt::format(
          "{} is damaged or not a muster store ({}); move it away: muster observes everything anew",
          backend_->name(), what));
}

void SqlConnection::together(const std::vector<std::function<bool()>>& works) {
  const std::lock_guard lock(mutex_);
  for (std::size_t first = 0; first < works.size();) {
    const auto stopped = runGroup(works, first, works.size());
    if (stopped == works.size()) return;
    if (stopped > first &&
        runGroup(works, first, stopped) != stopped)  // those before it, without it
      for (auto each = first; each < stopped; ++each) works[each]();
    works[stopped]();
    first = stopped + 1;
  }
}

std::size_t SqlConnection::runGroup(const std::vector<std::function<bool()>>& works,
                                    std::size_t first, std::size_t last) {
  std::size_t next = first;
  auto all = [&]() -> Result<void> {  // may run again, after a lost connection
    for (auto* part : parts_) part->groupUndone();
    grouping_ = true;
    for (next = first; next < last; ++next)
      if (!works[next]()) break;
    grouping_ = false;
    if (next < last) return fail(ErrorCode::Internal, "one of many writes did not succeed");
    return {};
  };
  Result<void> done;
  try {
    done = write("storing what many have written", all);
  } catch (...) {
    grouping_ = false;
    for (auto* part : parts_) part->groupUndone();
    throw;
  }
  grouping_ = false;
  if (done) {
    for (auto* part : parts_) part->groupKept();
    return last;
  }
  for (auto* part : parts_) part->groupUndone();
  return std::min(next, last - 1);  // the commit itself failed: each says so for itself
}

/// A server that does not answer at first is told at once; one that was reached and then lost, or
/// that undid our migration because of somebody else's, is given time as for any write.
Result<void> SqlConnection::open(const std::function<void()>& tidy) {
  const auto doing = "opening the store";
  const auto until = Steady::now() + backend_->patience();
  for (bool reached = false;;) try {
      if (auto made = connected(); !made) return fail(std::move(made).error().within(doing));
      reached = true;
      TRY(version, knownVersion());
      TRY_OK(backend_->prepare(sql_));
      TRY_OK(migrate(version));
      TRY_OK(backend_->check(sql_));
      tidy();
      return {};
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, doing, reached ? until : Steady::time_point::min()))
        return fail(std::move(*error));
    }
}

[[gnu::weak]] const std::vector<std::vector<std::string_view>>& migrations() { return kMigrations; }

Result<int> SqlConnection::knownVersion() {
  TRY(version, backend_->version(sql_));
  const int known = static_cast<int>(migrations().size());
  if (version > known)
    return fail(ErrorCode::Corrupt, fmt::format(kTooNew, backend_->name(), version, known));
  return version;
}

Result<void> SqlConnection::migrate(int version) {
  const int known = static_cast<int>(migrations().size());
  if (version == known) return {};
  Transaction transaction(sql_, backend_->begin());
  backend_->lockSchema(sql_);
  TRY(now, knownVersion());  // another process may have been faster
  if (now == known) return {};
  // A server of the older version looks at the schema when it opens the store, and never again.
  if (now > 0)
    if (const auto who = backend_->olderUser(sql_, known))
      return fail(
          Error(ErrorCode::Conflict, fmt::format(kInUse, backend_->name(), now, known, *who))
              .retryable(false));
  for (auto next = static_cast<std::size_t>(now); next < migrations().size(); ++next)
    for (const auto& statement : migrations()[next]) sql_ << backend_->dialect(statement);
  backend_->setVersion(sql_, known);
  transaction.commit();
  return {};
}

}  // namespace muster::lifecycle::sql
