// SPDX-License-Identifier: Apache-2.0
// Which packages an image is made of, and where they come from: the words that mmdebstrap and dnf
// get.
#include "provision/images/apt_system.h"
#include "base/io/files.h"
#include "inventory/model/images.h"
#include "inventory/model/package_archive.h"
#include "provision/images/dnf_system.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::provision {
namespace {

using testing::AllOf, testing::Contains, testing::ElementsAre, testing::HasSubstr, testing::Not;

class PackageSourcesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(io::writeFileAtomic(folder_ / "site.gpg", "KEY")); }
  inventory::PackageArchive archive(std::string name, std::string url, std::string suite = "",
                                    std::vector<std::string> components = {}) {
    return {std::move(name), std::move(url), std::move(suite), std::move(components),
            folder_ / "site.gpg"};
  }
  test::TempFolder folder_;
};

TEST_F(PackageSourcesTest, archivesOfAnAptSystemAreTakenWithTheirKeys) {
  inventory::ImageBuild build{"noble", {"linux-generic"}, ""};
  build.archives = {
      archive("ubuntu", "http://archive.ubuntu.com/ubuntu", "noble", {"main", "universe"}),
      archive("site", "http://10.0.0.1/debs")};
  const auto lines = aptLinesOf(build);
  ASSERT_TRUE(lines) << lines.error().str();
  const auto key = std::filesystem::canonical(folder_ / "site.gpg").string();
  EXPECT_THAT(*lines, ElementsAre("deb [signed-by=" + key +
                                      "] http://archive.ubuntu.com/ubuntu noble main universe",
                                  "deb [signed-by=" + key + "] http://10.0.0.1/debs ./"));
  build.archives[0].key = folder_ / "lost.gpg";
  const auto lost = aptLinesOf(build);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().str(), HasSubstr("lost.gpg"));
}

TEST_F(PackageSourcesTest, aMirrorStandsForDebiansMain) {
  EXPECT_THAT(*aptLinesOf({"trixie", {}, "http://mirror/debian"}),
              ElementsAre("deb http://mirror/debian trixie main"));
}

TEST_F(PackageSourcesTest, aKernelIsAddedWhereNoneIsNamed) {
  EXPECT_THAT(*aptPackagesOf({"bookworm", {"slurmd"}, ""}, false), Contains("linux-image-amd64"));
  for (const char* kernel : {"linux-image-6.1.0-18-amd64", "linux-generic", "linux-nvidia-64k"})
    EXPECT_THAT(*aptPackagesOf({"noble", {kernel}, ""}, false), Not(Contains("linux-image-amd64")))
        << kernel;
  EXPECT_THAT(*aptPackagesOf({"bookworm", {}, ""}, true), Contains("openssh-server"));
}

TEST_F(PackageSourcesTest, theRamOsHasOneKernelAndWhatWasDeclared) {
  const auto plain = *aptPackagesOf(inventory::RamOsSpec{}, Architecture::Amd64);
  EXPECT_THAT(plain, Contains("linux-image-amd64"));
  const inventory::RamOsSpec spec{"linux-image-rt-amd64=6.1", {"firmware-misc-nonfree"}, {}, {}};
  const auto declared = *aptPackagesOf(spec, Architecture::Amd64);
  EXPECT_THAT(declared,
              AllOf(Contains("linux-image-rt-amd64=6.1"), Contains("firmware-misc-nonfree"),
                    Contains("nvme-cli"), Not(Contains("linux-image-amd64"))));
  EXPECT_EQ(declared.size(), plain.size() + 1);
  EXPECT_THAT(*aptPackagesOf(spec, Architecture::Arm64), Contains("linux-image-rt-arm64=6.1"));
  for (const char* odd : {"-o", "?essential", "a b", "foo,bar"})
    EXPECT_EQ(
        aptPackagesOf(inventory::RamOsSpec{"", {odd}, {}, {}}, Architecture::Amd64).error().code(),
        ErrorCode::InvalidInput)
        << odd;
}

TEST_F(PackageSourcesTest, archivesOfTheRamOsStandBesideDebians) {
  inventory::RamOsSpec spec;
  const auto own = *aptLinesOf(spec, "bookworm");
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "debian.gpg", "a key"));
  const auto key = (folder_ / "debian.gpg").string();
  spec.archives = {{"firmware", "http://10.0.0.1/debian", "bookworm", {"non-free-firmware"}, key}};
  const auto lines = *aptLinesOf(spec, "bookworm");
  ASSERT_EQ(lines.size(), own.empty() ? 4u : own.size() + 1);
  EXPECT_THAT(lines.front(), HasSubstr("debian bookworm main")) << "Debian's own stays";
  EXPECT_EQ(lines.back(),
            "deb [signed-by=" + key + "] http://10.0.0.1/debian bookworm non-free-firmware");
  spec.archives[0].key = folder_ / "lost.gpg";
  EXPECT_EQ(aptLinesOf(spec, "bookworm").error().code(), ErrorCode::NotFound);
}

TEST_F(PackageSourcesTest, packagesFollowTheProcessor) {
  const auto arm64 = aptPackagesOf({"bookworm", {"slurmd"}, ""}, false, Architecture::Arm64);
  ASSERT_TRUE(arm64) << arm64.error().str();
  EXPECT_THAT(*arm64, Contains("linux-image-arm64"));
  EXPECT_THAT(*arm64, Contains("grub-efi-arm64-bin"));
  EXPECT_THAT(*arm64, Not(Contains("grub-pc-bin"))) << "such machines have no BIOS";
  EXPECT_THAT(*arm64, Not(Contains(HasSubstr("amd64"))));
  EXPECT_THAT(*aptPackagesOf({"noble", {}, ""}, false, Architecture::Arm64),
              Contains("linux-generic"));
  EXPECT_THAT(packagesFor(Architecture::Arm64, {"shim-signed", "grub-efi-amd64-signed"}),
              ElementsAre("shim-signed", "grub-efi-arm64-signed"));
  EXPECT_THAT(packagesFor(Architecture::Amd64, {"grub-pc-bin"}), ElementsAre("grub-pc-bin"));
}

TEST_F(PackageSourcesTest, ownProgramsRunWithoutAnyHelp) {
  EXPECT_TRUE(checkRunsProgramsOf(kBuiltFor));
  if (std::filesystem::exists("/proc/sys/fs/binfmt_misc/qemu-aarch64"))
    GTEST_SKIP() << "this machine starts programs of arm64";
  const auto refused = checkRunsProgramsOf(Architecture::Arm64);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(refused.error().text(), HasSubstr("install qemu-user-static"));
}

TEST_F(PackageSourcesTest, theListFollowsTheRelease) {
  EXPECT_THAT(*aptPackagesOf({"bookworm", {}, ""}, false), Contains("systemd-resolved"));
  EXPECT_THAT(*aptPackagesOf({"bullseye", {}, ""}, false), Not(Contains("systemd-resolved")))
      << "it is a part of systemd there";
  const auto jammy = *aptPackagesOf({"jammy", {}, ""}, false);
  EXPECT_THAT(jammy, Contains("linux-generic"));
  EXPECT_THAT(jammy, Not(Contains("linux-image-amd64")));
  for (const char* suite : {"bullseye", "bookworm", "noble"})
    EXPECT_THAT(*aptPackagesOf({suite, {}, ""}, false), Not(Contains("libssl3")))
        << "the agent brings its own; the package has another name in each release";
}

TEST_F(PackageSourcesTest, dnfIsToldOfItsArchivesAndNothingElse) {
  inventory::ImageBuild build;
  build.release = "9";
  build.packages = {"kernel=5.14.0-427.el9"};
  build.archives = {archive("baseos", "https://mirror/9/BaseOS/x86_64/os"),
                    archive("appstream", "https://mirror/9/AppStream/x86_64/os")};
  const auto text = dnfConfiguration(build);
  ASSERT_TRUE(text) << text.error().str();
  EXPECT_THAT(
      *text,
      testing::AllOf(
          HasSubstr("gpgcheck=1\n"),
          HasSubstr(
              "[baseos]\nname=baseos\nbaseurl=https://mirror/9/BaseOS/x86_64/os\ngpgkey=file://"),
          HasSubstr("[appstream]")));
  EXPECT_THAT(*text, Not(HasSubstr("gpgcheck=0")));
  EXPECT_THAT(dnfPackagesOf(build, true),
              testing::IsSupersetOf({"kernel-5.14.0-427.el9", "NetworkManager", "openssh-server"}));
}

}  // namespace
}  // namespace muster::provision
