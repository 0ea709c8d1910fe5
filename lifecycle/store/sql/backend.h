// SPDX-License-Identifier: Apache-2.0
// Backend: all that differs between databases. The SQL of the store is shared (sql_store.h); here
// is how to connect, which words a dialect has, and what an error of the driver means for an
// operator.
#pragma once

#include "base/result.h"

#include <soci/soci.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::lifecycle::sql {

/// What an exception of the driver was.
struct Failure {
  Error error;
  bool lost_connection = false;  ///< connect again; whether a COMMIT made it is to be asked
  bool collided = false;  ///< the database undid the transaction because of another one; the same
                          ///< work may be done again
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// The store as people know it: a file, or server and database. Never a password.
  virtual const std::string& name() const = 0;
  /// Connects and applies the settings; also anew, after the connection was lost. May throw
  /// soci_error.
  virtual Result<void> connect(soci::session& sql) = 0;
  /// A second connection, beside one that stands, that only reads. May throw soci_error.
  virtual Result<void> connectToRead(soci::session& sql) { return connect(sql); }
  /// Once, after the first connect: what a store needs before it is used, and damage that can be
  /// seen now.
  virtual Result<void> prepare(soci::session&) { return {}; }
  virtual Result<void> check(soci::session&) { return {}; }
  /// Whether what the connections have open is still the store that others see: asked before and
  /// after every transaction, and by any thread. Only a database of files can be taken away under
  /// its process; a server that is gone is a lost connection.
  virtual std::optional<Error> loss() const { return std::nullopt; }
  /// After a loss: closing this connection must leave the files of others alone.
  virtual void abandon(soci::session&) {}
  /// The schema's version, 0 when there is none yet. Errors: Corrupt (a database of another
  /// program)
  virtual Result<int> version(soci::session& sql) = 0;
  /// Inside a transaction. `lockSchema` lets one process migrate at a time.
  virtual void lockSchema(soci::session&) {}
  virtual void setVersion(soci::session& sql, int version) = 0;
  /// Inside the transaction that will make schema `known` of an older one: another process that
  /// works with the store and is of a version that may not know `known`, in words. nullopt: none.
  /// May throw soci_error.
  virtual std::optional<std::string> olderUser(soci::session& sql, int known) = 0;

  /// Whether a statement may stay prepared for the life of a connection.
  virtual bool keepsStatements() const { return false; }
  /// How long work that met a lost connection or a collision is tried again.
  virtual std::chrono::milliseconds patience() const { return {}; }
  /// Names the running transaction, so that `committed` can tell after a lost connection. Empty: it
  /// cannot get lost.
  virtual std::string mark(soci::session&) { return {}; }
  /// Errors: Unavailable while the database does not know yet
  virtual Result<bool> committed(soci::session&, const std::string&) { return false; }
  virtual Failure explain(const soci::soci_error& error, soci::session& sql) const = 0;

  /// A transaction that will write: nothing it has read changes before it ends, or it waits for it.
  virtual const char* begin() const = 0;
  virtual const char* nowMs() const = 0;  ///< the database's clock, milliseconds since 1970
  virtual const char* shareRow()
      const = 0;  ///< after a SELECT: nobody changes these rows before we commit
  virtual const char* takeRow()
      const = 0;  ///< after a SELECT: these rows are ours until we commit; wait for others
  virtual const char* takeFreeRow()
      const = 0;  ///< after a SELECT: as takeRow, but rows that another has taken are left out
  /// The words of schema.h that start with '%'.
  virtual const std::vector<std::pair<std::string_view, std::string_view>>& words() const = 0;
  std::string dialect(std::string_view statement) const;
};

std::unique_ptr<Backend> sqliteBackend(std::filesystem::path file,
                                       std::chrono::milliseconds busy_timeout);
std::unique_ptr<Backend> postgresBackend(std::string url, std::chrono::milliseconds patience);

}  // namespace muster::lifecycle::sql
