// SPDX-License-Identifier: Apache-2.0
// A node's own ports over an hour.
#include "agent/tasks/link_sense.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using links::Counter;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kRate = "400 Gb/sec (4X NDR)";

links::PortReading reading(std::uint64_t symbols, std::uint64_t recoveries = 0) {
  links::PortReading out;
  for (const auto& row : links::counterRows()) out[row.counter] = 0;
  out[Counter::SymbolErrors] = symbols;
  out[Counter::Recoveries] = recoveries;
  return out;
}

TEST(LinkSense, whatWasBeforeTheAgentIsPast) {
  LinkSense sense;
  EXPECT_THAT(sense.see("mlx5_0/1", reading(60'000), kRate, seconds(1'000'000)), IsEmpty());
  EXPECT_THAT(sense.see("mlx5_0/1", reading(60'000), kRate, seconds(1'000'060)), IsEmpty());
}

TEST(LinkSense, aProvenErrorRateIsASymptom) {
  LinkSense sense;
  sense.see("mlx5_0/1", reading(0), kRate, seconds(1'000));
  const auto seen = sense.see("mlx5_0/1", reading(500), kRate, seconds(1'060));
  ASSERT_THAT(seen, ElementsAre(Field(&wire::Symptom::id, "network.bit-errors")));
  EXPECT_EQ(seen[0].device, "mlx5_0/1");
  EXPECT_EQ(seen[0].last_hour, 500u);
  EXPECT_THAT(seen[0].text, HasSubstr("a BER of 2.0e-11"));
}

TEST(LinkSense, fewErrorsAreNone) {
  LinkSense sense;
  sense.see("mlx5_0/1", reading(0), kRate, seconds(1'000));
  EXPECT_THAT(sense.see("mlx5_0/1", reading(2), kRate, seconds(1'060)), IsEmpty());
}

TEST(LinkSense, itIsOverAnHourAfterTheLastError) {
  LinkSense sense;
  sense.see("mlx5_0/1", reading(0), kRate, seconds(0));
  bool seen = false;
  for (int minute = 1; minute <= 61; ++minute)
    seen = !sense.see("mlx5_0/1", reading(5'000), kRate, seconds(60 * minute)).empty();
  EXPECT_FALSE(seen) << "all of them were in the first minute";
}

TEST(LinkSense, aClearedCounterAndAnotherRateBeginAnew) {
  LinkSense sense;
  sense.see("mlx5_0/1", reading(1'000), kRate, seconds(1'000));
  EXPECT_THAT(sense.see("mlx5_0/1", reading(900), kRate, seconds(1'060)), IsEmpty());
  EXPECT_THAT(sense.see("mlx5_0/1", reading(1'800), "200 Gb/sec (4X HDR)", seconds(1'120)),
              IsEmpty());
  EXPECT_THAT(sense.see("mlx5_0/1", reading(2'800), "200 Gb/sec (4X HDR)", seconds(1'180)),
              ElementsAre(Field(&wire::Symptom::count, 1'000u)));
}

TEST(LinkSense, recoveriesAreTold) {
  LinkSense sense;
  sense.see("mlx5_0/1", reading(0, 1), kRate, seconds(1'000));
  EXPECT_THAT(sense.see("mlx5_0/1", reading(0, 8), kRate, seconds(1'060)),
              ElementsAre(Field(&wire::Symptom::id, "network.recoveries")));
}

TEST(LinkSense, readsSysfs) {
  muster::test::TempFolder folder;
  std::filesystem::create_directories(folder / "counters");
  ASSERT_TRUE(io::writeFileAtomic(folder / "counters/symbol_error", "12\n"));
  ASSERT_TRUE(io::writeFileAtomic(folder / "counters/port_xmit_data", "18446744073709551615\n"));
  ASSERT_TRUE(io::writeFileAtomic(folder / "counters/link_downed", "N/A (no PMA)\n"));
  const auto read = readSysfsPort(folder.path());
  EXPECT_EQ(read[Counter::SymbolErrors], 12u);
  EXPECT_EQ(read[Counter::SentWords], 18446744073709551615ull);
  EXPECT_FALSE(read[Counter::Downs]);
  EXPECT_FALSE(read[Counter::Recoveries]);
}

}  // namespace
}  // namespace muster::agent
