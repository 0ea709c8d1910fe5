// SPDX-License-Identifier: Apache-2.0
// Which logs of real BMCs are those of the hardware (tests/bmc/capture.h).
#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

struct Chosen {
  const char* name;
  std::vector<std::string> logs;  ///< LogServices, beginning after "/redfish/v1/"; none: NotFound
  std::size_t least = 0;          ///< entries
};

class LogCaptures : public testing::TestWithParam<Chosen> {};

TEST_P(LogCaptures, theHardwaresLogsAreReadAndNoOthers) {
  const auto& want = GetParam();
  const auto resources = test::readCapture(want.name);
  if (!resources) GTEST_SKIP() << test::noCapture(want.name);
  test::VirtualLoop loop;
  test::FakeHttp net;
  net.handle = test::captureHandler(*resources);
  test::RedfishRig rig{loop, net};
  const auto bmc = rig.bmc();
  const auto log = loop.run(bmc->eventLog(200));
  if (want.logs.empty()) {
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code(), ErrorCode::NotFound) << log.error().str();
    return;
  }
  ASSERT_TRUE(log) << log.error().str();
  std::vector<std::string> read;
  for (const auto& uri : log->logs) read.push_back(uri.substr(std::string("/redfish/v1/").size()));
  EXPECT_THAT(read, testing::UnorderedElementsAreArray(want.logs));
  EXPECT_GE(log->entries.size(), want.least);
  std::size_t wordless = 0;
  for (const auto& entry : log->entries) wordless += entry.message.empty() ? 1 : 0;
  EXPECT_EQ(wordless, 0u);
}

const std::string kIdrac = "Managers/iDRAC.Embedded.1/LogServices/";
INSTANTIATE_TEST_SUITE_P(
    All, LogCaptures,
    testing::Values(
        Chosen{"dell", {kIdrac + "Sel", kIdrac + "FaultList"}, 5},
        Chosen{"dell_multi_dpu", {kIdrac + "Sel", kIdrac + "FaultList"}, 6},
        Chosen{"hpe", {"Systems/1/LogServices/IML"}, 5},
        Chosen{"lenovo", {"Systems/1/LogServices/PlatformLog"}, 5},
        Chosen{"supermicro", {"Systems/1/LogServices/Log1"}, 80},
        Chosen{"nvidia_viking",
               {"Managers/BMC/LogServices/SEL", "Systems/DGX/LogServices/BIOS",
                "Systems/HGX_Baseboard_0/LogServices/EventLog"},
               170},
        Chosen{
            "nvidia_gb200",
            {"Systems/System_0/LogServices/SEL", "Systems/System_0/LogServices/EventLog",
             "Managers/BMC_0/LogServices/EventLog", "Systems/HGX_Baseboard_0/LogServices/EventLog"},
            29},
        Chosen{"nvidia_gh200",
               {"Systems/System_0/LogServices/SEL", "Systems/System_0/LogServices/EventLog",
                "Systems/HGX_Baseboard_0/LogServices/EventLog"},
               15},
        Chosen{"nvidia_gbswitch",
               {"Systems/System_0/LogServices/SEL", "Systems/System_0/LogServices/EventLog",
                "Managers/BMC_0/LogServices/EventLog"},
               20},
        Chosen{"nvidia_dpu", {}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::bmc
