// SPDX-License-Identifier: Apache-2.0
// PCIe of a machine: a folder that looks like its tree.
#include "tests/validate/fake_host.h"
#include "validate/checks/pci.h"
#include "validate/checks/system_evaluation.h"

#include <gtest/gtest.h>

#include <fstream>

namespace muster::validate {
namespace {

using nlohmann::json;
using wire::CheckStatus;

/// Where a device hangs: its folder below its bridges, and the link that all tools look at.
class PciTree : public FakeHost {
 protected:
  void device(const std::string& path, const std::string& kind, int numa,
              const std::string& vendor = "0x10de") {
    const auto folder = "sys/devices/" + path, address = path.substr(path.rfind('/') + 1);
    write(folder + "/class", kind), write(folder + "/vendor", vendor),
        write(folder + "/numa_node", std::to_string(numa));
    link("sys/bus/pci/devices/" + address, folder);
  }
  void nic(const std::string& path, const std::string& name, int numa) {
    device(path, "0x020700", numa, "0x15b3");
    std::filesystem::create_directories(host_.root / "sys/class/infiniband" / name);
    link("sys/class/infiniband/" + name + "/device", "sys/devices/" + path);
  }
  void link(const std::string& from, const std::string& to) {
    std::filesystem::create_directories((host_.root / from).parent_path());
    std::filesystem::create_symlink(host_.root / to, host_.root / from);
  }
  /// A bridge with its configuration space: extended capabilities 0x0001 at 0x100 and ACS at 0x150.
  void bridge(const std::string& path, std::uint16_t control, std::size_t bytes = 4096) {
    std::string config(bytes, '\0');
    const auto put = [&config](std::size_t at, std::uint32_t value, int size) {
      for (int i = 0; i < size && at + static_cast<std::size_t>(i) < config.size(); ++i)
        config[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
    };
    put(0x100, 0x0001 | 2u << 16 | 0x150u << 20, 4), put(0x150, 0x000d | 1u << 16, 4),
        put(0x154, 0x5f, 2), put(0x156, control, 2);
    const auto folder = "sys/devices/" + path;
    write(folder + "/class", "0x060400");
    std::ofstream(host_.root / folder / "config", std::ios::binary) << config;
    link("sys/bus/pci/devices/" + path.substr(path.rfind('/') + 1), folder);
  }
};

/// A slot and what is in it.
class PciLinks : public PciTree {
 protected:
  void width(const std::string& address, int lanes, int most,
             const std::string& speed = "32.0 GT/s PCIe",
             const std::string& fastest = "32.0 GT/s PCIe") {
    const auto folder = "sys/bus/pci/devices/" + address + "/";
    write(folder + "current_link_width", std::to_string(lanes)),
        write(folder + "max_link_width", std::to_string(most));
    write(folder + "current_link_speed", speed), write(folder + "max_link_speed", fastest);
  }
  /// Slot 10:0N.0 with the NIC 1N:00.0.
  void slot(int n, int slot_lanes, int lanes) {
    const auto bridge_path = fmt::format("pci0000:10/0000:10:0{}.0", n);
    bridge(bridge_path, 0);
    width(fmt::format("0000:10:0{}.0", n), lanes, slot_lanes);
    nic(fmt::format("{}/0000:1{}:00.0", bridge_path, n), fmt::format("mlx5_{}", n), 0);
    width(fmt::format("0000:1{}:00.0", n), lanes, 16);
  }
};

TEST_F(PciLinks, areAsWideAndFastAsDeviceAndSlotCanBe) {
  EXPECT_EQ(check("system.pcie").status, CheckStatus::Pass) << "nothing on PCI: others count";
  slot(1, 16, 16);
  const auto good = check("system.pcie");
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  width("0000:11:00.0", 8, 16);
  EXPECT_NE(check("system.pcie").text.find("NIC mlx5_1 (0000:11:00.0) runs on 8 of 16 lanes"),
            std::string::npos)
      << check("system.pcie").text;
  width("0000:11:00.0", 16, 16, "16.0 GT/s PCIe");
  EXPECT_NE(check("system.pcie").text.find("runs at 16 of 32 GT/s"), std::string::npos)
      << check("system.pcie").text;
  width("0000:10:01.0", 16, 16, "16.0 GT/s PCIe", "16.0 GT/s PCIe");
  EXPECT_EQ(check("system.pcie").status, CheckStatus::Pass) << "its slot is no faster";
}

TEST_F(PciLinks, aNarrowSlotIsSeenBesideOthersOfItsModel) {
  slot(1, 8, 8);
  EXPECT_EQ(check("system.pcie").status, CheckStatus::Pass) << "one alone may be meant so";
  slot(2, 16, 16);
  EXPECT_EQ(check("system.pcie").status, CheckStatus::Pass) << "of two nobody knows";
  slot(3, 16, 16);
  EXPECT_NE(
      check("system.pcie")
          .text.find(
              "NIC mlx5_1 (0000:11:00.0) sits in a slot of 8 lanes, others of its model have 16"),
      std::string::npos)
      << check("system.pcie").text;
}

TEST_F(PciLinks, gpusRestAndDisksDoNot) {
  device("pci0000:10/0000:10:01.0/0000:18:00.0", "0x030200", 0);
  width("0000:18:00.0", 16, 16, "2.5 GT/s PCIe");
  EXPECT_EQ(check("system.pcie").status, CheckStatus::Pass) << "an idle GPU runs slowly";
  device("pci0000:10/0000:10:02.0/0000:19:00.0", "0x010802", 0, "0x144d");
  std::filesystem::create_directories(host_.root / "sys/class/nvme/nvme0");
  link("sys/class/nvme/nvme0/device", "sys/devices/pci0000:10/0000:10:02.0/0000:19:00.0");
  EXPECT_EQ(check("system.pcie").status, CheckStatus::NoData) << "of the disk nothing is told";
  width("0000:19:00.0", 4, 4, "Unknown");
  EXPECT_EQ(check("system.pcie").status, CheckStatus::Pass);
  write("sys/bus/pci/devices/0000:19:00.0/aer_dev_fatal", "Undefined 0\nDLP 1\nTOTAL_ERR_FATAL 1");
  EXPECT_NE(check("system.pcie").text.find("disk nvme0 (0000:19:00.0) counts 1 fatal PCIe errors"),
            std::string::npos)
      << check("system.pcie").text;
}

TEST_F(PciTree, everyGpuHasANicOfItsOwnSide) {
  EXPECT_EQ(check("gpu.affinity").status, CheckStatus::Pass)
      << "simulated GPUs are on no bus; gpu.count counts";
  device("pci0000:10/0000:10:01.0/0000:11:00.0/0000:18:00.0", "0x030200", 0);
  EXPECT_EQ(check("gpu.affinity").status, CheckStatus::Pass)
      << "no RDMA device at all: rdma.count speaks of that";
  nic("pci0000:10/0000:10:01.0/0000:11:00.0/0000:19:00.0", "mlx5_0", 0);
  device("pci0000:80/0000:80:01.0/0000:81:00.0/0000:88:00.0", "0x030200", 1);
  nic("pci0000:80/0000:80:01.0/0000:81:00.0/0000:89:00.0", "mlx5_1", 1);
  const auto good = check("gpu.affinity");
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  EXPECT_EQ(good.evidence["nearest"]["0000:88:00.0"], json({"mlx5_1"}));
}

TEST_F(PciTree, aNicInTheWrongSlotIsNamed) {
  device("pci0000:10/0000:10:01.0/0000:18:00.0", "0x030200", 0);
  device("pci0000:80/0000:80:01.0/0000:88:00.0", "0x030200", 1);
  nic("pci0000:10/0000:10:01.0/0000:19:00.0", "mlx5_0", 0);
  nic("pci0000:10/0000:10:01.0/0000:1a:00.0", "mlx5_1", 0);
  const auto crossed = check("gpu.affinity");
  EXPECT_EQ(crossed.status, CheckStatus::Fail);
  EXPECT_NE(crossed.text.find("GPU 0000:88:00.0 is at memory node 1, where no RDMA device is"),
            std::string::npos)
      << crossed.text;
  EXPECT_NE(crossed.text.find("1 GPUs (0000:18:00.0) are nearest to 2 NICs"), std::string::npos)
      << crossed.text;
}

TEST_F(PciTree, anHcaThatSitsOrServesOtherwiseThanDeclaredIsNamed) {
  device("pci0000:10/0000:10:01.0/0000:18:00.0", "0x030200", 0);
  device("pci0000:80/0000:80:01.0/0000:88:00.0", "0x030200", 1);
  nic("pci0000:10/0000:10:01.0/0000:19:00.0", "mlx5_0", 0);
  nic("pci0000:80/0000:80:01.0/0000:89:00.0", "mlx5_1", 1);
  const auto with = [this](json rails) {
    return runCheck(*findCheck("gpu.affinity"), {{"rails", std::move(rails)}}, host_);
  };
  const auto good = with(
      {{{"hca", "mlx5_0"}, {"pci", "0000:19:00.0"}, {"gpu", 0}}, {{"hca", "mlx5_1"}, {"gpu", 1}}});
  EXPECT_EQ(good.status, CheckStatus::Pass) << good.text;
  const auto crossed = with({{{"hca", "mlx5_0"}, {"gpu", 1}},
                             {{"hca", "mlx5_1"}, {"pci", "0000:19:00.0"}},
                             {{"hca", "mlx5_2"}, {"pci", "0000:1a:00.0"}}});
  EXPECT_EQ(crossed.status, CheckStatus::Fail);
  for (const char* part :
       {"mlx5_0 is declared to serve GPU 1 (0000:88:00.0), which is nearest to mlx5_1",
        "mlx5_1 sits at 0000:89:00.0, declared at 0000:19:00.0", "mlx5_2 is not there"})
    EXPECT_NE(crossed.text.find(part), std::string::npos) << crossed.text;
  EXPECT_NE(with({{{"hca", "mlx5_0"}, {"gpu", 7}}}).text.find("there are 2"), std::string::npos);
}

TEST_F(PciTree, twoGpusOfOneSwitchShareItsTwoNics) {
  for (const char* gpu : {"0000:18:00.0", "0000:1b:00.0"})
    device(std::string("pci0000:10/0000:10:01.0/") + gpu, "0x030200", 0);
  nic("pci0000:10/0000:10:01.0/0000:19:00.0", "mlx5_0", 0);
  nic("pci0000:10/0000:10:01.0/0000:1a:00.0", "mlx5_1", 0);
  EXPECT_EQ(check("gpu.affinity").status, CheckStatus::Pass);
}

TEST_F(PciTree, bridgesThatRedirectAreNamedAndThoseThatCannotBeReadAreNoData) {
  EXPECT_EQ(check("system.acs").status, CheckStatus::Pass) << "no GPU";
  bridge("pci0000:10/0000:10:01.0", 0x0000);
  device("pci0000:10/0000:10:01.0/0000:18:00.0", "0x030200", 0);
  nic("pci0000:10/0000:10:01.0/0000:19:00.0", "mlx5_0", 0);
  EXPECT_EQ(check("system.acs").status, CheckStatus::Pass);
  bridge("pci0000:80/0000:80:01.0",
         0x001d);  // what a BIOS with ACS leaves; no GPU or NIC is below it
  EXPECT_EQ(check("system.acs").status, CheckStatus::Pass);
  nic("pci0000:80/0000:80:01.0/0000:89:00.0", "mlx5_1", 1);
  const auto redirects = check("system.acs");
  EXPECT_EQ(redirects.status, CheckStatus::Fail);
  EXPECT_NE(redirects.text.find("0000:80:01.0 (ACS control 0x001d)"), std::string::npos)
      << redirects.text;
  bridge("pci0000:c0/0000:c0:01.0", 0x0000, 256);  // as everybody but root sees it
  nic("pci0000:c0/0000:c0:01.0/0000:c9:00.0", "mlx5_2", 1);
  EXPECT_EQ(check("system.acs").status, CheckStatus::NoData);
}

TEST(Acs, aChainOfCapabilitiesThatEndsNowhereEnds) {
  std::string config(4096, '\0');
  EXPECT_FALSE(*acsControl(config));
  config[0x100] = 1, config[0x102] = 1, config[0x103] = 0x10;  // the next one is itself
  EXPECT_FALSE(*acsControl(config));
  EXPECT_FALSE(*acsControl(std::string(4096, '\xff')));
  EXPECT_FALSE(acsControl(""));
}

}  // namespace
}  // namespace muster::validate
