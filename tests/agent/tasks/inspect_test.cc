// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/tasks.h"
#include "tests/agent/tasks/tasks_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InspectTest : public TasksTest {
 protected:
  void SetUp() override {
    put("sys/class/dmi/id/sys_vendor", "QEMU\n");
    put("sys/class/dmi/id/product_serial", "SN-42\n");
    put("sys/devices/system/cpu/online", "0-3,8\n");
    put("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n");
    put("sys/block/vda/size", "8388608\n");
    put("sys/block/vda/serial", "  DISK-1  \n");
    put("sys/block/vda/removable", "0\n");
    put("sys/block/vda/device/vendor", "0x1af4\n");
    put("sys/block/loop0/size", "100\n");
    put("sys/block/loop0/device/x", "");
    put("sys/block/dm-0/size", "100\n");
    put("sys/block/sdb/size", "100\n");
    put("sys/block/sdb/removable", "1\n");
    put("sys/block/sdb/device/x", "");
    put("sys/block/sda/size", "16\n");
    put("sys/block/sda/removable", "0\n");
    put("sys/block/sda/device/vpd_pg80", std::string("\x00\x80\x00\x06", 4) + "SATA-7");
    put("sys/block/sda/device/wwid", "naa.5000c500a\n");
    put("sys/class/net/lo/address", "00:00:00:00:00:00\n");
    put("sys/class/net/eth0/address", "52:54:00:00:00:01\n");
    put("sys/class/net/eth0/device/x", "");
    fs::create_symlink("../../drivers/virtio_net", root / "sys/class/net/eth0/device/driver");
    fs::create_directories(root / "sys/class/infiniband/mlx5_0");
    put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    put("sys/bus/pci/devices/0000:01:00.0/device", "0x2330\n");
    put("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
    put("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
    put("sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n");
    put("sys/bus/pci/devices/0000:03:00.0/class", "0x040300\n");
    programs.fails("muster-agent tool gpus", 1, "no NVML");
    tools.disk_content = [](const fs::path& device) -> Result<DiskContent> {
      if (device.filename() == "vda") return DiskContent{wire::DiskUse::Empty, "none"};
      return fail(ErrorCode::Unavailable, "I/O error");
    };
  }
};

TEST_F(InspectTest, readsWhatTheKernelSays) {
  auto hardware = runAsync(context, inspect(tools));
  ASSERT_TRUE(hardware) << hardware.error().str();
  EXPECT_EQ(hardware->manufacturer, "QEMU");
  EXPECT_EQ(hardware->serial, "SN-42");
  EXPECT_EQ(hardware->cpus, 5);
  EXPECT_EQ(hardware->memory_bytes, 2048u * 1024);
  ASSERT_EQ(hardware->disks.size(), 2u)
      << "loop, device-mapper and removable disks are no disks of the node";
  EXPECT_EQ(hardware->disks[0].path, "/dev/sda");
  EXPECT_EQ(hardware->disks[0].serial, "SATA-7");
  EXPECT_EQ(hardware->disks[0].wwn, "naa.5000c500a");
  EXPECT_EQ(hardware->disks[1].serial, "DISK-1");
  EXPECT_EQ(hardware->disks[1].size_bytes, 4ull << 30);
  ASSERT_EQ(hardware->nics.size(), 1u);
  EXPECT_EQ(hardware->nics[0].driver, "virtio_net");
  EXPECT_THAT(hardware->rdma_devices, ElementsAre("mlx5_0"));
  ASSERT_EQ(hardware->gpus.size(), 1u)
      << "not the graphics of another vendor, not a GPU's sound device";
  EXPECT_EQ(hardware->gpus[0].pci, "0000:01:00.0");
}

TEST_F(InspectTest, anInstinctIsAGpuThoughItIsNoDisplay) {
  put("sys/bus/pci/devices/0000:04:00.0/vendor", "0x1002\n");
  put("sys/bus/pci/devices/0000:04:00.0/class", "0x120000\n");
  put("sys/bus/pci/devices/0000:04:00.0/device", "0x74a1\n");
  put("sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:05:00.0/class", "0x068000\n");  // NVSwitch
  auto hardware = runAsync(context, inspect(tools));
  ASSERT_EQ(hardware->gpus.size(), 2u);
  EXPECT_EQ(hardware->gpus[1].pci, "0000:04:00.0");
}

TEST_F(InspectTest, diskThatCannotBeReadIsNotBlank) {
  auto hardware = runAsync(context, inspect(tools));
  EXPECT_EQ(hardware->disks[1].content, "none");
  EXPECT_EQ(hardware->disks[1].use, wire::DiskUse::Empty);
  EXPECT_EQ(hardware->disks[0].use, wire::DiskUse::Other);
  EXPECT_THAT(hardware->disks[0].content, HasSubstr("unreadable: I/O error"));
  tools.disk_content = nullptr;
  hardware = runAsync(context, inspect(tools));
  EXPECT_NE(hardware->disks[1].content, "none");
  EXPECT_EQ(hardware->disks[1].use, wire::DiskUse::Other);
}

TEST_F(InspectTest, nvmlKnowsMoreThanTheBus) {
  wire::Hardware seen;
  seen.gpus = {{"NVIDIA H100 80GB HBM3", "GPU-1", "165", "96.00", "0000:01:00.0"}};
  programs.on("muster-agent tool gpus", toJson(seen));
  auto hardware = runAsync(context, inspect(tools));
  ASSERT_EQ(hardware->gpus.size(), 1u);
  EXPECT_EQ(hardware->gpus[0].serial, "165");
}

}  // namespace
}  // namespace muster::agent
