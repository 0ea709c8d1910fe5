// SPDX-License-Identifier: Apache-2.0
// One virtual machine, no operating system: the override to the network holds for one boot, then
// the guest's own reset takes the disk.
#include "base/io/files.h"
#include "base/io/process.h"
#include "lab/lab.h"
#include "lab/netns.h"
#include "tests/lab/lab_cluster.h"
#include "tests/lab/redfish_session.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstdlib>
#include <thread>

namespace muster::lab {
namespace {

/// A boot sector that writes DISKBOOT to the serial line and halts.
std::string bootSector() {
  std::string code(
      "\xFA\x31\xC0\x8E\xD8\xBE\x18\x7C\xBA\xF8\x03\xAC\x08\xC0\x74\x03\xEE\xEB\xF8\xF4\xEB\xFD\x90"
      "\x90",
      24);
  code += "DISKBOOT\r\n";
  code.resize(510, '\0');
  return code + "\x55\xAA";
}

bool logShows(const std::string& file, const std::string& word, std::chrono::seconds limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    auto text = io::readFile(file);
    if (text && text->find(word) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

TEST(BootOnce, theGuestsOwnResetTakesTheDisk) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "needs root: it makes network namespaces and boots a machine";
  char name[] = "/tmp/muster-lab-XXXXXX";
  std::filesystem::path base = ::mkdtemp(name);
  auto folder = base / "lab";
  auto say = [](std::string_view) {};
  ::setenv("MUSTER_LAB_TEST_PASSWORD", "secret-1", 1);
  auto cluster = labCluster(fmt::format("b{}", ::getpid()));
  auto lab = up(cluster, folder, say);
  ASSERT_TRUE(lab) << lab.error().str();

  auto disk = folder / "disks" / "gpu002.raw";
  ASSERT_TRUE(io::runChecked({.program = "dd",
                              .args = {"of=" + disk.string(), "conv=notrunc"},
                              .stdin_text = bootSector()}));
  ASSERT_TRUE(io::writeFileAtomic(base / "boot.ipxe", "#!ipxe\nreboot\n"));
  auto runner = io::makeProcessRunner();
  auto dhcp = runner->start(
      {.program = "ip",
       .args = {"netns", "exec", lab->netns, "dnsmasq", "--keep-in-foreground",
                "--conf-file=/dev/null", "--port=0", "--no-ping", "--interface=rack0",
                "--bind-interfaces", "--dhcp-range=10.77.240.1,10.77.240.9",
                "--dhcp-boot=boot.ipxe", "--enable-tftp", "--tftp-root=" + base.string(),
                "--user=root", "--dhcp-leasefile=" + (base / "leases").string()}},
      base / "dnsmasq.log");
  ASSERT_TRUE(dhcp) << dhcp.error().str();

  RedfishSession bmc(lab->netns, "https://10.77.250.2");
  ASSERT_EQ(bmc.login("admin", "secret-1"), 201);
  EXPECT_EQ(
      bmc.patch(
          "/redfish/v1/Systems/system",
          {{"Boot", {{"BootSourceOverrideEnabled", "Once"}, {"BootSourceOverrideTarget", "Pxe"}}}}),
      204);
  EXPECT_EQ(
      bmc.post("/redfish/v1/Systems/system/Actions/ComputerSystem.Reset", {{"ResetType", "On"}}),
      204);
  EXPECT_EQ(bmc.get("/redfish/v1/Systems/system")["Boot"]["BootSourceOverrideTarget"], "None");

  auto console = (folder / "console" / "gpu002.log").string();
  EXPECT_TRUE(logShows(console, "boot.ipxe... ok", std::chrono::seconds(60)))
      << "the first boot is from the network";
  EXPECT_TRUE(logShows(console, "DISKBOOT", std::chrono::seconds(60)))
      << "the guest's reset boots the disk";
  auto text = io::readFile(console).value_or("");
  EXPECT_LT(text.find("boot.ipxe... ok"), text.find("DISKBOOT"));
  (*dhcp)->terminate(std::chrono::seconds(1));
  EXPECT_TRUE(down(folder, say));
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace muster::lab
