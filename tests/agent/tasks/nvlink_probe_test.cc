// SPDX-License-Identifier: Apache-2.0
// The agent's own program over the simulated NVML of the twin: which NVLink domain a node's GPUs
// are in, and what keeps them out.
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::lab {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class NvlinkDomainTool : public testing::Test {
 protected:
  NvlinkDomainTool() {
    for (int i = 0; i < 4; ++i)
      gpus_.push_back({{"name", "NVIDIA GB200"},
                       {"bus_id", fmt::format("00000000:{:02X}:00.0", i + 1)},
                       {"fabric_state", 3},
                       {"cluster_uuid", "0a1b2c3d000000000000000000000001"},
                       {"clique", 7}});
  }
  std::string answer() {
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "nvml.json", json{{"gpus", gpus_}}.dump()));
    const auto ran = io::runBlocking(
        {(test::binFolder() / "muster-agent").string(),
         {"tool", "nvlink-domain"},
         {{"MUSTER_NVML", (test::binFolder() / "../lib/libnvidia-ml.so.1").string()},
          {"MUSTER_SIM_NVML_CONFIG", (folder_ / "nvml.json").string()}}});
    return ran ? ran->out + ran->err : ran.error().str();
  }
  muster::test::TempFolder folder_;
  json gpus_ = json::array();
};

TEST_F(NvlinkDomainTool, isTheClusterAndCliqueOfAllGpus) {
  const auto one = answer();
  EXPECT_THAT(one, HasSubstr(".7"));
  EXPECT_THAT(one, Not(HasSubstr("none")));
  for (auto& gpu : gpus_) gpu["clique"] = 8;
  EXPECT_NE(answer(), one);
}

TEST_F(NvlinkDomainTool, isNoneWhereOneGpuIsElsewhereOrNotWell) {
  const auto with = [this](const json& fault) {
    const auto before = gpus_;
    gpus_[2].update(fault);
    auto said = answer();
    gpus_ = before;
    return said;
  };
  EXPECT_THAT(with({{"clique", 8}}), AllOf(HasSubstr("none: "), HasSubstr("others are in")));
  EXPECT_THAT(
      with({{"fabric_state", 2}}),
      AllOf(HasSubstr("none: "), HasSubstr("03:00.0 is not registered (state 2, status 0)")));
  EXPECT_THAT(with({{"fabric_status", 1}}), HasSubstr("not registered (state 3, status 1)"));
  EXPECT_THAT(with({{"fabric_health", 0x10}}),
              AllOf(HasSubstr("none: "), HasSubstr("a route is unhealthy")));
  EXPECT_THAT(with({{"fabric_state", 0}}), HasSubstr("has no NVLink fabric"));
}

}  // namespace
}  // namespace muster::lab
