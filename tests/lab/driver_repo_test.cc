// SPDX-License-Identifier: Apache-2.0
// The lab's apt repository, read by apt itself. Needs root (private mounts) and, the first time, a
// Debian mirror.
#include "base/io/files.h"
#include "base/io/process.h"
#include "lab/lab.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>
#include <cstdlib>

namespace muster::lab {
namespace {

using nlohmann::json;

class DriverRepo : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    char name[] = "/tmp/muster-repo-XXXXXX";
    folder_ = ::mkdtemp(name);
    auto built = buildDriverRepo(
        folder_ / "repo", [](std::string_view text) { std::cout << "  " << text << std::endl; });
    ASSERT_TRUE(built) << built.error().str();
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  std::string sh(const std::string& script) {
    auto out = io::runChecked({.program = "sh",
                               .args = {"-ec", script},
                               .working_dir = folder_,
                               .timeout = std::chrono::seconds(60)});
    EXPECT_TRUE(out) << out.error().str();
    return out.value_or("");
  }
  std::filesystem::path folder_;
};

TEST_F(DriverRepo, aptInstallsThePinnedVersionOnAMachineThatHasNothing) {
  // An apt of its own, which sees only this repository and an empty machine but for the C library's
  // usual company.
  sh(R"(mkdir -p state/lists/partial cache/archives/partial
    udev=$(dpkg-deb -f repo/udev_*.deb Version)
    for p in libc6=9:999 libudev1=$udev init-system-helpers=9:999 sysvinit-utils=9:999 adduser=9:999 libacl1=9:999 libblkid1=9:999 libcap2=9:999 \
             libselinux1=9:999 libsystemd0=$udev liblzma5=9:999 libzstd1=9:999 zlib1g=9:999 lsb-base=9:999; do
      printf 'Package: %s\nStatus: install ok installed\nVersion: %s\nArchitecture: amd64\nMulti-Arch: same\nMaintainer: t\nDescription: t\n\n' ${p%=*} ${p#*=}
    done > status
    echo "deb [trusted=yes] file:$PWD/repo ./" > sources.list)");
  std::string apt =
      "apt-get -o Dir::State=$PWD/state -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache "
      "-o "
      "Dir::Etc::sourcelist=$PWD/sources.list "
      "-o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root -o APT::Install-Recommends=false ";
  sh(apt + "update");
  auto nvml = sh(apt + "-s install muster-sim-nvml=570.124.06-1");
  EXPECT_NE(nvml.find("Inst muster-sim-nvml (570.124.06-1"), std::string::npos) << nvml;
  nvml = sh(apt + "-s install muster-sim-nvml");
  EXPECT_NE(nvml.find("Inst muster-sim-nvml (575.57.08-1"), std::string::npos) << nvml;
  auto packages = sh("ls repo");
  for (const auto* wanted : {"rdma-core_", "ibverbs-utils_", "perftest_", "ibverbs-providers_",
                             "libibumad3_", "libpci3_"})
    EXPECT_NE(packages.find(wanted), std::string::npos) << packages;
  auto rdma = sh(apt + "-s install rdma-core ibverbs-utils perftest");
  EXPECT_NE(rdma.find("Inst perftest"), std::string::npos) << rdma;
}

TEST_F(DriverRepo, theLibraryKnowsItsPackagesVersion) {
  for (std::string version : {"570.124.06", "575.57.08"}) {
    sh(
        fmt::format("rm -rf x && dpkg-deb -x repo/muster-sim-nvml_{}-1_amd64.deb x && mv "
                    "x/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 {}.so",
                    version, version));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "gpus.json", "{}"));
    ::setenv("MUSTER_SIM_NVML_CONFIG", (folder_ / "gpus.json").c_str(), 1);
    auto* library = ::dlopen((folder_ / (version + ".so")).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    auto* init = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
    auto* driver =
        reinterpret_cast<int (*)(char*, unsigned)>(::dlsym(library, "nvmlSystemGetDriverVersion"));
    char text[80] = {};
    EXPECT_EQ(init(), 0);
    EXPECT_EQ(driver(text, sizeof text), 0);
    EXPECT_EQ(text, version);
    ::dlclose(library);
  }
}

TEST_F(DriverRepo, thePostinstDescribesTheMachinesGpusOnce) {
  auto text = sh(R"(mkdir -p etc && dpkg-deb -e repo/muster-sim-nvml_570.124.06-1_amd64.deb control
    unshare --mount --propagation private sh -ec '
      mount --bind etc /etc; mount -t tmpfs none /sys/class; mkdir -p /sys/class/dmi/id; cd /sys/class/dmi/id
      echo MST1 > product_serial; echo sim-gpus=2 > product_sku; echo "NVIDIA H100" > product_family; cd - > /dev/null
      sh control/postinst configure 2> /dev/null; echo MST2 > /sys/class/dmi/id/product_serial
      sh control/postinst configure 2> /dev/null; cat /etc/muster/sim-nvml.json')");
  auto config = json::parse(text, nullptr, false);
  ASSERT_TRUE(config.is_object()) << text;
  ASSERT_EQ(config["gpus"].size(), 2u);
  EXPECT_EQ(config["gpus"][0]["name"], "NVIDIA H100");
  EXPECT_EQ(config["gpus"][0]["serial"].get<std::string>().size(), 13u);
  EXPECT_NE(config["gpus"][0]["serial"], config["gpus"][1]["serial"]);
  EXPECT_EQ(config["gpus"][1]["bus_id"], "00000000:2B:00.0");
  auto hex = sh("printf 'MST1 gpu 0' | sha256sum | cut -c1-10 | tr a-f 0-5");
  EXPECT_EQ(config["gpus"][0]["serial"], "165" + hex.substr(0, 10))
      << "the second configure must not write again";
}

}  // namespace
}  // namespace muster::lab
