// SPDX-License-Identifier: Apache-2.0
// One rack of both processors: a node with amd64 and one with arm64, each from power-off to a
// system of its own processor that started from its disk. On request (MUSTER_VM_TESTS): a machine
// with arm64 is emulated, and so are the scripts of the packages of its image.
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/apt_system.h"
#include "tests/end_to_end/muster_process.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::string_view kInventory = R"(cluster: {name: mixed}
networks:
  provisioning:
    cidr: 10.20.0.0/16
    controller: 10.20.0.1
    dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}
credentials:
  bmc: {username: admin, password: {file: secrets/bmc}}
images:
  x86-node: {build: {suite: bookworm, packages: [linux-image-amd64]}}
  arm64-node: {arch: arm64, build: {suite: bookworm, packages: [linux-image-arm64]}}
profiles:
  x86: {expect: {cpus_min: 1}, image: x86-node, boot: uefi}
  grace: {arch: arm64, expect: {cpus_min: 1}, image: arm64-node, boot: uefi}
nodes:
  - {names: gpu001, profile: x86, from: racks.csv}
  - {names: gpu002, profile: grace, from: racks.csv}
lab: {memory_mib: 2048, vcpus: 1, disk_gib: 4}
)";

class MixedRack : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::getenv("MUSTER_VM_TESTS")) GTEST_SKIP() << "on request: MUSTER_VM_TESTS=1";
    if (::geteuid() != 0) GTEST_SKIP() << "virtual machines and network namespaces need root";
    if (!fs::exists(binFolder() / "arm64/muster-agent"))
      GTEST_SKIP() << "no agent for arm64: ./run build arm64";
    if (const auto runs = provision::checkRunsProgramsOf(Architecture::Arm64); !runs)
      GTEST_SKIP() << runs.error().str();
    fs::remove_all(folder_);
    ::setenv("MUSTER_INVENTORY", (folder_ / "cluster.yaml").c_str(), 1);
    ::setenv("MUSTER_STATE", (folder_ / "state").c_str(), 1);
    ::setenv("MUSTER_LAB", "/run/muster-lab/mixed", 1);
    const auto prepared = io::runBlocking({.program = sourceFolder() / "tools/prepare-lab",
                                           .args = {folder_.string()},
                                           .env = {{"MUSTER_BIN", binFolder()}},
                                           .timeout = std::chrono::seconds(300)});
    ASSERT_TRUE(prepared) << prepared.error().str();
    ASSERT_EQ(prepared->code, 0) << prepared->out << prepared->err;
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "cluster.yaml", kInventory));
  }
  void TearDown() override {
    if (!is_up_) return;
    expectOk({"lab", "down"});
    if (!HasFailure()) fs::remove_all(folder_);
  }
  static std::string expectOk(const std::vector<std::string>& args) {
    const auto done = runMuster(args);
    EXPECT_EQ(done.code, 0) << "muster " << args.front() << ":\n" << done.out;
    return done.out;
  }
  void bringUp() {
    expectOk({"image", "build"});
    expectOk({"lab", "up"});
    is_up_ = true;
  }
  const fs::path folder_ = fs::temp_directory_path() / "muster-mixed-rack";
  bool is_up_ = false;
};

TEST_F(MixedRack, eachNodeStartsTheSystemOfItsProcessorFromItsDisk) {
  bringUp();
  const auto applied = runMuster({"apply", "--yes"});
  ASSERT_EQ(applied.code, 0) << applied.out;
  EXPECT_THAT(expectOk({"apply", "--yes"}), HasSubstr("Nothing to do"));
  // What the kernel said of itself at the last boot, which was from the disk.
  EXPECT_THAT(expectOk({"console", "gpu001", "--last"}),
              ContainsRegex("Linux version [^ ]*-amd64"));
  EXPECT_THAT(expectOk({"console", "gpu002", "--last"}),
              ContainsRegex("Linux version [^ ]*-arm64"));
}

}  // namespace
}  // namespace muster::test
