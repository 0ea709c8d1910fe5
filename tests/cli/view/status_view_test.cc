// SPDX-License-Identifier: Apache-2.0
#include "cli/view/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<app::NodeStatus> nodes(int count) {
  std::vector<app::NodeStatus> out;
  for (int i = 1; i <= count; ++i)
    out.push_back(
        {fmt::format("gpu{:05}", i), "in pool", "in", "noble", "valid", 0, {}, "r1", "gpu"});
  return out;
}

TEST(StatusView, beginsWithASummary) {
  auto all = nodes(5);
  all[2].state = "failed";
  all[2].findings = 3;
  const auto text = statusText(all, {}, StatusDetail::Auto);
  EXPECT_THAT(text, testing::StartsWith("5 nodes: 4 in pool, 1 failed; 1 with findings\n\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 8);
}

TEST(StatusView, aFleetIsShownByWhatItsNodesAre) {
  auto all = nodes(10'000);
  all[9].state = "failed";
  const auto text = statusText(all, {}, StatusDetail::Auto);
  EXPECT_LT(std::ranges::count(text, '\n'), 16);
  EXPECT_THAT(text, AllOf(HasSubstr("gpu[00001-00009,00011-10000]"), HasSubstr("  gpu00010\n")));
  EXPECT_GT(std::ranges::count(statusText(all, {}, StatusDetail::Nodes), '\n'), 10'000);
}

TEST(StatusView, whatCouldNotBeReadIsStaleWithItsAge) {
  auto all = nodes(1);
  const WallTime now{std::chrono::hours(1'000'000)};
  all[0].stale.push_back(
      {"enrolled", "denied", "the password is refused", now - std::chrono::hours(3), std::nullopt});
  EXPECT_THAT(statusText(all, now, StatusDetail::Auto),
              AllOf(HasSubstr("; 1 stale"), HasSubstr("stale: enrolled 3 h")));
  const auto json = nlohmann::json::parse(statusJson(all));
  EXPECT_EQ(json[0]["stale"][0]["what"], "enrolled");
  EXPECT_EQ(json[0]["stale"][0]["reason"], "the password is refused");
}

TEST(StatusView, longNamesKeepTheColumns) {
  auto all = nodes(2);
  all[0].node = "a-very-long-node-name-01";
  const auto text = statusText(all, {}, StatusDetail::Auto);
  EXPECT_THAT(text, Not(HasSubstr("name-01in pool")));
}

}  // namespace
}  // namespace muster::cli
