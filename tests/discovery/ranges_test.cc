// SPDX-License-Identifier: Apache-2.0
#include "discovery/ranges.h"
#include "base/ip_address.h"
#include "discovery/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

using ::testing::HasSubstr;

TEST(Ranges, spansCidrsAndSingleAddressesComeTogether) {
  const auto ranges =
      Ranges::parse({"10.0.0.4-10.0.0.6", "10.0.0.5 - 10.0.0.8", "10.0.1.0/30", "10.0.0.2"});
  ASSERT_TRUE(ranges) << ranges.error().str();
  std::string all;
  for (const auto& address : ranges->addresses()) all += address.str() + " ";
  EXPECT_EQ(all, "10.0.0.2 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 10.0.1.1 10.0.1.2 ");
  EXPECT_TRUE(ranges->contains(*Ipv4::parse("10.0.0.7")));
  EXPECT_FALSE(ranges->contains(*Ipv4::parse("10.0.0.9")));
}

TEST(Ranges, wrongOnesSayWhichAndWhy) {
  for (const char* text : {"10.0.0.9-10.0.0.1", "10.0.0.1/24", "10.0.0.x", "", "10.0.0.1-",
                           "0.0.0.0/0", "10.0.0.0/8"}) {
    const auto ranges = Ranges::parse({"10.1.1.1", text});
    ASSERT_FALSE(ranges) << text;
    EXPECT_EQ(ranges.error().code(), ErrorCode::InvalidInput);
  }
  EXPECT_THAT(Ranges::parse({"10.0.0.9-10.0.0.1"}).error().str(), HasSubstr("10.0.0.1-10.0.0.9"));
}

TEST(Ranges, theTopOfTheAddressSpaceEnds) {
  EXPECT_EQ(Ranges::parse({"255.255.255.254-255.255.255.255"})->addresses().size(), 2u);
}

TEST(Match, everyGlobMustFitAndCaseDoesNotMatter) {
  Machine machine;
  machine.model = "DGX H100";
  machine.macs = {"aa:bb:cc:00:00:01", "aa:bb:cc:00:00:02"};
  machine.gpus = {{"NVIDIA H100", "1"}, {"NVIDIA H100", "2"}};
  EXPECT_TRUE(matches(
      machine, {{"model", "*h100*"}, {"gpus", "2"}, {"mac", "*:02"}, {"gpu_model", "*H100"}}));
  EXPECT_FALSE(matches(machine, {{"model", "*h100*"}, {"gpus", "8"}}));
  EXPECT_FALSE(matches(machine, {{"serial", "?*"}}));
}

TEST(Match, wordsThatAreNoFieldAreRefused) {
  EXPECT_EQ(parseMatch("model=*H100*")->second, "*H100*");
  EXPECT_EQ(parseMatch("serial=a=b")->second, "a=b");
  for (const char* text : {"colour=blue", "model", "model=", "=x", ""})
    EXPECT_FALSE(parseMatch(text)) << text;
}

}  // namespace
}  // namespace muster::discovery
