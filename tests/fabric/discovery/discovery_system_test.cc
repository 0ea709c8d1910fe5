// SPDX-License-Identifier: Apache-2.0
// One fabric looked at in both ways: through libibnetdisc, and by what ibnetdiscover prints.
#include "fabric/compare/switch_firmware.h"
#include "fabric/discovery/tools.h"
#include "fabric/fabric_diff.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/simulated_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using muster::test::runAsync;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kToolLimit{60};

std::string described(const Topology& topology) {
  std::string text;
  for (const auto& [name, device] : topology.devices) {
    text += fmt::format("{} {} {} ports {} guid {}\n", name, device.name, device.is_switch,
                        device.ports, device.guid);
    for (const auto& [port, address] : device.addresses)
      text += fmt::format("  [{}] {} lid {}\n", port, address.guid, address.lid);
  }
  for (const auto& link : topology.links)
    text += fmt::format("{} -- {} {}\n", toString(link.a), toString(link.b), link.width_speed);
  for (const auto& guid : topology.shared_guids) text += "shared " + guid + "\n";
  return text;
}

class BothTools : public ::testing::Test {
 protected:
  void start(const Topology& topology) {
    fabric_ = std::make_unique<SimulatedFabric>(topology);
    options_ = fabric_->options();
    tools_ = std::make_unique<Tools>(fabric_->processes(), options_);
  }
  static std::string looker() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-ibnetdisc";
  }
  void expectTheSame() {
    const auto direct = runAsync(tools_->discoverByLibrary(), kToolLimit),
               by_tool = runAsync(tools_->discoverByTool(), kToolLimit);
    ASSERT_TRUE(direct) << direct.error().str();
    ASSERT_TRUE(by_tool) << by_tool.error().str();
    EXPECT_EQ(described(*direct), described(*by_tool));
    EXPECT_GT(direct->links.size(), 0u);
  }

  inventory::Cluster cluster_ = railCluster(3);
  Topology declared_ = declared(cluster_);
  FabricOptions options_;
  std::unique_ptr<SimulatedFabric> fabric_;
  std::unique_ptr<Tools> tools_;
};

TEST_F(BothTools, findTheSameFabric) {
  auto real = declared_;
  findLink(real, {"gpu003 mlx5_1", 1})->width_speed = "1xHDR";
  findLink(real, {"gpu002 mlx5_0", 1})->width_speed = "4xEDR";
  findLink(real, {"gpu001 mlx5_0", 1})->width_speed = "4xQDR";
  start(real);
  expectTheSame();
  fabric_->unlink({"leaf-su1-r0", 9});
  fabric_->unlink({"gpu003 mlx5_0", 1});
  expectTheSame();
}

TEST_F(BothTools, findTheSameAddressesOnceASubnetManagerHasGivenThem) {
  start(declared_);
  muster::test::TempFolder folder;
  auto once = tools_->command("opensm", {"-o", "-d2", "-f", (folder / "log").string()});
  once.env["OSM_CACHE_DIR"] = once.env["OSM_TMP_DIR"] = folder.path().string();
  ASSERT_TRUE(runAsync(fabric_->processes().run(std::move(once)), kToolLimit));
  const auto direct = runAsync(tools_->discoverByLibrary(), kToolLimit);
  ASSERT_TRUE(direct) << direct.error().str();
  EXPECT_GT(direct->devices.at("gpu003 mlx5_1").addresses.at(1).lid, 0);
  EXPECT_GT(direct->devices.at("leaf-su1-r1").addresses.at(0).lid, 0);
  expectTheSame();
}

TEST_F(BothTools, callASwitchAsTheNameMapDoes) {
  start(declared_);
  const auto found = runAsync(tools_->discover(), kToolLimit);
  ASSERT_TRUE(found) << found.error().str();
  muster::test::TempFolder folder;
  const auto map = folder / "names";
  ASSERT_TRUE(
      io::writeFileAtomic(map, fmt::format("# rack 7\n{}\t\"leaf by its map\" # once unmanaged\n",
                                           found->devices.at("leaf-su1-r1").guid)));
  const auto namesOf = [&](std::string tool) {
    std::set<std::string> names;
    const auto exit = runAsync(fabric_->processes().run(tools_->command(
                                   std::move(tool), {"--node-name-map", map.string()})),
                               kToolLimit);
    const auto topology = exit ? parseIbnetdiscover(exit->out) : Result<Topology>(Topology{});
    EXPECT_TRUE(topology);
    for (const auto& [name, device] : topology.value_or(Topology{}).devices) names.insert(name);
    return names;
  };
  const auto names = namesOf(looker());
  EXPECT_EQ(names, namesOf("ibnetdiscover"));
  EXPECT_EQ(names.count("leaf by its map"), 1u);
}

TEST_F(BothTools, findTwoDevicesWithOneGuid) {
  start(declared_);
  const auto found = runAsync(tools_->discover(), kToolLimit);
  ASSERT_TRUE(found) << found.error().str();
  fabric_->say(fmt::format("Guid \"gpu003-mlx5_0\" {}", found->devices.at("gpu001 mlx5_0").guid));
  expectTheSame();
}

// A device that is up and silent is a line less for ibnetdiscover; here its cable stays, and says
// who should have answered.
TEST_F(BothTools, namesThePortBehindWhichNobodyAnswers) {
  start(declared_);
  fabric_->dropMads("gpu002 mlx5_1", 100);
  const auto direct = runAsync(tools_->discoverByLibrary(), kToolLimit);
  ASSERT_FALSE(direct);
  EXPECT_EQ(direct.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(direct.error().str(),
              AllOf(HasSubstr("leaf-su1-r1 (0x"),
                    HasSubstr("port 2 is up, and who is behind it did not answer")));
  const auto any = runAsync(tools_->discover(), kToolLimit);
  ASSERT_FALSE(any) << "ibnetdiscover must not be asked where the library has seen a gap";
  EXPECT_EQ(any.error().code(), ErrorCode::Unavailable);
  fabric_->dropMads("gpu002 mlx5_1", 0);
  expectTheSame();
}

// What is evaluated is the picture itself: with nothing on stderr it is refused as well.
TEST_F(BothTools, aPictureWithGapsIsNeverPrinted) {
  start(declared_);
  fabric_->dropMads("leaf-su1-r1", 30);
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    const auto exit =
        runAsync(fabric_->processes().run(tools_->command("sh", {"-c", looker() + " 2>/dev/null"})),
                 kToolLimit);
    ASSERT_TRUE(exit) << exit.error().str();
    refused += exit->code == 1;
    EXPECT_EQ(exit->code == 1, exit->out.empty()) << exit->out;
    if (exit->code == 0) {
      const auto found = parseIbnetdiscover(exit->out);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->links, declared_.links) << "complete by its own word";
    }
  }
  EXPECT_GT(refused, 0);
}

// The simulator's switches know no vendor MADs, as those of other makers: all are asked or given
// up, and none counts as right.
TEST_F(BothTools, aSwitchThatDoesNotTellItsFirmwareIsNotAsDeclared) {
  cluster_.fabrics["ib"].switch_firmware = "31.2012.1024";
  start(declared_);
  muster::test::TempFolder folder;
  auto once = tools_->command("opensm", {"-o", "-d2", "-f", (folder / "log").string()});
  once.env["OSM_CACHE_DIR"] = once.env["OSM_TMP_DIR"] = folder.path().string();
  ASSERT_TRUE(runAsync(fabric_->processes().run(std::move(once)), kToolLimit));
  const auto report = runAsync(diff(cluster_, fabric_->processes(), options_), kToolLimit);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->error, "");
  std::size_t switches = 0;
  for (const auto& [name, device] : declared_.devices) switches += device.is_switch;
  ASSERT_EQ(report->comparison.deviations.size(), switches);
  for (const auto& one : report->comparison.deviations) {
    EXPECT_EQ(one.kind, DeviationKind::WrongFirmware);
    EXPECT_EQ(one.found, "not told");
  }
  EXPECT_EQ(report->exitCode(), DiffReport::kDeviates);
  const auto refused = runAsync(tools_->switchFirmware({70000}), kToolLimit);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("70000 is no LID"));
}

TEST_F(BothTools, asksIbnetdiscoverWhereNoPortMayBeOpened) {
  start(declared_);
  muster::test::TempFolder folder;
  const auto prefix = folder / "as-nobody";
  ASSERT_TRUE(io::writeFileAtomic(
      prefix, "#!/bin/sh\ncase $1 in */muster-*) exit 3 ;; esac\nexec ibsim-run \"$@\"\n"));
  std::filesystem::permissions(prefix, std::filesystem::perms::owner_all);
  options_.tool_prefix = {prefix.string()};
  const auto direct = runAsync(tools_->discoverByLibrary(), kToolLimit);
  ASSERT_FALSE(direct);
  EXPECT_EQ(direct.error().code(), ErrorCode::Denied);
  const auto found = runAsync(tools_->discover(), kToolLimit);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->links, declared_.links);
}

}  // namespace
}  // namespace muster::fabric::test
