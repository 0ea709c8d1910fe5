// SPDX-License-Identifier: Apache-2.0
// A store as a whole: copied while others write into it, examined, and put back. docs/adr/0302
//
// What a copy holds was true once. Put back, it must not act on that: work and
// runs that were open then are given up, permissions to wipe that were unused then are taken back,
// and the numbers by which agents and hosts know who is newer (tokens of claims, the term of the
// one that serves) are raised past all that the lost store may have given out since.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::lifecycle {

/// Higher than any number of claims or changes of hands that a site makes between a copy and its
/// loss: one a second for three years.
inline constexpr std::int64_t kRaisedBy = 100'000'000;

enum class DatabaseKind { Sqlite, Postgres };
DatabaseKind databaseKindOf(const std::string& url);

/// Version of the schema that this program works with.
int knownSchema();

/// Writes the store as it is at one moment into the new file `to` (SQLite: a database; PostgreSQL:
/// an archive of pg_dump). Answers its schema. Nothing is migrated. Errors: NotFound (there is no
/// store), Corrupt, those of the disk and of pg_dump
Result<int> copyStore(const std::string& url, const std::filesystem::path& to);

/// Makes a copied SQLite database one that may be worked with (see above). `why`: outcome of what
/// was open. Effect: one transaction
Result<void> makeRestored(const std::filesystem::path& database, const std::string& why);
/// Puts a pg_dump archive of a store of this schema into an empty database, raised as above, all or
/// nothing. Errors: Conflict (the database holds tables), those of the server
Result<void> restorePostgres(const std::string& url, const std::filesystem::path& archive,
                             int schema, const std::string& why);

struct StoreExamination {
  int schema = 0;
  std::vector<std::string> problems;  ///< as the database says them; empty: it is whole
};
/// Reads all of it. Nothing is migrated. Errors: NotFound, those of the database
Result<StoreExamination> examineStore(const std::string& url);

}  // namespace muster::lifecycle
