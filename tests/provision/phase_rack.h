// SPDX-License-Identifier: Apache-2.0
// A rack in memory for the tests of the phase: BMCs whose power switches boot agents, as the real
// ones would.
#pragma once

#include "provision/facets.h"
#include "provision/inspection.h"
#include "provision/provision.h"
#include "provision/restart.h"
#include "provision/storage/data_wipe.h"

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/fake_netboot.h"
#include "tests/fakes/memory_store.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::provision {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::FactSet;
using lifecycle::Outcome;
using lifecycle::Subject;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::Mode;
using wire::TaskKind;

inline constexpr const char* kDigest = "d1d1";

class ProvisionPhaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bmc().info.serial = "SN-1";
    bmc().info.macs = {"52:54:00:00:00:01"};
    bmc().on_power = [this](bmc::PowerState state) { power(state); };
    images.add("bookworm", kDigest);
    hardware.manufacturer = "muster";
    hardware.serial = "SN-1";
    hardware.cpus = 4;
    hardware.memory_bytes = 2ull << 30;
    hardware.nics = {{"eth0", "52:54:00:00:00:01", "virtio_net"}};
    hardware.disks = {{"/dev/vda", "D1", "", "", "none", 4ull << 30, wire::DiskUse::Empty}};
    agents.answer(TaskKind::Inspect,
                  [this](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
                    return toJson(hardware);
                  });
    agents.answer(TaskKind::Probe, R"({"module.rdma_rxe":"loaded","package.rdma-core":"44.0-2"})");
    agents.hold(TaskKind::WriteImage);
    newController();
  }

  /// A controller that was killed has forgotten all but the journal; agents keep their state.
  void newController() {
    netboot.armed.clear();
    phase = makeProvisionPhase(
        {cluster, fleet, agents, images, netboot, clock, "http://10.20.0.1:8080",
         "https://10.20.0.1:8443", "CA", "KEY", nullptr, [](const NodeName&) {},
         [this](const NodeName& node, const DataWipeOrder& order) {
           return takeDataWipe(store, node, order);
         },
         [this](const NodeName& node, const std::string& intent) {
           return endDataWipe(store, node, intent);
         },
         [this](NodeName node, std::string why) { return hear(node.str() + ": " + why); }});
  }

  Task<void> hear(std::string what) {
    heard.push_back(std::move(what));
    co_return;
  }

  test::FakeBmc& bmc() { return fleet.fake(kNode); }
  void power(bmc::PowerState state) {
    agents.silence(kNode);
    if (state != bmc::PowerState::On || dead) return;
    const auto& calls =
        bmc().calls;  // a boot uses the override up, so it is read from what was asked last
    const auto last = std::find_if(calls.rbegin(), calls.rend(), [](const std::string& call) {
      return call.starts_with("bootOnce");
    });
    const bool network = last != calls.rend() && *last == "bootOnce Pxe";
    boot_id = "boot-" + std::to_string(++boots);
    if (network && netboot.armed.contains(kNode)) {
      auto& agent = agents.boot(kNode, Mode::Ram, boot_id);
      agent.hardware = hardware;
      agent.image_digest = ram_kernel_of;
    } else if (!installed.empty()) {
      auto& agent = agents.boot(kNode, Mode::Disk, boot_id);
      agent.hardware = hardware;
      agent.image_digest = installed;
    }
  }
  void runInstalled(const std::string& digest) {
    installed = digest;
    hardware.disks[0].content = "muster-root";
    hardware.disks[0].use = wire::DiskUse::System;
    bmc().info.power = bmc::PowerState::On;
    auto& agent = agents.boot(kNode, Mode::Disk, "boot-installed");
    agent.hardware = hardware;
    agent.image_digest = digest;
  }

  lifecycle::Action action(std::string_view name) {
    lifecycle::Action a;
    a.facet = {Subject(kNode), facet(name)};
    a.id = a.facet.str();
    return a;
  }
  Result<Outcome> act(std::string_view name) {
    return test::runAsync(phase->act(action(name), context));
  }
  /// Until it is anything but Again; the clock moves on as the engine would sleep.
  Result<Outcome> actToEnd(std::string_view name, int most = 1000) {
    for (int i = 0; i < most; ++i) {
      auto outcome = act(name);
      if (!outcome || !std::holds_alternative<Again>(*outcome)) return outcome;
      waited_for = std::get<Again>(*outcome).waiting_for;
      clock.advance(std::get<Again>(*outcome).after);
    }
    return fail(ErrorCode::Timeout, "never ended; waits for " + waited_for);
  }
  /// One call, and the wait that it asks for.
  Result<Outcome> actAndWait(std::string_view name) {
    auto outcome = act(name);
    if (outcome && std::holds_alternative<Again>(*outcome))
      clock.advance(std::get<Again>(*outcome).after);
    return outcome;
  }
  int powerCalls() { return bmc().count("power"); }
  FactSet facts(Result<std::vector<lifecycle::Fact>> read) {
    EXPECT_TRUE(read) << read.error().str();
    FactSet set;
    if (read) {
      for (auto& fact : *read) set.put(fact);
    }
    return set;
  }
  FactSet observe() { return facts(test::runAsync(phase->observe(Subject(kNode)))); }
  FactSet verify(std::string_view name) {
    return facts(test::runAsync(phase->verify(action(name))));
  }
  std::string value(const FactSet& set, std::string_view name) {
    return set.value(Subject(kNode), facet(name)).value_or("(no fact)");
  }
  nlohmann::json imageTask() {
    return nlohmann::json::parse(agents.submitted(kNode, TaskKind::WriteImage).at(0).params);
  }
  template <class T>
  static bool is(const Result<Outcome>& outcome) {
    return outcome && std::holds_alternative<T>(*outcome);
  }
  static std::string why(const Result<Outcome>& outcome) {
    return !outcome                                    ? outcome.error().str()
           : std::holds_alternative<Blocked>(*outcome) ? std::get<Blocked>(*outcome).why
                                                       : "";
  }
  /// Into the RAM OS with the image task submitted and running.
  void startWriting() {
    for (int i = 0; i < 10 && agents.submitted(kNode, TaskKind::WriteImage).empty(); ++i) {
      auto outcome = act(kImage);
      ASSERT_TRUE(is<Again>(outcome)) << why(outcome);
      clock.advance(2s);
    }
    ASSERT_EQ(agents.submitted(kNode, TaskKind::WriteImage).size(), 1u);
  }

  inventory::Cluster cluster = twoNodes();
  FakeClock clock;
  muster::test::FakeBmcFleet fleet;
  muster::test::FakeAgentGateway agents;
  muster::test::FakeImageStore images;
  muster::test::FakeNetboot netboot;
  muster::test::FakeActContext context;
  muster::test::MemoryStore store;
  wire::Hardware hardware;
  std::string installed;      ///< digest on the disk
  std::string ram_kernel_of;  ///< digest of the live image whose kernel an armed node starts
  std::string boot_id, waited_for;
  std::vector<std::string> heard;  ///< by the consoles
  int boots = 0;
  bool dead = false;  ///< does not boot anything
  std::unique_ptr<lifecycle::Phase> phase;
};

}  // namespace muster::provision
