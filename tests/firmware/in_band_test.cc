// SPDX-License-Identifier: Apache-2.0
// Components that the node's agent installs, in one plan with those of the BMC: the real phase,
// Redfish client and emulator; the agent in memory, with NICs whose flash and running version are
// told apart.
#include "firmware/in_band.h"
#include "firmware/firmware.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/firmware/one_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;
using lifecycle::Subject;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPsid = "MT_0000000838";

class InBandTest : public ::testing::Test {
 protected:
  InBandTest() {
    emulator_.machine.on = true;
    auto& baseline = cluster_.firmware["b"];
    baseline.name = "b";
    add("BIOS", "1.5.0", inventory::FirmwareActivation::PowerCycle, "");
    add("ConnectX-7", "28.41.1000", inventory::FirmwareActivation::PowerCycle,
        std::string("nic:") + kPsid);
    baseline.order = {"BIOS", "ConnectX-7"};
    inventory::Profile profile;
    profile.name = "p";
    profile.firmware = "b";
    profile.image = "noble";
    cluster_.profiles["p"] = profile;
    inventory::Node node;
    node.name = NodeName("gpu001");
    node.profile = "p";
    cluster_.nodes.push_back(node);
    agents_.boot(node_, wire::Mode::Disk);
    agents_.answer(wire::TaskKind::ListFirmware,
                   [this](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
                     return listed();
                   });
    agents_.answer(wire::TaskKind::InstallFirmware,
                   [this](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                     const auto what = wire::parseFirmwareTask(task.params);
                     if (!what) return fail(what.error());
                     orders_.push_back(*what);
                     if (breaks_) return fail(ErrorCode::Internal, "-E- Burning FS4 image failed");
                     for (auto& nic : flash_) nic = what->version;
                     return R"({"written":["0000:18:00.0"],"had":[]})";
                   });
    restart();
  }
  void add(const std::string& name, const std::string& version,
           inventory::FirmwareActivation activation, const std::string& device) {
    inventory::FirmwareComponent component{name, version};
    component.file = emulator_.firmwareFile(name, version);
    component.sha256 = *io::sha256File(component.file);
    component.activation = activation;
    component.device = device;
    cluster_.firmware["b"].components.push_back(component);
  }
  /// A new process of muster.
  void restart() {
    phase_.reset();
    fleet_ = std::make_unique<OneBmc>(bmc::arbitrate(rig_.bmc(), loop_.clock));
    phase_ = makeFirmwarePhase(cluster_, *fleet_, loop_.clock, loop_.workers,
                               "http://10.20.0.1:8080", &agents_);
  }
  /// The cards take what their flash holds when the machine is started.
  std::string listed() {
    if (emulator_.machine.starts.size() > starts_) {
      starts_ = emulator_.machine.starts.size();
      running_ = flash_;
    }
    json devices = json::array();
    for (std::size_t i = 0; i < running_.size(); ++i)
      devices.push_back({{"way", "mstflint"},
                         {"id", std::to_string(i)},
                         {"model", "ConnectX-7"},
                         {"keys", {kPsid}},
                         {"version", running_[i]},
                         {"pending", flash_[i] == running_[i] ? "" : flash_[i]}});
    return json{{"devices", devices}, {"troubles", troubles_}}.dump();
  }
  lifecycle::FactSet facts() {
    lifecycle::FactSet out;
    const auto seen = loop_.run(phase_->observe(subject_));
    for (const auto& fact : *seen) out.put(fact);
    return out;
  }
  std::string valueOf(const FacetName& facet) {
    return facts().value(subject_, facet).value_or("nothing");
  }
  lifecycle::Action action(const std::string& component) {
    lifecycle::Action out;
    out.facet = {subject_, FacetName("firmware." + component)};
    out.to = cluster_.firmware["b"].find(component)->version;
    return out;
  }
  /// Drives it to its end, as the engine does; `dies_after` calls muster is killed and another one
  /// goes on.
  Result<lifecycle::Outcome> drive(const std::string& component, int dies_every = 0) {
    for (int call = 1; call < 2'000; ++call) {
      auto outcome = loop_.run(phase_->act(action(component), context_));
      if (!outcome || !std::holds_alternative<lifecycle::Again>(*outcome)) return outcome;
      words_ = std::get<lifecycle::Again>(*outcome).waiting_for;
      pass(std::get<lifecycle::Again>(*outcome).after);
      if (dies_every > 0 && call % dies_every == 0) restart();
    }
    return fail(ErrorCode::Timeout, "does not end: " + words_);
  }

  void pass(std::chrono::milliseconds time) {
    auto sleep = [](Clock& clock, std::chrono::milliseconds duration) -> Task<int> {
      co_await clock.sleep(duration);
      co_return 0;
    };
    loop_.run(sleep(loop_.clock, time));
  }

  const NodeName node_{"gpu001"};
  const Subject subject_{NodeName("gpu001")};
  test::VirtualLoop loop_;
  test::VirtualBmc emulator_{loop_};
  test::RedfishRig rig_{loop_, emulator_.net};
  test::FakeAgentGateway agents_;
  inventory::Cluster cluster_;
  test::FakeActContext context_;
  std::vector<wire::FirmwareTask> orders_;
  std::vector<std::string> flash_{"28.39.1002", "28.39.1002"}, running_ = flash_;
  json troubles_ = json::object();
  bool breaks_ = false;
  std::size_t starts_ = 0;
  std::string words_;
  std::unique_ptr<bmc::BmcFleet> fleet_;
  std::unique_ptr<lifecycle::Phase> phase_;
};

TEST_F(InBandTest, oneWaveStagesByBmcAndByAgentAndSwitchesOnOnce) {
  ASSERT_EQ(valueOf(FacetName("firmware.ConnectX-7")), "28.39.1002");
  const auto outcome = drive("BIOS");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<lifecycle::Done>(*outcome));
  EXPECT_EQ(emulator_.service->state().slots.at("BIOS").version, "1.5.0");
  EXPECT_THAT(running_, ElementsAre("28.41.1000", "28.41.1000"));
  EXPECT_EQ(emulator_.machine.starts.size(), 1u) << "one restart for both";
  ASSERT_EQ(orders_.size(), 1u);
  EXPECT_THAT(orders_[0].url,
              testing::StartsWith("http://10.20.0.1:8080/firmware/" + orders_[0].sha256));
}

TEST_F(InBandTest, anEarlierBaselineIsTheWayBack) {
  cluster_.firmware["b"].components.clear();
  add("BIOS", "1.3.0", inventory::FirmwareActivation::PowerCycle, "");
  add("ConnectX-7", "28.37.1014", inventory::FirmwareActivation::PowerCycle,
      std::string("nic:") + kPsid);
  const auto outcome = drive("BIOS");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_EQ(emulator_.service->state().slots.at("BIOS").version, "1.3.0");
  EXPECT_THAT(running_, ElementsAre("28.37.1014", "28.37.1014"));
  EXPECT_EQ(emulator_.machine.starts.size(), 1u);
}

TEST_F(InBandTest, isOrderedOnceHoweverOftenMusterDies) {
  const auto outcome = drive("ConnectX-7", 1);
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_EQ(orders_.size(), 1u);
  EXPECT_EQ(emulator_.service->state().slots.at("BIOS").flashes, 1u);
  EXPECT_THAT(emulator_.service->state().violations, testing::IsEmpty());
}

TEST_F(InBandTest, isOrderedOnceWhenItsNameHasABlank) {
  cluster_.firmware["b"].components.clear();
  add("BIOS", "1.5.0", inventory::FirmwareActivation::PowerCycle, "");
  add("ConnectX 7", "28.41.1000", inventory::FirmwareActivation::PowerCycle,
      std::string("nic:") + kPsid);
  cluster_.firmware["b"].order = {"ConnectX 7", "BIOS"};
  const auto outcome = drive("ConnectX 7", 1);
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_EQ(orders_.size(), 1u);
  EXPECT_THAT(running_, ElementsAre("28.41.1000", "28.41.1000"));
}

TEST_F(InBandTest, aMixtureShowsTheOneThatIsNotThereYet) {
  running_ = flash_ = {"28.41.1000", "28.39.1002"};
  EXPECT_EQ(valueOf(FacetName("firmware.ConnectX-7")), "28.39.1002");
  running_ = flash_ = {"28.41.1000", "28.43.9999"};
  EXPECT_EQ(valueOf(FacetName("firmware.ConnectX-7")), "28.43.9999")
      << "a newer one is not the baseline either";
  running_ = flash_ = {"28.41.1000", "28.41.1000"};
  EXPECT_EQ(valueOf(FacetName("firmware.ConnectX-7")), "28.41.1000");
}

TEST_F(InBandTest, whatTheToolRefusesIsNotTriedAgainAndTheRestIsSwitchedOn) {
  breaks_ = true;
  const auto outcome = drive("BIOS");
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().str(), HasSubstr("did not install ConnectX-7 28.41.1000"));
  EXPECT_EQ(emulator_.service->state().slots.at("BIOS").version, "1.5.0");
  EXPECT_EQ(orders_.size(), 1u);
  lifecycle::FactSet now;
  const auto seen = loop_.run(phase_->verify(action("BIOS")));
  for (const auto& fact : *seen) now.put(fact);
  bool blocked = false;
  for (const auto& goal : phase_->goals(cluster_, subject_, now))
    if (goal.facet.facet == FacetName("firmware.ConnectX-7"))
      blocked = goal.blocked.find("muster firmware retry") != std::string::npos;
  EXPECT_TRUE(blocked);
}

TEST_F(InBandTest, withoutItsAgentItIsUnknownAndWaitsForASystem) {
  agents_.silence(node_);
  const auto now = facts();
  EXPECT_FALSE(now.find(subject_, FacetName("firmware.ConnectX-7")));
  const auto goals = phase_->goals(cluster_, subject_, now);
  ASSERT_EQ(goals.size(), 2u);
  EXPECT_EQ(goals[0].facet.facet, FacetName("firmware.BIOS"));
  EXPECT_THAT(goals[0].after, testing::Not(testing::Contains(lifecycle::Stage::Boot)));
  EXPECT_THAT(goals[1].after, testing::Contains(lifecycle::Stage::Boot));
  EXPECT_EQ(goals[1].stage, lifecycle::Stage::InBandFirmware);
  EXPECT_THAT(goals[1].needs,
              testing::Contains(lifecycle::FacetRef{subject_, FacetName("firmware.BIOS")}));
  const auto outcome = drive("BIOS");  // goes alone
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_THAT(orders_, testing::IsEmpty());
  context_.recorded.clear();
  const auto late = loop_.run(phase_->act(action("ConnectX-7"), context_));
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().str(), HasSubstr("does not answer"));
}

TEST_F(InBandTest, aDeviceThatCannotBeReadOrIsNotThereIsSaid) {
  troubles_ = {{"mstflint", "0000:3b:00.0: garbage"}};
  EXPECT_FALSE(facts().find(subject_, FacetName("firmware.ConnectX-7")));
  EXPECT_THAT(loop_.run(phase_->act(action("ConnectX-7"), context_)).error().str(),
              HasSubstr("garbage"));
  troubles_ = json::object();
  cluster_.firmware["b"].components[1].device = "nic:MT_0000000999";
  EXPECT_THAT(loop_.run(phase_->act(action("ConnectX-7"), context_)).error().str(),
              HasSubstr("no device fits nic:MT_0000000999"));
  EXPECT_THAT(orders_, testing::IsEmpty());
}

}  // namespace
}  // namespace muster::firmware
