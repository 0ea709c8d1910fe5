// SPDX-License-Identifier: Apache-2.0
// A gate that asks the node's BMC: event logs before and after its load, power supplies.
#include "validate/bmc_gate.h"

#include "tests/validate/phase_fixture.h"
#include "validate/gates.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using wire::CheckStatus;

bmc::EventLogCursor::Kept entry(const char* severity, const char* message) {
  return {.seen = {}, .created = "2026-11-20T10:00:00Z", .severity = severity, .message = message};
}
bmc::SupplyRedundancy group(const char* state, const char* health) {
  return {.name = "Group 1", .mode = "N+m", .state = state, .health = health, .members = 2};
}

TEST(BmcGateEvaluation, criticalEntriesFailAndWarningsAreNamed) {
  EXPECT_EQ(evaluateBmcLog({}, false).status, CheckStatus::Pass);
  const auto warned = evaluateBmcLog({entry("Warning", "Fan 3 is slow")}, false);
  EXPECT_EQ(warned.status, CheckStatus::Pass);
  EXPECT_THAT(warned.text, HasSubstr("Fan 3 is slow"));
  EXPECT_EQ(warned.values.at("new_warnings"), 1);
  EXPECT_EQ(evaluateBmcLog({entry("Warning", "Fan 3 is slow")}, true).status, CheckStatus::Fail);
  const auto failed = evaluateBmcLog(
      {entry("Warning", "Fan 3 is slow"), entry("Critical", "PSU 2 lost input")}, false);
  EXPECT_EQ(failed.status, CheckStatus::Fail);
  EXPECT_THAT(failed.text, AllOf(HasSubstr("1 critical entries and 1 warnings"),
                                 HasSubstr("PSU 2 lost input (2026-11-20T10:00:00Z)"),
                                 ::testing::Not(HasSubstr("Fan"))));
}

TEST(BmcGateEvaluation, suppliesMustBeThereWellAndRedundant) {
  const bmc::PowerSupply good{"PSU 1", "Enabled", "OK"}, other{"PSU 2", "Enabled", "OK"};
  const auto seen = [](std::vector<bmc::PowerSupply> supplies,
                       std::vector<bmc::SupplyRedundancy> groups = {},
                       std::optional<std::size_t> expected = {}) {
    return evaluatePowerSupplies({std::move(supplies), std::move(groups)}, expected);
  };
  EXPECT_THAT(seen({good, other}).text, HasSubstr("says nothing of redundancy"));
  EXPECT_EQ(seen({good, other}, {group("Enabled", "OK")}).status, CheckStatus::Pass);
  EXPECT_EQ(seen({good, {"PSU 2", "StandbySpare", "OK"}}).status, CheckStatus::Pass);
  EXPECT_THAT(seen({good, {"PSU 2", "Enabled", "Critical"}}).text,
              HasSubstr("PSU 2 is Enabled, its health Critical"));
  EXPECT_EQ(seen({good, {"PSU 2", "UnavailableOffline", "OK"}}).status, CheckStatus::Fail)
      << "its lead is pulled";
  EXPECT_THAT(seen({good, {"PSU 2", "Absent", ""}}).text, HasSubstr("the place of PSU 2 is empty"));
  EXPECT_EQ(seen({good, {"PSU 2", "Absent", ""}}, {}, 1).status, CheckStatus::Pass) << "by design";
  EXPECT_THAT(seen({good}, {}, 2).text, HasSubstr("1 of 2 power supplies are well"));
  EXPECT_THAT(seen({good, other}, {group("Enabled", "Critical")}).text, HasSubstr("not redundant"));
  EXPECT_EQ(seen({good, other}, {group("Disabled", "OK")}).status, CheckStatus::Fail);
}

TEST(BmcGateEvaluation, whatTheBmcDoesNotSayIsNoPass) {
  const bmc::PowerSupply silent{"PSU0", "", ""};
  EXPECT_EQ(evaluatePowerSupplies({{silent, silent}, {}}, {}).status, CheckStatus::NoData);
  EXPECT_EQ(evaluatePowerSupplies({{silent, silent}, {group("Enabled", "OK")}}, {}).status,
            CheckStatus::Pass)
      << "a DGX H100 says it of all of them together";
  EXPECT_EQ(evaluatePowerSupplies({{silent}, {group("", "")}}, {}).status, CheckStatus::NoData);
  EXPECT_EQ(evaluatePowerSupplies({}, {}).status, CheckStatus::NoData);
  EXPECT_EQ(evaluatePowerSupplies({{{"PSU 1", "Absent", ""}}, {}}, 0).status, CheckStatus::NoData);
}

class BmcInAGate : public ValidatePhaseTest {
 protected:
  BmcInAGate() {
    cluster_.gates["burn-in"].groups = {"host", "bmc"};
    supplies_.supplies = {{"PSU 1", "Enabled", "OK"}, {"PSU 2", "Enabled", "OK"}};
    log_.logs = {"SEL"};
    add("Critical", "an old one");
    restart();
    answerChecks("pass", "pass");
    agents_.answer(TaskKind::RunChecks,
                   [this](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
                     if (under_load_) under_load_();
                     return results({{"host.gemm", "pass"}, {"host.memory", "pass"}});
                   });
  }
  /// The controller begins anew on the same store.
  void restart() {
    phase_ = makeValidatePhase(
        cluster_, agents_, *certificates_, *store_, clock_, {}, {}, {}, nullptr,
        {[this](NodeName) { return readLog(); }, [this](NodeName) { return readSupplies(); }});
  }
  Async<bmc::EventLog> readLog() {
    ++log_reads_;
    if (silent_ > 0) {
      --silent_;
      co_return fail(ErrorCode::Unavailable, "no answer within 20 s");
    }
    if (refused_) co_return fail(ErrorCode::Denied, "wrong password");
    co_return log_;
  }
  Async<bmc::PowerSupplies> readSupplies() {
    if (refused_) co_return fail(ErrorCode::NotFound, "it shows none");
    co_return supplies_;
  }
  void add(const char* severity, const char* message) {
    const auto number = std::to_string(log_.entries.size() + 1);
    log_.entries.push_back(
        {number, "2026-11-20T10:00:0" + number + "Z", severity, message, "SEL", ""});
  }

  bmc::EventLog log_;
  bmc::PowerSupplies supplies_;
  std::function<void()> under_load_;
  int log_reads_ = 0, silent_ = 0;
  bool refused_ = false;
};

TEST_F(BmcInAGate, whatStoodInTheLogBeforeDoesNotCount) {
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(verified("gate.burn-in").starts_with("pass:"));
  EXPECT_EQ(log_reads_, 2);
}

TEST_F(BmcInAGate, aCriticalEntryUnderTheLoadFailsIt) {
  under_load_ = [this] { add("Critical", "Uncorrectable ECC, DIMM B4"); };
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("bmc.log fail: 1 critical entries"));
  EXPECT_THAT(outcome.error().str(), HasSubstr("DIMM B4"));
}

TEST_F(BmcInAGate, aWarningIsAFindingUnlessTheGateSaysMore) {
  under_load_ = [this] { add("Warning", "Correctable ECC rate, DIMM B4"); };
  ASSERT_TRUE(actToEnd("gate.burn-in"));
  ASSERT_THAT(context_.found, SizeIs(1));
  EXPECT_EQ(context_.found[0].severity, Severity::Warning);
  EXPECT_THAT(context_.found[0].text, HasSubstr("DIMM B4"));
  cluster_.gates["burn-in"].checks["bmc.log"]["fail_on"] = "warning";
  context_.id = "intent-2";
  EXPECT_FALSE(actToEnd("gate.burn-in"));
  cluster_.gates["burn-in"].checks["bmc.log"]["fail_on"] = "warnings, please";
  context_.id = "intent-3";
  EXPECT_FALSE(actToEnd("gate.burn-in")) << "a word that nobody knows asks for more, not for less";
}

/// The mark is the store's: what the load brought before the kill counts.
TEST_F(BmcInAGate, aControllerThatDiesUnderTheLoadDoesNotForgetWhereTheLogStood) {
  agents_.answer(TaskKind::RunChecks,
                 [this](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
                   add("Critical", "PSU 2 lost input");
                   return fail(ErrorCode::Unavailable, "the controller is killed here");
                 });
  EXPECT_FALSE(act("gate.burn-in"));
  restart();
  agents_.finish(context_.intentId(), results({{"host.gemm", "pass"}, {"host.memory", "pass"}}));
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("PSU 2 lost input"));
}

/// Nor does it begin where it could not before: the load is over by then.
TEST_F(BmcInAGate, aStartThatIsUnknownStaysUnknown) {
  silent_ = 5;
  agents_.answer(TaskKind::RunChecks,
                 [](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
                   return fail(ErrorCode::Unavailable, "the controller is killed here");
                 });
  for (int turn = 0; turn < 6; ++turn) (void)act("gate.burn-in");
  restart();
  agents_.finish(context_.intentId(), results({{"host.gemm", "pass"}, {"host.memory", "pass"}}));
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("no answer within 20 s"));
}

TEST_F(BmcInAGate, aBmcThatIsSilentForAWhileIsAskedAgain) {
  silent_ = 2;
  ASSERT_TRUE(actToEnd("gate.burn-in"));
  EXPECT_TRUE(verified("gate.burn-in").starts_with("pass:"));
  EXPECT_EQ(log_reads_, 4);
}

TEST_F(BmcInAGate, aBmcThatStaysSilentIsNoPass) {
  silent_ = 1'000;
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("bmc.log no-data: the BMC: "));
  EXPECT_THAT(outcome.error().str(), HasSubstr("no answer within 20 s"));
}

TEST_F(BmcInAGate, aBmcThatShowsNothingOrRefusesIsNoPass) {
  refused_ = true;
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(),
              AllOf(HasSubstr("wrong password"), HasSubstr("it shows none")));
  EXPECT_EQ(log_reads_, 1) << "what no try mends is not tried again";
}

TEST_F(BmcInAGate, aSupplyThatFailsUnderTheLoadFailsIt) {
  under_load_ = [this] { supplies_.supplies[1].state = "UnavailableOffline"; };
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("bmc.power fail: PSU 2 is UnavailableOffline"));
}

TEST_F(BmcInAGate, aControllerThatReadsNoBmcPassesNothing) {
  phase_ = makeValidatePhase(cluster_, agents_, *certificates_, *store_, clock_, {});
  const auto outcome = actToEnd("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("reads no BMC"));
}

TEST_F(BmcInAGate, gatesOfOtherGroupsLeaveTheBmcAlone) {
  cluster_.gates["burn-in"].groups = {"host"};
  ASSERT_TRUE(actToEnd("gate.burn-in"));
  EXPECT_EQ(log_reads_, 0);
}

}  // namespace
}  // namespace muster::validate
