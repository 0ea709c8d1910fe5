// SPDX-License-Identifier: Apache-2.0
// Measurements in the store's database, by a connection of its own. A row is one node and run; its
// numbers are one text, because they are always read together: a report on 10,000 nodes reads
// 50,000 rows instead of two million.
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/sql/connection.h"
#include "lifecycle/store/store.h"

#include <charconv>
#include <cmath>
#include <thread>
#include <utility>

namespace muster::lifecycle {
namespace sql {
namespace {

constexpr std::size_t kRowsAtOnce = 1'000;
constexpr int kSince = 4;  ///< schema with the table
using Steady = std::chrono::steady_clock;

/// "NAME=NUMBER;…". Names have neither of the two; shortest digits that give the same number again.
std::string packed(const std::map<std::string, double>& numbers) {
  std::string out;
  char digits[32];
  for (const auto& [name, number] : numbers) {
    if (!std::isfinite(number) || name.find_first_of("=;") != std::string::npos) continue;
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(name).append("=").append(digits, end).append(";");
  }
  return out;
}

Result<std::map<std::string, double>> unpacked(const std::string& text) {
  std::map<std::string, double> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto equals = text.find('=', begin), end = text.find(';', begin);
    double number = 0;
    if (equals == std::string::npos || end == std::string::npos || equals > end ||
        std::from_chars(text.data() + equals + 1, text.data() + end, number).ptr !=
            text.data() + end)
      return fail(ErrorCode::Corrupt,
                  "a row of measurements is damaged: " + text.substr(begin, 60));
    out.emplace_hint(out.end(), text.substr(begin, equals - begin), number);
    begin = end + 1;
  }
  return out;
}

class SqlMeasurements final : public Measurements {
 public:
  explicit SqlMeasurements(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}
  ~SqlMeasurements() override { (void)intact(); }

  Result<void> open() {
    return guarded("opening the measurements", [this]() -> Result<void> {
      TRY(version, backend_->version(sql_));
      if (version < kSince)
        return fail(ErrorCode::Internal, "the measurements were opened before their store");
      return backend_->prepare(sql_);
    });
  }

  Result<void> add(const std::vector<MeasuredSet>& sets) override {
    std::string mark;  // of the transaction, once its end was asked for: after a lost connection
                       // the server knows what came of it
    return guarded("storing measurements", [&]() -> Result<void> {
      if (!mark.empty()) {
        TRY(done, backend_->committed(sql_, std::exchange(mark, {})));
        if (done) return {};
      }
      Transaction transaction(sql_, backend_->begin());
      TRY_OK(intact());
      for (const auto& set : sets) {
        const auto at = static_cast<long long>(toMillis(set.at));
        const auto node = storable(set.node.str()), origin = storable(set.origin),
                   sku = storable(set.sku), rack = storable(set.rack),
                   numbers = storable(packed(set.numbers));
        if (numbers.empty()) continue;
        sql_ << "INSERT INTO measured (at_ms, node, origin, sku, rack, numbers) VALUES (:at, "
                ":node, :origin, :sku, :rack, :numbers)",
            soci::use(at), soci::use(node), soci::use(origin), soci::use(sku), soci::use(rack),
            soci::use(numbers);
      }
      mark = backend_->mark(sql_);
      transaction.commit();
      return intact();
    });
  }

  Result<std::vector<MeasuredSet>> since(WallTime time) override {
    return guarded("reading measurements", [&]() -> Result<std::vector<MeasuredSet>> {
      std::vector<MeasuredSet> out;
      std::vector<std::string> at(kRowsAtOnce), node(kRowsAtOnce), origin(kRowsAtOnce),
          sku(kRowsAtOnce), rack(kRowsAtOnce), numbers(kRowsAtOnce);
      // The time as text: many integers at once come back with 32 bits from SOCI's SQLite.
      const auto from = static_cast<long long>(toMillis(time));
      soci::statement rows =
          (sql_.prepare << "SELECT CAST(at_ms AS TEXT), node, origin, sku, rack, numbers FROM "
                           "measured WHERE at_ms >= :since ORDER BY at_ms, sequence",
           soci::use(from), soci::into(at), soci::into(node), soci::into(origin), soci::into(sku),
           soci::into(rack), soci::into(numbers));
      rows.execute();
      while (rows.fetch()) {
        for (std::size_t i = 0; i < at.size(); ++i) {
          TRY(values, unpacked(numbers[i]));
          long long at_ms = 0;
          std::from_chars(at[i].data(), at[i].data() + at[i].size(), at_ms);
          out.push_back({fromMillis(at_ms), NodeName(node[i]), origin[i], sku[i], rack[i],
                         std::move(values)});
        }
        for (auto* column : {&at, &node, &origin, &sku, &rack, &numbers})
          column->resize(kRowsAtOnce);
      }
      return out;
    });
  }

 private:
  /// The files are still there and still these. Errors: Unavailable, for good
  Result<void> intact() {
    auto lost = backend_->loss();
    if (!lost) return {};
    backend_->abandon(sql_);
    return fail(std::move(*lost));
  }

  /// A connection that was lost is made again, for as long as the backend has patience; the work is
  /// then done from its beginning.
  template <class Work>
  auto guarded(std::string_view doing, Work work) -> decltype(work()) {
    const auto until =
        Steady::now() + (reached_ ? backend_->patience() : std::chrono::milliseconds(0));
    for (;;) try {
        if (!connected_) {
          sql_.close();
          TRY_OK(backend_->connect(sql_));
          connected_ = reached_ = true;
        }
        return work();
      } catch (const soci::soci_error& thrown) {
        auto failure = backend_->explain(thrown, sql_);
        if (failure.lost_connection) connected_ = false;
        if (!(failure.lost_connection || failure.collided) ||
            Steady::now() + kReconnectPause > until)
          return fail(std::move(failure.error).within(std::string(doing)));
        std::this_thread::sleep_for(kReconnectPause);
      }
  }

  std::unique_ptr<Backend> backend_;
  soci::session sql_;
  bool connected_ = false, reached_ = false;
};

}  // namespace
}  // namespace sql

Result<std::unique_ptr<Measurements>> openMeasurements(const std::string& url) {
  constexpr std::string_view kSqlite = "sqlite:";
  auto backend = url.starts_with(kSqlite)
                     ? sql::sqliteBackend(url.substr(kSqlite.size()), kSqliteBusyTimeout)
                     : sql::postgresBackend(url, kPostgresPatience);
  auto made = std::make_unique<sql::SqlMeasurements>(std::move(backend));
  TRY_OK(made->open());
  return made;
}

}  // namespace muster::lifecycle
