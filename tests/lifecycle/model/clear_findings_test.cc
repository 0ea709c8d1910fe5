// SPDX-License-Identifier: Apache-2.0
// Findings that a person ends: which may be, what is said of it, and all or none.
#include "lifecycle/model/clear_findings.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>

namespace muster::lifecycle {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const Subject kOne{NodeName("gpu001")}, kTwo{NodeName("gpu002")};
const FacetName kDriver("driver.nvidia");

class ClearFindingsTest : public ::testing::Test {
 protected:
  void found(const Subject& subject, const FacetName& facet, const std::string& source,
             const std::string& text) {
    ASSERT_TRUE(store_.addFinding({{subject, facet}, Severity::Error, text, "", "", {}, source}));
  }
  auto clear(std::vector<Subject> subjects, const FacetName& facet = kDriver,
             const std::string& reason = "the card was replaced") {
    return clearFindings(store_, {std::move(subjects), facet, "alice@ops", reason}, {});
  }
  ErrorCode refusal(std::vector<Subject> subjects, const FacetName& facet, std::string_view words,
                    const std::string& reason = "the card was replaced") {
    const auto done = clear(std::move(subjects), facet, reason);
    EXPECT_FALSE(done);
    if (done) return ErrorCode::Internal;
    EXPECT_THAT(done.error().str(), HasSubstr(words));
    return done.error().code();
  }
  std::size_t open() { return store_.findings(nullptr)->size(); }

  test::MemoryStore store_;
};

TEST_F(ClearFindingsTest, endThoseOfTheFacetAndSaySo) {
  found(kOne, kDriver, "", "an old complaint");
  found(kOne, kDriver, engineSource("provision"), "it did not install");
  found(kOne, FacetName("image"), engineSource("provision"), "another facet");
  found(kTwo, kDriver, "", "another node");
  EXPECT_THAT(*clear({kOne}), SizeIs(2));
  EXPECT_EQ(open(), 2u);
  std::vector<std::string> said;
  const auto events = *store_.lastEvents(10, &kOne);
  for (const auto& event : events) said.push_back(event.text);
  EXPECT_THAT(
      said,
      UnorderedElementsAre(
          "alice@ops clears the finding 'an old complaint' of driver.nvidia: the card was replaced",
          "alice@ops clears the finding 'it did not install' of driver.nvidia: the card was "
          "replaced"));
}

TEST_F(ClearFindingsTest, areClearedOfAllNodesOrOfNone) {
  found(kOne, kDriver, "", "an old complaint");
  EXPECT_EQ(refusal({kOne, kTwo}, kDriver, "gpu002 has no finding of facet driver.nvidia"),
            ErrorCode::NotFound);
  EXPECT_EQ(refusal({kOne}, kDriver, "--reason", ""), ErrorCode::InvalidInput);
  EXPECT_EQ(open(), 1u);
  found(kTwo, kDriver, "", "an old complaint");
  EXPECT_THAT(*clear({kOne, kTwo}), SizeIs(2));
  EXPECT_EQ(open(), 0u);
}

TEST_F(ClearFindingsTest, thatStandForAStateAreEndedWhereItIs) {
  const FacetName quarantine("quarantine"), silent("agent-silent"), breaker("breaker.batch");
  found(kOne, quarantine, kQuarantineSource, "in quarantine");
  found(kOne, silent, kMonitorSource, "nobody hears it");
  found(Subject::cluster(), breaker, kMonitorSource, "CIRCUIT BREAKER");
  EXPECT_EQ(refusal({kOne}, quarantine, "`muster quarantine remove gpu001"), ErrorCode::Denied);
  EXPECT_EQ(refusal({kOne}, silent, "`muster why gpu001`"), ErrorCode::Denied);
  EXPECT_EQ(refusal({Subject::cluster()}, breaker, "`muster monitor --acknowledge"),
            ErrorCode::Denied);
  EXPECT_EQ(open(), 3u);
}

TEST_F(ClearFindingsTest, waitForAnActionThatIsUnderWay) {
  found(kOne, kDriver, engineSource("provision"), "it is late");
  Intent intent;
  intent.id = "i1";
  intent.action.facet = {kOne, kDriver};
  ASSERT_TRUE(store_.openIntent(intent));
  EXPECT_EQ(refusal({kOne}, kDriver, "is under way"), ErrorCode::Denied);
  ASSERT_TRUE(store_.closeIntent("i1", IntentState::Done, "", {}));
  EXPECT_TRUE(clear({kOne}));
}

}  // namespace
}  // namespace muster::lifecycle
