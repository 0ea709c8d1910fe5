// SPDX-License-Identifier: Apache-2.0
// The NVIDIA driver of Debian's non-free, with the open kernel modules, is installed in an image
// and built there by DKMS. No GPU is needed.
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace muster {
namespace {

// bookworm alone: its security archive has a newer firmware-nvidia-gsp than the DKMS package
// accepts.
constexpr const char* kArchive =
    "deb http://deb.debian.org/debian bookworm main contrib non-free non-free-firmware";
constexpr std::chrono::minutes kBuildLimit{55};

Result<std::string> inside(const std::filesystem::path& root, std::vector<std::string> words) {
  io::Command command;
  command.program = "chroot";
  command.args = {root.string()};
  command.args.insert(command.args.end(), words.begin(), words.end());
  return io::runChecked(command);
}

TEST(NvidiaInAnImage, theOpenModulesAreBuiltForItsKernel) {
  if (::geteuid() != 0) GTEST_SKIP() << "building images needs root";
  const test::TempFolder folder;
  const auto root = folder / "root";
  io::Command build;
  build.program = "unshare";
  build.args = {"--mount",
                "--propagation",
                "private",
                "mmdebstrap",
                "--mode=root",
                "--variant=minbase",
                "--format=directory",
                "--aptopt=Acquire::Languages \"none\"",
                "--aptopt=APT::Install-Recommends \"false\"",
                "--include=linux-image-amd64,linux-headers-amd64,nvidia-open-kernel-dkms,kmod",
                "bookworm",
                root.string(),
                kArchive};
  build.timeout = kBuildLimit;
  const auto built = io::runChecked(build);
  ASSERT_TRUE(built) << built.error().str();
  const auto kernels = inside(root, {"ls", "/lib/modules"});
  ASSERT_TRUE(kernels);
  const auto release = kernels->substr(0, kernels->find('\n'));
  const auto version =
      inside(root, {"modinfo", "-k", release, "-F", "version", "nvidia-current-open"});
  const auto file =
      inside(root, {"modinfo", "-k", release, "-F", "filename", "nvidia-current-open"});
  const auto package =
      inside(root, {"dpkg-query", "-W", "-f=${Version}", "nvidia-open-kernel-dkms"});
  ASSERT_TRUE(version && file && package);
  EXPECT_NE(file->find("/updates/dkms/"), std::string::npos) << *file;
  const auto built_version = version->substr(0, version->find('\n'));
  EXPECT_TRUE(package->starts_with(built_version + "-"))
      << *package << " was installed, " << built_version << " was built";
}

}  // namespace
}  // namespace muster
