// SPDX-License-Identifier: Apache-2.0
// Outputs of perfquery and ibqueryerrors: read, or refused where something of them is lost.
#include "wire/links/counter_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::links::test {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kPerfquery = R"(# Port counters: Lid 2 port 5 (CapMask: 0x1300)
PortSelect:......................5
CounterSelect:...................0x0000
SymbolErrorCounter:..............120
LinkErrorRecoveryCounter:........0
LinkDownedCounter:...............1
PortRcvErrors:...................0
QP1Dropped:......................9
PortXmitData:....................4294967295
PortRcvData:.....................18432
PortXmitWait:....................77
)";
constexpr std::string_view kExtendedQuery =
    R"(# Port extended counters: Lid 2 port 5 (CapMask: 0x1300 CapMask2: 0x0000000)
PortSelect:......................5
PortXmitData:....................99999999999
PortRcvData:.....................18433
PortUnicastXmitPkts:.............0
)";

TEST(CounterText, readsPerfquery) {
  const auto plain = parsePerfquery(kPerfquery);
  ASSERT_TRUE(plain) << plain.error().str();
  const auto& port = plain->at({2, 5});
  EXPECT_EQ(port[Counter::SymbolErrors], 120u);
  EXPECT_EQ(port[Counter::Downs], 1u);
  EXPECT_EQ(port[Counter::Waits], 77u);
  EXPECT_FALSE(port[Counter::Discards]) << "it was not printed";
}

TEST(CounterText, sixtyFourBitsStandInEitherOrder) {
  for (const auto& text : {std::string(kPerfquery) + std::string(kExtendedQuery),
                           std::string(kExtendedQuery) + std::string(kPerfquery)}) {
    const auto both = parsePerfquery(text);
    ASSERT_TRUE(both) << both.error().str();
    EXPECT_EQ(both->at({2, 5})[Counter::SentWords], 99'999'999'999u);
    EXPECT_EQ(both->at({2, 5})[Counter::SymbolErrors], 120u);
  }
}

TEST(CounterText, refusesWhatPerfqueryDoesNotPrint) {
  for (const auto& text :
       {std::string(), std::string("perfquery: iberror: failed"),
        std::string("SymbolErrorCounter:....1\n"),
        std::string(kPerfquery) + std::string(kPerfquery),
        std::string("# Port counters: Lid 2 port 5 (CapMask: 0x1300)\n"),
        std::string("# Port counters: Lid two port 5\n"),
        std::string("# Port counters: Lid 2 port 5\nSymbolErrorCounter:....\n"),
        std::string(
            "# Port counters: Lid 2 port 5\nSymbolErrorCounter:....99999999999999999999\n")})
    EXPECT_FALSE(parsePerfquery(text)) << text;
}

constexpr std::string_view kErrors = R"(Errors for 0x200000 "leaf-su1-r0"
   GUID 0x200000 port ALL: [SymbolErrorCounter == 120] [PortXmitWait == 77]
   GUID 0x200000 port 5: [SymbolErrorCounter == 120] [PortXmitWait == 77]

## Summary: 5 nodes checked, 1 bad nodes found
##          19 ports checked, 1 ports have errors beyond threshold
## Thresholds: 
## Suppressed:
)";
constexpr std::string_view kData = R"(Data Counters for 0x200000 "leaf-su1-r0"
   GUID 0x200000 port 2: [PortXmitData == 45216 (176.625KB)] [PortRcvData == 24336 (95.062KB)] [PortXmitPkts == 334 (334.000)]
   GUID 0x200000 port 5: [PortXmitData == 16920 (66.094KB)] [PortRcvData == 16920 (66.094KB)]

## Summary: 5 nodes checked, 0 bad nodes found
)";

TEST(CounterText, readsQueryErrors) {
  const auto both = parseQueryErrors(kErrors, kData);
  ASSERT_TRUE(both) << both.error().str();
  const std::string guid = "0x0000000000200000";
  EXPECT_EQ(both->at({guid, 5})[Counter::SymbolErrors], 120u);
  EXPECT_EQ(both->at({guid, 5})[Counter::SentWords], 16'920u);
  EXPECT_EQ(both->at({guid, 2})[Counter::SymbolErrors], 0u)
      << "what is under the threshold of 0 is 0";
  EXPECT_EQ(both->at({guid, 2})[Counter::ReceivedWords], 24'336u);
  EXPECT_EQ(both->size(), 2u) << "the sum of all ports is no port";
  const auto one_file = std::string(kErrors) + std::string(kData);
  EXPECT_EQ(parseQueryErrors(one_file, one_file)->at({guid, 5})[Counter::SymbolErrors], 120u);
}

// What the error list does not name counts as 0: it must be there, whole, and leave nothing out.
TEST(CounterText, refusesAnErrorListThatIsNotWhole) {
  const auto refusal = [](std::string text) {
    const auto read = parseQueryErrors(text, text);
    return read ? std::string("read") : read.error().str();
  };
  const auto with = [&](std::string_view from, std::string_view to) {
    auto errors = std::string(kErrors);
    errors.replace(errors.find(from), from.size(), to);
    return refusal(errors + std::string(kData));
  };
  EXPECT_THAT(refusal(std::string(kData)), HasSubstr("`ibqueryerrors --threshold-file /dev/null`"));
  EXPECT_THAT(refusal(std::string(kErrors)), HasSubstr("`ibqueryerrors --counters`"));
  EXPECT_THAT(
      refusal(std::string(kErrors.substr(0, kErrors.find("\n   GUID") + 1)) + std::string(kData)),
      HasSubstr("the errors are cut"));
  EXPECT_THAT(refusal(std::string(kData.substr(0, kData.find("\n##") + 1)) + std::string(kErrors)),
              HasSubstr("the data counters are cut"));
  EXPECT_THAT(refusal(std::string(kErrors) + std::string(kErrors) + std::string(kData)),
              HasSubstr("twice"));
  EXPECT_THAT(with("Thresholds: ", "Thresholds: [SymbolErrorCounter = 10]"),
              HasSubstr("[SymbolErrorCounter = 10] are not listed"));
  EXPECT_THAT(with("Suppressed:", "Suppressed: PortRcvSwitchRelayErrors"),
              HasSubstr("PortRcvSwitchRelayErrors are not listed"));
  EXPECT_THAT(with("## Thresholds: ", "## Thresholds: \n##          2 PMA query failures"),
              HasSubstr("2 ports did not answer"));
  EXPECT_THAT(with("5 nodes", "3 nodes"), HasSubstr("of 5 nodes, the error counters of 3"));
  EXPECT_THAT(with("1 bad nodes", "2 bad nodes"), HasSubstr("a part of it is lost"));
  EXPECT_THAT(with("1 ports have", "7 ports have"), HasSubstr("a part of it is lost"));
}

TEST(CounterText, refusesPerfqueryThatEndsWithinALine) {
  const std::string whole(kPerfquery);
  EXPECT_TRUE(parsePerfquery(whole));
  for (std::size_t cut : {1u, 2u, 5u}) {
    const auto read = parsePerfquery(whole.substr(0, whole.size() - cut));
    ASSERT_FALSE(read) << cut;
    EXPECT_THAT(read.error().str(), HasSubstr("may be cut"));
  }
}

TEST(CounterText, refusesHalfAQuery) {
  EXPECT_FALSE(parseQueryErrors(kErrors.substr(0, 80), kData)) << "the tool was killed";
  EXPECT_FALSE(parseQueryErrors(kErrors, kData.substr(0, 200)));
  EXPECT_FALSE(parseQueryErrors(
      "   GUID 0x20 port five: [PortXmitWait == 1]\n## Summary: 1 nodes checked", kData));
  EXPECT_FALSE(parseQueryErrors(
      "   GUID 0x20 port 5: [PortXmitWait 1]\n## Summary: 1 nodes checked", kData));
}

}  // namespace
}  // namespace muster::links::test
