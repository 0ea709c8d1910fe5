// SPDX-License-Identifier: Apache-2.0
// What the agent sees of its node's health: the kernel's words, disks, ports, units; and what it
// must not see in them.
#include "agent/tasks/health.h"

#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"
#include "wire/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string idOf(std::string_view message) {
  const auto symptom = symptomOf(message);
  return symptom ? symptom->id + "@" + symptom->device : "nothing";
}

TEST(KernelLog, readsXidsOfOldAndNewDrivers) {
  EXPECT_EQ(idOf("NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen "
                 "off the bus."),
            "xid.79@0000:18:00.0");
  EXPECT_EQ(idOf("NVRM: Xid (PCI:0000:3b:00.0): 48, An uncorrectable double bit error (DBE) has "
                 "been detected"),
            "xid.48@0000:3b:00.0");
  EXPECT_EQ(symptomOf("NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x0 "
                      "(None) to 0x1 (GPU Reset Required)")
                ->text,
            "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)");
  EXPECT_EQ(idOf("NVRM: Xid (PCI:0000:18:00): what"), "nothing");
  EXPECT_EQ(idOf("NVRM: Xid (PCI:"), "nothing");
  EXPECT_EQ(idOf("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.124.06"), "nothing");
}

TEST(KernelLog, readsDisksAndMemory) {
  EXPECT_EQ(idOf("EXT4-fs (sda2): Remounting filesystem read-only"), "disk.read-only@sda2");
  EXPECT_EQ(idOf("I/O error, dev loop1, sector 2048 op 0x1:(WRITE)"), idOf("nothing of it"))
      << "a mounted image is no disk of the node";
  EXPECT_EQ(idOf("I/O error, dev sr0, sector 0 op 0x0:(READ)"), idOf("nothing of it"))
      << "nor is a BMC's virtual media";
  EXPECT_EQ(idOf("blk_update_request: I/O error, dev nvme0n1, sector 2048 op 0x0:(READ)"),
            "disk.io-error@nvme0n1");
  EXPECT_EQ(idOf("{1}[Hardware Error]: event severity: fatal"), "system.mce@");
  EXPECT_EQ(idOf("EXT4-fs (sda2): mounted filesystem with ordered data mode"), "nothing");
}

TEST(KernelLog, countsEachRecordOnceAndBelievesTheKernelOnly) {
  muster::test::TempFolder folder;
  const auto file = folder / "kmsg";
  const std::string xid = "NVRM: Xid (PCI:0000:18:00): 13, Graphics Exception\n";
  ASSERT_TRUE(io::writeFileAtomic(
      file, "6,10,100,-;" + xid + " SUBSYSTEM=pci\n6,11,101,-;" + xid + "12,12,102,-;" + xid));
  KernelLog log;
  ASSERT_TRUE(log.read(file));
  ASSERT_EQ(log.symptoms().size(), 1u);
  EXPECT_EQ(log.symptoms()[0].count, 2u) << "12 is facility 1: a program wrote that into the log";
  ASSERT_TRUE(log.read(file));
  EXPECT_EQ(log.symptoms()[0].count, 2u) << "the same records again";
  ASSERT_TRUE(io::writeFileAtomic(file, "6,900,900,-;" + xid));
  ASSERT_TRUE(log.read(file));
  EXPECT_EQ(log.symptoms()[0].count, 3u) << "what has left the ring still counts";
  EXPECT_FALSE(log.read(folder / "none"));
}

TEST(Smart, believesTheDisksOwnWord) {
  EXPECT_THAT(*parseSmart(R"({"smart_status": {"passed": true}})", "sda"), IsEmpty());
  EXPECT_THAT(*parseSmart(R"({"smartctl": {"exit_status": 2}})", "sda"), IsEmpty())
      << "a disk that says nothing of itself is not failing";
  EXPECT_THAT(*parseSmart(R"({"smart_status": {"passed": false}})", "sda"),
              ElementsAre(Field(&wire::Symptom::id, "disk.failing")));
  EXPECT_THAT(
      *parseSmart(
          R"({"smart_status": {"passed": true}, "nvme_smart_health_information_log": {"critical_warning": 4, "percentage_used": 100}})",
          "n"),
      ElementsAre(Field(&wire::Symptom::id, "disk.failing"),
                  Field(&wire::Symptom::id, "disk.worn")));
  EXPECT_THAT(*parseSmart(R"({"smart_status": "passed"})", "sda"), IsEmpty());
  EXPECT_FALSE(parseSmart("Smartctl open device failed", "sda"));
}

TEST(Units, aFabricManagerIsMissedOnlyWhereItIsMeantToRun) {
  EXPECT_THAT(parseUnits("LoadState=loaded\nActiveState=failed\nUnitFileState=enabled\n", ""),
              ElementsAre(Field(&wire::Symptom::id, "system.fabric-manager")));
  EXPECT_THAT(parseUnits("LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n", ""),
              IsEmpty());
  EXPECT_THAT(parseUnits("LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n", ""),
              IsEmpty());
  EXPECT_THAT(parseUnits("LoadState=not-found\nActiveState=inactive\nUnitFileState=\n", ""),
              IsEmpty());
  EXPECT_THAT(
      parseUnits("", "nvidia-persistenced.service loaded failed failed NVIDIA Persistence\n"),
      ElementsAre(Field(&wire::Symptom::device, "nvidia-persistenced.service")));
}

class HealthSenseTest : public ::testing::Test {
 protected:
  HealthSenseTest() {
    put("dev/kmsg", "6,1,1,-;Linux version 6.1.0\n");
    put("proc/self/mounts", "/dev/sda2 / ext4 rw,relatime 0 0\n/dev/loop0 /snap squashfs ro 0 0\n");
    put("sys/block/sda/size", "1");
    processes_.on("smartctl", [this](const io::Command&) -> Result<io::ProcessExit> {
      if (!smart_) return fail(ErrorCode::NotFound, "no smartctl");
      return io::ProcessExit{4, *smart_, ""};
    });
    processes_.on("systemctl show", "LoadState=not-found\n");
    processes_.on("systemctl list-units", "");
    processes_.on("/proc/self/exe tool gpu-health",
                  [this](const io::Command&) -> Result<io::ProcessExit> {
                    return io::ProcessExit{0, gpus_, ""};
                  });
  }
  void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((folder_ / path).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / path, text));
  }
  wire::HealthReport look() { return loop_.run(sense_.look()); }
  static std::vector<std::string> ids(const wire::HealthReport& report) {
    std::vector<std::string> out;
    for (const auto& symptom : report.symptoms) out.push_back(symptom.id + "@" + symptom.device);
    return out;
  }

  muster::test::TempFolder folder_;
  muster::test::VirtualLoop loop_;
  muster::test::ScriptedPrograms processes_;
  std::optional<std::string> smart_ = R"({"smart_status": {"passed": true}})";
  std::string gpus_ = R"({"symptoms": [], "sources": {"gpu": "ok", "gpus": "8"}})";
  HealthSense sense_{TaskTools{folder_.path(), "", processes_, loop_.workers, loop_.clock}};
};

TEST_F(HealthSenseTest, aWellNodeHasNoSymptomAndEverySourceAnswers) {
  const auto report = look();
  EXPECT_THAT(ids(report), IsEmpty());
  EXPECT_EQ(report.sources.at("kernel"), "ok");
  EXPECT_EQ(report.sources.at("gpu"), "ok");
  EXPECT_EQ(report.sources.at("disk"), "ok");
  EXPECT_EQ(report.sources.at("network"), "absent");
  EXPECT_EQ(report.sources.at("units"), "ok");
}

TEST_F(HealthSenseTest, whatCannotBeReadIsSaidNotTakenForHealth) {
  smart_.reset();
  std::filesystem::remove(folder_ / "dev/kmsg");
  gpus_ = "Segmentation fault";
  const auto report = look();
  EXPECT_THAT(report.sources.at("disk"), HasSubstr("no smartctl"));
  EXPECT_THAT(report.sources.at("kernel"), HasSubstr("kmsg"));
  EXPECT_EQ(report.sources.at("gpu"), "starting");
  look();
  EXPECT_THAT(look().sources.at("gpu"), HasSubstr("health")) << "three times without an answer";
}

TEST_F(HealthSenseTest, oneSlowAnswerOfTheLibraryIsNoSicknessAndHidesNone) {
  gpus_ =
      R"({"symptoms": [{"id": "gpu.remap-failure", "device": "0000:18:00.0", "count": 1}], "sources": {"gpu": "ok", "gpus": "8"}})";
  EXPECT_THAT(ids(look()), ElementsAre("gpu.remap-failure@0000:18:00.0"));
  gpus_ = "";
  for (int silent = 1; silent <= kSilencesMeant; ++silent) {
    const auto report = look();
    EXPECT_THAT(ids(report), ElementsAre("gpu.remap-failure@0000:18:00.0")) << silent;
    EXPECT_EQ(report.sources.at("gpu") == "ok", silent < kSilencesMeant) << silent;
  }
}

TEST_F(HealthSenseTest, aRootThatWentReadOnlyIsSeenAndAnImageThatIsSoByNatureIsNot) {
  put("proc/self/mounts", "/dev/sda2 / ext4 ro,relatime 0 0\n/dev/loop0 /snap squashfs ro 0 0\n");
  EXPECT_THAT(ids(look()), ElementsAre("disk.read-only@sda2"));
}

TEST_F(HealthSenseTest, aGpuThatWasThereIsMissed) {
  EXPECT_THAT(ids(look()), IsEmpty());
  gpus_ = R"({"symptoms": [], "sources": {"gpu": "ok", "gpus": "7"}})";
  const auto report = look();
  ASSERT_THAT(ids(report), ElementsAre("gpu.lost@"));
  EXPECT_EQ(report.symptoms[0].count, 1u);
}

TEST_F(HealthSenseTest, aPortThatWasNeverUpIsNotCabledAndOneThatWasIsDown) {
  for (const char* port : {"mlx5_0", "mlx5_1"})
    put(fmt::format("sys/class/infiniband/{}/ports/1/state", port), "1: DOWN\n");
  put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  EXPECT_THAT(ids(look()), IsEmpty());
  put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  put("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "12\n");
  EXPECT_THAT(ids(look()),
              ElementsAre("network.link-down@mlx5_0/1", "network.link-flaps@mlx5_0/1"));
}

TEST_F(HealthSenseTest, aCarrierThatWentManyTimesIsToldOfRealPortsOnly) {
  put("sys/class/net/eth0/device/vendor", "0x15b3\n");
  put("sys/class/net/eth0/carrier_down_count", "12\n");
  put("sys/class/net/br0/carrier_down_count", "99\n");
  const auto report = look();
  ASSERT_THAT(ids(report), ElementsAre("network.link-flaps@eth0"));
  EXPECT_EQ(report.symptoms[0].count, 11u);
}

}  // namespace
}  // namespace muster::agent
