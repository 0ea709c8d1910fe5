// SPDX-License-Identifier: Apache-2.0
// Every vendor's way of updating and every way in which it goes wrong: the phase and the Redfish
// client against the emulator, in virtual time. The emulator says when something was done that no
// controller may do.
#include "firmware/baselines.h"
#include "firmware/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "tests/firmware/emulated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;
using lab::vbmc::UpdateFault;

class EveryVendor : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(EveryVendor, comesToItsBaselineWithEachImageWrittenOnce) {
  const auto& [vendor_profile, restart_every] = GetParam();
  Emulated node(vendor_profile,
                std::string_view(vendor_profile) == "dgx-h100"
                    ? std::vector<std::string_view>{"HostBMC_0", "HostBIOS_0", "PSU_0",
                                                    "HGX_FW_BMC_0", "HGX_FW_FPGA_0"}
                    : std::vector<std::string_view>{});
  node.restart_every = restart_every;
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
  for (const auto& component : node.cluster.firmware["b"].components)
    EXPECT_EQ(node.state().slots.at(component.name).flashes, 1u) << component.name;
}
INSTANTIATE_TEST_SUITE_P(
    All, EveryVendor,
    testing::Combine(testing::Values("muster", "idrac", "idrac-before-multipart", "ilo",
                                     "supermicro", "dgx-h100", "gb200", "openbmc", "simple-update"),
                     testing::Values(0, 3)),
    [](const auto& info) {
      std::string name = std::get<0>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name + (std::get<1>(info.param) ? "DyingOften" : "");
    });

struct Case {
  const char* vendor_profile;
  UpdateFault fault;
  const char* reason;  ///< part of what it fails with; "": it comes to its baseline
};
class EveryUpdateFault : public testing::TestWithParam<Case> {};

TEST_P(EveryUpdateFault, endsAtTheBaselineOrWithItsReason) {
  const auto& [vendor_profile, fault, reason] = GetParam();
  for (const int restart_every : {0, 4}) {
    SCOPED_TRACE(restart_every);
    Emulated node(vendor_profile,
                  {"FW_BMC_0", "HGX_FW_FPGA_0", "NIC_0", "BMC", "BIOS", "HostBIOS_0",
                   "iDRAC.Embedded.1-1", "BIOS.Setup.1-1", "iLO 5", "System ROM"});
    node.restart_every = restart_every;
    node.emulator.service->faults().expect(fault);
    const auto why = node.apply();
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
    for (const auto& [name, slot] : node.state().slots) EXPECT_LE(slot.flashes, 1u) << name;
    if (*reason) {
      EXPECT_THAT(why, testing::HasSubstr(reason));
      ASSERT_FALSE(node.journal.findings.empty() && fault != UpdateFault::NoLicence);
    } else {
      EXPECT_EQ(why, "");
      node.expectBaseline();
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, EveryUpdateFault,
    testing::Values(
        Case{"gb200", UpdateFault::CutUpload, ""}, Case{"gb200", UpdateFault::LostAnswer, ""},
        Case{"gb200", UpdateFault::TaskVanishes, ""},
        Case{"gb200", UpdateFault::TaskFails, "did not install"},
        Case{"gb200", UpdateFault::CompletedNotInstalled, "is not active"},
        Case{"gb200", UpdateFault::ExceptionButInstalled, ""},
        Case{"gb200", UpdateFault::NoLicence, "licenses"}, Case{"gb200", UpdateFault::BmcLost, ""},
        Case{"gb200", UpdateFault::HostSilent, ""},
        Case{"gb200", UpdateFault::LeavesItWorse, "there is no way back"},
        Case{"supermicro", UpdateFault::StuckMode, ""},
        Case{"supermicro", UpdateFault::LostAnswer, ""},
        Case{"supermicro", UpdateFault::TaskVanishes, ""},
        Case{"dgx-h100", UpdateFault::TaskVanishes, ""},
        Case{"supermicro", UpdateFault::NoLicence, "licenses"},
        Case{"supermicro", UpdateFault::TaskFails, "did not install"},
        Case{"idrac", UpdateFault::TaskVanishes, ""}, Case{"idrac", UpdateFault::LostAnswer, ""},
        Case{"idrac", UpdateFault::BmcLost, ""},
        Case{"idrac-before-multipart", UpdateFault::CutUpload, ""},
        Case{"idrac-before-multipart", UpdateFault::LostAnswer, ""},
        Case{"idrac-before-multipart", UpdateFault::TaskVanishes, ""},
        Case{"idrac-before-multipart", UpdateFault::BmcLost, ""},
        Case{"ilo", UpdateFault::LostAnswer, ""},
        Case{"ilo", UpdateFault::TaskFails, "did not install"},
        Case{"openbmc", UpdateFault::CutUpload, ""}, Case{"openbmc", UpdateFault::TaskVanishes, ""},
        Case{"muster", UpdateFault::BmcLost, ""},
        Case{"simple-update", UpdateFault::LostAnswer, ""},
        Case{"simple-update", UpdateFault::TaskVanishes, ""},
        Case{"simple-update", UpdateFault::TaskFails, "did not install"}),
    [](const auto& info) {
      std::string name =
          std::string(info.param.vendor_profile) + "_" + std::string(toString(info.param.fault));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

/// Slow as real ones: its task is gone after a minute, and the image is written for two more.
class AFlashThatNobodyCanFollow : public testing::TestWithParam<const char*> {};

TEST_P(AFlashThatNobodyCanFollow, isOverBeforeAnythingIsSwitched) {
  const std::string vendor_profile = GetParam();
  for (const int restart_every : {0, 5}) {
    SCOPED_TRACE(restart_every);
    Emulated node(vendor_profile, {"BIOS", "HostBIOS_0", "BIOS.Setup.1-1"},
                  {.flash_step = 12s, .flash_steps = 10});
    node.restart_every = restart_every;
    node.emulator.service->faults().expect(UpdateFault::TaskVanishes);
    EXPECT_EQ(node.apply(), "");
    node.expectBaseline();
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
    for (const auto& [name, slot] : node.state().slots) EXPECT_LE(slot.flashes, 1u) << name;
  }
}
INSTANTIATE_TEST_SUITE_P(All, AFlashThatNobodyCanFollow,
                         testing::Values("muster", "idrac", "idrac-before-multipart", "supermicro",
                                         "gb200", "dgx-h100", "openbmc", "simple-update"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(FirmwareOnTheEmulator, anIdracCutsItsPowerByAJobOfItsBiosAndOnce) {
  Emulated node("idrac", {"CPLD.Embedded.1"});
  const auto began = node.loop.clock.steady();
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_EQ(node.state().ac_cycles, 1u);
  EXPECT_EQ(node.state().bios.at("PowerCycleRequest"), "None");
  EXPECT_LT(node.loop.clock.steady() - began, 10min);
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
}

/// Ironic waits 30 s for such a task, then restarts the host.
TEST(FirmwareOnTheEmulator, aNicsUpdateThatBeginsAtTheRestartGetsOneAndIsWrittenOnce) {
  for (const char* vendor_profile : {"idrac", "gb200"}) {
    for (const int restart_every : {0, 5}) {
      SCOPED_TRACE(fmt::format("{} {}", vendor_profile, restart_every));
      Emulated node(vendor_profile, {"NIC.Slot.5", "NIC_0"});
      node.restart_every = restart_every;
      node.emulator.service->faults().expect(UpdateFault::StartsAtRestart);
      EXPECT_EQ(node.apply(), "");
      node.expectBaseline();
      EXPECT_EQ(node.emulator.machine.starts.size(), 1u);
      EXPECT_EQ(node.state().slots.at(node.cluster.firmware["b"].components[0].name).flashes, 1u);
      EXPECT_THAT(node.state().violations, testing::IsEmpty());
    }
  }
}

TEST(FirmwareOnTheEmulator, aNetworkAdapterThatKeepsStartingGetsOneMoreRestart) {
  for (const int restart_every : {0, 5}) {
    SCOPED_TRACE(restart_every);
    Emulated node("idrac", {"BIOS.Setup.1-1"});
    node.restart_every = restart_every;
    node.emulator.service->faults().expect(UpdateFault::AdapterStarting);
    const auto began = node.loop.clock.steady();
    EXPECT_EQ(node.apply(), "");
    EXPECT_GT(node.loop.clock.steady() - began, 10min);
    EXPECT_EQ(node.emulator.machine.starts.size(), 2u);
    EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").flashes, 1u);
  }
}

TEST(FirmwareOnTheEmulator, aNetworkAdapterThatDoesNotComeUpIsToldAfterOneMoreRestart) {
  Emulated node("idrac", {"BIOS.Setup.1-1"});
  node.emulator.service->faults().expect(UpdateFault::AdapterDead);
  EXPECT_THAT(node.apply(), testing::HasSubstr("NIC1 does not come up"));
  EXPECT_EQ(node.emulator.machine.starts.size(), 2u) << "bounded";
  ASSERT_EQ(node.journal.findings.size(), 1u);
  EXPECT_THAT(node.journal.findings[0].evidence, testing::HasSubstr("Starting"));
}

/// It says so since long before anything was switched.
class AnAdapterThatAlwaysSaysStarting : public testing::Test {
 protected:
  AnAdapterThatAlwaysSaysStarting() {
    auto& faults = node.emulator.service->faults();
    faults.add({.method = "GET",
                .path = "*/NetworkAdapters/NIC1",
                .merge = {{"Status", {{"State", "Starting"}}}},
                .count = -1});
    faults.add({.method = "GET",
                .path = "*/NetworkAdapters",
                .merge = {{"Members",
                           {{{"@odata.id", "/redfish/v1/Chassis/chassis/NetworkAdapters/NIC1"}}}}},
                .count = -1});
  }
  Emulated node{"idrac", {"BIOS.Setup.1-1"}};
};

TEST_F(AnAdapterThatAlwaysSaysStarting, holdsNothingUpHoweverOftenMusterDies) {
  node.restart_every = 1;
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_EQ(node.emulator.machine.starts.size(), 1u);
}

/// As after a read that failed, or in the journal of a muster that did not write it down.
TEST_F(AnAdapterThatAlwaysSaysStarting, isAWarningWhereNobodyKnowsHowItWasBefore) {
  node.journal.crash_at = "settle";
  EXPECT_THROW(node.apply(), test::FakeCrash);
  node.journal.crash_at.clear();
  auto& operation = node.journal.operation_id;
  const std::string note = "starting:NIC1 ";
  ASSERT_NE(operation.find(note), std::string::npos) << operation;
  operation.erase(operation.find(note), note.size());
  node.restart();
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("BIOS.Setup.1-1")};
  action.to = "99.1";
  EXPECT_EQ(node.drive(action), "");
  EXPECT_EQ(node.emulator.machine.starts.size(), 1u);
  ASSERT_EQ(node.journal.findings.size(), 1u);
  EXPECT_EQ(node.journal.findings[0].severity, Severity::Warning);
}

/// SimpleUpdate's answer is lost after the BMC took the order, or muster dies in that moment: it is
/// never ordered again.
TEST(FirmwareOnTheEmulator, anIdracBeforeMultipartIsToldOnceToBeginWhateverBecomesOfTheAnswer) {
  for (const bool after : {true, false}) {
    SCOPED_TRACE(after);
    Emulated node("idrac-before-multipart", {"BIOS.Setup.1-1"});
    node.emulator.service->faults().add(
        {.method = "POST", .path = "*UpdateService.SimpleUpdate", .drop = true, .after = after});
    const auto why = node.apply();
    EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").flashes, after ? 1u : 0u);
    EXPECT_EQ(why.empty(), after) << why;
    EXPECT_EQ(node.emulator.net.count(
                  "POST", "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate"),
              1);
    EXPECT_EQ(node.emulator.net.count("POST", "/redfish/v1/UpdateService/FirmwareInventory"), 1);
  }
}

/// What somebody else's upload left there is not taken for ours, nor begun.
TEST(FirmwareOnTheEmulator, aFileThatLiesReadyOnAnIdracIsNotBegunByAccident) {
  Emulated node("idrac-before-multipart", {"BIOS.Setup.1-1", "NIC.Slot.5"});
  const auto& nic = node.cluster.firmware["b"].components[1];
  auto left = node.rig.bmc();
  ASSERT_TRUE(node.loop.run(left->startUpdate({nic.name, nic.file, nic.sha256})));
  node.cluster.firmware["b"].components.pop_back();
  node.emulator.service->faults().expect(UpdateFault::LostAnswer);
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").flashes, 1u);
  EXPECT_EQ(node.state().slots.at("NIC.Slot.5").flashes, 0u);
}

TEST(FirmwareOnTheEmulator, aSupermicroKeepsTheConfigurationOfItsBmcAndItsBios) {
  Emulated node("supermicro", {"BMC", "BIOS"});
  auto bmc = node.rig.bmc();
  ASSERT_TRUE(node.loop.run(bmc->stageBios({{"WorkloadProfile", "Throughput"}})));
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
  EXPECT_EQ(node.state().bios.at("WorkloadProfile"), "Throughput");
}

/// Between the moment when the BMC is told where the file lies and the moment when it fetches it;
/// size and time stay as they were.
TEST(FirmwareOnTheEmulator, aFileThatIsChangedBeforeTheBmcFetchesItIsNotServed) {
  Emulated node("simple-update", {"BIOS"});
  const auto& bios = node.cluster.firmware["b"].components[0];
  node.before_fetch = [&] {
    const auto when = std::filesystem::last_write_time(bios.file);
    auto other = lab::vbmc::makeFirmware("BIOS", "99.2", 4096);
    ASSERT_EQ(other.size(), std::filesystem::file_size(bios.file));
    ASSERT_TRUE(io::writeFileAtomic(bios.file, other));
    std::filesystem::last_write_time(bios.file, when);
  };
  EXPECT_THAT(node.apply(), testing::AllOf(testing::HasSubstr("did not install BIOS 99.1"),
                                           testing::HasSubstr("its file has changed meanwhile")));
  EXPECT_EQ(node.fetches, 1);
  EXPECT_EQ(node.state().slots.at("BIOS").flashes, 0u);
  EXPECT_EQ(node.journal.findings.size(), 1u);
}

/// It is written into all of it at once, those of later waves too.
class APackageOfADgxsTray : public testing::Test {
 protected:
  static void share(Emulated& node, std::string_view prefix = "HGX_") {
    auto& components = node.cluster.firmware["b"].components;
    std::string names;
    for (const auto& component : components)
      if (component.name.starts_with(prefix)) names += (names.empty() ? "" : "+") + component.name;
    const auto bytes = lab::vbmc::makeFirmware(names, "99.1", 4096);
    const auto file = node.emulator.folder / "tray.fw";
    ASSERT_TRUE(io::writeFileAtomic(file, bytes));
    for (auto& component : components)
      if (component.name.starts_with(prefix))
        component.file = file, component.sha256 = io::sha256Hex(bytes);
  }
  static int uploads(Emulated& node) {
    return node.emulator.net.count("POST", "/redfish/v1/UpdateService/upload");
  }
};

TEST_F(APackageOfADgxsTray, isSentOnceForAllOfItsComponents) {
  for (const int restart_every : {0, 4}) {
    SCOPED_TRACE(restart_every);
    Emulated node("dgx-h100", {"HGX_FW_BMC_0", "HGX_FW_FPGA_0", "HGX_FW_GPU_SXM_1"});
    share(node);
    node.cluster.firmware["b"].constraints.push_back(*inventory::FirmwareConstraint::parse(
        "HGX_FW_GPU_SXM_1 >= 99 needs HGX_FW_FPGA_0 >= 99"));  // two waves
    node.restart_every = restart_every;
    EXPECT_EQ(node.apply(), "");
    node.expectBaseline();
    EXPECT_EQ(uploads(node), 1);
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
    for (const auto& component : node.cluster.firmware["b"].components)
      EXPECT_EQ(node.state().slots.at(component.name).flashes, 1u) << component.name;
  }
}

/// It names no target, so the BMC writes all that is in it, whoever it is sent for.
TEST_F(APackageOfADgxsTray, isNotSentForTheMotherboardWhenItsPartsNeedDifferentRestarts) {
  Emulated node("dgx-h100", {"HostBMC_0", "HostBIOS_0"});
  share(node, "Host");
  EXPECT_THAT(node.apply(), testing::HasSubstr("declare \"activation: ac-cycle\""));
  EXPECT_EQ(uploads(node), 0);
}

TEST_F(APackageOfADgxsTray, isNotSentWhenOneOfItsComponentsMustNotBeWrittenAgain) {
  Emulated node("dgx-h100", {"HGX_FW_BMC_0", "HGX_FW_FPGA_0"});
  share(node);
  node.kept.push_back({lifecycle::Subject(kNode),
                       failedFacet("HGX_FW_FPGA_0"),
                       "99.1 it did not come up",
                       {},
                       "",
                       {}});
  EXPECT_THAT(node.apply(),
              testing::HasSubstr(
                  "HGX_FW_BMC_0 99.1 is not sent: installing HGX_FW_FPGA_0 99.1 has failed"));
  EXPECT_EQ(uploads(node), 0);
}

TEST_F(APackageOfADgxsTray, isNotSentBeforeSomethingElseThatAPartOfItNeeds) {
  Emulated node("dgx-h100", {"HGX_FW_BMC_0", "HGX_FW_ERoT_FPGA_0", "HostBIOS_0"});
  share(node);
  auto& baseline = node.cluster.firmware["b"];
  baseline.constraints.push_back(
      *inventory::FirmwareConstraint::parse("HGX_FW_ERoT_FPGA_0 >= 99 needs HostBIOS_0 >= 99"));
  baseline.order = {"HGX_FW_BMC_0", "HostBIOS_0", "HGX_FW_ERoT_FPGA_0"};
  const auto why = node.apply();
  EXPECT_THAT(why, testing::AllOf(testing::HasSubstr("all of it at once, which is forbidden here"),
                                  testing::HasSubstr("order")));
  EXPECT_EQ(uploads(node), 0) << fmt::format("{}", fmt::join(node.journal.said, "; ")) << " "
                              << node.last_wait;
}

/// What the solver leaves as it is shall not be written by another's package.
TEST_F(APackageOfADgxsTray, isNotSentWhenItsOtherComponentIsForbidden) {
  Emulated node("dgx-h100", {"HGX_FW_BMC_0", "HGX_FW_FPGA_0"});
  share(node);
  node.cluster.firmware["b"].constraints.push_back(
      *inventory::FirmwareConstraint::parse("HGX_FW_FPGA_0 >= 99 needs HostBIOS_0 >= 99"));
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(kNode), facetOf("HGX_FW_BMC_0")};
  action.to = "99.1";
  EXPECT_THAT(node.drive(action),
              testing::AllOf(
                  testing::HasSubstr(
                      "HGX_FW_BMC_0 99.1 is not sent: its package also writes HGX_FW_FPGA_0 99.1"),
                  testing::HasSubstr("needs HostBIOS_0 >= 99")));
  EXPECT_EQ(uploads(node), 0);
}

TEST_F(APackageOfADgxsTray, doesNotJumpOverAnothersSteppingStone) {
  for (const bool stone_first : {false, true}) {
    SCOPED_TRACE(stone_first);
    Emulated node("dgx-h100", {"HGX_FW_BMC_0", "HGX_FW_FPGA_0"});
    share(node);
    auto& baseline = node.cluster.firmware["b"];
    const auto bytes = lab::vbmc::makeFirmware("HGX_FW_FPGA_0", "98.0", 4096);
    const auto file = node.emulator.folder / "stone.fw";
    ASSERT_TRUE(io::writeFileAtomic(file, bytes));
    for (auto& component : baseline.components)
      if (component.name == "HGX_FW_FPGA_0")
        component.intermediate = {{"98.0", file, io::sha256Hex(bytes)}};
    baseline.order = {"HGX_FW_BMC_0", "HGX_FW_FPGA_0"};
    if (stone_first) std::swap(baseline.order[0], baseline.order[1]);
    baseline.declared_order = 2;
    const auto why = node.apply();
    if (stone_first) {
      EXPECT_EQ(why, "");
      node.expectBaseline();
      EXPECT_EQ(node.state().slots.at("HGX_FW_FPGA_0").flashes, 2u);
      EXPECT_EQ(node.state().slots.at("HGX_FW_BMC_0").flashes, 1u);
      EXPECT_EQ(node.emulator.machine.starts.size(), 2u) << "it ran the stone";
    } else {
      EXPECT_THAT(why,
                  testing::HasSubstr(
                      "its package also writes HGX_FW_FPGA_0 99.1, which must run 98.0 first"));
      EXPECT_EQ(uploads(node), 0);
    }
  }
}

TEST(FirmwareOnTheEmulator, aLargeSmartComponentGoesToILoInSignedPieces) {
  Emulated node("ilo", {"System ROM"});
  auto& rom = node.cluster.firmware["b"].components[0];
  const auto bytes = lab::vbmc::makeFirmware("System ROM", rom.version, (32u << 20) + 4096);
  ASSERT_TRUE(io::writeFileAtomic(rom.file, bytes));
  rom.sha256 = io::sha256Hex(bytes);
  EXPECT_THAT(node.apply(), testing::HasSubstr("_part1.compsig is missing"));
  EXPECT_EQ(node.state().slots.at("System ROM").uploads, 0u);
  for (const int part : {1, 2})
    ASSERT_TRUE(io::writeFileAtomic(
        rom.file.parent_path() / fmt::format("{}_part{}.compsig", rom.file.stem().string(), part),
        "signature"));
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_EQ(node.state().slots.at("System ROM").flashes, 1u);
}

TEST(FirmwareOnTheEmulator, anUpdateOfSomebodyElseIsWaitedFor) {
  Emulated node("openbmc", {"BIOS"});
  node.emulator.service->faults().add(
      {.method = "POST", .path = "/redfish/v1/UpdateService/upload", .status = 503, .count = 3});
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BIOS").flashes, 1u);
}

/// An iDRAC whose queue holds a job that does not move.
TEST(FirmwareOnTheEmulator, aStuckJobQueueIsWaitedForAndNamed) {
  constexpr const char *kList = "/redfish/v1/TaskService/Tasks",
                       *kStuck = "/redfish/v1/TaskService/Tasks/JID_1";
  for (const bool for_ever : {false, true}) {
    Emulated node("idrac", {"BIOS.Setup.1-1"});
    const nlohmann::json held = {
        {"Members", {{{"@odata.id", kStuck}, {"Id", "JID_1"}, {"TaskState", "Running"}}}}};
    node.emulator.service->faults().add(
        {.method = "GET", .path = kList, .merge = held, .count = for_ever ? -1 : 40});
    const auto why = node.apply();
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
    if (for_ever) {
      EXPECT_THAT(why, testing::HasSubstr(fmt::format("the BMC is busy with {}", kStuck)));
      EXPECT_EQ(node.state().slots.at("BIOS.Setup.1-1").uploads, 0u);
      EXPECT_TRUE(node.emulator.machine.starts.empty());
    } else {
      EXPECT_EQ(why, "");
      node.expectBaseline();
    }
  }
}

TEST(FirmwareOnTheEmulator, aSlowBmcAndOneThatLiesAboutPowerAreBelievedOnlyByState) {
  Emulated node("muster", {"BIOS"});
  node.emulator.service->faults().add({.method = "GET",
                                       .path = "/redfish/v1/UpdateService/FirmwareInventory*",
                                       .latency = 15s,
                                       .count = 4});
  node.emulator.service->faults().add({.method = "POST",
                                       .path = "*ComputerSystem.Reset",
                                       .status = 500,
                                       .after = true,
                                       .count = 1});
  EXPECT_EQ(node.apply(), "");
  EXPECT_EQ(node.state().slots.at("BIOS").flashes, 1u);
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
}

/// The answer to the upload is lost, and the list of tasks then is none: an empty list would say
/// that nothing arrived, and the image would be sent again.
TEST(FirmwareOnTheEmulator, nothingIsSentAgainUntilTheTasksWereReallyRead) {
  constexpr int kPages = 120;  // longer than the patience with a list that shows nothing
  constexpr const char* kUpload = "/redfish/v1/UpdateService/update-multipart";
  const auto answering = [](io::HttpResponse response) -> Async<io::HttpResponse> {
    co_return response;
  };
  for (const char* body : {"<html>log in</html>", R"({"Members": [)", R"({"Members": null})"}) {
    SCOPED_TRACE(body);
    Emulated node("gb200", {"UEFI"});
    node.emulator.service->faults().expect(UpdateFault::LostAnswer);
    auto pages = std::make_shared<int>(0);
    auto inner = node.emulator.net.handle;
    auto* net = &node.emulator.net;
    node.emulator.net.handle = [=](io::HttpRequest request) {
      const bool list = request.method == "GET" &&
                        request.url.target.starts_with("/redfish/v1/TaskService/Tasks") &&
                        request.url.target.find("update-") == std::string::npos;
      if (list && net->count("POST", kUpload) > 0 && ++*pages <= kPages)
        return answering({200, {{"Content-Type", "text/html"}}, body});
      return inner(std::move(request));
    };
    EXPECT_EQ(node.apply(), "");
    EXPECT_GT(*pages, 0);
    EXPECT_EQ(node.emulator.net.count("POST", kUpload), 1);
    EXPECT_EQ(node.state().slots.at("UEFI").flashes, 1u);
    EXPECT_THAT(node.state().violations, testing::IsEmpty());
  }
}

TEST(FirmwareOnTheEmulator, aRootOfTrustKeepsItsPowerUntilItsCopyIsDone) {
  Emulated node("gb200", {"HGX_FW_ERoT_FPGA_0", "HGX_FW_ERoT_CPU_0", "UEFI"});
  EXPECT_EQ(node.apply(), "");
  node.expectBaseline();
  EXPECT_THAT(node.state().violations, testing::IsEmpty());
  EXPECT_EQ(node.state().ac_cycles, 1u);
}

}  // namespace
}  // namespace muster::firmware
