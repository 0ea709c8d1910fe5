// SPDX-License-Identifier: Apache-2.0
// Old entries of the log move into a file, and the chain stays whole: in what is left, in the file,
// and from one to the other.
#include "lifecycle/audit/archive.h"

#include "base/io/files.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

namespace muster::lifecycle {
namespace {

using std::chrono::hours;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

class AuditArchiveTest : public testing::Test {
 protected:
  AuditArchiveTest() : store_(std::move(*openSqliteStore(folder_ / "muster.db"))) { say(1, 10); }
  /// An entry an hour, with progress between them.
  void say(int first, int last) {
    for (int i = first; i <= last; ++i) {
      ASSERT_TRUE(store_->addEvent(
          {0, kBegin + hours(i), EventKind::Note, {}, "", "entry " + std::to_string(i), -1}));
      ASSERT_TRUE(store_->addEvent(
          {0, kBegin + hours(i), EventKind::ActionProgress, {}, "a", "half way", 0.5}));
    }
  }
  Result<AuditArchive> archive(int before_hour, const char* file = "log.jsonl") {
    return archiveAudit(*store_, kBegin + hours(before_hour), folder_ / file);
  }
  std::string text(const char* file = "log.jsonl") {
    return *io::readFile(folder_ / file, 1u << 20);
  }
  void write(const std::string& text, const char* file = "log.jsonl") {
    ASSERT_TRUE(io::writeFileAtomic(folder_ / file, text));
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, what.size(), by);
  }

  test::TempFolder folder_;
  std::unique_ptr<Store> store_;
};

/// A FIFO without a writer and a device without an end would hold the reader up for ever.
TEST_F(AuditArchiveTest, whatIsNoRegularFileIsNeitherReadNorWritten) {
  const auto fifo = folder_ / "log.jsonl";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto refused = archive(7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(refused.error().text(), HasSubstr("is a FIFO"));
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_EQ(verifyAudit(*store_, "")->entries, 10) << "nothing was moved";
  EXPECT_EQ(readArchive(fifo).error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(readArchive("/dev/zero").error().code(), ErrorCode::InvalidInput);
}

TEST_F(AuditArchiveTest, whatIsNoArchiveIsToldSo) {
  for (const char* other : {"root:$6$hash:1:2", "", "{}", "[]", "7",
                            "{\"format\":\"muster-audit/1\",\"after\":7}", "{\"format\":7}"}) {
    SCOPED_TRACE(other);
    write(std::string(other) + "\n");
    const auto read = readArchive(folder_ / "log.jsonl");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(read.error().text(), testing::Not(HasSubstr("json.exception")));
    EXPECT_THAT(read.error().text(), testing::Not(HasSubstr("hash")));
  }
}

TEST_F(AuditArchiveTest, theFileAndWhatIsLeftProveEachOther) {
  const auto before = verifyAudit(*store_, "")->ends;
  const auto moved = archive(7);
  ASSERT_TRUE(moved) << moved.error().str();
  EXPECT_EQ(moved->entries, 6);
  EXPECT_EQ(moved->end.link, 6);
  const auto left = verifyAudit(*store_, "");
  EXPECT_THAT(left->problems, IsEmpty());
  EXPECT_EQ(left->entries, 4);
  EXPECT_EQ(left->ends.hash, before.hash)
      << "the newest hash, that somebody may have noted, is the same";
  EXPECT_EQ(left->ends.archived, moved->end);
  const auto read = readArchive(folder_ / "log.jsonl");
  ASSERT_TRUE(read);
  EXPECT_THAT(read->problems, IsEmpty());
  EXPECT_EQ(read->end, left->ends.archived);
  EXPECT_EQ(store_->events(0, 100, nullptr)->size(), 9u)
      << "four entries, and the progress since the last that left";
  say(11, 11);
  EXPECT_THAT(verifyAudit(*store_, moved->end.hash)->problems, IsEmpty()) << "and it goes on";
  EXPECT_TRUE(verifyAudit(*store_, moved->end.hash)->has_expected);
}

TEST_F(AuditArchiveTest, oneArchiveFollowsFromTheOther) {
  const auto first = archive(4, "a.jsonl");
  const auto second = archive(8, "b.jsonl");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->after, first->end);
  EXPECT_TRUE(readArchive(folder_ / "b.jsonl")->ok());
  EXPECT_THAT(verifyAudit(*store_, "")->problems, IsEmpty());
  store_ = std::move(*openSqliteStore(folder_ / "muster.db"));
  EXPECT_THAT(verifyAudit(*store_, "")->problems, IsEmpty()) << "also after a restart";
  EXPECT_EQ(archive(8, "c.jsonl").error().code(), ErrorCode::NotFound) << "nothing so old is left";
}

TEST_F(AuditArchiveTest, aBrokenChainIsNotMoved) {
  auto data = std::make_shared<test::MemoryStore::Data>();
  test::MemoryStore store(data);
  for (int i = 1; i <= 6; ++i)
    ASSERT_TRUE(store.addEvent({0, kBegin + hours(i), EventKind::Note, {}, "", "entry", -1}));
  data->log[4].event.text = "another";
  const auto refused = archiveAudit(store, kBegin + hours(3), folder_ / "log.jsonl");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(),
              HasSubstr("the chain is broken, so nothing is moved: entry #5"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "log.jsonl"));
  EXPECT_EQ(data->log.size(), 6u);
}

TEST_F(AuditArchiveTest, anArchiveThatWasTamperedWithSaysWhere) {
  ASSERT_TRUE(archive(7));
  const auto good = text();
  write(replaced(good, "entry 3", "entry three"));
  EXPECT_THAT(readArchive(folder_ / "log.jsonl")->problems,
              ElementsAre(HasSubstr("line 4 (link 3")));
  const auto third = good.find("\"entry 3\""), begin = good.rfind('\n', third) + 1,
             end = good.find('\n', third) + 1;
  write(good.substr(0, begin) + good.substr(end));
  EXPECT_THAT(
      readArchive(folder_ / "log.jsonl")->problems,
      ElementsAre(HasSubstr("does not follow from link 2"), HasSubstr("some were removed")));
  write(good.substr(0, good.rfind("{\"end\"")));
  EXPECT_EQ(readArchive(folder_ / "log.jsonl").error().code(), ErrorCode::Corrupt) << "cut off";
  write(good + good.substr(begin, end - begin));
  EXPECT_EQ(readArchive(folder_ / "log.jsonl").error().code(), ErrorCode::Corrupt)
      << "something follows the end";
  write("hello\n");
  EXPECT_EQ(readArchive(folder_ / "log.jsonl").error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(readArchive(folder_ / "nowhere").error().code(), ErrorCode::NotFound);
}

TEST_F(AuditArchiveTest, killedBetweenTheFileAndTheStoreItGoesOnWithTheSameCommand) {
  for (const bool lost : {true, false}) {
    const auto before = verifyAudit(*store_, "")->entries;
    const std::string file = lost ? "a.jsonl" : "b.jsonl";
    test::CrashStore dying(*store_, 0, lost);
    EXPECT_THROW((void)archiveAudit(dying, kBegin + hours(lost ? 4 : 7), folder_ / file),
                 test::Crash);
    EXPECT_EQ(verifyAudit(*store_, "")->entries, lost ? before : before - 3)
        << "what the store has let go of is in the file";
    const auto written = text(file.c_str());
    const auto again = archive(9, file.c_str());
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(text(file.c_str()), written) << "the file is as it was";
    EXPECT_EQ(again->entries, 3);
    EXPECT_EQ(verifyAudit(*store_, "")->entries, before - 3);
    EXPECT_THAT(verifyAudit(*store_, "")->problems, IsEmpty());
  }
  EXPECT_EQ(readArchive(folder_ / "b.jsonl")->after, readArchive(folder_ / "a.jsonl")->end);
}

TEST_F(AuditArchiveTest, aFullStoreIsToldWithWhatTheFileHas) {
  const auto before = verifyAudit(*store_, "")->entries;
  test::CrashStore full(*store_, test::CrashStore::kNever, false);
  full.full_from = 0;
  const auto refused = archiveAudit(full, kBegin + hours(4), folder_ / "log.jsonl");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), AllOf(HasSubstr("log.jsonl is whole"),
                                           HasSubstr("its 3 entries are still in the store")));
  EXPECT_EQ(verifyAudit(*store_, "")->entries, before);
  EXPECT_TRUE(archiveAudit(*store_, kBegin + hours(4), folder_ / "log.jsonl"));
  EXPECT_EQ(verifyAudit(*store_, "")->entries, before - 3);
}

TEST_F(AuditArchiveTest, anotherFileIsNeverWrittenOver) {
  write("somebody's\n");
  EXPECT_EQ(archive(7).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(text(), "somebody's\n");
  EXPECT_EQ(verifyAudit(*store_, "")->entries, 10);
  EXPECT_FALSE(archive(7, "no/such/folder"));
  EXPECT_EQ(verifyAudit(*store_, "")->entries, 10);
}

}  // namespace
}  // namespace muster::lifecycle
