// SPDX-License-Identifier: Apache-2.0
#include "provision/drivers/os_files.h"
#include "inventory/model/drivers.h"
#include "inventory/model/package_archive.h"
#include "provision/facets.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

inventory::Driver driver() {
  inventory::Driver out;
  out.name = "nvidia";
  out.packages = {"nvidia-driver=570.124.06-1", "nvtop"};
  out.module_options = {{"nvidia", {{"NVreg_A", "1"}, {"NVreg_B", "0"}}}};
  out.sysctl = {{"vm.nr_hugepages", "1024"}, {"kernel.numa_balancing", "0"}};
  out.kernel_args = {"iommu=pt", "hugepagesz=1G"};
  return out;
}

TEST(OsFiles, areRenderedWholeAndInOrder) {
  const auto files = osFiles(driver());
  const std::string head = "# Written by muster for driver nvidia; changes are put back.\n";
  EXPECT_EQ(files.at("etc/modprobe.d/muster-nvidia.conf"),
            head + "options nvidia NVreg_A=1 NVreg_B=0\n");
  EXPECT_EQ(files.at("etc/sysctl.d/90-muster-nvidia.conf"),
            head + "kernel.numa_balancing = 0\nvm.nr_hugepages = 1024\n");
  EXPECT_EQ(files.at("etc/muster/kernel-args.d/nvidia"), "iommu=pt hugepagesz=1G\n");
  EXPECT_EQ(files.at("etc/apt/preferences.d/muster-nvidia.pref"),
            head + "\nPackage: nvidia-driver\nPin: version 570.124.06-1\nPin-Priority: 1001\n");
  EXPECT_EQ(files.size(), 4u);
}

TEST(OsFiles, aSitesSettingsTravelAsOneFileAndAreAskedFor) {
  inventory::Driver site;
  site.name = "site";
  site.host.emplace();
  site.host->time_servers = {"10.20.0.1"};
  site.host->crash_kernel = "512M";
  site.host->serial_console = "ttyS1";
  const auto files = osFiles(site);
  EXPECT_EQ(files.at("etc/muster/kernel-args.d/site"), "crashkernel=512M console=ttyS1,115200\n");
  EXPECT_EQ(files.at("etc/muster/host.d/site.json"), wire::toJson(*site.host));
  EXPECT_EQ(probesOf(site).at("host.site"), "as-declared");
  EXPECT_THAT(driverParams(site, "https://10.20.0.1:8443", "").services,
              ::testing::ElementsAre("serial-getty@ttyS1"));
  site.host->time_servers = {"10.20.0.2"};
  EXPECT_NE(osFiles(site), files);
}

TEST(OsFiles, aPlainDriverHasNoneAndKeepsItsFacet) {
  inventory::Driver plain;
  plain.name = "rdma";
  plain.packages = {"rdma-core=44.0-2"};
  EXPECT_THAT(osFiles(plain), IsEmpty());
  EXPECT_EQ(joinProbes(probesOf(plain)), "package.rdma-core=44.0-2");
}

TEST(OsFiles, everyChangeIsAnotherGoal) {
  auto changed = driver();
  const auto before = joinProbes(probesOf(changed));
  EXPECT_THAT(before, HasSubstr("config.nvidia=" + settingsDigest(osFiles(changed))));
  changed.sysctl["vm.nr_hugepages"] = "2048";
  EXPECT_NE(joinProbes(probesOf(changed)), before);
}

TEST(OsFiles, archivesAreSignedForBothManagers) {
  const inventory::PackageArchive archive{
      "cuda", "https://example.com/debian12/", "bookworm", {"main", "extra"}, "/nonexistent/key"};
  EXPECT_EQ(aptSource("nvidia", archive),
            "Types: deb\nURIs: https://example.com/debian12/\nSuites: bookworm\nComponents: main "
            "extra\nSigned-By: /etc/apt/keyrings/muster-nvidia-cuda.key\n");
  const auto dnf = dnfSource("nvidia", archive);
  EXPECT_THAT(dnf, HasSubstr("gpgcheck=1\n"));
  EXPECT_THAT(dnf, HasSubstr("gpgkey=file:///etc/pki/rpm-gpg/muster-nvidia-cuda.key\n"));
  auto with = driver();
  with.archives = {archive};
  const auto params = driverParams(with, "https://controller", "");
  ASSERT_EQ(params.archives.size(), 1u);
  EXPECT_EQ(params.archives[0].key_base64, "")
      << "a key that is not there is never left out silently: the agent refuses";
}

}  // namespace
}  // namespace muster::provision
