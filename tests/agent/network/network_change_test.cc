// SPDX-License-Identifier: Apache-2.0
// What a change of the network keeps, and who may still decide on it.
#include "agent/network/network_change.h"

#include "agent/network/network_files.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/agent/network/networks.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class NetworkChangeTest : public testing::Test {
 protected:
  std::string read(const std::string& file) {
    return io::readFile(folder_ / file).value_or("none");
  }
  /// The script, as systemd would start it; it restarts nothing before the network is up.
  bool back() {
    io::Command command{.program = "sh", .args = {(folder_ / kNetworkBack).string(), "boot"}};
    command.env["MUSTER_ROOT"] = folder_.path().string();
    const auto done = io::runBlocking(command);
    return done && done->code == 0;
  }
  static wire::NodeNetwork changed() {
    auto next = sampleNodeNetwork();
    next.links.back().vlan_id = 31;
    return next;
  }
  test::TempFolder folder_;
};

TEST_F(NetworkChangeTest, linksOnOthersGoFirstAndOnlyThoseThatDiffer) {
  const auto sample = sampleNodeNetwork();
  EXPECT_THAT(linksToDelete(sample, sample), IsEmpty());
  EXPECT_THAT(linksToDelete(sample, changed()), ElementsAre("stor"));
  auto rebonded = sample;
  for (auto& link : rebonded.links)
    if (link.name == "bond0") link.bond.mode = wire::BondMode::ActiveBackup;
  EXPECT_THAT(linksToDelete(sample, rebonded), ElementsAre("stor", "bond0"))
      << "what lies on a bond that is made anew goes with it";
  EXPECT_THAT(linksToDelete(sample, wire::NodeNetwork()), ElementsAre("stor", "bond1", "bond0"));
  auto readdressed = sample;
  readdressed.links.back().addresses.clear();
  EXPECT_THAT(linksToDelete(sample, readdressed), IsEmpty()) << "networkd does that itself";
}

TEST_F(NetworkChangeTest, theScriptBringsBackEveryFileAndOnlyThose) {
  ASSERT_TRUE(putNetwork(folder_.path(), sampleNodeNetwork()));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "etc/systemd/network/80-other.network", "other"));
  const auto before = read("etc/systemd/network/10-muster-stor.netdev");
  ASSERT_TRUE(beginNetworkChange(folder_.path(), sampleNodeNetwork(), changed()));
  EXPECT_TRUE(isNetworkChangePending(folder_.path()));
  EXPECT_EQ(read("etc/systemd/network/10-muster-stor.netdev"), before) << "nothing is changed yet";
  auto next = changed();
  next.links.back().name = "more";
  ASSERT_TRUE(putNetwork(folder_.path(), next));
  ASSERT_TRUE(io::writeFileAtomic(folder_.path() / kNetworkChange / "new",
                                  "etc/systemd/network/10-muster-more.netdev\n"
                                  "etc/systemd/network/10-muster-more.network\n"));
  ASSERT_TRUE(back());
  EXPECT_EQ(read("etc/systemd/network/10-muster-stor.netdev"), before);
  EXPECT_EQ(read("etc/systemd/network/10-muster-more.network"), "none");
  EXPECT_EQ(read("etc/systemd/network/80-other.network"), "other");
  EXPECT_EQ(*givenNetwork(folder_.path()), sampleNodeNetwork());
  EXPECT_EQ(changedNetworkFile(folder_.path(), sampleNodeNetwork()), "");
  EXPECT_FALSE(isNetworkChangePending(folder_.path()));
  EXPECT_TRUE(back()) << "a second run has nothing to do";
}

TEST_F(NetworkChangeTest, aSystemThatHadNoNetworkOfItsOwnHasNoneAgain) {
  const std::string file = "etc/systemd/network/10-muster-provisioning.network";
  ASSERT_TRUE(io::makeDirs((folder_ / file).parent_path()));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / file, "[Match]\n"));
  ASSERT_TRUE(beginNetworkChange(folder_.path(), std::nullopt, sampleNodeNetwork()));
  ASSERT_TRUE(putNetwork(folder_.path(), sampleNodeNetwork()));
  EXPECT_EQ(read(file), "none");
  ASSERT_TRUE(back());
  EXPECT_EQ(read(file), "[Match]\n");
  EXPECT_FALSE(givenNetwork(folder_.path()));
  EXPECT_THAT(ownNetworkFiles(folder_.path()), ElementsAre(file));
}

TEST_F(NetworkChangeTest, whoRenamesTheMarkFirstDecides) {
  ASSERT_TRUE(putNetwork(folder_.path(), sampleNodeNetwork()));
  ASSERT_TRUE(beginNetworkChange(folder_.path(), sampleNodeNetwork(), changed()));
  EXPECT_EQ(beginNetworkChange(folder_.path(), sampleNodeNetwork(), changed()).error().code(),
            ErrorCode::Conflict);
  ASSERT_TRUE(putNetwork(folder_.path(), changed()));
  ASSERT_TRUE(confirmNetworkChange(folder_.path()));
  ASSERT_TRUE(back());
  EXPECT_EQ(*givenNetwork(folder_.path()), changed()) << "it was confirmed";
  ASSERT_TRUE(beginNetworkChange(folder_.path(), changed(), sampleNodeNetwork()));
  ASSERT_TRUE(back());
  EXPECT_EQ(confirmNetworkChange(folder_.path()).error().code(), ErrorCode::Conflict);
}

/// Killed between its first and its last step.
TEST_F(NetworkChangeTest, aScriptThatWasKilledGoesOn) {
  ASSERT_TRUE(putNetwork(folder_.path(), sampleNodeNetwork()));
  ASSERT_TRUE(beginNetworkChange(folder_.path(), sampleNodeNetwork(), changed()));
  ASSERT_TRUE(putNetwork(folder_.path(), changed()));
  const auto change = folder_.path() / kNetworkChange;
  std::filesystem::rename(change / "pending", change / "taking");
  std::filesystem::remove(folder_ / "etc/systemd/network/10-muster-stor.netdev");
  EXPECT_TRUE(isNetworkChangePending(folder_.path()));
  EXPECT_FALSE(confirmNetworkChange(folder_.path()));
  ASSERT_TRUE(back());
  EXPECT_EQ(*givenNetwork(folder_.path()), sampleNodeNetwork());
  EXPECT_EQ(changedNetworkFile(folder_.path(), sampleNodeNetwork()), "");
}

TEST_F(NetworkChangeTest, systemdTakesTheUnit) {
  ASSERT_TRUE(beginNetworkChange(folder_.path(), std::nullopt, sampleNodeNetwork()));
  const auto done = io::runBlocking(
      {.program = "systemd-analyze", .args = {"verify", (folder_ / kNetworkBackUnit).string()}});
  if (!done) GTEST_SKIP() << done.error().str();
  EXPECT_EQ(done->code, 0) << done->err;
  EXPECT_EQ(done->err.find("muster-network-back"), std::string::npos) << done->err;
}

}  // namespace
}  // namespace muster::agent
