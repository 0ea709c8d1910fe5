// SPDX-License-Identifier: Apache-2.0
// `muster fabric` by the real program over real ibsim and OpenSM: rehearsal, and what is found
// there compared and measured.
#include "fabric/discovery/tools.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/cli/muster_folder.h"
#include "tests/fabric/simulated_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RehearseCommand : public ::testing::Test {
 protected:
  RehearseCommand() { declare(2); }
  void declare(int spines) {
    std::string inventory(MusterFolder::kInventory);
    const auto profile = inventory.find("image: bookworm}");
    inventory.replace(profile, 16, "image: bookworm, fabric: ib}");
    folder_.write("cluster.yaml", inventory + fmt::format(R"(
fabric:
  ib: {{nodes_per_su: 4, rails: 2, spines_per_su: {}, switch_ports: 16, subnet_managers: [controller],
       partitions: {{default: {{pkey: 0x7fff, ipoib: true, limited: [ALL], full: [SELF]}}}}}}
)",
                                                          spines));
  }
  io::ProcessExit muster(std::vector<std::string> words) {
    auto command = folder_.command(std::move(words));
    command.timeout = std::chrono::seconds(100);
    auto ended = io::runBlocking(command);
    return ended ? std::move(*ended) : io::ProcessExit{-1, "", ended.error().str()};
  }
  MusterFolder folder_;
};

TEST_F(RehearseCommand, saysThatEveryCableMayBePulled) {
  const auto held =
      muster({"--json", "fabric", "rehearse", "--faults", "cable-pulled,rail-swapped"});
  EXPECT_EQ(held.code, 0) << held.out << held.err;
  const auto json = nlohmann::json::parse(held.out);
  EXPECT_EQ(json["held"], true);
  EXPECT_GE(json["faults"].size(), 10u) << held.out;
}

TEST_F(RehearseCommand, namesWhatBreaksAndExitsWithOne) {
  declare(1);
  const auto broke = muster({"fabric", "rehearse", "--faults", "switch-lost", "--alone"});
  EXPECT_EQ(broke.code, 1) << broke.err;
  EXPECT_THAT(broke.out, HasSubstr("BROKE switch-lost      spine-001: "));
  const auto nothing = muster({"fabric", "rehearse", "--faults", "coffee"});
  EXPECT_NE(nothing.code, 0);
}

// Tools inherit the simulator's library from the program that starts them: a site with ibsim in the
// place of its HCAs.
TEST_F(RehearseCommand, diffAndHealthLookAtTheFabricItself) {
  const auto loaded = inventory::load(folder_ / "cluster.yaml");
  ASSERT_TRUE(loaded.cluster) << inventory::checkText(loaded);
  fabric::test::SimulatedFabric simulated(
      fabric::declaredTopology(*loaded.cluster, loaded.cluster->fabrics.at("ib")).value());
  const auto seat = simulated.options();
  auto opensm = fabric::Tools(simulated.processes(), seat)
                    .command("opensm", {"-o", "-f", (folder_ / "opensm.log").string()});
  ASSERT_TRUE(io::runChecked(opensm));
  const auto here = [&](std::vector<std::string> words) {
    auto command = folder_.command(words);
    words.insert(words.begin(), command.program);
    command.program = "ibsim-run", command.args = std::move(words);
    command.env.insert(seat.tool_env.begin(), seat.tool_env.end());
    auto ended = io::runBlocking(command);
    return ended ? std::move(*ended) : io::ProcessExit{-1, "", ended.error().str()};
  };
  const auto same = here({"fabric", "diff"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  const auto health = here({"fabric", "health", "--window", "1"});
  EXPECT_EQ(health.code, 2) << health.out << health.err;
  EXPECT_THAT(health.out, HasSubstr("unproven"));
  simulated.unlink({"leaf-su1-r0", 9});
  const auto other = here({"fabric", "diff"});
  EXPECT_EQ(other.code, 1) << other.err;
  EXPECT_THAT(other.out, AllOf(HasSubstr("missing-link"), HasSubstr("leaf-su1-r0 port 9")));
  const auto plot = here({"fabric", "plot"});
  EXPECT_EQ(plot.code, 0) << plot.err;
  EXPECT_THAT(plot.out, HasSubstr("1 deviation"));
  simulated.dropMads("leaf-su1-r1", 100);
  EXPECT_EQ(here({"fabric", "diff"}).code, 2) << "what does not answer is not known to be absent";
}

}  // namespace
}  // namespace muster::test
