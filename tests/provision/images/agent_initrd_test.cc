// SPDX-License-Identifier: Apache-2.0
#include "provision/images/agent_initrd.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::provision {
namespace {

using testing::ElementsAre;

TEST(AgentInitrd, carriesLibrariesButNotTheCLibrary) {
  const auto libraries = librariesToCarry(
      "\tlinux-vdso.so.1 (0x00007ffd)\n"
      "\tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f60)\n"
      "\tlibstdc++.so.6 => /lib/x86_64-linux-gnu/libstdc++.so.6 (0x00007f61)\n"
      "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f62)\n"
      "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f63)\n"
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f64)\n");
  ASSERT_TRUE(libraries);
  EXPECT_THAT(*libraries, ElementsAre("/lib/x86_64-linux-gnu/libssl.so.3",
                                      "/lib/x86_64-linux-gnu/libstdc++.so.6"));
}

TEST(AgentInitrd, saysWhichLibraryIsMissing) {
  const auto libraries = librariesToCarry("\tlibfmt.so.9 => not found\n");
  ASSERT_FALSE(libraries);
  EXPECT_EQ(libraries.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(libraries.error().text(), testing::HasSubstr("libfmt.so.9"));
}

TEST(AgentInitrd, isACpioArchiveThatOthersCanRead) {
  test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "agent", "#!/bin/sh\necho agent\n", 0755));
  ASSERT_TRUE(io::writeFileAtomic(folder / "libx.so", "library", 0644));
  const std::vector<AgentFile> files{{folder / "agent", "usr/lib/muster/muster-agent"},
                                     {folder / "libx.so", "usr/lib/muster/libx.so"}};
  ASSERT_TRUE(writeAgentInitrd(files, folder / "agent.img"));
  io::Command unpack{.program = "sh",
                     .args = {"-c",
                              "zstd -dcq agent.img | cpio --quiet -id && "
                              "usr/lib/muster/muster-agent && cat usr/lib/muster/libx.so"}};
  unpack.working_dir = folder.path();
  const auto answer = io::runChecked(unpack);
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(*answer, "agent\nlibrary");
}

TEST(AgentInitrd, digestFollowsTheContent) {
  test::TempFolder folder;
  const std::vector<AgentFile> files{{folder / "agent", "usr/lib/muster/muster-agent"}};
  ASSERT_TRUE(io::writeFileAtomic(folder / "agent", "one"));
  const auto one = agentFilesDigest(files);
  ASSERT_TRUE(io::writeFileAtomic(folder / "agent", "two"));
  const auto two = agentFilesDigest(files);
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
}

/// A program and a library for AArch64, linked by clang without anything of that processor here.
class ForeignAgent : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::makeDirs(programs_ / "glibc"));
    make("int own() { return 0; }", "libown.so", "-shared");
    make("int libc() { return 0; }", "glibc/libc.so.6", "-shared");
    make("int loader() { return 0; }", "glibc/ld-linux-aarch64.so.1", "-shared");
    make("int own(); int libc(); int start() { return own() + libc(); }", "muster-agent",
         "-pie -Wl,-e,start -Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1 libown.so "
         "glibc/libc.so.6");
  }
  void make(const std::string& code, const std::string& name, const std::string& words) {
    io::Command command{
        .program = "sh",
        .args = {"-ec", "echo '" + code +
                            "' | clang-19 --target=aarch64-linux-gnu -fuse-ld=lld-19 "
                            "-nostdlib -fPIC -x c - -x none -o " +
                            name + " -Wl,-soname," + name.substr(name.find('/') + 1) + " " +
                            words}};
    command.working_dir = programs_;
    const auto made = io::runChecked(command);
    ASSERT_TRUE(made) << made.error().str();
  }
  test::TempFolder folder_;
  std::filesystem::path programs_ = folder_ / "arm64";
};

TEST_F(ForeignAgent, bringsWhatLiesBesideIt) {
  const auto files = agentFiles(programs_ / "muster-agent");
  ASSERT_TRUE(files) << files.error().str();
  std::vector<std::string> targets;
  for (const auto& file : *files) targets.push_back(file.target);
  EXPECT_THAT(targets, ElementsAre("usr/lib/muster/muster-agent", "usr/lib/muster/libown.so",
                                   "usr/lib/muster/glibc/ld-linux-aarch64.so.1",
                                   "usr/lib/muster/glibc/libc.so.6", "usr/lib/muster/ld.so"));
  EXPECT_TRUE(files->front().program);
  EXPECT_EQ(files->back().link, "glibc/ld-linux-aarch64.so.1");
}

TEST_F(ForeignAgent, isRefusedWithoutALibrary) {
  std::filesystem::remove(programs_ / "libown.so");
  const auto files = agentFiles(programs_ / "muster-agent");
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(files.error().text(), testing::AllOf(testing::HasSubstr("libown.so"),
                                                   testing::HasSubstr("./run build arm64")));
}

TEST_F(ForeignAgent, isRefusedWithoutItsLoader) {
  std::filesystem::remove(programs_ / "glibc/ld-linux-aarch64.so.1");
  const auto files = agentFiles(programs_ / "muster-agent");
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().text(), testing::HasSubstr("ld-linux-aarch64.so.1"));
}

TEST(AgentInitrd, refusesABinaryThatWouldNotFindItsLibraries) {
  EXPECT_EQ(agentFiles("/nowhere/muster-agent").error().code(), ErrorCode::NotFound);
  const auto files = agentFiles("/usr/bin/openssl");  // needs libssl, and was not made for this
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code(), ErrorCode::InvalidInput);
}

}  // namespace
}  // namespace muster::provision
