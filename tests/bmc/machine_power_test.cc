// SPDX-License-Identifier: Apache-2.0
#include "bmc/machine_power.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::bmc {
namespace {

TEST(MachinePower, isTheSumOfItsSuppliesOrTheGreatestThatIsRead) {
  const SensorReading supply1{"PSU1", "PowerSupply", "W", 2'400},
      supply2{"PSU2", "PowerSupply", "W", 2'600};
  EXPECT_FALSE(machinePowerOf({}));
  EXPECT_FALSE(machinePowerOf({{"Inlet", "Temperature", "Cel", 24}}));
  const auto sum = machinePowerOf({supply1, supply2, {"GPU_0 Power", "Power", "W", 690}});
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->watts, 5'000);
  EXPECT_EQ(sum->of, "2 power supplies");
  const auto whole = machinePowerOf({supply1,
                                     {"PSU2", "PowerSupply", "", 0, "OK"},
                                     {"System Power Control", "Power", "W", 4'900}});
  ASSERT_TRUE(whole) << "one supply says nothing of its power";
  EXPECT_EQ(whole->watts, 4'900);
  EXPECT_EQ(whole->of, "System Power Control");
}

TEST(MachinePower, isNotKnownByReadingsThatAreOldOrNone) {
  SensorReading old{"System Power Control", "Power", "W", 4'900};
  old.stale = true;
  EXPECT_FALSE(machinePowerOf({old}));
  for (const double value : {0.0, -5.0, 1e9, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(machinePowerOf({{"System Power Control", "Power", "W", value}})) << value;
  EXPECT_FALSE(machinePowerOf({{"12V", "Voltage", "V", 12}, {"Limit", "Power", "kW", 4}}));
  for (const auto* text : {"", "{}", "[]", "no JSON", R"({"power": 5})",
                           R"({"power": {"watts": "5"}})", R"({"power": {"watts": -5}})"})
    EXPECT_FALSE(machinePowerIn(text)) << text;
}

}  // namespace
}  // namespace muster::bmc
