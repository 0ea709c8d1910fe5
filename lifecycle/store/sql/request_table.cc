// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/request_table.h"

namespace muster::lifecycle::sql {

using soci::into;
using soci::use;

Result<void> RequestTable::openRequest(const Request& request) {
  return db_.write("storing who asked", [&]() -> Result<void> {
    const long long at = toMillis(request.at);
    const auto user = storable(request.user), host = storable(request.host),
               command = storable(request.command);
    db_.sql() << "INSERT INTO requests (id, at_ms, asked_by, host, command, plan_hash, outcome, "
                 "ended_at_ms)"
                 " VALUES (:i, :a, :u, :h, :c, :p, '', 0)",
        use(request.id), use(at), use(user), use(host), use(command), use(request.plan_hash);
    return {};
  });
}

Result<void> RequestTable::closeRequest(const std::string& id, const std::string& outcome,
                                        WallTime at) {
  return db_.write("storing how a request ended", [&]() -> Result<void> {
    const long long ended = toMillis(at);
    const auto words = storable(outcome);
    soci::statement update =
        (db_.sql().prepare << "UPDATE requests SET outcome = :o, ended_at_ms = :a WHERE id = :i",
         use(words), use(ended), use(id));
    update.execute(true);
    if (update.get_affected_rows() != 1)
      return fail(ErrorCode::NotFound, "there is no request " + id);
    return {};
  });
}

Result<std::vector<Request>> RequestTable::requests(std::size_t limit) {
  return db_.read("reading requests", [&]() -> Result<std::vector<Request>> {
    std::vector<Request> out;
    const long long rows_max = bounded(limit);
    Request row;
    long long at = 0, ended = 0;
    soci::statement rows =
        (db_.sql().prepare << "SELECT id, at_ms, asked_by, host, command, plan_hash, "
                              "outcome, ended_at_ms FROM requests"
                              " ORDER BY sequence DESC LIMIT :l",
         use(rows_max), into(row.id), into(at), into(row.user), into(row.host), into(row.command),
         into(row.plan_hash), into(row.outcome), into(ended));
    rows.execute();
    while (rows.fetch()) {
      row.at = fromMillis(at);
      row.ended_at = fromMillis(ended);
      out.push_back(row);
    }
    return out;
  });
}

}  // namespace muster::lifecycle::sql
