// Every vendor's way of updating and every way in which it goes wrong: the phase and the Redfish client against the emulator, in virtual
// time. The emulator says when something was done that no controller may do.
#include "firmware/installation.h"
#include "tests/firmware/one_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;
using lab::vbmc::Becomes;
using lab::vbmc::Mishap;

/// One node: an emulated BMC of some kind, and a controller that can die.
class Emulated {
 public:
  Emulated(std::string_view personality, std::vector<std::string_view> only) : emulator(loop, personality) {
    emulator.machine.on = true;
    auto& baseline = cluster.firmware["b"];
    baseline.name = "b";
    for (const auto& row : (*lab::vbmc::findPersonality(personality))->components) {
      const std::string name(row.name);
      if (!only.empty() && std::find(only.begin(), only.end(), row.name) == only.end()) continue;
      inventory::FirmwareComponent component{name, "99.1"};
      component.file = emulator.folder / (std::to_string(baseline.components.size()) + ".fw");
      const auto bytes = lab::vbmc::makeFirmware(name, component.version, 4096);
      if (!io::writeFileAtomic(component.file, bytes)) throw std::runtime_error("no file");
      component.sha256 = io::sha256Hex(bytes);
      component.activation = static_cast<inventory::FirmwareActivation>(1 + static_cast<int>(row.becomes));
      baseline.components.push_back(component);
      baseline.order.push_back(name);
    }
    inventory::Profile profile;
    profile.name = "p";
    profile.firmware = "b";
    cluster.profiles["p"] = profile;
    inventory::Node node;
    node.name = kNode;
    node.profile = "p";
    cluster.nodes.push_back(node);
    restart();
  }

  /// A new process of muster: what it knew of the BMC in memory is gone.
  void restart() {
    phase.reset();
    fleet = std::make_unique<OneBmc>(bmc::arbitrate(rig.bmc(), loop.clock));
    phase = makeFirmwarePhase(cluster, *fleet, loop.clock, loop.workers);
  }

  /// As the engine: the plan's actions in order. Stops at the first that fails; says why.
  std::string apply() {
    auto observed = loop.run(phase->observe(lifecycle::Subject(kNode)));
    if (!observed) return observed.error().str();
    lifecycle::FactSet facts;
    for (auto& fact : *observed) facts.put(std::move(fact));
    for (const auto& goal : phase->goals(cluster, lifecycle::Subject(kNode), facts)) {
      if (lifecycle::matches(goal.want, facts.value(goal.facet.subject, goal.facet.facet).value_or(""))) continue;
      lifecycle::Action action;
      action.facet = goal.facet;
      action.to = goal.want;
      journal.operation_id.clear();
      if (auto why = drive(action); !why.empty()) return why;
    }
    return {};
  }

  std::string drive(const lifecycle::Action& action) {
    int retries = 3;
    const auto until = loop.clock.steady() + 90min;
    while (loop.clock.steady() < until) {
      if (restart_every > 0 && ++calls % restart_every == 0) restart();
      auto outcome = loop.run(phase->act(action, journal));
      if (!outcome) {
        if (!outcome.error().canRetry() || --retries < 0) return outcome.error().str();
        pass(2s);
      } else if (std::holds_alternative<lifecycle::Done>(*outcome)) {
        return {};
      } else if (auto* again = std::get_if<lifecycle::Again>(&*outcome)) {
        last_wait = again->waiting_for;
        pass(again->after);
      } else {
        return "blocked: " + std::get<lifecycle::Blocked>(*outcome).why;
      }
    }
    return "no end; last waited for " + last_wait;
  }

  void pass(std::chrono::milliseconds time) {
    auto sleep = [](Clock& clock, std::chrono::milliseconds time) -> Task<int> {
      auto nap = clock.sleep(time);
      co_await std::move(nap);
      co_return 0;
    };
    loop.run(sleep(loop.clock, time));
  }

  const lab::vbmc::BmcState& state() const { return emulator.service->state(); }
  void expectBaseline() {
    for (const auto& component : cluster.firmware["b"].components) EXPECT_EQ(state().slots.at(component.name).version, component.version) << component.name;
  }

  test::VirtualLoop loop;
  test::VirtualBmc emulator;
  test::RedfishRig rig{loop, emulator.net};
  inventory::Cluster cluster;
  std::unique_ptr<OneBmc> fleet;
  std::unique_ptr<lifecycle::Phase> phase;
  Journal journal;
  std::string last_wait;
  int restart_every = 0, calls = 0;
};

class EveryVendor : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(EveryVendor, comesToItsBaselineWithEachImageWrittenOnce) {
  const auto& [personality, restart_every] = GetParam();
  Emulated node(personality, std::string_view(personality) == "dgx-h100" ? std::vector<std::string_view>{"HostBMC_0", "HostBIOS_0", "PSU_0", "HGX_FW_BMC_0", "HGX_FW_FPGA_0"}
                                                                         : std::vector<std::string_view>{});
  node.restart_every = restart_every;
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
  for (const auto& component : node.cluster.firmware["b"].components) EXPECT_EQ(node.state().slots.at(component.name).flashes, 1u) << component.name;
}
INSTANTIATE_TEST_SUITE_P(All, EveryVendor,
                         testing::Combine(testing::Values("muster", "idrac", "ilo", "supermicro", "dgx-h100", "gb200", "openbmc"), testing::Values(0, 3)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (std::get<1>(info.param) ? "DyingOften" : "");
                         });

struct Case {
  const char* personality;
  Mishap mishap;
  const char* reason;  ///< part of what it fails with; "": it comes to its baseline
};
class EveryMishap : public testing::TestWithParam<Case> {};

TEST_P(EveryMishap, endsAtTheBaselineOrWithItsReason) {
  const auto& [personality, mishap, reason] = GetParam();
  for (const int restart_every : {0, 4}) {
    SCOPED_TRACE(restart_every);
    Emulated node(personality, {"BMC_0", "HGX_FW_FPGA_0", "NIC_0", "BMC", "BIOS", "HostBIOS_0", "iDRAC.Embedded.1-1", "BIOS.Setup.1-1", "iLO 5", "System ROM"});
    node.restart_every = restart_every;
    node.emulator.service->faults().expect(mishap);
    const auto why = node.apply();
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
    for (const auto& [name, slot] : node.state().slots) EXPECT_LE(slot.flashes, 1u) << name;
    if (*reason) {
      EXPECT_THAT(why, testing::HasSubstr(reason));
      ASSERT_FALSE(node.journal.findings.empty() && mishap != Mishap::NoLicence);
    } else {
      EXPECT_EQ(why, "");
      node.expectBaseline();
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, EveryMishap,
                         testing::Values(Case{"gb200", Mishap::CutUpload, ""}, Case{"gb200", Mishap::LostAnswer, ""}, Case{"gb200", Mishap::TaskVanishes, ""},
                                         Case{"gb200", Mishap::TaskFails, "did not install"}, Case{"gb200", Mishap::CompletedNotInstalled, "is not active"},
                                         Case{"gb200", Mishap::ExceptionButInstalled, ""}, Case{"gb200", Mishap::NoLicence, "licenses"}, Case{"gb200", Mishap::BmcLost, ""},
                                         Case{"gb200", Mishap::HostSilent, ""}, Case{"supermicro", Mishap::StuckMode, ""}, Case{"supermicro", Mishap::LostAnswer, ""},
                                         Case{"supermicro", Mishap::NoLicence, "licenses"}, Case{"supermicro", Mishap::TaskFails, "did not install"},
                                         Case{"idrac", Mishap::TaskVanishes, ""}, Case{"idrac", Mishap::LostAnswer, ""}, Case{"idrac", Mishap::BmcLost, ""},
                                         Case{"ilo", Mishap::LostAnswer, ""}, Case{"ilo", Mishap::TaskFails, "did not install"}, Case{"openbmc", Mishap::CutUpload, ""},
                                         Case{"openbmc", Mishap::TaskVanishes, ""}, Case{"muster", Mishap::BmcLost, ""}),
                         [](const auto& info) {
                           std::string name = std::string(info.param.personality) + "_" + std::string(toString(info.param.mishap));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(FirmwareOnTheEmulator, anUpdateOfSomebodyElseIsWaitedFor) {
  Emulated node("openbmc", {"BIOS"});
  node.emulator.service->faults().add({.method = "POST", .path = "/redfish/v1/UpdateService/upload", .status = 503, .count = 3});
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BIOS").flashes, 1u);
}

TEST(FirmwareOnTheEmulator, aSlowBmcAndOneThatLiesAboutPowerAreBelievedOnlyByState) {
  Emulated node("muster", {"BIOS"});
  node.emulator.service->faults().add({.method = "GET", .path = "/redfish/v1/UpdateService/FirmwareInventory*", .latency = 15s, .count = 4});
  node.emulator.service->faults().add({.method = "POST", .path = "*ComputerSystem.Reset", .status = 500, .after = true, .count = 1});
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BIOS").flashes, 1u);
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
}

TEST(FirmwareOnTheEmulator, aRootOfTrustKeepsItsPowerUntilItsCopyIsDone) {
  Emulated node("gb200", {"HGX_FW_ERoT_FPGA_0", "HGX_FW_ERoT_CPU_0", "HostBIOS_0"});
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
  EXPECT_EQ(node.state().ac_cycles, 1u);
}

}  // namespace
}  // namespace muster::firmware
