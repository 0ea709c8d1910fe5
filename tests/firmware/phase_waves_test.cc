// SPDX-License-Identifier: Apache-2.0
// Several components by one activation: staged one after the other, nothing switched before the
// last is taken in, nothing flashed twice however often muster dies.
#include "bmc/composite_bmc.h"
#include "firmware/activation_policy.h"
#include "firmware/baselines.h"
#include "firmware/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "tests/firmware/one_bmc.h"
#include "tests/firmware/phase_fixture.h"
#include "tests/firmware/pldm_package.h"
#include "tests/firmware/slow_to_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;
using test::FakeBmc;

class FirmwareWaves : public FirmwarePhaseTest {
 protected:
  FirmwareWaves() {
    declare(
        {{"BMC", "2.1.0"}, {"BIOS", "1.4.2"}, {"NIC", "22.5"}, {"CPLD", "0x14"}, {"EROT", "1.9"}});
    bmc.components["NIC"] = {.version = "22.1", .activates = FakeBmc::Activates::PowerCycle};
    bmc.components["CPLD"] = {.version = "0x12", .activates = FakeBmc::Activates::AcCycle};
    bmc.components["EROT"] = {.version = "1.8", .activates = FakeBmc::Activates::AcCycle};
    bmc.offers_ac_cycle = true;
    bmc.info.power = bmc::PowerState::On;
  }
  void declare(const std::vector<std::pair<std::string, std::string>>& versions) {
    auto& baseline = cluster.firmware["rack-1"];
    baseline.components.clear();
    baseline.order.clear();
    for (const auto& [name, version] : versions) {
      baseline.components.push_back(component(name, version));
      baseline.order.push_back(name);
    }
  }
  /// As the engine: the plan's actions in order, each with an intent of its own.
  Result<void> apply() {
    auto observed = loop.run(phase->observe(lifecycle::Subject(kNode)));
    if (!observed) return fail(observed.error());
    lifecycle::FactSet facts;
    for (auto& fact : *observed) facts.put(std::move(fact));
    std::vector<lifecycle::Goal> unmet;
    for (auto& goal : phase->goals(cluster, lifecycle::Subject(kNode), facts))
      if (!lifecycle::matches(goal.want,
                              facts.value(goal.facet.subject, goal.facet.facet).value_or("")))
        unmet.push_back(std::move(goal));
    for (const auto& goal : unmet) {
      if (!goal.blocked.empty()) return fail(ErrorCode::Conflict, goal.blocked);
      journal.operation_id.clear();
      auto done = driveThroughCrashes(action(goal.facet.facet.str().substr(9), goal.want));
      if (!done) return done;
    }
    return {};
  }
  void expectBaseline() {
    for (const auto& component : cluster.firmware["rack-1"].components)
      EXPECT_EQ(bmc.components[component.name].version, component.version) << component.name;
  }
};

TEST_F(FirmwareWaves, aBaselineCostsAsManyActivationsAsItNeeds) {
  ASSERT_TRUE(apply());
  expectBaseline();
  EXPECT_EQ(bmc.uploads, 5);
  EXPECT_EQ(bmc.bmc_resets, 1);
  EXPECT_EQ(bmc.ac_cycles, 1);
  EXPECT_EQ(bmc.power_cycles, 2);  // one for BIOS and NIC, one after the AC cycle
  std::vector<std::string> order;
  for (const auto& call : bmc.calls)
    if (call.starts_with("startUpdate") || call == "resetBmc" || call == "acCycle" ||
        call == "power On")
      order.push_back(call);
  EXPECT_THAT(order, testing::ElementsAre("startUpdate BMC", "resetBmc", "startUpdate BIOS",
                                          "startUpdate NIC", "power On", "startUpdate CPLD",
                                          "startUpdate EROT", "acCycle", "power On"));
}

/// Its second power supply shows what the test says.
class WithSupplies final : public bmc::ForwardingBmc {
 public:
  using ForwardingBmc::ForwardingBmc;
  Async<std::vector<bmc::SensorReading>> sensors() override {
    if (on_read) on_read();
    co_return std::vector<bmc::SensorReading>{{"PSU_0", "PowerSupply", "W", 400, first, {}},
                                              {"PSU_1", "PowerSupply", "", 0, "OK", {}}};
  }
  std::string first = "OK";
  std::function<void()> on_read;
};

class FirmwareOfSupplies : public FirmwareWaves {
 protected:
  FirmwareOfSupplies() {
    declare({{"PSU_0", "1.4"}, {"PSU_1", "1.4"}});
    for (const char* name : {"PSU_0", "PSU_1"})
      bmc.components[name] = {.version = "1.3", .activates = FakeBmc::Activates::AtOnce};
    auto owned = std::make_unique<WithSupplies>(bmc);
    supplies = owned.get();
    one = std::make_unique<OneBmc>(std::move(owned));
    phase = makeFirmwarePhase(cluster, *one, loop.clock, loop.workers);
  }
  WithSupplies* supplies = nullptr;
  std::unique_ptr<OneBmc> one;
};

TEST_F(FirmwareOfSupplies, oneThatIsNotWellKeepsTheOthersAsTheyAre) {
  supplies->on_read = [this] { supplies->first = bmc.uploads > 0 ? "Critical" : "OK"; };
  const auto done = apply();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(),
              testing::HasSubstr("PSU_1 1.4 is not flashed: not redundant: PSU_0 is Critical"));
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwareOfSupplies, oneThatRestartsIsWaitedFor) {
  int reads = 0;
  supplies->on_read = [this, &reads] {
    supplies->first = bmc.uploads == 1 && ++reads < 4 ? "Warning" : "OK";
  };
  EXPECT_TRUE(apply());
  expectBaseline();
  EXPECT_GE(reads, 4);
}

TEST(FirmwareOfSupply, aSingleOneIsNotRedundantNorIsOneOfWhichNothingIsKnown) {
  EXPECT_EQ(whyNotRedundant({}), "not redundant: the BMC shows 0 good power supplies");
  EXPECT_EQ(whyNotRedundant({{"A", "PowerSupply", "W", 1, "OK", {}},
                             {"B", "PowerSupply", "W", 1, "", {}},
                             {"C", "Power", "W", 1, "OK", {}}}),
            "not redundant: the BMC shows 1 good power supply");
  EXPECT_EQ(whyNotRedundant(
                {{"A", "PowerSupply", "W", 1, "OK", {}}, {"B", "PowerSupply", "W", 1, "OK", {}}}),
            "");
}

TEST_F(FirmwareWaves, nothingIsFlashedTwiceWhereverMusterDies) {
  for (int record = 1; record < 60; ++record) {
    SCOPED_TRACE(record);
    for (auto& [name, c] : bmc.components) c = {.version = "0.1", .activates = c.activates};
    bmc.info.power = bmc::PowerState::On;
    bmc.uploads = 0;
    journal.crash_after_record = record;
    const int before = crashed;
    ASSERT_TRUE(apply());
    expectBaseline();
    for (const auto& [name, c] : bmc.components) EXPECT_EQ(c.uploads, 1) << name;
    if (crashed == before) return;  // it wrote less often than that
  }
  FAIL() << "sixty records did not suffice";
}

TEST_F(FirmwareWaves, nothingIsFlashedTwiceWhateverEffectMusterDiesAfter) {
  for (const char* effect :
       {"startUpdate", "resetBmc", "acCycle", "power On", "power GracefulShutdown"}) {
    SCOPED_TRACE(effect);
    for (auto& [name, c] : bmc.components) c = {.version = "0.1", .activates = c.activates};
    bmc.info.power = bmc::PowerState::On;
    bmc.crash_after = effect;
    ASSERT_TRUE(apply());
    expectBaseline();
    EXPECT_TRUE(bmc.crash_after.empty());
    EXPECT_EQ(bmc.info.power, bmc::PowerState::On);
    for (const auto& [name, c] : bmc.components) EXPECT_EQ(c.uploads, 1) << name;
  }
}

TEST_F(FirmwareWaves, powerThatADeadProcessHasTakenAwayIsGivenBack) {
  declare({{"CPLD", "0x14"}});
  bmc.crash_after = "acCycle";
  bmc.dies_dark = true;
  ASSERT_TRUE(apply());
  expectBaseline();
  EXPECT_EQ(bmc.count("restorePower"), 1);
  EXPECT_EQ(bmc.ac_cycles, 1);
  EXPECT_EQ(bmc.uploads, 1);
}

TEST_F(FirmwareWaves, whatItTookIsLearnedAndShown) {
  declare({{"BIOS", "1.4.2"}});
  bmc.task_polls = 200;  // two seconds each
  ASSERT_TRUE(apply());
  lifecycle::FactSet facts;
  const auto seen = loop.run(phase->verify(action("BIOS", "1.4.2")));
  for (const auto& fact : *seen) facts.put(fact);
  const auto measured = measuredBy(facts, lifecycle::Subject(kNode));
  ASSERT_TRUE(measured.contains("BIOS"));
  EXPECT_NEAR(static_cast<double>(measured.at("BIOS").count()), 400, 20);
  auto bios = *cluster.firmware["rack-1"].find("BIOS");
  EXPECT_EQ(flashTime(bios, measured), 7min);
  EXPECT_EQ(flashTime(bios), 4min);
  bios.minutes = 3;
  EXPECT_EQ(flashTime(bios, measured), 3min);
  EXPECT_EQ(typicalOf({{{"A", 10s}}, {{"A", 500s}, {"B", 7s}}, {{"A", 30s}}}),
            (Durations{{"A", 30s}, {"B", 7s}}));
}

TEST_F(FirmwareWaves, powerStaysWhileASecondSlotIsFilled) {
  bmc.copies_for = 7;
  declare({{"BIOS", "1.4.2"}});
  ASSERT_TRUE(apply());
  const auto cut = std::find(bmc.calls.begin(), bmc.calls.end(), "power GracefulShutdown");
  EXPECT_EQ(std::count(bmc.calls.begin(), cut, "backgroundCopies"), 8);
}

TEST_F(FirmwareWaves, aCopyThatNeverEndsIsAFindingAndNoPowerIsCut) {
  bmc.copies_for = 1 << 20;
  declare({{"BIOS", "1.4.2"}});
  const auto done = apply();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), testing::HasSubstr("background copy of HGX_ERoT_FPGA_0"));
  EXPECT_EQ(bmc.count("power"), 0);
}

TEST_F(FirmwareWaves, withoutAnAcCycleSomebodyIsAskedAndTheWorkWaits) {
  bmc.offers_ac_cycle = false;
  declare({{"CPLD", "0x14"}});
  std::vector<std::string> waits;
  for (int call = 0; call < 40; ++call) {
    auto outcome = loop.run(phase->act(action("CPLD", "0x14"), journal));
    ASSERT_TRUE(outcome) << outcome.error().str();
    if (auto* again = std::get_if<lifecycle::Again>(&*outcome)) {
      waits.push_back(again->waiting_for);
      loop.clock.advance(again->after);
    }
  }
  EXPECT_THAT(waits.back(), testing::HasSubstr("its power cords to be pulled"));
  EXPECT_EQ(bmc.uploads, 1);
  bmc.components["CPLD"].version = "0x14";  // somebody did
  EXPECT_TRUE(drive(action("CPLD", "0x14")));
  EXPECT_EQ(bmc.uploads, 1);
  EXPECT_EQ(bmc.info.power, bmc::PowerState::On);
}

TEST_F(FirmwareWaves, aHostThatWasSwitchedOffIsSwitchedOnWhateverItsBaseboardShows) {
  const auto slow = Error(ErrorCode::Unavailable,
                          "HGX_FW_GPU_SXM_1: the BMC answered 503: HMCCommuicationFailed");
  bmc.on_power = [&](bmc::PowerState power) {
    bmc.clearFailures("firmware");
    if (power == bmc::PowerState::Off) bmc.failNext("firmware", slow, 100'000);
  };
  for (const char* effect : {"power GracefulShutdown", "power On"}) {
    SCOPED_TRACE(effect);
    for (auto& [name, c] : bmc.components) c = {.version = "0.1", .activates = c.activates};
    declare({{"BIOS", "1.4.2"}});
    journal = Journal();
    bmc.crash_after = effect;
    const auto cycles = bmc.power_cycles;
    ASSERT_TRUE(driveThroughCrashes(action("BIOS", "1.4.2")));
    EXPECT_TRUE(bmc.crash_after.empty());
    EXPECT_EQ(bmc.info.power, bmc::PowerState::On);
    EXPECT_EQ(bmc.power_cycles, cycles + 1);
  }
  bmc.components["BIOS"] = {.version = "0.1", .staged = "1.4.2"};  // killed between off and on
  journal = Journal();
  journal.operation_id = "+BIOS=1.4.2 activate on " + muster::toString(loop.clock.now());
  ASSERT_TRUE(loop.run(bmc.power(bmc::PowerAction::ForceOff)));
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.info.power, bmc::PowerState::On);
}

TEST_F(FirmwareWaves, aSteppingStoneIsRunBeforeTheNext) {
  auto& baseline = cluster.firmware["rack-1"];
  declare({{"BIOS", "1.4.2"}});
  const auto intermediate = component("BIOS-via", "1.4.1");
  baseline.components[0].intermediate = {{"1.4.1", intermediate.file, intermediate.sha256}};
  ASSERT_TRUE(apply());
  expectBaseline();
  EXPECT_EQ(bmc.components["BIOS"].uploads, 2);
  EXPECT_EQ(bmc.power_cycles, 2);
}

TEST_F(FirmwareWaves, aConstraintThatCannotBeMetBlocksItsGoalAndNamesItself) {
  auto& baseline = cluster.firmware["rack-1"];
  declare({{"NIC", "22.5"}, {"BIOS", "1.4.2"}});
  baseline.constraints.push_back(
      *inventory::FirmwareConstraint::parse("NIC >= 22.5 needs CPLD >= 0x14"));
  const auto observed = loop.run(phase->observe(lifecycle::Subject(kNode)));
  lifecycle::FactSet facts;
  for (const auto& fact : *observed) facts.put(fact);
  EXPECT_EQ(facts.value(lifecycle::Subject(kNode), FacetName("firmware.CPLD")),
            "0x12");  // known although no goal
  for (const auto& goal : phase->goals(cluster, lifecycle::Subject(kNode), facts)) {
    if (goal.facet.facet.str() == "firmware.NIC") {
      EXPECT_THAT(goal.blocked, testing::HasSubstr("NIC >= 22.5 needs CPLD >= 0x14"));
    } else {
      EXPECT_TRUE(goal.blocked.empty()) << goal.blocked;
    }
  }
  auto outcome = loop.run(phase->act(action("NIC", "22.5"), journal));
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(std::holds_alternative<lifecycle::Blocked>(*outcome));
  EXPECT_EQ(bmc.uploads, 0);
}

TEST_F(FirmwareWaves, aPackageOfAnotherVersionIsNeverSent) {
  const auto package = test::PldmBuilder{.components = {{"1.4.9", "x"}}}.build();
  const auto file = folder / "bios.fwpkg";
  ASSERT_TRUE(io::writeFileAtomic(file, package));
  declare({{"BIOS", "1.4.2"}});
  auto& bios = cluster.firmware["rack-1"].components[0];
  bios.file = file;
  bios.sha256 = io::sha256Hex(package);
  const auto done = apply();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(),
              testing::AllOf(testing::HasSubstr("1.4.9"), testing::HasSubstr("1.4.2")));
  EXPECT_EQ(bmc.uploads, 0);
}

TEST_F(FirmwareWaves, onlyDeclaredFilesAreServedToBmcs) {
  const auto routes = imageRoutes(cluster, loop.clock, loop.workers);
  ASSERT_EQ(routes.size(), 1u);
  const auto& bios = *cluster.firmware["rack-1"].find("BIOS");
  auto get = [&](const std::string& path) {
    io::ServerRequest request;
    request.target = path;
    return loop.run(routes[0].handle(std::move(request)));
  };
  const auto served = get("/firmware/" + bios.sha256 + "/BIOS.fw");
  ASSERT_TRUE(std::holds_alternative<io::FileBody>(served.body));
  const auto declared = *io::readFile(bios.file);
  const auto copy = std::get<io::FileBody>(served.body).path;
  EXPECT_EQ(*io::readFile(copy), declared);
  EXPECT_FALSE(std::ofstream(copy).is_open() && std::ofstream(copy) << "other" &&
               *io::readFile(copy) != declared)
      << "sealed";
  // A change between two requests, or in the middle of one, reaches nobody; once the copy is let go
  // nothing is served at all.
  ASSERT_TRUE(io::writeFileAtomic(bios.file, std::string(declared.size(), 'x')));
  EXPECT_EQ(*io::readFile(copy), declared);
  EXPECT_EQ(
      *io::readFile(std::get<io::FileBody>(get("/firmware/" + bios.sha256 + "/BIOS.fw").body).path),
      declared);
  loop.clock.advance(std::chrono::minutes(11));
  const auto refused = get("/firmware/" + bios.sha256 + "/BIOS.fw");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(std::get<std::string>(refused.body), testing::HasSubstr("it is not served"));
  for (const auto* other : {"/firmware/", "/firmware/../../etc/passwd", "/firmware/aaaa/BIOS.fw"})
    EXPECT_EQ(get(other).status, 404) << other;
}

/// BIOS is staged, then the BMC says that it cannot install NIC.
class FirmwareWaveThatFails : public FirmwareWaves {
 protected:
  FirmwareWaveThatFails() {
    declare({{"BIOS", "1.4.2"}, {"NIC", "22.5"}});
    bmc.failing_update = "NIC";
  }
  std::string whyNow(const std::string& component) {
    lifecycle::FactSet facts;
    const auto seen = loop.run(phase->verify(action("BIOS", "1.4.2")));
    for (const auto& fact : *seen) facts.put(fact);
    for (const auto& goal : phase->goals(cluster, lifecycle::Subject(kNode), facts))
      if (goal.facet.facet.str() == "firmware." + component) return goal.blocked;
    return "no such goal";
  }
};

TEST_F(FirmwareWaveThatFails, whatWasStagedBesideItIsSwitchedOnAndTheReasonIsKept) {
  const auto done = drive(action("BIOS", "1.4.2"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), testing::HasSubstr("did not install NIC 22.5"));
  EXPECT_EQ(bmc.components["BIOS"].version, "1.4.2");
  EXPECT_EQ(bmc.power_cycles, 1);
  ASSERT_EQ(journal.findings.size(), 1u);
  EXPECT_THAT(journal.findings[0].evidence, testing::HasSubstr("image verification failed"));
  restart();  // a new process asks for the same action
  const auto again = drive(action("BIOS", "1.4.2"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().str(), done.error().str());
  EXPECT_EQ(bmc.uploads, 2);
}

TEST_F(FirmwareWaveThatFails, noLaterPlanFlashesItAgainByItself) {
  ASSERT_FALSE(drive(action("BIOS", "1.4.2")));
  const auto why = whyNow("NIC");
  EXPECT_THAT(why, testing::AllOf(testing::HasSubstr("did not install NIC 22.5"),
                                  testing::HasSubstr("muster firmware retry gpu001")));
  EXPECT_EQ(whyNow("BIOS"), "");
  EXPECT_EQ(
      whyNow("NIC"),
      "");  // said once: it is a fact of the store from then on, until somebody forgets it there
}

TEST_F(FirmwareWaveThatFails, endsTheSameWayWhereverMusterDies) {
  for (int record = 1; record < 40; ++record) {
    SCOPED_TRACE(record);
    for (auto& [name, c] : bmc.components) c = {.version = "0.1", .activates = c.activates};
    bmc.info.power = bmc::PowerState::On;
    bmc.failing_update = "NIC";
    journal.operation_id.clear();
    journal.crash_after_record = record;
    const int before = crashed;
    const auto done = driveThroughCrashes(action("BIOS", "1.4.2"));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().str(), testing::HasSubstr("did not install NIC 22.5"));
    EXPECT_EQ(bmc.components["BIOS"].version, "1.4.2");
    EXPECT_EQ(bmc.components["BIOS"].uploads, 1);
    EXPECT_EQ(bmc.components["NIC"].uploads, 1);
    EXPECT_NE(whyNow("NIC"), "");
    if (crashed == before) return;
  }
  FAIL() << "forty records did not suffice";
}

TEST_F(FirmwareWaveThatFails, oneThatDoesNotComeToRunIsNamedAndNotStagedAgain) {
  bmc.failing_update.clear();
  bmc.components["NIC"].update_gives = "22.1";  // written, and the old version still shows
  const auto done = drive(action("BIOS", "1.4.2"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), testing::HasSubstr("NIC 22.5 is not active"));
  EXPECT_EQ(whyNow("BIOS"), "");
  restart();
  ASSERT_FALSE(drive(action("BIOS", "1.4.2")));  // its journal says how it ended
  EXPECT_THAT(whyNow("NIC"), testing::HasSubstr("is not active"));
}

TEST_F(FirmwareWaveThatFails, aFileThatIsRefusedKeepsNothingFromBeingSwitchedOn) {
  bmc.failing_update.clear();
  bmc.refused_update = "NIC";
  const auto done = drive(action("BIOS", "1.4.2"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), testing::HasSubstr("not licensed"));
  EXPECT_EQ(bmc.components["BIOS"].version, "1.4.2");
  EXPECT_EQ(whyNow("NIC"), "");  // nothing was written: with the licence there, it is tried again
}

/// BIOS is staged; NIC is next. Whatever comes between, BIOS is not sent again.
class FirmwareWaveThatIsDisturbed : public FirmwareWaveThatFails {
 protected:
  FirmwareWaveThatIsDisturbed() { bmc.failing_update.clear(); }
  void stageTheFirst() {
    for (int call = 0; call < 50 && !journal.operation_id.starts_with("+BIOS"); ++call) {
      auto outcome = loop.run(phase->act(action("BIOS", "1.4.2"), journal));
      ASSERT_TRUE(outcome) << outcome.error().str();
      loop.clock.advance(std::get<lifecycle::Again>(*outcome).after);
    }
    ASSERT_EQ(bmc.components["BIOS"].uploads, 1);
  }
};

TEST_F(FirmwareWaveThatIsDisturbed, oddAnswersThatPassDoNotEndIt) {
  for (const char* method : {"tasks", "task", "firmware", "system", "backgroundCopies"}) {
    SCOPED_TRACE(method);
    for (auto& [name, c] : bmc.components) c = {.version = "0.1", .activates = c.activates};
    journal = Journal();
    journal.id = method;
    bmc.info.power = bmc::PowerState::On;
    stageTheFirst();
    bmc.failNext(method, Error(ErrorCode::InvalidInput, "400: an internal error"), 5);
    const auto done = drive(action("BIOS", "1.4.2"));
    ASSERT_TRUE(done) << done.error().str();
    for (const char* name : {"BIOS", "NIC"}) EXPECT_EQ(bmc.components[name].uploads, 1) << name;
    EXPECT_EQ(bmc.components["NIC"].version, "22.5");
  }
}

TEST_F(FirmwareWaveThatIsDisturbed, oneThatLastsEndsItAndNothingIsSentAgain) {
  stageTheFirst();
  bmc.failNext("firmware", Error(ErrorCode::Denied, "403: no privilege"), 1'000);
  bmc.failNext("tasks", Error(ErrorCode::Denied, "403: no privilege"), 1'000);
  const auto done = drive(action("BIOS", "1.4.2"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(),
              testing::AllOf(testing::HasSubstr("broken off"), testing::HasSubstr("no privilege")));
  EXPECT_EQ(bmc.count("power"), 0);
  bmc.clearFailures("firmware");
  bmc.clearFailures("tasks");
  EXPECT_THAT(whyNow("BIOS"), testing::AllOf(testing::HasSubstr("no privilege"),
                                             testing::HasSubstr("muster firmware retry gpu001")));
}

TEST_F(FirmwareWaveThatIsDisturbed, itEndsItselfBeforeItIsCalledOff) {
  stageTheFirst();
  bmc.failNext("tasks", Error(ErrorCode::Unavailable, "503: busy"), 100'000);
  auto bios = action("BIOS", "1.4.2");
  bios.deadline = 2h;
  const auto begun = loop.clock.steady();
  const auto done = drive(bios);
  ASSERT_FALSE(done);
  EXPECT_LT(loop.clock.steady() - begun, 2h);
  EXPECT_THAT(done.error().str(), testing::AllOf(testing::HasSubstr("not finished in time"),
                                                 testing::HasSubstr("503: busy")));
  EXPECT_NE(whyNow("BIOS"), "");
}

TEST_F(FirmwareWaveThatIsDisturbed, anUploadThatOutlastsItsDeadlineTakesNothingWithIt) {
  SlowToAnswer slow(bmc, loop.clock);
  phase = makeFirmwarePhase(cluster, slow, loop.clock, loop.workers);
  auto bios = action("BIOS", "1.4.2");
  bios.deadline = 2h;
  const auto begun = loop.clock.steady();
  const auto done = drive(bios);
  ASSERT_FALSE(done);
  EXPECT_LT(loop.clock.steady() - begun, 2h);
  EXPECT_THAT(done.error().str(), testing::HasSubstr("not finished in time"));
  lifecycle::FactSet facts;
  const auto seen = loop.run(phase->verify(bios));
  for (const auto& fact : *seen) facts.put(fact);
  for (const char* name : {"BIOS", "NIC"}) {
    EXPECT_TRUE(facts.value(lifecycle::Subject(kNode), failedFacet(name))) << name;
    EXPECT_EQ(bmc.components[name].uploads, 1) << name;
  }
}

TEST_F(FirmwareWaveThatIsDisturbed, whatHasFailedBeforeIsNotSentBesideAnother) {
  journal.known.put({lifecycle::Subject(kNode),
                     failedFacet("NIC"),
                     "22.5 NIC 22.5 is not active",
                     {},
                     "muster",
                     {}});
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.components["BIOS"].version, "1.4.2");
  EXPECT_EQ(bmc.components["NIC"].uploads, 0);
}

TEST_F(FirmwareWaveThatIsDisturbed, nothingIsSwitchedWhileTheBmcWorksOnAnUpdateOfSomebodyElse) {
  bmc.components["NIC"].version = "22.5";
  ASSERT_TRUE(loop.run(phase->act(action("BIOS", "1.4.2"), journal)));  // sent, and being written
  bmc.task_by_uri["/redfish/v1/TaskService/Tasks/other"] =
      FakeBmc::FakeTask{"EROT", "1.9", 1 << 20};
  for (int call = 0; call < 20; ++call) {
    auto outcome = loop.run(phase->act(action("BIOS", "1.4.2"), journal));
    ASSERT_TRUE(outcome && std::holds_alternative<lifecycle::Again>(*outcome));
    loop.clock.advance(std::get<lifecycle::Again>(*outcome).after);
  }
  EXPECT_EQ(bmc.count("power"), 0);
  bmc.finishTasks();
  ASSERT_TRUE(drive(action("BIOS", "1.4.2")));
  EXPECT_EQ(bmc.components["BIOS"].uploads, 1);
}

}  // namespace
}  // namespace muster::firmware
