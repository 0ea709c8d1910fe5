// SPDX-License-Identifier: Apache-2.0
// RAID volumes on the emulated controller, by Redfish, in virtual time: one that works at once with
// tasks, one that works at the machine's next start (iDRAC), one that answers with the volume
// (HPE).
#include "provision/storage/raid_phase.h"

#include "bmc/arbiter.h"
#include "inventory/model/hardware_raid.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace muster::provision {
namespace {

using lab::vbmc::FaultRule;
using lab::vbmc::Volume;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Disruption;
using lifecycle::Done;
using lifecycle::Outcome;
using lifecycle::Subject;
using testing::HasSubstr;

const NodeName kRaidNode("gpu001");
constexpr std::uint64_t kSmall = 480'103'981'056, kLarge = 3'840'755'982'336;

class OneRaidBmc final : public bmc::BmcFleet {
 public:
  explicit OneRaidBmc(std::unique_ptr<bmc::Bmc> bmc) : bmc_(std::move(bmc)) {}
  bmc::Bmc& at(const NodeName&) override { return *bmc_; }
  Async<void> close() override { co_return Result<void>(); }

 private:
  std::unique_ptr<bmc::Bmc> bmc_;
};

/// Dies when the n-th operation has been written down, or before it is.
class DyingContext final : public lifecycle::ActContext {
 public:
  test::FakeActContext& inner;
  int left;
  bool before;
  DyingContext(test::FakeActContext& c, int n, bool b) : inner(c), left(n), before(b) {}
  const std::string& intentId() const override { return inner.intentId(); }
  std::string operation() const override { return inner.operation(); }
  Async<void> recordOperation(std::string id) override {
    const bool now = left > 0 && --left == 0;
    if (now && before) throw test::FakeCrash{"recordOperation"};
    auto kept = co_await inner.recordOperation(std::move(id));
    if (now) throw test::FakeCrash{"recordOperation"};
    co_return kept;
  }
  bool wipeAllowed() const override { return inner.wipeAllowed(); }
  void progress(double f, std::string_view text) override { inner.progress(f, text); }
  void finding(lifecycle::Finding f) override { inner.finding(std::move(f)); }
  const lifecycle::FactSet& facts() const override { return inner.facts(); }
};

class RaidWork : public testing::TestWithParam<const char*> {
 protected:
  RaidWork() {
    emulator.machine.on = true;
    inventory::Profile profile;
    profile.name = "p";
    inventory::HardwareRaid raid;
    raid.volumes.push_back({"system", "", wire::RaidLevel::Raid1, "size:400GB-500GB", 2});
    raid.volumes.push_back({"data", "", wire::RaidLevel::Raid5, "size:3TB-", 3});
    profile.raid = raid;
    cluster.profiles["p"] = profile;
    inventory::Node node;
    node.name = kRaidNode;
    node.profile = "p";
    cluster.nodes.push_back(node);
    context.wiping_action = false;
    newController();
  }

  /// A process that was killed has forgotten all but the journal.
  void newController() {
    fleet = std::make_unique<OneRaidBmc>(bmc::arbitrate(rig.bmc(), loop.clock));
    phase = makeRaidPhase({cluster, *fleet, agents, loop.clock,
                           [this](const NodeName&, const DataWipeOrder& order) {
                             orders.push_back(order.intent);
                             return Result<bool>(data_permission);
                           },
                           [this](const NodeName&, const std::string&) {
                             ++ended;
                             return Result<void>();
                           }});
  }
  inventory::HardwareVolume& declared(std::size_t at) {
    return cluster.profiles.at("p").raid->volumes[at];
  }
  Result<lifecycle::Fact> seen() {
    auto facts = loop.run(phase->observe(Subject(kRaidNode)));
    if (!facts) return fail(facts.error());
    return facts->at(0);
  }
  lifecycle::Goal goal() {
    lifecycle::FactSet facts;
    if (auto fact = seen()) facts.put(*fact);
    return phase->goals(cluster, Subject(kRaidNode), facts).at(0);
  }
  lifecycle::Action action() {
    const auto wanted = goal();
    lifecycle::Action out;
    out.facet = wanted.facet;
    out.to = wanted.want;
    out.disruption = wanted.disruption;
    return out;
  }
  /// Until it is neither waited nor repeated.
  Result<Outcome> act(lifecycle::ActContext& with, const lifecycle::Action& what) {
    Result<Outcome> outcome = Outcome(Done{});
    for (int call = 0; call < 400; ++call) {
      outcome = loop.run(phase->act(what, with));
      const auto* again = outcome ? std::get_if<Again>(&*outcome) : nullptr;
      if (!again) return outcome;
      loop.run(pause(again->after));
    }
    return fail(ErrorCode::Timeout, "it never ends");
  }
  Task<int> pause(std::chrono::milliseconds time) {
    co_await loop.clock.sleep(time);
    co_return 0;
  }
  const std::vector<Volume>& volumes() { return emulator.service->state().volumes; }
  std::vector<std::string> driveIds(std::vector<int> numbers) {
    const auto& raid = lab::vbmc::behaviourOf(GetParam()).raid;
    std::vector<std::string> out;
    for (const int n : numbers)
      out.push_back(std::string(raid.drive_prefix) + std::to_string(n) +
                    std::string(raid.drive_suffix));
    return out;
  }
  bool worksAtStart() const { return std::string_view(GetParam()) == "idrac"; }
  std::string volumesPath() {
    return "/redfish/v1/Systems/system/Storage/" +
           std::string(lab::vbmc::behaviourOf(GetParam()).raid.controller) + "/Volumes";
  }

  test::VirtualLoop loop;
  test::VirtualBmc emulator{
      loop,
      GetParam(),
      {},
      {{"S0", kSmall}, {"S1", kSmall}, {"L0", kLarge}, {"L1", kLarge}, {"L2", kLarge}}};
  test::RedfishRig rig{loop, emulator.net};
  inventory::Cluster cluster;
  std::unique_ptr<bmc::BmcFleet> fleet;
  test::FakeAgentGateway agents;
  std::unique_ptr<lifecycle::Phase> phase;
  test::FakeActContext context;
  bool data_permission = false;
  std::vector<std::string> orders;  ///< intents that asked for the permission
  int ended = 0;
};

TEST_P(RaidWork, whatIsMissingIsMadeOfTheDrivesThatFit) {
  EXPECT_EQ(seen()->value, "system=none,data=none");
  const auto wanted = goal();
  EXPECT_EQ(wanted.want, "system=raid1x2,data=raid5x3");
  EXPECT_EQ(wanted.disruption, Disruption::Reset);  // nothing is lost
  EXPECT_EQ(wanted.blocked, "");
  EXPECT_THAT(wanted.why, HasSubstr("system (RAID1 of 2 drives), data (RAID5 of 3 drives)"));
  const auto outcome = act(context, action());
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome)) << std::get<Blocked>(*outcome).why;
  EXPECT_EQ(seen()->value, "system=raid1x2,data=raid5x3");
  ASSERT_EQ(volumes().size(), 2u);
  EXPECT_EQ(volumes()[0].level, "RAID1");
  EXPECT_EQ(volumes()[0].drives, driveIds({0, 1}));
  EXPECT_EQ(volumes()[1].drives, driveIds({2, 3, 4}));
  EXPECT_EQ(emulator.service->state().volume_orders, 2u);
  EXPECT_EQ(emulator.machine.starts.size(), worksAtStart() ? 2u : 0u);
  EXPECT_TRUE(orders.empty());
}

TEST_P(RaidWork, volumesAsDeclaredAreLeftAloneWhateverTheyAreCalled) {
  emulator.service->setVolumes({{"7", "somebody's", "RAID1", driveIds({0, 1})},
                                {"8", "else", "RAID5", driveIds({4, 3, 2})}});
  EXPECT_EQ(seen()->value, "system=raid1x2,data=raid5x3");
  const auto outcome = act(context, action());
  ASSERT_TRUE(outcome && std::holds_alternative<Done>(*outcome));
  EXPECT_EQ(emulator.service->state().volume_orders, 0u);
  EXPECT_TRUE(emulator.machine.starts.empty());
}

TEST_P(RaidWork, anotherVolumeGoesOnlyByBothPermissions) {
  emulator.service->setVolumes(
      {{"7", "old", "RAID0", driveIds({0, 2})}, {"8", "kept", "RAID1", driveIds({3, 4})}});
  declared(1) = {"data", "", wire::RaidLevel::Raid1, "size:3TB-", 2};  // "kept" is as declared
  EXPECT_EQ(seen()->value, "system=taken,data=raid1x2");
  EXPECT_EQ(goal().disruption, Disruption::Wipe);
  EXPECT_THAT(goal().why, HasSubstr("(serial S0) is of volume old"));
  const auto blocked = [&](const lifecycle::Action& what) {
    const auto outcome = act(context, what);
    return outcome && std::holds_alternative<Blocked>(*outcome) ? std::get<Blocked>(*outcome).why
                                                                : std::string("not blocked");
  };
  auto planned_before = action();
  planned_before.disruption = Disruption::Reset;
  EXPECT_THAT(blocked(planned_before), HasSubstr("`muster plan` again"));
  EXPECT_THAT(blocked(action()), HasSubstr("`muster wipe gpu001 --data"));
  EXPECT_TRUE(orders.empty());  // the engine's own permission comes first
  context.wiping_action = context.wipe = true;
  EXPECT_THAT(blocked(action()), HasSubstr("`muster wipe gpu001 --data"));
  EXPECT_EQ(orders.size(), 1u);
  EXPECT_EQ(emulator.service->state().volume_orders, 0u);
  data_permission = true;
  const auto outcome = act(context, action());
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
  ASSERT_EQ(volumes().size(), 2u);
  EXPECT_EQ(volumes()[0].id, "8");
  EXPECT_EQ(volumes()[1].drives, driveIds({0, 1}));
  EXPECT_EQ(emulator.service->state().volume_orders, 2u);  // one deleted, one made
  EXPECT_EQ(ended, 1);
}

TEST_P(RaidWork, drivesThatTheMachineSeesInUseAreTaken) {
  auto& agent = agents.boot(kRaidNode, wire::Mode::Ram);
  agent.hardware.disks = {{"/dev/sda", "S1", "", "", "xfs on /home", kSmall, wire::DiskUse::Other}};
  EXPECT_EQ(seen()->value, "system=taken,data=none");
  EXPECT_THAT(goal().why, HasSubstr("(serial S1) holds xfs on /home"));
  agent.hardware.disks[0].use = wire::DiskUse::Empty;
  EXPECT_EQ(seen()->value, "system=none,data=none");
}

TEST_P(RaidWork, aKillAnywhereOrdersNothingTwice) {
  for (const bool before : {true, false})
    for (int n = 1;; ++n) {
      emulator.service->setVolumes({});
      const auto orders_before = emulator.service->state().volume_orders;
      context.recorded.clear();
      newController();
      DyingContext dying(context, n, before);
      const auto what = action();
      bool died = false;
      try {
        const auto outcome = act(dying, what);
        ASSERT_TRUE(outcome) << outcome.error().str();
      } catch (const test::FakeCrash&) {
        died = true;
        newController();
        const auto outcome = act(context, what);
        ASSERT_TRUE(outcome) << n << " " << outcome.error().str();
        EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
      }
      EXPECT_EQ(volumes().size(), 2u);
      EXPECT_EQ(emulator.service->state().volume_orders - orders_before, 2u) << n << before;
      if (!died) break;
      ASSERT_LT(n, 30);
    }
}

TEST_P(RaidWork, anAnswerThatIsLostIsNotOrderedAgain) {
  emulator.service->faults().add(
      FaultRule{.method = "POST", .path = volumesPath(), .drop = true, .after = true, .merge = {}});
  const auto what = action();
  const auto lost = act(context, what);
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().canRetry()) << lost.error().str();
  const auto outcome = act(context, what);  // as the engine does
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
  EXPECT_EQ(emulator.service->state().volume_orders, 2u);
}

TEST_P(RaidWork, aFailedOrderIsToldInTheControllersWords) {
  emulator.service->storage().failNext("The drive in bay 0 does not answer.");
  const auto outcome = act(context, action());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("The drive in bay 0 does not answer."));
  EXPECT_TRUE(volumes().empty());
}

TEST_P(RaidWork, aListThatIsNoneIsNotAnEmptyOne) {
  const auto what = action();
  const nlohmann::json none = nlohmann::json::parse(R"({"Members": null})");
  emulator.service->faults().add(
      FaultRule{.method = "GET", .path = volumesPath(), .merge = none, .count = -1});
  const auto read = seen();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), ErrorCode::Unavailable) << read.error().str();
  ASSERT_FALSE(act(context, what));
  EXPECT_EQ(emulator.service->state().volume_orders, 0u);
}

TEST_P(RaidWork, whatCannotBeMadeIsBlockedInThePlan) {
  const auto blocked = [&](inventory::HardwareVolume volume) {
    declared(0) = std::move(volume);
    EXPECT_THAT(seen()->value, HasSubstr("=impossible"));
    return goal().blocked;
  };
  const auto raid1 = wire::RaidLevel::Raid1;
  EXPECT_THAT(blocked({"system", "PERC-9*", raid1, "size:400GB-500GB", 2}),
              HasSubstr("no RAID controller is \"PERC-9*\"; there are"));
  EXPECT_THAT(blocked({"system", "", wire::RaidLevel::Raid6, "size:400GB-500GB", 4}),
              HasSubstr("2 free for it of"));
  emulator.service->setVolumes({{"9", "raw", "", driveIds({0})}});
  EXPECT_THAT(blocked({"system", "", raid1, "size:400GB-500GB", 2}),
              HasSubstr("is shown to the machine as it is"));
  EXPECT_EQ(emulator.service->state().volume_orders, 0u);
}

TEST_P(RaidWork, aMachineThatIsOffIsStartedWhereItsControllerIsNotShown) {
  emulator.machine.on = false;
  const auto what = action();
  emulator.service->faults().add(FaultRule{.method = "GET",
                                           .path = "/redfish/v1/Systems/system/Storage",
                                           .status = 404,
                                           .merge = {},
                                           .count = 1});
  const auto outcome = act(context, what);
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
  EXPECT_TRUE(emulator.machine.on);
  EXPECT_EQ(volumes().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(All, RaidWork, testing::Values("muster", "idrac", "ilo"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace muster::provision
