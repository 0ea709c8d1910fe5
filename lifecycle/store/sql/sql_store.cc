// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/sql_store.h"

#include "lifecycle/store/store_loss.h"

namespace muster::lifecycle {

Result<void> sql::SqlStore::open() {
  return db_.open([this] { log_.dropOldEvents(); });
}

namespace {

constexpr std::string_view kSqlitePrefix = "sqlite:";

Result<std::unique_ptr<Store>> opened(std::unique_ptr<sql::Backend> backend) {
  auto store = std::make_unique<sql::SqlStore>(std::move(backend));
  TRY_OK(store->open());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace

std::optional<Error> storeLoss(const Store& store) {
  const auto* sql = dynamic_cast<const sql::SqlStore*>(&store);
  return sql ? sql->loss() : std::nullopt;
}

Result<std::unique_ptr<Store>> openSqliteStore(const std::filesystem::path& file,
                                               std::chrono::milliseconds busy_timeout) {
  return opened(sql::sqliteBackend(file, busy_timeout));
}

Result<std::unique_ptr<Store>> openStore(const std::string& url,
                                         std::chrono::milliseconds patience) {
  if (url.starts_with(kSqlitePrefix))
    return openSqliteStore(url.substr(kSqlitePrefix.size()), kSqliteBusyTimeout);
  if (url.starts_with("postgresql://") || url.starts_with("postgres://"))
    return opened(sql::postgresBackend(url, patience));
  return fail(ErrorCode::InvalidInput,
              fmt::format("the store must be sqlite:FILE or postgresql://[USER@]HOST/DATABASE "
                          "(--store, MUSTER_STORE), not {}:…",
                          url.substr(0, url.find(':'))));
}

}  // namespace muster::lifecycle
