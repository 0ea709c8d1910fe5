// SPDX-License-Identifier: Apache-2.0
// Offsets and local times, compared with Python's zoneinfo, which reads the same files by code of
// its own.
#include "base/time_zone.h"

#include "base/io/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <sstream>

namespace muster {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using ::testing::HasSubstr;

constexpr const char* kPython = "/usr/bin/python3";
/// Half an hour of summer, summer that ends at midnight, a day that was skipped, winter time that
/// is negative, rules that ended or never began, an hour beyond the day, tables to 2087.
const std::vector<std::string> kZones{
    "UTC",           "Europe/Berlin",       "America/New_York",  "America/Los_Angeles",
    "Europe/London", "Europe/Dublin",       "Asia/Kolkata",      "Asia/Kathmandu",
    "Asia/Tokyo",    "Australia/Lord_Howe", "Pacific/Apia",      "Pacific/Chatham",
    "Asia/Tehran",   "America/Caracas",     "America/Sao_Paulo", "America/Santiago",
    "Africa/Cairo",  "Africa/Casablanca",   "Asia/Gaza",         "Asia/Jerusalem",
    "Asia/Beirut",   "Antarctica/Troll",    "America/Nuuk",      "America/Asuncion",
    "Europe/Lisbon", "Pacific/Kiritimati",  "America/St_Johns",  "Asia/Pyongyang",
    "Etc/GMT+12",    "America/Havana",      "Atlantic/Azores"};

/// zone, seconds → the offset at that instant, and the instant of that local time.
constexpr const char* kScript = R"(
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo
epoch = datetime(1970, 1, 1)
for line in sys.stdin:
    name, at = line.split()
    zone = ZoneInfo(name)
    shown = epoch + timedelta(seconds=int(at))
    offset = shown.replace(tzinfo=timezone.utc).astimezone(zone).utcoffset()
    instant = shown.replace(tzinfo=zone, fold=0).astimezone(timezone.utc).replace(tzinfo=None)
    print(int(offset.total_seconds()), int((instant - epoch).total_seconds()))
)";

struct Case {
  std::string zone;
  std::int64_t at;
};

void compare(const std::vector<Case>& cases) {
  std::string input;
  for (const auto& each : cases) input += fmt::format("{} {}\n", each.zone, each.at);
  const io::Command command{.program = kPython, .args = {"-c", kScript}, .stdin_text = input};
  const auto said = io::runBlocking(command);
  ASSERT_TRUE(said) << said.error().str();
  ASSERT_EQ(said->code, 0) << said->err;
  std::istringstream lines(said->out);
  std::map<std::string, TimeZone> zones;
  std::size_t wrong = 0;
  for (const auto& each : cases) {
    std::int64_t offset = 0, instant = 0;
    ASSERT_TRUE(lines >> offset >> instant) << "an answer for each case";
    auto zone = zones.find(each.zone);
    if (zone == zones.end()) {
      auto loaded = TimeZone::load(each.zone);
      ASSERT_TRUE(loaded) << loaded.error().str();
      zone = zones.emplace(each.zone, std::move(*loaded)).first;
    }
    const auto ours = zone->second.offsetAt(sys_seconds(seconds(each.at))).count();
    const auto at = zone->second.toUtc(std::chrono::local_seconds(seconds(each.at)));
    const bool same = ours == offset && at.time_since_epoch().count() == instant;
    if (!same && ++wrong < 10)
      ADD_FAILURE() << each.zone << " " << each.at << ": offset " << ours << ", Python " << offset
                    << "; instant " << at.time_since_epoch().count() << ", Python " << instant;
  }
  EXPECT_EQ(wrong, 0u) << "of " << cases.size();
}

bool hasPython() {
  const auto probe = io::runBlocking({.program = kPython, .args = {"-c", "import zoneinfo"}});
  return probe && probe->code == 0;
}

constexpr std::int64_t kYear = 31'556'952;

TEST(TimeZoneTest, agreesWithPythonAtMomentsDrawnByChance) {
  if (!hasPython()) GTEST_SKIP() << "no python3 with zoneinfo";
  std::mt19937_64 random(7);
  std::vector<Case> cases;
  for (int i = 0; i < 20'000; ++i)
    cases.push_back({kZones[random() % kZones.size()],
                     std::uniform_int_distribution<std::int64_t>(5 * kYear, 130 * kYear)(random)});
  compare(cases);
}

/// Where mistakes are: seconds and hours around each change of the clocks.
TEST(TimeZoneTest, agreesWithPythonAroundEachChangeOfTheClocks) {
  if (!hasPython()) GTEST_SKIP() << "no python3 with zoneinfo";
  std::vector<Case> cases;
  for (const auto& name : kZones) {
    const auto zone = TimeZone::load(name);
    ASSERT_TRUE(zone) << zone.error().str();
    std::int64_t changes = 0;
    auto before = zone->offsetAt(sys_seconds(seconds(50 * kYear)));
    for (auto hour = 50 * kYear / 3600; hour < 75 * kYear / 3600 && changes < 60; ++hour) {
      constexpr std::int64_t kDay = 24;
      if (zone->offsetAt(sys_seconds(seconds((hour + kDay) * 3600))) == before) {
        hour += kDay - 1;  // nowhere do clocks change and change back within a day
        continue;
      }
      const auto offset = zone->offsetAt(sys_seconds(seconds(hour * 3600)));
      if (offset == before) continue;
      ++changes;
      for (const auto base :
           {hour * 3600, hour * 3600 + before.count(), hour * 3600 + offset.count()})
        for (const int away : {-7201, -3601, -3600, -1801, -1800, -1, 0, 1, 1799, 1800, 3599, 3600})
          cases.push_back({name, base + away});
      before = offset;
    }
  }
  ASSERT_GT(cases.size(), 10'000u);
  compare(cases);
}

TEST(TimeZoneTest, refusesWhatIsNoZone) {
  for (const auto* name :
       {"", "Europe/Nowhere", "../../etc/passwd", "/etc/localtime", "tzdata.zi", "zone.tab",
        "Europe", "Europe/Berlin\n", "localtime", "posixrules", "right/Europe/Berlin",
        "posix/Europe/Berlin", "./Europe/Berlin", "Europe//Berlin", "Europe/Berlin/",
        "/usr/share/zoneinfo/Europe/Berlin", "Europe/../Europe/Berlin", "leapseconds"}) {
    const auto zone = TimeZone::load(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_EQ(zone.error().code(), ErrorCode::InvalidInput) << name;
  }
  EXPECT_THAT(TimeZone::load("Mars/Olympus").error().text(), HasSubstr("IANA"));
}

/// Each file cut anywhere, and with bytes changed, is refused or read; nothing else happens.
TEST(TimeZoneTest, survivesDamagedFiles) {
  std::string file = "TZif2" + std::string(15, '\0');
  const auto count = [](unsigned char n) { return std::string(3, '\0') + static_cast<char>(n); };
  const auto counts = count(0) + count(0) + count(0) + count(0) + count(1) + count(4);
  const std::string type = std::string(6, '\0') + "UTC" + '\0';
  file += counts + type + "TZif2" + std::string(15, '\0') + counts + type + "\n";
  const std::string rule = "<+01>-1<+02>,M3.5.0/2,M10.5.0/3\n";
  const auto whole = TimeZone::parse(file + rule);
  ASSERT_TRUE(whole) << whole.error().str();
  const auto winter = sys_seconds(std::chrono::sys_days(std::chrono::year(2040) / 1 / 15));
  EXPECT_EQ(whole->offsetAt(winter), seconds(3600));
  EXPECT_EQ(whole->offsetAt(winter + std::chrono::days(180)), seconds(7200));
  for (std::size_t size = 0; size < (file + rule).size(); ++size)
    EXPECT_FALSE(TimeZone::parse((file + rule).substr(0, size))) << size;
  for (const auto* bad : {"A0", "UTC", "UTC25:61", "CET-1CEST,M13.1.0,M10.5.0", "CET-1CEST,M3.5.0",
                          "CET-1CEST,M0.5.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "<+01-1",
                          "CET-1CEST,J0,J365", "UTC0 x", "CET-1CEST,M3.5.0/999,M10.5.0"})
    EXPECT_FALSE(TimeZone::parse(file + bad + "\n")) << bad;
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    auto damaged = file + rule;
    for (int n = 0; n < 3; ++n) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (const auto read = TimeZone::parse(damaged)) {
      read->offsetAt(winter);
      read->toUtc(std::chrono::local_seconds(winter.time_since_epoch()));
    }
  }
}

}  // namespace
}  // namespace muster
