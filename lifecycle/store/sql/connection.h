// SPDX-License-Identifier: Apache-2.0
// SqlConnection: one connection to the store's database, and the seam where SOCI's exceptions end.
//
// Every write is one transaction, done when the call returns. SOCI throws: `read` and `write` are
// where that becomes an Error that says what to do. A connection that was lost is made again there,
// for as long as the backend has patience: the work of a transaction that cannot have been
// committed is done again; of one that was being committed the server is asked. So a lambda given
// to `write` may run more than once and must change nothing but the database.
//
// `together` is one `write` around the writes of many: inside it they join its transaction. What a
// part of the store knows within a transaction (the head of the log, claims that it has locked) is
// read once and kept until its end: TransactionPart.
#pragma once

#include "lifecycle/store/sql/backend.h"
#include "lifecycle/store/sql/prepared.h"
#include "lifecycle/store/store.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace muster::lifecycle::sql {

inline constexpr std::size_t kMaxRows = 1'000'000;
inline constexpr std::chrono::milliseconds kReconnectPause{100};

inline std::int64_t toMillis(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime fromMillis(long long value) { return WallTime(std::chrono::milliseconds(value)); }
inline long long bounded(std::size_t limit) {
  return static_cast<long long>(std::min(limit, kMaxRows));
}

/// What every database can keep: UTF-8 without NUL. Other bytes (output of broken tools) become
/// replacement characters.
std::string storable(const std::string& text);

/// Rolled back unless committed.
class Transaction {
 public:
  Transaction(soci::session& sql, const char* begin) : sql_(sql) { sql_ << begin; }
  Transaction(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  soci::session& sql_;
  bool done_ = false;
};

/// What knows something within a transaction only, or changes with it.
class TransactionPart {
 public:
  virtual ~TransactionPart() = default;
  virtual void begins() {}
  /// The last that is written. May throw soci_error.
  virtual void commits() {}
  /// A group of writes is undone, or begins once more.
  virtual void groupUndone() {}
  virtual void groupKept() {}
};

class SqlConnection {
 public:
  explicit SqlConnection(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  SqlConnection(const SqlConnection&) = delete;
  ~SqlConnection() { (void)intact(); }  // what was taken away must not be tidied up at the end
  /// Connects, migrates, looks for damage. `tidy` is the last of it, and may throw soci_error.
  Result<void> open(const std::function<void()>& tidy);
  /// Before the first transaction; `part` outlives the connection's use.
  void join(TransactionPart& part) { parts_.push_back(&part); }

  template <class Work>
  auto read(std::string_view doing, Work work) -> decltype(work());
  template <class Work>
  auto write(std::string_view doing, Work work) -> decltype(work());
  /// Store::together.
  void together(const std::vector<std::function<bool()>>& works);

  // Inside `read` and `write`.
  soci::session& sql() { return sql_; }
  template <class... Out, class... In>
  bool ask(const std::string& query, std::tuple<Out&...> out, const In&... in) {
    return prepared_.ask(sql_, query, out, in...);
  }
  template <class... Out, class Row, class... In>
  void each(const std::string& query, std::tuple<Out&...> out, Row&& row, const In&... in) {
    prepared_.each(sql_, query, out, std::forward<Row>(row), in...);
  }
  template <class... In>
  long long run(const std::string& query, const In&... in) {
    return prepared_.run(sql_, query, in...);
  }
  bool isGrouping() const { return grouping_; }
  /// Whether this thread is in a transaction: it sees what it has written.
  bool isWritingHere() const { return writing_ == std::this_thread::get_id(); }

  Backend& backend() const { return *backend_; }
  /// Of the control thread and the journal's.
  std::recursive_mutex& mutex() { return mutex_; }
  Error unreadable(const std::string& what) const;

 private:
  using Steady = std::chrono::steady_clock;
  using Writer = std::atomic<std::thread::id>;
  struct Writing {
    explicit Writing(Writer& mark) : writer(mark) { writer = std::this_thread::get_id(); }
    Writing(const Writing&) = delete;
    ~Writing() { writer = std::thread::id(); }
    Writer& writer;
  };

  /// Handles what the driver threw. Answers the error when there is no use in trying again; else
  /// the connection stands, or will be made by the next try.
  std::optional<Error> recover(const soci::soci_error& thrown, std::string_view doing,
                               Steady::time_point until);
  Result<void> connected();
  /// The files are still there and still these. Errors: Unavailable, for good
  Result<void> intact();
  /// After a COMMIT that met a lost connection: was it done? Waits for the server. Errors:
  /// Unavailable (nobody knows)
  Result<bool> outcomeOf(const std::string& mark, Steady::time_point until);
  Result<void> migrate(int version);
  Result<int> knownVersion();
  /// Works [first, last) in one transaction. Answers the first that did not succeed, then nothing
  /// is written; `last`: all did.
  std::size_t runGroup(const std::vector<std::function<bool()>>& works, std::size_t first,
                       std::size_t last);

  std::unique_ptr<Backend> backend_;
  soci::session sql_;
  PreparedStatements prepared_;
  bool connected_ = false;
  std::recursive_mutex mutex_;
  bool grouping_ = false;
  Writer writing_{};
  std::vector<TransactionPart*> parts_;
};

template <class Work>
auto SqlConnection::read(std::string_view doing, Work work) -> decltype(work()) {
  const std::lock_guard lock(mutex_);
  if (grouping_) return work();
  const auto until = Steady::now() + backend_->patience();
  for (;;) {
    try {
      TRY_OK(connected());
      TRY_OK(intact());
      return work();
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, doing, until)) return fail(std::move(*error));
    }
  }
}

template <class Work>
auto SqlConnection::write(std::string_view doing, Work work) -> decltype(work()) {
  const std::lock_guard lock(mutex_);
  if (grouping_) return work();
  const Writing mine(writing_);
  const auto until = Steady::now() + backend_->patience();
  for (;;) {
    std::string mark;  // set when the transaction is being committed
    std::optional<decltype(work())> answer;
    try {
      TRY_OK(connected());
      for (auto* part : parts_) part->begins();
      Transaction transaction(sql_, backend_->begin());
      TRY_OK(intact());
      answer.emplace(work());
      if (!*answer) return std::move(*answer);
      for (auto* part : parts_) part->commits();
      mark = backend_->mark(sql_);
      transaction.commit();
      TRY_OK(intact());  // an answer says that others can read it: what went into files without a
                         // name is not written
      return std::move(*answer);
    } catch (const soci::soci_error& thrown) {
      if (auto error = recover(thrown, doing, until)) return fail(std::move(*error));
    }
    if (mark.empty()) continue;
    auto done = outcomeOf(mark, until);
    if (!done) return fail(std::move(done).error().within(std::string(doing)));
    if (*done) return std::move(*answer);
  }
}

}  // namespace muster::lifecycle::sql
