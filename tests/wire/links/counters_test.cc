// SPDX-License-Identifier: Apache-2.0
// Counters, bit error rates and verdicts: the arithmetic, and the traps that hide in it.
#include "wire/links/counters.h"
#include "wire/links/transceiver.h"
#include "wire/links/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster::links::test {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PortReading reading(std::map<Counter, std::uint64_t> values = {}) {
  PortReading out;
  for (const auto& row : counterRows()) out[row.counter] = 0;
  for (auto [counter, value] : values) out[counter] = value;
  return out;
}

EndVerdict verdictOf(const PortReading& before, const PortReading& after, double seconds = 300,
                     const char* rate = "4xNDR", Limits limits = {}) {
  return evaluateEnd(growth(before, after), {seconds, seconds}, rate, limits);
}

std::vector<std::string> kinds(const EndVerdict& verdict) {
  std::vector<std::string> out;
  for (const auto& one : verdict.complaints) out.push_back(one.kind);
  return out;
}

TEST(LinkGrowth, isTheDifference) {
  const auto grown = growth(reading({{Counter::SymbolErrors, 7}, {Counter::SentWords, 1'000}}),
                            reading({{Counter::SymbolErrors, 9}, {Counter::SentWords, 5'000}}));
  EXPECT_EQ(grown.atLeast(Counter::SymbolErrors), 2u);
  EXPECT_TRUE(grown[Counter::SymbolErrors]->is_all);
  EXPECT_EQ(grown.atLeast(Counter::SentWords), 4'000u);
  EXPECT_FALSE(grown.was_cleared);
}

TEST(LinkGrowth, passesThirtyTwoBitsWhereTheCounterDoes) {
  const std::uint64_t before = (1ull << 32) - 10, after = (1ull << 40) + 7;
  const auto grown =
      growth(reading({{Counter::SentWords, before}}), reading({{Counter::SentWords, after}}));
  EXPECT_EQ(grown.atLeast(Counter::SentWords), after - before);
  EXPECT_TRUE(grown[Counter::SentWords]->is_all);
}

TEST(LinkGrowth, aFullCounterMayHideMore) {
  const auto grown = growth(reading({{Counter::SymbolErrors, 65'530}, {Counter::Downs, 255}}),
                            reading({{Counter::SymbolErrors, 65'535}, {Counter::Downs, 255}}));
  EXPECT_EQ(grown.atLeast(Counter::SymbolErrors), 5u);
  EXPECT_FALSE(grown[Counter::SymbolErrors]->is_all);
  EXPECT_TRUE(grown[Counter::Downs]->is_full) << "255 flaps: the next one is not counted";
}

TEST(LinkGrowth, aClearedCounterShowsWhatCameSince) {
  const auto grown = growth(
      reading({{Counter::SymbolErrors, 100}, {Counter::Downs, 1}, {Counter::SentWords, 9'000}}),
      reading({{Counter::SymbolErrors, 40}, {Counter::Downs, 1}, {Counter::SentWords, 10'000}}));
  EXPECT_TRUE(grown.was_cleared);
  EXPECT_EQ(grown.atLeast(Counter::SymbolErrors), 40u);
  EXPECT_EQ(grown.atLeast(Counter::Downs), 0u);
  EXPECT_FALSE(grown[Counter::Downs]->is_all)
      << "it may have been cleared, and have grown to its former value again";
}

TEST(LinkGrowth, whatIsNotReadIsNotZero) {
  auto before = reading(), after = reading();
  before[Counter::Downs].reset();
  EXPECT_FALSE(growth(before, after)[Counter::Downs]);
  EXPECT_EQ(growth(before, after).atLeast(Counter::Downs), 0u);
}

// λ is the mean of a Poisson distribution: with the upper bound at most k errors have the
// probability 5 %, with the lower at least k.
double poissonAtMost(std::uint64_t k, double mean) {
  double term = std::exp(-mean), sum = 0;
  for (std::uint64_t i = 0; i <= k; ++i) sum += term, term *= mean / static_cast<double>(i + 1);
  return sum;
}

TEST(BitErrors, boundsLeaveFivePercentOutside) {
  EXPECT_THAT(berBounds(0, 1e12, 0.95).high * 1e12, DoubleNear(-std::log(0.05), 1e-9))
      << "the rule of three";
  EXPECT_EQ(berBounds(0, 1e12, 0.95).low, 0);
  for (std::uint64_t k : {1u, 2u, 5u, 40u, 300u}) {
    const auto bounds = berBounds(k, 1, 0.95);  // one bit: the bounds are of λ, cut at 1
    const auto wide = berBounds(k, 1e6, 0.95);
    EXPECT_THAT(poissonAtMost(k, wide.high * 1e6), DoubleNear(0.05, 1e-6)) << k;
    EXPECT_THAT(1 - poissonAtMost(k - 1, wide.low * 1e6), DoubleNear(0.05, 1e-6)) << k;
    EXPECT_LE(bounds.high, 1);
  }
  EXPECT_THAT(bitsThatProve(1e-12, 0, 0.95), DoubleNear(2.996e12, 1e9));
  EXPECT_EQ(berBounds(0, 0, 0.95).high, 1) << "nothing was seen";
}

TEST(BitErrors, ratesAreOfTheLine) {
  EXPECT_EQ(lineBitsPerSecond("4xNDR"), 425e9);
  EXPECT_EQ(lineBitsPerSecond("1xSDR"), 2.5e9);
  EXPECT_EQ(lineBitsPerSecond("4xFDR10"), 41.25e9);
  for (const char* no :
       {"", "NDR", "4x", "x4NDR", "3xNDR", "4xndr", "4xHDR/1xHDR", "-4xHDR", "99999999999xHDR"})
    EXPECT_FALSE(lineBitsPerSecond(no)) << no;
  EXPECT_EQ(widthSpeedOf("400 Gb/sec (4X NDR)"), "4xNDR");
  EXPECT_EQ(widthSpeedOf("10 Gb/sec (4X SDR)"), "4xSDR");
  for (const char* no : {"", "400 Gb/sec", "400 Gb/sec ()", ")4X NDR(", "100 Gb/sec (4X)"})
    EXPECT_EQ(widthSpeedOf(no), "") << no;
  EXPECT_EQ(speedOfLane(53.125), "HDR");
  EXPECT_EQ(speedOfLane(60), "");
}

TEST(LinkVerdict, silenceForLongEnoughIsGood) {
  const auto verdict = verdictOf(reading(), reading({{Counter::SentWords, 1'000'000'000}}));
  EXPECT_EQ(verdict.grade, Grade::Good) << ::testing::PrintToString(kinds(verdict));
  EXPECT_LT(verdict.ber->high, 1e-12);
  EXPECT_GT(verdict.ber->high, 1e-15) << "five minutes prove no 1e-15: that takes two hours";
  EXPECT_THAT(*verdict.load, DoubleNear(32e9 / (425e9 * 300), 1e-6));
}

TEST(LinkVerdict, aShortSilenceProvesNothing) {
  const auto verdict = verdictOf(reading(), reading(), 5);
  EXPECT_EQ(verdict.grade, Grade::Unproven);
  ASSERT_THAT(kinds(verdict), Contains("ber-unproven"));
  EXPECT_THAT(verdict.complaints[0].text, HasSubstr("7 s without more would"));
  EXPECT_EQ(verdictOf(reading(), reading(), 8).grade, Grade::Good);
  EXPECT_THAT(*secondsToProve("4xNDR"), DoubleNear(7.05, 0.01));
}

TEST(LinkVerdict, errorsAreBadOnlyWhereTheyProveIt) {
  EXPECT_EQ(verdictOf(reading(), reading({{Counter::SymbolErrors, 2'000}})).grade, Grade::Bad)
      << "1.6e-11";
  const auto three = verdictOf(reading(), reading({{Counter::SymbolErrors, 3}}));
  EXPECT_EQ(three.grade, Grade::Warning)
      << "2.4e-14: above the factory's limit, below the specification's";
  const auto one = verdictOf(reading(), reading({{Counter::SymbolErrors, 1}}), 3600);
  EXPECT_EQ(one.grade, Grade::Good) << "one error in an hour: at least 3e-17 is proven";
  EXPECT_EQ(verdictOf(reading(), reading({{Counter::SymbolErrors, 1}}), 1).grade, Grade::Unproven)
      << "one error in one second proves nothing bad";
}

TEST(LinkVerdict, theSlowerClockDecidesAgainstTheLinkAndTheFasterOneForIt) {
  const auto grown = growth(reading(), reading({{Counter::SymbolErrors, 20}}));
  EXPECT_EQ(evaluateEnd(grown, {10, 10}, "4xNDR").grade, Grade::Bad) << "4.7e-12, at least 3.1e-12";
  EXPECT_EQ(evaluateEnd(grown, {10, 60}, "4xNDR").grade, Grade::Unproven)
      << "the readings took 25 s each: it may be 20 errors in 60 s";
}

TEST(LinkVerdict, oneFlapRecoveryOrDamagedPacketIsBad) {
  for (auto [counter, kind] :
       {std::pair(Counter::Downs, "flaps"), std::pair(Counter::Recoveries, "recoveries"),
        std::pair(Counter::ReceiveErrors, "receive-errors"),
        std::pair(Counter::IntegrityErrors, "receive-errors"),
        std::pair(Counter::OverrunErrors, "receive-errors")}) {
    const auto verdict = verdictOf(reading({{counter, 1}}), reading({{counter, 2}}));
    EXPECT_EQ(verdict.grade, Grade::Bad) << kind;
    EXPECT_EQ(verdict.complaints[0].kind, kind);
    EXPECT_NE(adviceFor(kind), "");
  }
}

TEST(LinkVerdict, whatIsNotTheCablesIsAWarning) {
  const auto verdict = verdictOf(
      reading(),
      reading({{Counter::Discards, 5}, {Counter::RemoteErrors, 2}, {Counter::Waits, 1'000}}));
  EXPECT_EQ(verdict.grade, Grade::Warning);
  EXPECT_EQ(kinds(verdict), (std::vector<std::string>{"discards", "damaged-before", "congested"}));
}

TEST(LinkVerdict, failsClosed) {
  auto silent = reading();
  silent[Counter::SymbolErrors].reset();
  EXPECT_EQ(verdictOf(silent, reading()).grade, Grade::Unproven);
  EXPECT_EQ(verdictOf({}, {}).grade, Grade::Unproven);
  EXPECT_EQ(verdictOf(reading({{Counter::Downs, 255}}), reading({{Counter::Downs, 255}})).grade,
            Grade::Unproven);
  EXPECT_EQ(
      verdictOf(reading({{Counter::SentWords, 10}}), reading({{Counter::SentWords, 9}})).grade,
      Grade::Unproven)
      << "cleared";
  EXPECT_EQ(verdictOf(reading(), reading(), 300, "4xHDR/1xHDR").grade, Grade::Unproven);
  EXPECT_EQ(verdictOf(reading(), reading(), 0).grade, Grade::Unproven);
  EXPECT_EQ(verdictOf(reading(), reading(), 300, "4xNDR", {.min_load = 0.5}).grade, Grade::Unproven)
      << "idle";
}

TEST(LinkVerdict, aCounterThatOnlyOneReadingHasIsUnproven) {
  auto cut = reading({{Counter::SentWords, 1'000}});
  cut[Counter::Discards].reset();
  for (const auto& verdict : {verdictOf(reading(), cut), verdictOf(cut, reading())}) {
    EXPECT_EQ(verdict.grade, Grade::Unproven);
    EXPECT_THAT(kinds(verdict), Contains("read-once"));
  }
  EXPECT_EQ(verdictOf(cut, cut).grade, Grade::Good) << "a device that has no such counter";
}

TEST(LinkVerdict, moreThanTheLineCarriesSaysThatTheWindowIsAnother) {
  const auto carried = [](double share) {  // in 20 s at 425 Gb/s
    return verdictOf(
        reading(),
        reading({{Counter::SentWords, static_cast<std::uint64_t>(share * 425e9 * 20 / 32)}}), 20);
  };
  EXPECT_EQ(carried(1.05).grade, Grade::Good) << "the readings took a second";
  const auto verdict = carried(15);
  EXPECT_EQ(verdict.grade, Grade::Unproven);
  ASSERT_THAT(kinds(verdict), Contains("too-much"));
  EXPECT_THAT(verdict.complaints[0].text, HasSubstr("15 times what 4xNDR can"));
  EXPECT_THAT(std::string(adviceFor("too-much")), HasSubstr("--window"));
}

TEST(LinkVerdict, errorsCountAlsoThroughAClear) {
  const auto verdict = verdictOf(reading({{Counter::SymbolErrors, 60'000}}),
                                 reading({{Counter::SymbolErrors, 50'000}}));
  EXPECT_EQ(verdict.grade, Grade::Bad) << "50,000 since the clear are too many in any case";
  EXPECT_THAT(kinds(verdict), Contains("cleared"));
  EXPECT_EQ(verdict.ber->high, 1);
}

TEST(TransceiverText, findsTheSerialNumber) {
  const auto ethtool = parseTransceiver(
      "\tIdentifier                                : 0x11 (QSFP28)\n\tVendor name                  "
      "             : Mellanox\n"
      "\tVendor PN                                 : MCP1600-C003E30N\n\tVendor SN                 "
      "                : MT2022VS04537\n"
      "\tModule temperature                        : 41.37 degrees C / 106.47 degrees F\n");
  ASSERT_TRUE(ethtool);
  EXPECT_EQ(ethtool->str(), "Mellanox MCP1600-C003E30N MT2022VS04537");
  EXPECT_THAT(*ethtool->temperature_c, DoubleNear(41.37, 1e-9));
  const auto mlxlink = parseTransceiver(
      "Vendor Name                        : NVIDIA\nVendor Part Number                 : "
      "MCA4J80-N003\nVendor Serial Number               "
      ": MT2325VB00571\n");
  ASSERT_TRUE(mlxlink);
  EXPECT_EQ(mlxlink->serial, "MT2325VB00571");
}

TEST(TransceiverText, emptyMemoryIsNoSerialNumber) {
  for (const char* text : {"", "netlink error: Operation not supported\n", "\tVendor SN : \n",
                           "Vendor Serial Number : N/A\n", "\tVendor SN : \xff\xff\xff\xff\n"})
    EXPECT_FALSE(parseTransceiver(text)) << text;
}

}  // namespace
}  // namespace muster::links::test
