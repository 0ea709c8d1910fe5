// SPDX-License-Identifier: Apache-2.0
// The store on a real PostgreSQL: the contract, and what is its own: a server that is restarted,
// read-only, somebody else's.
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/sql/schema.h"
#include "lifecycle/store/store_copy.h"
#include "tests/lifecycle/postgres_server.h"
#include "tests/lifecycle/store_contract.h"

#include <sys/wait.h>

namespace muster::lifecycle {
namespace {

using test::factOf;
using test::postgresServer;
using testing::HasSubstr;
using testing::Not;

class InPostgres final : public StoreMaker {
 public:
  std::unique_ptr<Store> open() override {
    auto opened = openStore(url_);
    if (!opened) ADD_FAILURE() << opened.error().str();
    return opened ? std::move(*opened) : nullptr;
  }
  std::string url() const override { return url_; }

 private:
  std::string url_ = postgresServer().createDatabase();
};

StoreKind postgresKind() {
  const auto& why_not = postgresServer().whyNot();
  if (!why_not.empty()) return {"postgresql", nullptr, why_not};
  return {"postgresql", [] { return std::make_unique<InPostgres>(); }, ""};
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, testing::Values(postgresKind()),
                         [](const auto& info) { return info.param.name; });

class PostgresStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
    url_ = postgresServer().createDatabase();
    database_ = url_.substr(14, url_.find('?') - 14);
  }
  std::unique_ptr<Store> open(std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    auto store = openStore(url_, patience);
    if (!store) ADD_FAILURE() << store.error().str();
    return store ? std::move(*store) : nullptr;
  }
  Error refused() {
    auto store = openStore(url_);
    EXPECT_FALSE(store);
    return store ? Error(ErrorCode::Internal, "it was opened") : store.error();
  }
  void execute(const std::string& statement) { postgresServer().execute(database_, statement); }

  std::string url_, database_;
};

TEST_F(PostgresStoreTest, aRestartedServerIsWaitedForAndNothingIsLostOrDoubled) {
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->putValue("k", "before"));
  postgresServer().stop();
  Result<std::int64_t> added = 0;
  std::thread writer([&] {
    added = store->addEvent(Event{0, kNow, EventKind::Note, {}, "", "while it was away"});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  postgresServer().start();  // by this thread: it dies with the one that started it
  writer.join();
  ASSERT_TRUE(added) << added.error().str();
  EXPECT_EQ(store->events(0, 10, nullptr)->size(), 1u);
  EXPECT_EQ(*store->getValue("k"), "before");
}

TEST_F(PostgresStoreTest, measurementsOutliveARestartedServerAndAreKeptOnce) {
  const auto store = open();
  ASSERT_TRUE(store);
  auto kept = openMeasurements(url_);
  ASSERT_TRUE(kept) << kept.error().str();
  const std::vector<MeasuredSet> one{
      {kNow, NodeName("n1"), "isolate", "sku", "r", {{"isolate/pair_gbits@mlx5_0", 391.25}}}};
  ASSERT_TRUE((*kept)->add(one));
  postgresServer().stop();
  Result<void> added = fail(ErrorCode::Internal, "not run");
  std::thread writer([&] { added = (*kept)->add(one); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  postgresServer().start();
  writer.join();
  ASSERT_TRUE(added) << added.error().str();
  EXPECT_EQ((*kept)->since(kNow)->size(), 2u);
  execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + database_ +
          "' AND pid <> pg_backend_pid()");
  EXPECT_EQ((*kept)->since(kNow)->size(), 2u);
}

TEST_F(PostgresStoreTest, aServerThatStaysAwayIsSaidToBeAndTheStoreGoesOnAfterwards) {
  auto store = open(std::chrono::milliseconds(200));
  postgresServer().stop();
  auto put = store->putValue("k", "v");
  postgresServer().start();
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(put.error().canRetry());
  EXPECT_THAT(put.error().str(), HasSubstr("cannot be reached"));
  EXPECT_TRUE(store->putValue("k", "v"));
}

TEST_F(PostgresStoreTest, aSessionThatTheServerEndsIsMadeAnew) {
  auto store = open();
  ASSERT_TRUE(store->putValue("k", "1"));
  execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + database_ +
          "' AND pid <> pg_backend_pid()");
  EXPECT_TRUE(store->putValue("k", "2"));
  EXPECT_EQ(*store->getValue("k"), "2");
}

TEST_F(PostgresStoreTest, aNewerSchemaIsRefused) {
  ASSERT_TRUE(open());
  execute("UPDATE muster_schema SET version = 99");
  auto error = refused();
  EXPECT_EQ(error.code(), ErrorCode::Corrupt);
  EXPECT_THAT(error.str(), HasSubstr("newer muster (schema 99, this one knows " +
                                     std::to_string(sql::kMigrations.size())));
}

/// Sessions as other programs have them, by libpq alone.
TEST_F(PostgresStoreTest, anOlderSchemaIsNotMigratedUnderAMusterThatMayNotKnowTheNewOne) {
  const auto known = std::to_string(sql::migrations().size());
  struct Other {
    std::string name;
    bool hinders;
  };
  for (const Other& other :
       {Other{"", true}, Other{"muster schema 8, ctl1, process 47", true}, Other{"psql", false},
        Other{"muster schema " + known + ", ctl1, process 47", false}, Other{"pg_dump", false}}) {
    SCOPED_TRACE(other.name);
    ASSERT_TRUE(open());
    execute("UPDATE muster_schema SET version = 8");
    {
      soci::session session(soci::postgresql, url_);
      session << "SET application_name = '" + other.name + "'";
      if (other.hinders) {
        const auto error = refused();
        EXPECT_EQ(error.code(), ErrorCode::Conflict);
        EXPECT_FALSE(error.canRetry());
        EXPECT_THAT(error.str(), HasSubstr("has the schema of an older muster (8; this one makes"));
        EXPECT_THAT(error.str(), HasSubstr("a muster at the host of the database"));
        if (!other.name.empty()) EXPECT_THAT(error.str(), HasSubstr(other.name));
        EXPECT_EQ(examineStore(url_)->schema, 8) << "nothing was changed";
      } else {
        EXPECT_TRUE(open());
      }
    }
    // The server notices the end of a session a moment after it.
    for (int tries = 0; other.hinders && !openStore(url_) && tries < 200; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(open());
    EXPECT_EQ(std::to_string(examineStore(url_)->schema), known);
  }
}

/// As docs and the help of --store write it: PostgreSQL's own variables say the rest.
TEST_F(PostgresStoreTest, aUrlWithoutParametersNamesItsDatabase) {
  const auto socket = url_.substr(url_.find("host=") + 5);
  ::setenv("PGHOST", socket.substr(0, socket.find('&')).c_str(), 1);
  ::setenv("PGUSER", "postgres", 1);
  for (const std::string tail : {"", "?"}) {
    auto opened = openStore("postgresql:///" + database_ + tail);
    EXPECT_TRUE(opened) << opened.error().str();
    if (opened) EXPECT_TRUE((*opened)->putValue("k", "v"));
  }
  ::unsetenv("PGHOST");
  ::unsetenv("PGUSER");
  EXPECT_EQ(*open()->getValue("k"), "v") << "it is this database";
}

TEST_F(PostgresStoreTest, anotherProgramsDatabaseIsRefused) {
  execute("CREATE TABLE theirs (a INTEGER)");
  auto error = refused();
  EXPECT_EQ(error.code(), ErrorCode::Corrupt);
  EXPECT_THAT(error.str(), HasSubstr("another program"));
}

TEST_F(PostgresStoreTest, aDatabaseThatIsNotThereIsSaidToBe) {
  url_ = postgresServer().url("nowhere");
  auto error = refused();
  EXPECT_THAT(error.str(), HasSubstr("nowhere"));
}

TEST_F(PostgresStoreTest, noMessageShowsThePassword) {
  auto store = openStore("postgresql://me:sesame@/muster?host=/nonexistent");
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().str(), Not(HasSubstr("sesame")));
  EXPECT_THAT(openStore("mysql://me:sesame@h/db").error().str(), Not(HasSubstr("sesame")));
}

TEST_F(PostgresStoreTest, aReadOnlyServerIsSaidToBeAndNothingIsLost) {
  auto store = open();
  ASSERT_TRUE(store->putFacts({factOf("n1/image", "1")}));
  execute("ALTER DATABASE " + database_ + " SET default_transaction_read_only = on");
  execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + database_ +
          "' AND pid <> pg_backend_pid()");
  auto put = store->putFacts({factOf("n1/image", "2")});
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code(), ErrorCode::Unavailable);
  EXPECT_FALSE(put.error().canRetry());
  EXPECT_THAT(put.error().str(), HasSubstr("read-only"));
  EXPECT_EQ(store->facts()->value(Subject(NodeName("n1")), FacetName("image")), "1");
}

TEST_F(PostgresStoreTest, severalProcessesMigrateAtOnce) {
  std::vector<std::thread> openers;
  std::atomic<int> opened{0};
  for (int i = 0; i < 4; ++i)
    openers.emplace_back([&] {
      if (auto store = openStore(url_)) ++opened;
    });
  for (auto& opener : openers) opener.join();
  EXPECT_EQ(opened, 4);
}

/// Somebody else migrates, and takes its time: a session that holds the schema's lock until it is
/// let go.
class SlowMigration {
 public:
  explicit SlowMigration(const std::string& url)
      : sql_(soci::postgresql, url), watch_(soci::postgresql, url) {
    sql_ << "BEGIN";
    sql_ << "SELECT pg_advisory_xact_lock(1836413812)";
  }
  void finish() { sql_ << "COMMIT"; }
  /// Until a waiter has waited for so long by the server's clock; answers its process there.
  int awaitWaiter(const std::string& at_least) {
    int waiter = 0;
    while (waiter == 0)
      watch_ << "SELECT COALESCE(max(pid), 0) FROM pg_stat_activity WHERE wait_event = 'advisory' "
                "AND datname = current_database()"
                " AND clock_timestamp() - query_start >= interval '" +
                    at_least + "'",
          soci::into(waiter);
    return waiter;
  }
  void end(int process) { watch_ << fmt::format("SELECT pg_terminate_backend({})", process); }

 private:
  soci::session sql_, watch_;
};

/// It was refused after lock_timeout, five seconds: once, on a machine under load.
TEST_F(PostgresStoreTest, aMigrationOfAnotherProcessIsWaitedForLongerThanARow) {
  SlowMigration slow(url_);
  std::string trouble = "none";
  std::thread opener([&] {
    auto store = openStore(url_);
    if (!store) trouble = store.error().str();
  });
  slow.awaitWaiter("5.5 s");
  slow.finish();
  opener.join();
  EXPECT_EQ(trouble, "none");
}

TEST_F(PostgresStoreTest, anOpenerThatLosesItsConnectionOnTheWayTriesAgain) {
  SlowMigration slow(url_);
  std::string trouble = "none";
  std::thread opener([&] {
    auto store = openStore(url_);
    if (!store) trouble = store.error().str();
  });
  slow.end(slow.awaitWaiter("0 s"));
  slow.finish();
  opener.join();
  EXPECT_EQ(trouble, "none");
}

}  // namespace
}  // namespace muster::lifecycle
