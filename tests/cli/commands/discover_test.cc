// SPDX-License-Identifier: Apache-2.0
// muster discover as an operator meets it: the real program, its store, its inventory file.
#include "tests/cli/muster_folder.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DiscoverCliTest : public ::testing::Test {
 protected:
  DiscoverCliTest() {
    std::string text(MusterFolder::kInventory);
    text += "  - {names: \"gpu[003-004]\", profile: gpu-node, from: racks.csv}\n";
    folder_.write("cluster.yaml", text);
    folder_.write("racks.csv", "# ours\nname,rack,unit,mac,address,bmc,serial\n");
  }
  MusterFolder folder_;
};

TEST_F(DiscoverCliTest, nothingSeenYetSaysWhatToDo) {
  const auto listed = folder_.muster({"discover"});
  EXPECT_EQ(listed.code, kOk) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("muster discover scan"));
  EXPECT_EQ(json::parse(folder_.muster({"discover", "--json"}).out)["machines"].size(), 0u);
}

TEST_F(DiscoverCliTest, nodesThatAreNamedWithoutARowStopEverythingElseButNotDiscovery) {
  const auto checked = folder_.muster({"inventory", "check"});
  EXPECT_EQ(checked.code, kFailed);
  EXPECT_THAT(checked.out, HasSubstr("2 of 2 nodes have no row"));
}

TEST_F(DiscoverCliTest, wrongWordsSayWhatIsWrong) {
  EXPECT_THAT(folder_.muster({"discover", "scan"}).err, HasSubstr("discovery.ranges"));
  EXPECT_THAT(folder_.muster({"discover", "scan", "10.0.0.9-10.0.0.1"}).err,
              HasSubstr("backwards"));
  EXPECT_THAT(folder_.muster({"discover", "approve"}).err, HasSubstr("--match"));
  EXPECT_THAT(folder_.muster({"discover", "approve", "--match", "colour=blue"}).err,
              HasSubstr("fields: vendor"));
  EXPECT_THAT(folder_.muster({"discover", "approve", "SN-1"}).err,
              HasSubstr("no machine \"SN-1\" was seen"));
  EXPECT_THAT(folder_.muster({"discover", "--write", "other.csv"}).err,
              HasSubstr("no entry of nodes reads"));
  EXPECT_THAT(folder_.muster({"discover", "--adopt", "list.csv"}).err, HasSubstr("--write"));
  EXPECT_EQ(folder_.muster({"discover", "scan", "10.0.0.1", "--port", "0"}).code, kUsage);
  folder_.write("list.csv", "serial,colour\nSN-1,blue\n");
  EXPECT_THAT(folder_.muster({"discover", "--write", "racks.csv", "--adopt", "list.csv"}).err,
              AllOf(HasSubstr("list.csv:1:8"), HasSubstr("colour")));
}

TEST_F(DiscoverCliTest, aScanOfLoopbackWithNobodyThereFindsNobody) {
  const auto scanned = folder_.muster({"discover", "scan", "127.99.0.1-127.99.0.3", "--port", "9"});
  EXPECT_EQ(scanned.code, kOk) << scanned.err;
  EXPECT_THAT(scanned.out, HasSubstr("3 addresses asked, 0 Redfish services"));
}

TEST_F(DiscoverCliTest, aBrokenInventoryIsSaidAndNothingIsDone) {
  folder_.write("cluster.yaml", "cluster: {name: x}\n");
  EXPECT_EQ(folder_.muster({"discover"}).code, kFailed);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state"));
}

}  // namespace
}  // namespace muster::test
