// SPDX-License-Identifier: Apache-2.0
#include "provision/images/ramos_cache.h"

#include "base/io/files.h"
#include "inventory/model/images.h"
#include "provision/images/image_store.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

class RamOsCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::makeDirs(folder_ / "cache/ramos"));
    writeFile("agent", "#!/bin/sh\n");
    writeFile("lib.so", "a library");
  }
  ImageStoreOptions options() const {
    return {folder_ / "cache", folder_ / "agent", *io::SigningKey::generate(), ram_os_};
  }
  void writeFile(const std::string& name, const std::string& content) {
    ASSERT_TRUE(io::writeFileAtomic(folder_ / name, content, 0755));
  }
  /// Asks as a process that has just begun, and counts whether it had to work the answer out. What
  /// was written by the test has been there for `settled`.
  std::string askedAnew(std::chrono::seconds settled = std::chrono::hours(1)) {
    RamOsCache cache(
        options(), Architecture::Amd64,
        [this](const fs::path& agent) -> Result<std::vector<AgentFile>> {
          ++worked_out_;
          return std::vector<AgentFile>{
              {agent, "usr/lib/muster/muster-agent", false, {}},
              {folder_ / "lib.so", "usr/lib/muster/lib.so", false, {}},
              {{}, "usr/lib/muster/ld.so", false, "glibc/ld-linux-x86-64.so.2"}};
        },
        std::chrono::steady_clock::now,
        [settled] { return std::chrono::system_clock::now() + settled; });
    const auto answer = cache.present();
    EXPECT_TRUE(answer) << answer.error().str();
    return answer ? answer->agent_initrd.string() : "";
  }
  std::vector<fs::path> records() {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(folder_ / "cache/ramos"))
      found.push_back(file.path());
    return found;
  }

  test::TempFolder folder_;
  int worked_out_ = 0;
  inventory::RamOsSpec ram_os_;
};

/// What is asked for costs the control thread neither ldd nor a digest, however often and whatever
/// it is.
TEST_F(RamOsCacheTest, whoAsksMakesNobodyReadTheAgentAgain) {
  int worked_out = 0;
  auto now = std::chrono::steady_clock::now();
  RamOsCache cache(
      options(), Architecture::Amd64,
      [&worked_out](const std::filesystem::path& agent) {
        ++worked_out;
        return agentFiles(agent);
      },
      [&now] { return now; });
  EXPECT_FALSE(cache.isKnown());
  const auto first = cache.present();
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_TRUE(cache.isKnown());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(cache.present()->agent_initrd, first->agent_initrd);
  EXPECT_EQ(worked_out, 1);
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent", "#!/bin/sh\n# newer\n", 0755));
  now += RamOsCache::kLookInterval;  // the files are looked at again after this
  EXPECT_FALSE(cache.isKnown());
  const auto newer = cache.present();
  ASSERT_TRUE(newer);
  EXPECT_NE(newer->agent_initrd, first->agent_initrd);
  EXPECT_EQ(worked_out, 2);
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "muster-peer", "#!/bin/sh\n", 0755));
  now += RamOsCache::kLookInterval;
  EXPECT_FALSE(cache.isKnown()) << "a program that came belongs to it";
}

TEST_F(RamOsCacheTest, theNextProcessReadsNothingUntilAFileHasChanged) {
  const auto first = askedAnew();
  EXPECT_EQ(askedAnew(), first);
  EXPECT_EQ(worked_out_, 1);
  writeFile("lib.so", "a newer library");
  const auto newer = askedAnew();
  EXPECT_NE(newer, first);
  EXPECT_EQ(worked_out_, 2);
  EXPECT_EQ(askedAnew(), newer);
  writeFile("muster-peer", "#!/bin/sh\n");  // a program that came belongs to it
  (void)askedAnew();
  EXPECT_EQ(worked_out_, 3);
}

TEST_F(RamOsCacheTest, whatHasJustBeenWrittenIsNotRecorded) {
  (void)askedAnew(std::chrono::seconds(0));
  EXPECT_THAT(records(), IsEmpty());
  (void)askedAnew(RamOsCache::kSettled + std::chrono::seconds(2));
  EXPECT_THAT(records(), SizeIs(1));
}

TEST_F(RamOsCacheTest, aRecordThatIsNoneIsWorkedOutAgain) {
  const auto first = askedAnew();
  ASSERT_THAT(records(), SizeIs(1));
  const auto file = records().front();
  const auto good = *io::readFile(file);
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string(R"({"digest": 5, "state": [], "sources": {}})"),
        good.substr(0, good.size() / 2), std::string(200'000, '[')}) {
    ASSERT_TRUE(io::writeFileAtomic(file, text));
    const int before = worked_out_;
    EXPECT_EQ(askedAnew(), first) << text.substr(0, 60);
    EXPECT_EQ(worked_out_, before + 1) << text.substr(0, 60);
  }
  auto record = json::parse(good);
  for (const std::string& digest :
       {std::string("../../etc"), std::string(64, 'g'), std::string()}) {
    record["digest"] = digest;
    ASSERT_TRUE(io::writeFileAtomic(file, record.dump()));
    EXPECT_EQ(askedAnew(), first) << "no path is made of " << digest;
  }
}

TEST_F(RamOsCacheTest, aRecordOfAnotherUserIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "gives a file away";
  (void)askedAnew();
  ASSERT_THAT(records(), SizeIs(1));
  ASSERT_EQ(::chown(records().front().c_str(), 65534, 65534), 0);
  (void)askedAnew();
  EXPECT_EQ(worked_out_, 2);
  struct stat info{};
  ASSERT_EQ(::stat(records().front().c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0u) << "it is written anew";
}

TEST_F(RamOsCacheTest, whoCannotWriteAnswersToo) {
  fs::remove_all(folder_ / "cache/ramos");
  EXPECT_NE(askedAnew(), "");
  EXPECT_FALSE(fs::exists(folder_ / "cache/ramos")) << "a look makes no folder";
}

}  // namespace
}  // namespace muster::provision
