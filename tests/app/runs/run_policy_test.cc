// SPDX-License-Identifier: Apache-2.0
// What the inventory asks of a run. Windows are compared with Python's zoneinfo.
#include "app/runs/run_policy.h"

#include "base/io/process.h"
#include "inventory/model/approvals.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <sstream>

namespace muster::app {
namespace {

using namespace std::chrono_literals;
using inventory::Disturbance;
using inventory::MaintenanceWindow;
using inventory::Weekday;
using lifecycle::PlanImpact;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPython = "/usr/bin/python3";

WallTime at(std::string_view text) {
  const auto time = parseWallTime(text);
  EXPECT_TRUE(time) << text;
  return time.value_or(WallTime{});
}

std::vector<NodeName> names(const std::string& prefix, int count) {
  std::vector<NodeName> out;
  for (int i = 1; i <= count; ++i) out.emplace_back(fmt::format("{}{}", prefix, i));
  return out;
}

/// a1-a9 in pool alpha, b1-b9 in pool beta, login1 in none.
class RunPolicyTest : public ::testing::Test {
 protected:
  RunPolicyTest() {
    for (const std::string pool : {"alpha", "beta"}) {
      cluster_.pools[pool].name = pool;
      cluster_.profiles[pool].pool = pool;
      for (const auto& name : names(pool.substr(0, 1), 9)) addNode(name, pool);
    }
    cluster_.profiles["login"].name = "login";
    addNode(NodeName("login1"), "login");
  }
  void addNode(const NodeName& name, const std::string& profile) {
    inventory::Node node;
    node.name = name;
    node.profile = profile;
    cluster_.nodes.push_back(node);
  }
  static lifecycle::Run runOf(PlanImpact impact, const std::string& subjects = "a[1-9]") {
    impact.actions = 5;
    lifecycle::Run run;
    run.impact = std::move(impact);
    run.subjects = subjects;
    return run;
  }

  inventory::Cluster cluster_;
};

TEST_F(RunPolicyTest, countsByDisruptionNumberAndPool) {
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.taken_out = names("a", 9)})), 0u) << "no rules";
  cluster_.approvals = {{Disturbance::Drain, 4, {}, 1},
                        {Disturbance::Drain, 2, {"beta"}, 1},
                        {Disturbance::Wipe, 1, {"alpha"}, 2}};
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.taken_out = names("a", 3)})), 0u);
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.taken_out = names("a", 4)})), 1u);
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.taken_out = names("b", 2)})), 1u);
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.wiped = names("a", 1)})), 2u) << "the largest counts";
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.wiped = names("b", 1)})), 0u);
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.reset = names("b", 2)})), 1u)
      << "a reset disturbs more than a drain";
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({.wiped = {NodeName("login1")}})), 0u);
}

TEST_F(RunPolicyTest, anyCountsNodesOnWhichAnythingIsDone) {
  cluster_.approvals = {{Disturbance::Any, 2, {}, 3}};
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({}, "a1")), 0u);
  EXPECT_EQ(approvalsNeeded(cluster_, runOf({}, "a[1-2]")), 3u);
  auto nothing = runOf({}, "a[1-9]");
  nothing.impact->blocked = nothing.impact->actions;
  EXPECT_EQ(approvalsNeeded(cluster_, nothing), 0u) << "nobody is asked where all is blocked";
}

/// Three rounds of two nodes are six nodes.
TEST_F(RunPolicyTest, countsWhatTheRunWasAllowedBefore) {
  cluster_.approvals = {{Disturbance::Drain, 4, {}, 1}};
  auto run = runOf({.taken_out = {NodeName("a1")}});
  EXPECT_EQ(approvalsNeeded(cluster_, run), 0u);
  run.agreed_out = "a[2-3]";
  EXPECT_EQ(approvalsNeeded(cluster_, run), 0u);
  run.agreed_resets = "b1";
  EXPECT_EQ(approvalsNeeded(cluster_, run), 1u);
}

TEST_F(RunPolicyTest, poolsWithoutWindowsAreAlwaysOpen) {
  cluster_.pools.at("alpha").maintenance = {{{Weekday::Sat}, 22 * 60, 240, "Europe/Berlin"}};
  const auto wednesday = at("2026-03-04T12:00:00Z");
  const auto beta = windowFor(cluster_, names("b", 2), wednesday);
  ASSERT_TRUE(beta) << beta.error().str();
  EXPECT_TRUE(beta->is_open);
  EXPECT_THAT(beta->pools, IsEmpty());
  EXPECT_TRUE(windowFor(cluster_, {NodeName("login1")}, wednesday)->is_open);
  EXPECT_TRUE(windowFor(cluster_, {}, wednesday)->is_open) << "nobody leaves work";
  const auto alpha = windowFor(cluster_, {NodeName("b1"), NodeName("a1")}, wednesday);
  ASSERT_TRUE(alpha);
  EXPECT_FALSE(alpha->is_open);
  EXPECT_THAT(alpha->pools, ElementsAre("alpha"));
  ASSERT_TRUE(alpha->next);
  EXPECT_EQ(muster::toString(*alpha->next), muster::toString(at("2026-03-07T21:00:00Z")));
  EXPECT_TRUE(windowFor(cluster_, names("a", 1), at("2026-03-08T00:59:59Z"))->is_open);
  EXPECT_FALSE(windowFor(cluster_, names("a", 1), at("2026-03-08T01:00:00Z"))->is_open);
}

TEST_F(RunPolicyTest, allPoolsOfARunMustBeOpenAtOnce) {
  cluster_.pools.at("alpha").maintenance = {{{Weekday::Sat}, 20 * 60, 120, "UTC"},
                                            {{Weekday::Sun}, 20 * 60, 120, "UTC"}};
  cluster_.pools.at("beta").maintenance = {{{Weekday::Sun}, 21 * 60, 120, "UTC"}};
  const std::vector<NodeName> both{NodeName("a1"), NodeName("b1")};
  const auto saturday = windowFor(cluster_, both, at("2026-03-07T20:30:00Z"));
  ASSERT_TRUE(saturday);
  EXPECT_FALSE(saturday->is_open);
  EXPECT_EQ(*saturday->next, at("2026-03-08T21:00:00Z"));
  EXPECT_TRUE(windowFor(cluster_, both, at("2026-03-08T21:30:00Z"))->is_open);
  cluster_.pools.at("beta").maintenance = {{{Weekday::Mon}, 0, 60, "UTC"}};
  const auto never = windowFor(cluster_, both, at("2026-03-07T20:30:00Z"));
  ASSERT_TRUE(never);
  EXPECT_FALSE(never->is_open);
  EXPECT_FALSE(never->next);
}

TEST_F(RunPolicyTest, windowsThatMeetAreOne) {
  const auto spans =
      openSpans({{{Weekday::Mon}, 0, 24 * 60, "UTC"}, {{Weekday::Tue}, 0, 60, "UTC"}},
                {at("2026-03-02T12:00:00Z"), at("2026-03-05T00:00:00Z")});
  ASSERT_TRUE(spans);
  EXPECT_THAT(*spans, ElementsAre(Span{at("2026-03-02T00:00:00Z"), at("2026-03-03T01:00:00Z")}));
  EXPECT_EQ(openSpans({{{}, 0, 60, "Mars/Olympus"}}, {}).error().code(), ErrorCode::InvalidInput);
}

TEST_F(RunPolicyTest, applyWithoutAMonitorIsRefusedWhereSomebodyWouldHaveToAgree) {
  const PlanImpact impact{.actions = 3, .taken_out = names("a", 2)};
  EXPECT_TRUE(requireNoApprovals(cluster_, {}, impact, at("2026-03-04T12:00:00Z")));
  cluster_.approvals = {{Disturbance::Drain, 1, {}, 2}};
  cluster_.pools.at("alpha").maintenance = {{{Weekday::Sat}, 22 * 60, 240, "UTC"}};
  const auto refused = requireNoApprovals(cluster_, {}, impact, at("2026-03-04T12:00:00Z"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(), HasSubstr("asks for 2 approvals"));
  EXPECT_THAT(refused.error().str(), HasSubstr("next one opens at 2026-03-07T22:00:00"));
}

/// days from minute duration zone now → whether it is open, and when it opens next.
constexpr const char* kScript = R"(
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo
names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
for line in sys.stdin:
    days, minute, duration, zone, now = line.split()
    zone, now = ZoneInfo(zone), int(now)
    around = (epoch + timedelta(seconds=now)).astimezone(zone).date()
    opens = []
    for away in range(-9, 16):
        date = around + timedelta(days=away)
        if names[date.weekday()] in days.split(","):
            local = datetime(date.year, date.month, date.day, int(minute) // 60, int(minute) % 60, tzinfo=zone)
            opens.append(int((local.astimezone(timezone.utc) - epoch).total_seconds()))
    is_open = any(o <= now < o + int(duration) * 60 for o in opens)
    print(int(is_open), 0 if is_open else min(o for o in opens if o > now))
)";

TEST_F(RunPolicyTest, windowsAgreeWithPythonInEveryZone) {
  const auto probe = io::runBlocking({.program = kPython, .args = {"-c", "import zoneinfo"}});
  if (!probe || probe->code != 0) GTEST_SKIP() << "no python3 with zoneinfo";
  constexpr std::array<const char*, 7> kDays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  const std::vector<std::string> zones{"UTC",
                                       "Europe/Berlin",
                                       "America/New_York",
                                       "Australia/Lord_Howe",
                                       "America/Santiago",
                                       "Asia/Kathmandu",
                                       "Africa/Casablanca",
                                       "Europe/Dublin",
                                       "Pacific/Chatham",
                                       "America/Havana",
                                       "Antarctica/Troll"};
  struct Case {
    MaintenanceWindow window;
    WallTime now;
  };
  std::mt19937_64 random(11);
  std::vector<Case> cases;
  std::string input;
  for (int i = 0; i < 4'000; ++i) {
    MaintenanceWindow window;
    std::string days;
    for (std::size_t day = 0; day < kDays.size(); ++day) {
      if (random() % 3 != 0 && !(day == 6 && days.empty())) continue;
      window.days.push_back(static_cast<Weekday>(day));
      days += (days.empty() ? "" : ",") + std::string(kDays.at(day));
    }
    window.time_zone = zones[random() % zones.size()];
    // Clocks change in the small hours: half of the cases lie there.
    window.from_minute = static_cast<int>(random() % (i % 2 == 0 ? 240 : 1440));
    window.minutes = 1 + static_cast<int>(random() % (i % 5 == 0 ? 10'080 : 600));
    // Around the changes of spring and autumn, and anywhere.
    const auto year = std::chrono::year(2020 + static_cast<int>(random() % 40));
    const auto base = i % 4 == 0   ? std::chrono::sys_days(year / 1 / 1)
                      : i % 4 == 1 ? std::chrono::sys_days(year / 3 / 5)
                      : i % 4 == 2 ? std::chrono::sys_days(year / 10 / 20)
                                   : std::chrono::sys_days(year / 9 / 1);
    const WallTime now = base + std::chrono::seconds(random() % (30ull * 86'400));
    input += fmt::format("{} {} {} {} {}\n", days, window.from_minute, window.minutes,
                         window.time_zone, now.time_since_epoch().count() / 1000);
    cases.push_back({window, now});
  }
  const io::Command command{.program = kPython, .args = {"-c", kScript}, .stdin_text = input};
  const auto said = io::runBlocking(command);
  ASSERT_TRUE(said) << said.error().str();
  ASSERT_EQ(said->code, 0) << said->err;
  std::istringstream lines(said->out);
  std::size_t wrong = 0, open = 0;
  for (const auto& each : cases) {
    int is_open = 0;
    std::int64_t next = 0;
    ASSERT_TRUE(lines >> is_open >> next);
    cluster_.pools.at("alpha").maintenance = {each.window};
    const auto state = windowFor(cluster_, names("a", 1), each.now);
    ASSERT_TRUE(state) << state.error().str();
    const auto ours = state->next ? state->next->time_since_epoch().count() / 1000 : 0;
    open += state->is_open;
    if ((state->is_open != (is_open == 1) || ours != next) && ++wrong < 10)
      ADD_FAILURE() << each.window.time_zone << " from minute " << each.window.from_minute
                    << " for " << each.window.minutes << " at " << muster::toString(each.now)
                    << ": " << state->is_open << " " << ours << ", Python " << is_open << " "
                    << next;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(open, 200u) << "the cases must show both";
  EXPECT_LT(open, cases.size() - 200);
}

}  // namespace
}  // namespace muster::app
