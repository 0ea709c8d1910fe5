// SPDX-License-Identifier: Apache-2.0
// What a command writes never takes the place of muster's own files, nor of a person's.
#include "app/site/output_file.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::app {
namespace {

using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    options_.state = folder_ / "state";
    options_.inventory = folder_ / "cluster.yaml";
    write("state/muster.db", "SQLite format 3");
    write("state/keys/signing.pem", "-----BEGIN");
    write("state/certificates/gpu001.json", "{}");
    write("cluster.yaml", "cluster: {name: a}");
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((folder_ / name).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / name, text));
  }
  std::string text(const std::string& name) { return *io::readFile(folder_ / name); }
  void expectRefused(const std::string& name, const std::string& why) {
    std::error_code error;
    const bool was_there = std::filesystem::exists(folder_ / name, error);
    const auto before = was_there ? text(name) : "";
    const auto refused = writeOutputFile(options_, folder_ / name, "{\"plan\": 1}");
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
    EXPECT_THAT(refused.error().text(), HasSubstr(why));
    EXPECT_EQ(std::filesystem::exists(folder_ / name, error), was_there);
    if (was_there) EXPECT_EQ(text(name), before);
  }
  test::TempFolder folder_;
  Options options_;
};

TEST_F(OutputFileTest, filesOfTheStateFolderStayAsTheyAre) {
  for (const auto* name :
       {"state/muster.db", "state/keys/signing.pem", "state/certificates/gpu001.json",
        "state/new.json", "state/../state/muster.db"})
    expectRefused(name, "state folder");
  std::filesystem::create_symlink(folder_ / "state", folder_ / "link");
  expectRefused("link/muster.db", "state folder");
  std::filesystem::create_symlink(folder_ / "state/muster.db", folder_ / "plan.json");
  expectRefused("plan.json", "state folder");
}

TEST_F(OutputFileTest, theInventoryAndOtherKindsOfFilesStayAsTheyAre) {
  write("racks.csv", "name,mac\n");
  expectRefused("cluster.yaml", "is the inventory");
  expectRefused("racks.csv", "no earlier output");
}

TEST_F(OutputFileTest, anEarlierOutputAndAnEmptyFileAreReplaced) {
  write("plan.json", "{\"plan\": 0}");
  write("empty", "");
  for (const auto* name : {"plan.json", "empty", "new.json", "stateful.json"}) {
    const auto written = writeOutputFile(options_, folder_ / name, "{\"plan\": 1}");
    EXPECT_TRUE(written) << written.error().str();
    EXPECT_EQ(text(name), "{\"plan\": 1}");
  }
}

}  // namespace
}  // namespace muster::app
