// SPDX-License-Identifier: Apache-2.0
// The signed head of the log: what it shows of a log whose end was cut off or that was written
// anew, on both databases.
#include "lifecycle/audit/head.h"

#include "lifecycle/audit/audit.h"
#include "tests/lifecycle/postgres_server.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sqlite3.h>

namespace muster::lifecycle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A database that the test changes behind the store's back, as somebody with its password does.
class Database {
 public:
  virtual ~Database() = default;
  virtual std::string url() const = 0;
  virtual void execute(const std::string& statement) = 0;
};

class InSqlite final : public Database {
 public:
  std::string url() const override { return "sqlite:" + file(); }
  void execute(const std::string& statement) override {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
    char* why = nullptr;
    EXPECT_EQ(sqlite3_exec(db, statement.c_str(), nullptr, nullptr, &why), SQLITE_OK)
        << (why ? why : "");
    sqlite3_free(why);
    sqlite3_close(db);
  }

 private:
  std::string file() const { return (folder_ / "muster.db").string(); }
  test::TempFolder folder_;
};

class InPostgres final : public Database {
 public:
  std::string url() const override { return url_; }
  void execute(const std::string& statement) override {
    test::postgresServer().execute(url_.substr(14, url_.find('?') - 14), statement);
  }

 private:
  std::string url_ = test::postgresServer().createDatabase();
};

constexpr int kEntries = 6;

class AuditHeadTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "postgresql" && !test::postgresServer().whyNot().empty())
      GTEST_SKIP() << test::postgresServer().whyNot();
    if (GetParam() == "postgresql")
      database_ = std::make_unique<InPostgres>();
    else
      database_ = std::make_unique<InSqlite>();
    auto store = open();
    for (int i = 1; i <= kEntries; ++i)
      ASSERT_TRUE(store->addEvent(
          Event{0, WallTime{}, EventKind::Note, {}, "", "entry " + std::to_string(i), -1}));
  }
  std::unique_ptr<Store> open() {
    auto store = openStore(database_->url());
    if (!store) ADD_FAILURE() << store.error().str();
    return std::move(*store);
  }
  AuditHead head() {
    return *signedHead(*open(), key_, WallTime(std::chrono::milliseconds(1'700'000'000'123)));
  }
  HeadStatus status(const AuditHead& head) {
    const auto reports = checkHeads(*open(), {head}, key_.public_pem);
    EXPECT_TRUE(reports) << reports.error().str();
    return reports->front().status;
  }
  /// The last entries are cut off, and the head row is written to fit.
  void truncateTo(int link) {
    database_->execute("DELETE FROM events WHERE link > " + std::to_string(link));
    database_->execute("UPDATE audit_head SET link = " + std::to_string(link) +
                       ", hash = (SELECT hash FROM events WHERE link = " + std::to_string(link) +
                       ")");
  }

  std::unique_ptr<Database> database_;
  io::SigningKey key_ = *io::SigningKey::generate();
};

INSTANTIATE_TEST_SUITE_P(Stores, AuditHeadTest, testing::Values("sqlite", "postgresql"),
                         [](const auto& info) { return info.param; });

TEST_P(AuditHeadTest, holdsWhileTheLogGrows) {
  const auto early = head();
  EXPECT_EQ(early.sequence, kEntries);
  EXPECT_EQ(early.key_id, key_.id());
  EXPECT_EQ(status(early), HeadStatus::Holds);
  ASSERT_TRUE(open()->addEvent(Event{0, WallTime{}, EventKind::Note, {}, "", "one more", -1}));
  EXPECT_EQ(status(early), HeadStatus::Holds);
  EXPECT_EQ(head().sequence, kEntries + 1);
}

TEST_P(AuditHeadTest, onlyAnExportedHeadShowsThatTheEndWasCutOff) {
  const auto exported = head();
  truncateTo(kEntries - 2);
  EXPECT_TRUE(verifyAudit(*open(), "")->ok()) << "the chain alone cannot show it";
  EXPECT_EQ(status(exported), HeadStatus::Truncated);
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(open()->addEvent(
        Event{0, WallTime{}, EventKind::Note, {}, "", "invented " + std::to_string(i), -1}));
  EXPECT_TRUE(verifyAudit(*open(), "")->ok());
  EXPECT_EQ(status(exported), HeadStatus::Rewritten)
      << "other entries in the place of those that were cut off";
}

TEST_P(AuditHeadTest, theStoresOwnCopyShowsACarelessCut) {
  ASSERT_TRUE(keepHead(*open(), head()));
  ASSERT_THAT(*keptHead(*open()), ElementsAre(head()));
  truncateTo(kEntries - 1);
  EXPECT_EQ(status(keptHead(*open())->front()), HeadStatus::Truncated);
  database_->execute("DELETE FROM vals WHERE key = 'audit.head'");
  EXPECT_THAT(*keptHead(*open()), IsEmpty()) << "and none that was made with care";
}

TEST_P(AuditHeadTest, aForgedHeadIsNotBelieved) {
  const auto good = head();
  auto moved = good;
  moved.sequence = kEntries - 2;
  EXPECT_EQ(status(moved), HeadStatus::Forged);
  auto later = good;
  later.at += std::chrono::hours(1);
  EXPECT_EQ(status(later), HeadStatus::Forged);
  auto other_hash = good;
  other_hash.hash[0] = other_hash.hash[0] == 'a' ? 'b' : 'a';
  EXPECT_EQ(status(other_hash), HeadStatus::Forged);
  auto other_key = key_;
  key_ = *io::SigningKey::generate();
  EXPECT_EQ(status(good), HeadStatus::OtherKey);
  auto renamed = head();
  renamed.key_id = other_key.id();
  const auto both = checkHeads(*open(), {renamed}, key_.public_pem + other_key.public_pem);
  EXPECT_EQ(both->front().status, HeadStatus::Forged) << "signed by one key, named after the other";
  EXPECT_EQ(checkHeads(*open(), {good}, key_.public_pem + other_key.public_pem)->front().status,
            HeadStatus::Holds)
      << "both count while a key is rotated";
}

TEST(AuditHeadText, isReadBackOutOfALog) {
  const auto key = *io::SigningKey::generate();
  const AuditHead head{412, std::string(64, 'a'),
                       WallTime(std::chrono::milliseconds(1'700'000'000'123)), key.id(), "c2ln"};
  const AuditHead empty{0, "", WallTime(std::chrono::milliseconds(1'700'000'000'123)), key.id(),
                        "c2ln"};
  const auto text = "Nov 24 12:00:00 ctl1 muster[12]: " + toText(head) +
                    "\r\nanother line\n2026-01-01 info audit: " + toText(empty);
  const auto read = parseHeads(text);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_THAT(*read, ElementsAre(head, empty));
  EXPECT_EQ(parseHeads("nothing of it\n").error().code(), ErrorCode::NotFound);
  const auto line = toText(head);
  for (const auto& damaged : {line.substr(0, line.size() - 16), line.substr(0, line.find(" hash")),
                              "muster-audit-head/1 sequence=-1" + line.substr(line.find(" hash")),
                              "muster-audit-head/1 sequence=0" + line.substr(line.find(" hash")),
                              "muster-audit-head/1 sequence=x" + line.substr(line.find(" hash"))}) {
    const auto refused = parseHeads("fine\n" + damaged);
    ASSERT_FALSE(refused) << damaged;
    EXPECT_EQ(refused.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(refused.error().text(), HasSubstr("line 2"));
  }
}

}  // namespace
}  // namespace muster::lifecycle
