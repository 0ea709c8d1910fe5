// SPDX-License-Identifier: Apache-2.0
// Statements that run thousands of times a second are prepared once a connection, where the
// database gains by it (SQLite spends more on reading a statement than on an insert). Values are
// copied in and out, so nothing stays bound to a caller's variable.
#pragma once

#include <soci/soci.h>

#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

namespace muster::lifecycle::sql {

class PreparedStatements {
 public:
  /// Before the connection ends, and when it was lost.
  void forget() { kept_.clear(); }
  void keepThem(bool keep) { keep_ = keep; }

  /// Runs a statement that answers at most one row into `out`. Answers whether there was one.
  template <class... Out, class... In>
  bool ask(soci::session& sql, const std::string& query, std::tuple<Out&...> out, const In&... in) {
    auto& statement = of<std::tuple<In...>, std::tuple<Out...>>(sql, query);
    statement.in = std::tie(in...);
    statement.soci.execute();
    bool row = false;
    while (statement.soci.fetch())  // to its end: one that is under way holds up the commit
      if (!std::exchange(row, true)) out = statement.out;
    release(query);
    return row;
  }

  /// Runs a statement and calls `row` for each row, which is in `out` then. To its end: one that is
  /// under way holds up the commit.
  template <class... Out, class Row, class... In>
  void each(soci::session& sql, const std::string& query, std::tuple<Out&...> out, Row&& row,
            const In&... in) {
    auto& statement = of<std::tuple<In...>, std::tuple<Out...>>(sql, query);
    statement.in = std::tie(in...);
    try {
      statement.soci.execute();
      while (statement.soci.fetch()) {
        out = statement.out;
        row();
      }
    } catch (...) {
      kept_.erase(query);
      throw;
    }
    release(query);
  }

  /// Answers how many rows it changed.
  template <class... In>
  long long run(soci::session& sql, const std::string& query, const In&... in) {
    auto& statement = of<std::tuple<In...>, std::tuple<>>(sql, query);
    statement.in = std::tie(in...);
    statement.soci.execute(true);
    const auto changed = statement.soci.get_affected_rows();
    release(query);
    return changed;
  }

 private:
  struct Any {
    virtual ~Any() = default;
  };
  template <class In, class Out>
  struct Statement final : Any {
    Statement(soci::session& sql, const std::string& query) : soci(sql) {
      std::apply([this](auto&... value) { (soci.exchange(soci::use(value)), ...); }, in);
      std::apply([this](auto&... value) { (soci.exchange(soci::into(value)), ...); }, out);
      soci.alloc();
      soci.prepare(query);
      soci.define_and_bind();
    }
    In in;
    Out out;
    soci::statement soci;
  };

  /// A query always comes with the same types.
  template <class In, class Out>
  Statement<In, Out>& of(soci::session& sql, const std::string& query) {
    auto& kept = kept_[query];
    if (!kept) kept = std::make_unique<Statement<In, Out>>(sql, query);
    return static_cast<Statement<In, Out>&>(*kept);
  }
  void release(const std::string& query) {
    if (!keep_) kept_.erase(query);
  }

  bool keep_ = false;
  std::unordered_map<std::string, std::unique_ptr<Any>> kept_;
};

}  // namespace muster::lifecycle::sql
