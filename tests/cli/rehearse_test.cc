// `muster fabric` by the real program over real ibsim and OpenSM: rehearsal, and what is found there compared and measured.
#include "tests/cli/muster_folder.h"

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
)", spines));
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
  const auto held = muster({"--json", "fabric", "rehearse", "--faults", "cable-pulled,rail-swapped"});
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

}  // namespace
}  // namespace muster::test
