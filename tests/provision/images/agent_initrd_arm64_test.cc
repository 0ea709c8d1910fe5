// SPDX-License-Identifier: Apache-2.0
// The agent for nodes with arm64 (`./run build arm64`, docs/adr/0315), unpacked from its initrd
// into a root without any other file and started by QEMU's emulation of that processor.
#include "base/architecture.h"
#include "base/elf.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/agent_initrd.h"
#include "tests/paths.h"
#include "tests/run_async.h"
#include "wire/carried_libc.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kEmulator = "/usr/bin/qemu-aarch64-static";
constexpr std::size_t kMaxProgramBytes = 256u << 20;

fs::path agentOf(const fs::path& programs) { return programs / "arm64/muster-agent"; }

class Arm64Agent : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(agentOf(test::binFolder())))
      GTEST_SKIP() << "no agent for arm64: ./run build arm64";
    if (!fs::exists(kEmulator)) GTEST_SKIP() << "no " << kEmulator << " (qemu-user-static)";
    if (::geteuid() != 0) GTEST_SKIP() << "chroot needs root";
    const auto files = agentFiles(agentOf(test::binFolder()));
    ASSERT_TRUE(files) << files.error().str();
    ASSERT_TRUE(writeAgentInitrd(*files, folder_ / "agent.img"));
    ASSERT_TRUE(io::makeDirs(root_));
    const auto unpacked = run("sh", {"-ec", "cd \"$1\"; zstd -dcq \"$2\" | cpio --quiet -idu", "sh",
                                     root_.string(), (folder_ / "agent.img").string()});
    ASSERT_TRUE(unpacked) << unpacked.error().str();
    fs::copy_file(kEmulator, root_ / "emulator");
  }
  static Result<std::string> run(std::string program, std::vector<std::string> args) {
    io::Command command{.program = std::move(program), .args = std::move(args)};
    command.timeout = std::chrono::seconds(120);
    return io::runChecked(command);
  }
  /// By name, not by binfmt_misc, which a machine may not have. `refuses`: it ends with a failure.
  Result<std::string> emulated(const std::string& arguments, bool refuses = false) {
    return run("sh", {"-c",
                      fmt::format("{}chroot \"$1\" /emulator /usr/lib/muster/{} 2>&1",
                                  refuses ? "! " : "", arguments),
                      "sh", root_.string()});
  }

  test::TempFolder folder_;
  fs::path root_ = folder_ / "root";
};

TEST_F(Arm64Agent, isWholeAndStartsWithNothingElseThere) {
  const auto version = emulated("muster-agent --version");
  ASSERT_TRUE(version) << version.error().str();
  EXPECT_THAT(*version, AllOf(HasSubstr("muster-agent "), HasSubstr("glibc 2.")));
  const auto usage = emulated("muster-agent --nonsense", true);
  ASSERT_TRUE(usage) << usage.error().str();
  EXPECT_THAT(*usage, HasSubstr("usage: muster-agent"));
}

TEST_F(Arm64Agent, bringsTheProgramsThatItStarts) {
  const auto burn = emulated("muster-burn --help");
  ASSERT_TRUE(burn) << burn.error().str();
  const auto collective = emulated("muster-collective --probe");
  ASSERT_TRUE(collective) << collective.error().str();
  EXPECT_THAT(*collective, HasSubstr("\"tcp\""));
  if (fs::exists(root_ / "usr/lib/muster/muster-peer")) {
    const auto peer = emulated("muster-peer", true);
    ASSERT_TRUE(peer) << peer.error().str();
    EXPECT_THAT(*peer, HasSubstr("usage: muster-peer"));
  }
}

/// Nothing of this machine's processor has found its way in, and every program names the carried
/// loader.
TEST_F(Arm64Agent, hasOneProcessorsFilesOnly) {
  int programs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "usr/lib/muster")) {
    if (!fs::is_regular_file(entry.symlink_status())) continue;
    const auto content = io::readFile(entry.path(), kMaxProgramBytes);
    ASSERT_TRUE(content);
    const auto elf = parseElf(*content);
    ASSERT_TRUE(elf) << entry.path();
    EXPECT_EQ(elf->machine, traitsOf(Architecture::Arm64).elf_machine) << entry.path();
    if (!entry.path().filename().string().starts_with("muster-")) continue;
    EXPECT_STREQ(elf->interpreter.c_str(), wire::kProgramLoader) << entry.path();
    ++programs;
  }
  EXPECT_GE(programs, 3);
}

}  // namespace
}  // namespace muster::provision
