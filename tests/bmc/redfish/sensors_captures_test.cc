// SPDX-License-Identifier: Apache-2.0
// How many requests a look at the sensors of real BMCs takes (tests/bmc/capture.h), with $expand as
// they offer it and without.
#include "tests/bmc/capture.h"
#include "tests/bmc/redfish_rig.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace muster::bmc {
namespace {

struct Cost {
  const char* name;
  std::size_t readings;    ///< at least, after all have had their turn
  std::size_t most;        ///< requests of a look once the BMC is known
  std::size_t most_plain;  ///< … where $expand is not obeyed
};

class SensorCaptures : public testing::TestWithParam<Cost> {
 protected:
  struct Looks {
    std::size_t first = 0, later = 0;  ///< requests
    std::vector<SensorReading> readings;
  };
  static Looks look(const Json& resources, bool expand) {
    test::VirtualLoop loop;
    test::FakeHttp net;
    net.handle = test::captureHandler(resources, expand);
    test::RedfishRig rig{loop, net};
    const auto bmc = rig.bmc();
    Looks out;
    (void)loop.run(bmc->system());  // logged in, resources known
    constexpr int kLooks = 12;      // an hour
    for (int i = 0; i < kLooks; ++i) {
      const auto before = net.requests.size();
      auto readings = loop.run(bmc->sensors());
      EXPECT_TRUE(readings) << readings.error().str();
      if (readings) out.readings = std::move(*readings);
      (i == 0 ? out.first : out.later) = net.requests.size() - before;
      loop.clock.advance(std::chrono::minutes(5));
    }
    return out;
  }
};

TEST_P(SensorCaptures, aLookTakesFewRequests) {
  const auto& want = GetParam();
  const auto resources = test::readCapture(want.name);
  if (!resources) GTEST_SKIP() << test::noCapture(want.name);
  for (const bool expand : {true, false}) {
    const auto looks = look(*resources, expand);
    std::printf("%s %s: %zu readings, %zu requests for the first look, %zu for each later one\n",
                want.name, expand ? "with $expand" : "without $expand", looks.readings.size(),
                looks.first, looks.later);
    EXPECT_GE(looks.readings.size(), want.readings);
    EXPECT_LE(looks.later, expand ? want.most : want.most_plain);
    for (const auto& reading : looks.readings) EXPECT_FALSE(reading.name.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SensorCaptures,
    testing::Values(Cost{"dell", 20, 5, 5}, Cost{"dell_multi_dpu", 20, 5, 5}, Cost{"hpe", 20, 3, 3},
                    Cost{"lenovo", 20, 5, 5}, Cost{"supermicro", 20, 3, 3},
                    Cost{"nvidia_viking", 268, 40, 40}, Cost{"nvidia_gb200", 200, 40, 40},
                    Cost{"nvidia_gh200", 200, 40, 40}, Cost{"nvidia_gbswitch", 5, 15, 15},
                    Cost{"nvidia_dpu", 10, 8, 40}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace muster::bmc
