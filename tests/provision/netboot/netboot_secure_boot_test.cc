// SPDX-License-Identifier: Apache-2.0
// UEFI Secure Boot, for real: OVMF with Microsoft's keys, dnsmasq started by Netboot, in a network
// namespace of its own. What is proven is on the console: a signed kernel runs, an unsigned one is
// refused, a machine that is not armed goes on with its boot order, and a disk with the signed
// loader starts.
#include "agent/imaging/secure_boot.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "provision/images/image_store.h"
#include "provision/images/ramos.h"
#include "provision/netboot/netboot.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/paths.h"
#include "tests/provision/clusters.h"
#include "tests/provision/enrollment_gateway.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <thread>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kBootLimit{120}, kWholeWayLimit{480};
constexpr const char* kSecureCode = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd";
constexpr const char* kMicrosoftKeys = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd";
constexpr const char* kKernelRuns = "Secure boot enabled";  // the kernel's own word
constexpr const char* kGoesOn =
    ">>Start HTTP Boot over IPv6";  // the last of the firmware's network options
constexpr const char* kInitRuns =
    "Failed to execute /init (error -8)";  // the initrd is there; its /init is no program

fs::path cacheFolder() {
  if (const char* cache = std::getenv("MUSTER_CACHE")) return cache;
  return fs::path(std::getenv("HOME")) / ".cache/muster";
}

std::uint32_t wordAt(const std::string& bytes, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// The same kernel without the signatures that follow it (PE's fifth data directory).
std::string unsignedCopy(std::string kernel) {
  const std::size_t directory = wordAt(kernel, 0x3c) + 24 + 112 + 4 * 8;
  const auto signatures = wordAt(kernel, directory);
  std::memset(kernel.data() + directory, 0, 8);
  kernel.resize(signatures);
  return kernel;
}

class SecureBootTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    if (!fs::exists(kSecureCode)) GTEST_SKIP() << "needs OVMF";
    const auto say = [](std::string_view text) { std::cout << text << std::endl; };
    auto store = openImageStore(
        {cacheFolder(), test::binFolder() / "muster-agent", *io::SigningKey::generate()});
    const auto ramos = store->buildRamOs(Architecture::Amd64, say);
    ASSERT_TRUE(ramos) << ramos.error().str();
    images_.ram_os = RamOs{ramos->kernel, folder_ / "initrd.img", folder_ / "agent.img"};
    sh("cd \"$1\" && echo none > init && cp init none && chmod 755 init && echo init | cpio -o -H "
       "newc --quiet > initrd.img && echo none | cpio -o -H newc --quiet > agent.img");

    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0)
      GTEST_SKIP() << "network namespaces cannot be made here: " << std::strerror(errno);
    sh("ip link set lo up && ip tuntap add tap0 mode tap && ip addr add 10.20.0.1/16 dev tap0 && "
       "ip link set tap0 up");
    fs::permissions(folder_.path(), fs::perms(0755));
    cluster_.profiles.at("uefi").secure_boot = true;
    cluster_.profiles.at("uefi").kernel_args = {
        "loglevel=7", "panic=-1"};  // what is to be seen; and no machine that stands still
    netboot_ = makeNetboot(
        cluster_, images_, gateway_, *processes_, io_.get_executor(),
        {folder_ / "run", 8080, 8443, std::string(64, 'c'), folder_ / "hosts", folder_ / "tftp"});
    const auto started = netboot_->start();
    ASSERT_TRUE(started) << started.error().str();
  }
  void TearDown() override {
    if (netboot_) netboot_->stop();
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
    if (HasFailure())
      std::cerr << io::readFile(folder_ / "run/dnsmasq.log").value_or("no log") << "\n";
  }
  void sh(const std::string& line) {
    const auto done =
        io::runChecked({.program = "sh", .args = {"-c", line, "sh", folder_.path().string()}});
    ASSERT_TRUE(done) << done.error().str();
  }

  /// gpu001, from the network or from its disk. Answers its console when that says `text`, or the
  /// machine has ended.
  enum class From { Network, Disk, NetworkThenDisk };
  std::string boot(const std::string& name, From from, const std::string& text,
                   std::chrono::seconds limit = kBootLimit) {
    const auto console = folder_ / (name + ".console"), vars = folder_ / (name + ".vars");
    fs::copy_file(kMicrosoftKeys, vars);
    io::Command command{.program = "qemu-system-x86_64"};
    command.args = {
        "-machine", "q35,accel=tcg,smm=on", "-cpu", "max", "-smp", "1,maxcpus=2", "-m", "1024",
        "-display", "none", "-monitor", "none", "-no-reboot", "-global",
        "driver=cfi.pflash01,property=secure,value=on",  // only the firmware's system management
                                                         // code writes its variables
        "-fw_cfg",
        "name=opt/org.tianocore/IPv6PXESupport,string=n",  // nobody answers there, and the firmware
                                                           // would wait
        "-drive", std::string("if=pflash,format=raw,unit=0,readonly=on,file=") + kSecureCode,
        "-drive", "if=pflash,format=raw,unit=1,file=" + vars.string(), "-serial",
        "file:" + console.string(), "-netdev", "tap,id=n,ifname=tap0,script=no,downscript=no",
        "-device", "virtio-net-pci,netdev=n,romfile=,bootindex=2,mac=52:54:00:00:00:01"};
    if (from != From::Network) {
      command.args.insert(
          command.args.end(),
          {"-drive", "if=none,id=d,format=raw,read-only=on,file=fat:" + (folder_ / "disk").string(),
           "-device",
           from == From::Disk ? "virtio-blk-pci,drive=d,bootindex=1"
                              : "virtio-blk-pci,drive=d,bootindex=3"});
    }
    auto machine = processes_->start(command, folder_ / (name + ".log"));
    EXPECT_TRUE(machine) << machine.error().str();
    const auto start = std::chrono::steady_clock::now();
    std::string said;
    // The console is a file: looking at it from time to time is all there is.
    for (bool alive = true; alive && said.find(text) == std::string::npos &&
                            std::chrono::steady_clock::now() - start < limit;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      alive = (*machine)->running();
      said = io::readFile(console).value_or("");
    }
    std::cout << fmt::format(
        "{}: \"{}\" after {:.1f} s\n", name, text,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    (*machine)->terminate(std::chrono::seconds(5));
    EXPECT_THAT(said, HasSubstr(text))
        << name << ": " << io::readFile(folder_ / (name + ".log")).value_or("");
    return said;
  }

  asio::io_context io_;
  test::TempFolder folder_;
  inventory::Cluster cluster_ = twoNodes();
  test::FakeImageStore images_;
  EnrollmentGateway gateway_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<Netboot> netboot_;
  io::Fd home_;
};

TEST_F(SecureBootTest, onlySignedKernelsRunAndUninvitedMachinesGoOn) {
  const auto kernel = images_.ram_os->kernel;
  ASSERT_TRUE(netboot_->arm(NodeName("gpu001")));
  const auto invited = boot("signed", From::Network, kInitRuns);
  EXPECT_THAT(invited, HasSubstr("muster: gpu001 boots into the RAM OS"));
  EXPECT_THAT(invited, HasSubstr(kKernelRuns));
  EXPECT_THAT(invited, HasSubstr("muster.enrolment=enrollment-gpu001-1 muster.node=gpu001"));

  ASSERT_TRUE(io::writeFileAtomic(folder_ / "unsigned", unsignedCopy(*io::readFile(kernel))));
  images_.ram_os->kernel = folder_ / "unsigned";
  ASSERT_TRUE(netboot_->arm(NodeName("gpu001")));
  const auto refused = boot("unsigned", From::Network, "the RAM OS could not be loaded");
  EXPECT_THAT(refused, HasSubstr("bad shim signature"));
  EXPECT_THAT(refused, Not(HasSubstr(kKernelRuns)));

  // The firmware goes on: first to what it could have by HTTP, then (it waits long for IPv6 before
  // that) to the disk.
  netboot_->disarm(NodeName("gpu001"));
  const auto uninvited = boot("uninvited", From::Network, kGoesOn);
  EXPECT_THAT(uninvited, HasSubstr("PXE-E23"));
  EXPECT_THAT(uninvited, Not(HasSubstr("GRUB")));
  const auto installed = agent::installSignedLoader(folder_ / "disk");
  ASSERT_TRUE(installed) << installed.error().str();
  fs::copy_file(kernel, folder_ / "disk/vmlinuz");
  ASSERT_TRUE(io::makeDirs(folder_ / "disk/grub"));
  ASSERT_TRUE(io::writeFileAtomic(
      folder_ / "disk/grub/grub.cfg",
      "echo 'GRUB of the disk'\nlinux /vmlinuz console=ttyS0 panic=-1\nboot\n"));
  EXPECT_THAT(boot("disk", From::Disk, kKernelRuns), HasSubstr("GRUB of the disk"));
  if (std::getenv("MUSTER_VM_TESTS") == nullptr)
    return;  // the firmware waits minutes for a server by IPv6
  const auto whole_way =
      boot("uninvited-to-disk", From::NetworkThenDisk, kKernelRuns, kWholeWayLimit);
  EXPECT_THAT(whole_way, HasSubstr("PXE-E23"));
  EXPECT_THAT(whole_way, HasSubstr("GRUB of the disk"));
}

}  // namespace
}  // namespace muster::provision
