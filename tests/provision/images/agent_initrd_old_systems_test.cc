// SPDX-License-Identifier: Apache-2.0
// The programs that are carried to nodes (docs/adr/0228), unpacked from the initrd that brings them
// and started in systems that are older and newer than the one that built them. Chroots are made
// once, of packages from the mirror, and kept below MUSTER_CACHE.
#include "agent/imaging/carried_libc.h"
#include "base/elf.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/agent_initrd.h"
#include "provision/images/fetch/proxy_environment.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::chrono::minutes kBootstrapLimit{8};
constexpr const char* kMirror = "http://deb.debian.org/debian";
constexpr const char* kUbuntuMirror = "http://archive.ubuntu.com/ubuntu";

struct Release {
  const char* suite;
  const char* mirror;
  const char* glibc;  ///< of this release; empty: it need not be known
};

fs::path cacheFolder() {
  const char* cache = ::getenv("MUSTER_CACHE");
  const char* home = ::getenv("HOME");
  return cache != nullptr ? fs::path(cache)
                          : fs::path(home != nullptr ? home : "/root") / ".cache/muster";
}

/// Of Ubuntu's archive: the package ubuntu-keyring, or a file that somebody has put into the cache.
fs::path ubuntuKeys() {
  for (const fs::path& file : {fs::path("/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
                               cacheFolder() / "keys/ubuntu-archive-keyring.gpg"})
    if (fs::exists(file)) return file;
  return {};
}

bool lacksKeys(const Release& release) {
  return release.mirror == std::string(kUbuntuMirror) && ubuntuKeys().empty();
}

Result<std::string> run(std::string program, std::vector<std::string> args,
                        std::string stdin_text = {},
                        std::chrono::seconds limit = std::chrono::seconds(120)) {
  io::Command command{.program = std::move(program), .args = std::move(args)};
  command.stdin_text = std::move(stdin_text);
  command.timeout = limit;
  return io::runChecked(command);
}

/// A kept folder with the release's essential packages. Errors: those of mmdebstrap (no mirror, no
/// key)
Result<fs::path> keptSystem(const Release& release) {
  const auto kept = cacheFolder() / "chroots" / release.suite;
  std::error_code error;
  if (fs::exists(kept / "etc/os-release", error)) return kept;
  const fs::path making = kept.string() + ".making";
  fs::remove_all(making, error);
  TRY_OK(io::makeDirs(kept.parent_path()));
  io::Command command{
      .program = "unshare",
      .args = {"--mount", "mmdebstrap", "--mode=root", "--variant=essential", "--format=directory",
               "--aptopt=Acquire::Languages \"none\"", "--dpkgopt=path-exclude=/usr/share/doc/*",
               "--dpkgopt=path-exclude=/usr/share/locale/*"}};
  if (release.mirror == std::string(kUbuntuMirror))
    command.args.push_back("--keyring=" + ubuntuKeys().string());
  command.args.insert(command.args.end(), {release.suite, making.string(), release.mirror});
  command.env = proxyEnvironment();
  command.timeout = kBootstrapLimit;
  TRY_OK(io::runChecked(command));
  fs::rename(making, kept, error);
  if (error) return fail(ErrorCode::Internal, error.message());
  return kept;
}

/// A system with what the image writer leaves on a disk: an overlay, so that the kept one stays.
class Carried : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "chroot needs root";
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr))
      GTEST_SKIP() << "no mount namespace of its own";
    ASSERT_TRUE(io::makeDirs(root_));
  }
  void TearDown() override {
    ::umount2((root_ / "proc").c_str(), MNT_DETACH);
    ::umount2(root_.c_str(), MNT_DETACH);
    ::umount2((folder_ / "changes").c_str(), MNT_DETACH);
  }
  void layOver(const fs::path& system) {
    const auto changes = folder_ / "changes";
    ASSERT_TRUE(io::makeDirs(changes));
    ASSERT_EQ(::mount("tmpfs", changes.c_str(), "tmpfs", 0, nullptr), 0);
    for (const char* part : {"upper", "work"}) ASSERT_TRUE(io::makeDirs(changes / part));
    const auto layers = fmt::format("lowerdir={},upperdir={},workdir={}", system.string(),
                                    (changes / "upper").string(), (changes / "work").string());
    ASSERT_EQ(::mount("overlay", root_.c_str(), "overlay", 0, layers.c_str()), 0)
        << std::strerror(errno);
  }
  /// As on a node: agent.img unpacked, the C library chosen for this system.
  void carry() {
    const auto files = agentFiles(test::binFolder() / "muster-agent");
    ASSERT_TRUE(files) << files.error().str();
    ASSERT_TRUE(writeAgentInitrd(*files, folder_ / "agent.img"));
    const auto unpacked = run("sh", {"-ec", "cd \"$1\"; zstd -dcq \"$2\" | cpio --quiet -idu", "sh",
                                     root_.string(), (folder_ / "agent.img").string()});
    ASSERT_TRUE(unpacked) << unpacked.error().str();
    ASSERT_TRUE(io::makeDirs(root_ / "proc"));
    ASSERT_EQ(::mount("proc", (root_ / "proc").c_str(), "proc", 0, nullptr), 0);
  }
  Result<std::string> inside(std::vector<std::string> command, std::string stdin_text = {}) {
    command.insert(command.begin(), root_.string());
    return run("chroot", std::move(command), std::move(stdin_text));
  }
  /// Every program starts; the agent runs a check, for which it starts itself and muster-burn's
  /// engine again.
  void expectThatItRuns(const std::string& glibc) {
    const auto version = inside({"/usr/lib/muster/muster-agent", "--version"});
    ASSERT_TRUE(version) << version.error().str();
    EXPECT_THAT(*version, AllOf(HasSubstr("muster-agent "), HasSubstr("glibc " + glibc)));
    // Little memory and some time: on a busy machine a round of more does not end in it.
    const auto checked =
        inside({"/usr/lib/muster/muster-agent", "tool", "checks"},
               R"({"checks":[{"id":"host.memory","params":{"seconds":3,"mebibytes":1}}]})");
    ASSERT_TRUE(checked) << checked.error().str();
    const auto result = nlohmann::json::parse(*checked)["results"][0];
    EXPECT_EQ(result["status"], "pass") << *checked;
    const auto burn = inside({"/usr/lib/muster/muster-burn", "--help"});
    EXPECT_TRUE(burn) << burn.error().str();
    const auto collective = inside({"/usr/lib/muster/muster-collective", "--probe"});
    ASSERT_TRUE(collective) << collective.error().str();
    EXPECT_THAT(*collective, HasSubstr("\"tcp\""));
    if (fs::exists(root_ / "usr/lib/muster/muster-peer")) {
      const auto peer = run("sh", {"-c", "chroot \"$1\" /usr/lib/muster/muster-peer 2>&1; true",
                                   "sh", root_.string()});
      EXPECT_THAT(peer.value_or(""), HasSubstr("usage: muster-peer"));
    }
  }

  test::TempFolder folder_;
  fs::path root_ = folder_ / "root";
};

/// Nothing but what is carried: no release of any distribution can have less.
TEST_F(Carried, runsInASystemWithoutAnyCLibrary) {
  carry();
  ASSERT_TRUE(agent::chooseLibc(root_));
  EXPECT_EQ(fs::read_symlink(root_ / "usr/lib/muster/ld.so"), "glibc/ld-linux-x86-64.so.2");
  expectThatItRuns(gnu_get_libc_version());
}

/// Trees of other distributions that somebody has unpacked below the cache
/// (docs/development/outside-tools.md).
TEST_F(Carried, startsInWhatElseIsThere) {
  std::error_code none;
  int systems = 0;
  for (const auto& each : fs::directory_iterator(cacheFolder() / "chroots/others", none)) {
    SCOPED_TRACE(each.path());
    ++systems;
    layOver(each.path());
    carry();
    ASSERT_TRUE(agent::chooseLibc(root_));
    expectThatItRuns("");
    TearDown();
  }
  if (systems == 0) GTEST_SKIP() << "nothing is in " << cacheFolder() / "chroots/others";
}

class CarriedTo : public Carried, public testing::WithParamInterface<Release> {};

TEST_P(CarriedTo, startsAndTests) {
  const auto& release = GetParam();
  if (lacksKeys(release)) GTEST_SKIP() << "no keys of Ubuntu's archive (ubuntu-keyring)";
  const auto system = keptSystem(release);
  if (!system)
    GTEST_SKIP() << "no system of " << release.suite << ": " << system.error().str().substr(0, 300);
  layOver(*system);
  carry();
  ASSERT_TRUE(agent::chooseLibc(root_));
  const std::string own = gnu_get_libc_version();
  int own_minor = 0, their_minor = 0;
  ASSERT_EQ(std::sscanf(own.c_str(), "2.%d", &own_minor), 1);
  ASSERT_EQ(std::sscanf(release.glibc, "2.%d", &their_minor), 1);
  expectThatItRuns(their_minor >= own_minor ? release.glibc : own);
  // The system's own programs keep its own library: nothing is in their environment.
  const auto theirs = inside({"/bin/sh", "-c", "ldd --version | head -n 1"});
  ASSERT_TRUE(theirs) << theirs.error().str();
  EXPECT_THAT(*theirs, HasSubstr(release.glibc));
}

/// A library of the node that asks for a part of the C library that is empty today: it gets the
/// carried one, though its own RUNPATH leads to the system's.
TEST_P(CarriedTo, librariesOfTheNodeFindTheirCLibrary) {
  const auto& release = GetParam();
  if (lacksKeys(release)) GTEST_SKIP() << "no keys of Ubuntu's archive (ubuntu-keyring)";
  const auto system = keptSystem(release);
  if (!system)
    GTEST_SKIP() << "no system of " << release.suite << ": " << system.error().str().substr(0, 300);
  layOver(*system);
  carry();
  ASSERT_TRUE(agent::chooseLibc(root_));
  const auto built = run(
      "sh", {"-ec",
             "echo 'int nvmlInit_v2(void) { return 0; }' >\"$1/nvml.c\"; clang-19 -shared -fPIC "
             "-O1 -nostdlib -o \"$2\" \"$1/nvml.c\" -Wl,-soname,libnvidia-ml.so.1 "
             "-Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1 "
             "-Wl,-rpath,/lib/x86_64-linux-gnu,--enable-new-dtags",
             "sh", folder_.path().string(),
             (root_ / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").string()});
  ASSERT_TRUE(built) << built.error().str();
  const auto driver = inside({"/usr/lib/muster/muster-agent", "tool", "nvml-driver"});
  ASSERT_FALSE(driver) << "it has no more than one function";
  EXPECT_THAT(driver.error().str(), HasSubstr("libnvidia-ml.so.1 has no nvml"))
      << "it was opened with all that it needs; its functions are what is missing";
}

INSTANTIATE_TEST_SUITE_P(
    Releases, CarriedTo,
    testing::Values(Release{"bionic", kUbuntuMirror, "2.27"}, Release{"buster", kMirror, "2.28"},
                    Release{"bullseye", kMirror, "2.31"}, Release{"jammy", kUbuntuMirror, "2.35"},
                    Release{"bookworm", kMirror, "2.36"}, Release{"trixie", kMirror, "2.41"}),
    [](const auto& each) { return std::string(each.param.suite); });

}  // namespace
}  // namespace muster::provision
