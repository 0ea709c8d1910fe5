// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/store/sql/value_reader.h"

#include <thread>

namespace muster::lifecycle::sql {
namespace {

constexpr std::chrono::milliseconds kPause{100};
constexpr std::string_view kDoing = "reading a value";

}  // namespace

Result<void> ValueReader::connected() {
  if (connected_) return {};
  prepared_.forget();
  prepared_.keepThem(backend_.keepsStatements());
  sql_.close();
  TRY_OK(backend_.connectToRead(sql_));
  connected_ = true;
  return {};
}

Result<void> ValueReader::intact() {
  auto lost = backend_.loss();
  if (!lost) return {};
  backend_.abandon(sql_);
  return fail(std::move(*lost));
}

Result<std::optional<std::string>> ValueReader::get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + backend_.patience();
  for (;;) {
    try {
      TRY_OK(connected());
      TRY_OK(intact());
      std::string value;
      if (!prepared_.ask(sql_, "SELECT value FROM vals WHERE key = :k", std::tie(value), key))
        return std::optional<std::string>();
      return std::optional(std::move(value));
    } catch (const soci::soci_error& thrown) {
      auto failure = backend_.explain(thrown, sql_);
      if (failure.lost_connection) connected_ = false;
      if (!failure.lost_connection || std::chrono::steady_clock::now() + kPause > until)
        return fail(std::move(failure.error).within(std::string(kDoing)));
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace muster::lifecycle::sql
