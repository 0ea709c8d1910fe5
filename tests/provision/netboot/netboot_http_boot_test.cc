// SPDX-License-Identifier: Apache-2.0
// UEFI HTTP boot by real firmware (OVMF): an address and a URL by DHCP, iPXE by HTTP, then the
// node's script and the RAM OS. With Secure Boot the boot medium as one file, whose loaders are
// signed.
#include "tests/provision/dhcp_site.h"

#include <gmock/gmock.h>

namespace muster::provision {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kBootLimit{240};
constexpr const char *kSecureCode = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd",
                     *kMicrosoftKeys = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd";
constexpr const char *kCode = "/usr/share/OVMF/OVMF_CODE_4M.fd",
                     *kVariables = "/usr/share/OVMF/OVMF_VARS_4M.fd";

class HttpBootTest : public DhcpTest {
 protected:
  void surround() override {
    if (!std::filesystem::exists(kCode)) GTEST_SKIP() << "needs OVMF";
    ip("link add lan type bridge && ip addr flush dev server && ip link set server master lan && "
       "ip addr add 10.20.0.1/16 dev lan && ip link set lan up");
    ip("tuntap add tap0 mode tap && ip link set tap0 master lan && ip link set tap0 up");
  }
  /// Routes of Netboot, each noting what was asked.
  void serve() {
    io::ServerOptions options;
    options.address = "10.20.0.1";
    options.port = 8080;
    auto started = io::startHttpServer(io_.get_executor(), options);
    ASSERT_TRUE(started) << started.error().str();
    http_ = std::move(*started);
    auto routes = netboot_->routes();
    routes.push_back({"GET", "/ramos/", [](io::ServerRequest) -> Task<io::ServerResponse> {
                        co_return io::ServerResponse::text(404, "not here\n");
                      }});
    for (auto& route : routes)
      route.handle = [this, inner = route.handle](io::ServerRequest request) {
        asked_ += request.target + "\n";
        return inner(std::move(request));
      };
    http_->addRoutes(std::move(routes));
  }
  /// The firmware's own PXE is off, so that HTTP is what it has.
  std::unique_ptr<io::Child> startMachine() {
    std::filesystem::copy_file(secure_ ? kMicrosoftKeys : kVariables, folder_ / "vars");
    io::Command command{.program = "qemu-system-x86_64"};
    if (secure_)  // only the firmware's system management code writes its variables
      command.args = {"-global", "driver=cfi.pflash01,property=secure,value=on"};
    const std::vector<std::string> words{
        "-machine",
        secure_ ? "q35,accel=tcg,smm=on" : "q35,accel=tcg",
        "-cpu",
        "max",
        "-smp",
        "1,maxcpus=2",
        "-m",
        secure_ ? "1024" : "512",
        "-display",
        "none",
        "-monitor",
        "none",
        "-no-reboot",
        "-fw_cfg",
        "name=opt/org.tianocore/IPv4PXESupport,string=n",
        "-fw_cfg",
        "name=opt/org.tianocore/IPv6PXESupport,string=n",
        "-drive",
        std::string("if=pflash,format=raw,unit=0,readonly=on,file=") +
            (secure_ ? kSecureCode : kCode),
        "-drive",
        "if=pflash,format=raw,unit=1,file=" + (folder_ / "vars").string(),
        "-serial",
        "file:" + (folder_ / "console").string(),
        "-netdev",
        "tap,id=n,ifname=tap0,script=no,downscript=no",
        "-device",
        "virtio-net-pci,netdev=n,romfile=,bootindex=1,mac=52:54:00:00:00:01"};
    command.args.insert(command.args.end(), words.begin(), words.end());
    auto machine = processes_->start(command, folder_ / "qemu.log");
    EXPECT_TRUE(machine) << machine.error().str();
    return machine ? std::move(*machine) : nullptr;
  }
  bool becomes(io::Child& machine, const std::string& wanted) {
    const auto until = std::chrono::steady_clock::now() + kBootLimit;
    while (asked_.find(wanted) == std::string::npos && machine.running() &&
           std::chrono::steady_clock::now() < until)
      io_.run_for(std::chrono::milliseconds(200));
    return asked_.find(wanted) != std::string::npos;
  }
  std::string said() {
    return io::readFile(folder_ / "console").value_or("") +
           io::readFile(folder_ / "qemu.log").value_or("");
  }

  std::unique_ptr<io::HttpServer> http_;
  std::string asked_;
  bool secure_ = false;
};

/// Firmware that checks signatures. What it starts at the end is no kernel, and GRUB says so: that
/// the loaders are taken and find the node's words is what is to be seen.
class SecureHttpBootTest : public HttpBootTest {
 protected:
  void declare() override {
    secure_ = true;
    cluster_.profiles.at("uefi").secure_boot = true;
    for (const auto* name : {"vmlinuz", "initrd.img", "agent.img"})
      ASSERT_TRUE(io::writeFileAtomic(folder_ / name, name));
    images_.ram_os =
        RamOs{folder_ / "vmlinuz", folder_ / "initrd.img", folder_ / "agent.img", {}, {}};
  }
  void surround() override {
    if (!std::filesystem::exists(kSecureCode)) GTEST_SKIP() << "needs OVMF";
    if (!io::runBlocking({.program = "xorriso", .args = {"-version"}}))
      GTEST_SKIP() << "needs xorriso";
    HttpBootTest::surround();
  }
  bool says(io::Child& machine, const std::string& wanted) {
    const auto until = std::chrono::steady_clock::now() + kBootLimit;
    while (said().find(wanted) == std::string::npos && machine.running() &&
           std::chrono::steady_clock::now() < until)
      io_.run_for(std::chrono::milliseconds(200));
    return said().find(wanted) != std::string::npos;
  }
};

TEST_F(SecureHttpBootTest, firmwareThatChecksSignaturesStartsTheBootMedium) {
  serve();
  ASSERT_TRUE(netboot_->arm(NodeName("gpu001")));
  auto machine = startMachine();
  ASSERT_TRUE(machine);
  EXPECT_TRUE(says(*machine, "gpu001 boots into the RAM OS")) << asked_ << said();
  EXPECT_THAT(asked_, HasSubstr("/boot/medium.iso\n"));
  EXPECT_TRUE(says(*machine, "muster: the RAM OS could not be loaded")) << "it is no kernel";
  machine->terminate(std::chrono::seconds(3));
}

TEST_F(HttpBootTest, firmwareGetsIpxeByHttpAndThatTheRamOs) {
  serve();
  ASSERT_TRUE(netboot_->arm(NodeName("gpu001")));
  auto machine = startMachine();
  ASSERT_TRUE(machine);
  EXPECT_TRUE(becomes(*machine, "/ramos/vmlinuz")) << asked_ << said();
  EXPECT_THAT(asked_, HasSubstr("/boot/ipxe.efi\n"));
  EXPECT_THAT(asked_, HasSubstr("/boot/ipxe?mac=52%3A54%3A00%3A00%3A00%3A01"));
  EXPECT_THAT(said(), HasSubstr("HTTP Boot over IPv4"));
  EXPECT_THAT(said(), HasSubstr("gpu001 boots into the RAM OS"));
  machine->terminate(std::chrono::seconds(3));
}

}  // namespace
}  // namespace muster::provision
