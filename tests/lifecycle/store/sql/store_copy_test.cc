// SPDX-License-Identifier: Apache-2.0
// Copies of a store: beside a process that writes, and put back, in SQLite and in PostgreSQL.
#include "lifecycle/store/store_copy.h"

#include "lifecycle/audit/audit.h"
#include "lifecycle/store/leader_lease.h"
#include "lifecycle/store/runs.h"
#include "lifecycle/store/store.h"
#include "tests/lifecycle/postgres_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace muster::lifecycle {
namespace {

using namespace std::chrono_literals;
using test::postgresServer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Subject node(const char* name) { return Subject(NodeName(name)); }
Event note(const std::string& text) {
  return {0, SystemClock().now(), EventKind::Note, node("n1"), "", text};
}

/// Writes until it is killed: an event and a fact in one group, so that a copy has both or none.
[[noreturn]] void writeForEver(const std::string& url) {
  auto store = openStore(url);
  if (!store) ::_exit(1);
  for (int i = 1;; ++i) {
    (*store)->together({[&] {
      return (*store)->addEvent(note(fmt::format("{}", i))).has_value() &&
             (*store)->putValue("written", fmt::format("{}", i)).has_value();
    }});
    // No muster writes without a pause, and on a busy machine one that did would let nobody else
    // in.
    std::this_thread::sleep_for(1ms);
  }
}

class StoreCopy : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) {
      url_ = "sqlite:" + (folder_ / "muster.db").string();
      return;
    }
    if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
    url_ = postgresServer().createDatabase();
  }
  std::unique_ptr<Store> open(const std::string& url) {
    auto store = openStore(url);
    EXPECT_TRUE(store) << store.error().str();
    return store ? std::move(*store) : nullptr;
  }
  /// The copy as a store of its own. Answers its URL.
  std::string putBack(const std::filesystem::path& copy) {
    if (!GetParam()) {
      const auto done = makeRestored(copy, "given up");
      EXPECT_TRUE(done) << done.error().str();
      return "sqlite:" + copy.string();
    }
    const auto url = postgresServer().createDatabase();
    const auto done = restorePostgres(url, copy, knownSchema(), "it's given up");
    EXPECT_TRUE(done) << done.error().str();
    return url;
  }
  test::TempFolder folder_;
  std::string url_;
};

TEST_P(StoreCopy, isOfOneMomentBesideAProcessThatWrites) {
  open(url_)->putValue("written", "0");
  const pid_t writer = ::fork();
  if (writer == 0) writeForEver(url_);
  std::int64_t last = -1;
  for (int i = 0; i < 5; ++i) {
    // Until it has gone on: a copy of a store that stands still would prove nothing.
    std::string before = fmt::format("{}", last);
    for (int tries = 0; tries < 2000 && std::stoll(before) <= last; ++tries)
      before = open(url_)->getValue("written").value_or("0").value_or("0");
    const auto copy = folder_ / fmt::format("copy-{}", i);
    const auto schema = copyStore(url_, copy);
    ASSERT_TRUE(schema) << schema.error().str();
    EXPECT_EQ(*schema, knownSchema());
    auto store = open(putBack(copy));
    const auto audit = verifyAudit(*store, "");
    ASSERT_TRUE(audit) << audit.error().str();
    EXPECT_TRUE(audit->ok());
    const auto written = std::stoll(store->getValue("written").value_or("?").value_or("?"));
    EXPECT_EQ(audit->entries, written) << "events and value of one moment";
    EXPECT_GT(written, last);
    last = written;
  }
  ::kill(writer, SIGKILL);
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer was never refused";
}

TEST_P(StoreCopy, actsOnNothingOfThen) {
  {
    auto store = open(url_);
    ASSERT_TRUE(store->signOn("old", 1h));
    const auto claim = store->claim(node("n1"));
    ASSERT_TRUE(claim && claim->ours);
    Intent intent;
    intent.id = "i1";
    intent.action.id = "n1/image";
    intent.action.facet = {node("n1"), FacetName("image")};
    ASSERT_TRUE(store->openIntent(intent));
    ASSERT_TRUE(store->grantWipe(NodeName("n1"), "x", SystemClock().now()));
    SystemClock clock;
    LeaderLease lease(*store, clock, "old", "10.20.0.1");
    ASSERT_TRUE(lease.take());
    ASSERT_TRUE(store->addEvent(note("before")));
    auto runs = openRuns(url_);
    ASSERT_TRUE(runs);
    lifecycle::Run run;
    run.id = "r-0123456789";
    run.asked_by = {"anna", "local", "host"};
    run.asked_at = SystemClock().now();
    const auto added = (*runs)->add(run, "asked for");
    ASSERT_TRUE(added) << added.error().str();
  }
  const auto copy = folder_ / "copy";
  ASSERT_TRUE(copyStore(url_, copy));
  auto before = open(url_);
  const auto restored = putBack(copy);
  auto after = open(restored);
  auto runs = openRuns(restored);
  ASSERT_TRUE(runs);
  EXPECT_THAT(*(*runs)->list({.open_only = true}), IsEmpty());
  const auto run = (*runs)->read("r-0123456789");
  ASSERT_TRUE(run && *run);
  EXPECT_EQ((*run)->state, RunState::Cancelled);
  EXPECT_EQ((*run)->unreadable, "");
  EXPECT_THAT((*run)->text, HasSubstr("given up"));
  EXPECT_THAT(*after->openIntents(), IsEmpty());
  EXPECT_THAT(*after->wipeGrants(), IsEmpty());
  ASSERT_TRUE(after->signOn("new", 1h));
  const auto claim = after->claim(node("n1"));
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->ours);
  EXPECT_GT(claim->token, kRaisedBy);
  const auto old_term = currentLeader(*before), new_term = currentLeader(*after);
  ASSERT_TRUE(old_term && *old_term && new_term && *new_term);
  EXPECT_EQ((*new_term)->term, (*old_term)->term + kRaisedBy);
  ASSERT_TRUE(after->addEvent(note("after")));
  const auto audit = verifyAudit(*after, "");
  EXPECT_TRUE(audit && audit->ok()) << "the chain goes on";
}

TEST_P(StoreCopy, examinationReadsAllAndMigratesNothing) {
  open(url_)->putValue("a", "b");
  const auto examined = examineStore(url_);
  ASSERT_TRUE(examined) << examined.error().str();
  EXPECT_EQ(examined->schema, knownSchema());
  EXPECT_THAT(examined->problems, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreCopy, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "postgresql" : "sqlite"; });

TEST(StoreCopyPostgres, goesIntoAnEmptyDatabaseOnly) {
  if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
  const auto url = postgresServer().createDatabase(), other = postgresServer().createDatabase();
  const test::TempFolder folder;
  ASSERT_TRUE(openStore(url));
  ASSERT_TRUE(copyStore(url, folder / "copy"));
  ASSERT_TRUE(openStore(other));
  const auto refused = restorePostgres(other, folder / "copy", knownSchema(), "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_FALSE(restorePostgres(postgresServer().createDatabase(), "/dev/null", knownSchema(), "x"));
}

TEST(StoreCopySqlite, namesWhatIsThereAndWhatIsNot) {
  const test::TempFolder folder;
  const auto missing = copyStore("sqlite:" + (folder / "none.db").string(), folder / "copy");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(std::filesystem::exists(folder / "none.db")) << "nothing is made";
  // A page in the middle is another's: the check that reads all sees it.
  const auto file = folder / "muster.db";
  const auto url = "sqlite:" + file.string();
  {
    auto store = openStore(url);
    ASSERT_TRUE(store);
    for (int i = 0; i < 400; ++i) ASSERT_TRUE((*store)->addEvent(note(std::string(200, 'x'))));
  }
  auto bytes = io::readFile(file);
  ASSERT_TRUE(bytes);
  const std::size_t page = 4096;
  ASSERT_GT(bytes->size(), 12 * page);
  for (std::size_t at = 8 * page; at < 10 * page; ++at) (*bytes)[at] = static_cast<char>(0x5a);
  ASSERT_TRUE(io::writeFileAtomic(file, *bytes, 0600));
  const auto examined = examineStore(url);
  EXPECT_TRUE(!examined || !examined->problems.empty());
}

}  // namespace
}  // namespace muster::lifecycle
