// SPDX-License-Identifier: Apache-2.0
#include "base/elf.h"

#include "base/architecture.h"

#include "base/io/files.h"

#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string fileOf(const char* path) { return io::readFile(path, 64u << 20).value_or(""); }

TEST(Elf, aProgramNamesItsLoaderAndItsLibraries) {
  const auto program = fileOf("/proc/self/exe");
  const auto elf = parseElf(program);
  ASSERT_TRUE(elf) << elf.error().str();
  EXPECT_TRUE(elf->is_64_bit);
  EXPECT_EQ(elf->machine, traitsOf(Architecture::Amd64).elf_machine);
  EXPECT_THAT(elf->needed, Contains("libc.so.6"));
  EXPECT_EQ(elf->interpreter, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(program.substr(elf->interpreter_offset_bytes, elf->interpreter.size()),
            elf->interpreter);
  EXPECT_EQ(elf->interpreter_length_bytes, elf->interpreter.size() + 1);
}

TEST(Elf, theCLibraryTellsItsRelease) {
  const auto libc = parseElf(fileOf("/lib/x86_64-linux-gnu/libc.so.6"));
  ASSERT_TRUE(libc) << libc.error().str();
  const auto version = glibcVersionOf(*libc);
  ASSERT_TRUE(version);
  EXPECT_EQ(version->str(), gnu_get_libc_version());
  EXPECT_LT((GlibcVersion{2, 9}), (GlibcVersion{2, 28})) << "numbers, not letters";
  EXPECT_FALSE(glibcVersionOf(*parseElf(fileOf("/proc/self/exe"))));
}

TEST(Elf, whatIsCutShortOrNoneIsRefusedAtEveryLength) {
  EXPECT_EQ(parseElf("#!/bin/sh\n").error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(parseElf("").error().code(), ErrorCode::InvalidInput);
  const auto whole = fileOf("/usr/bin/true");
  ASSERT_TRUE(parseElf(whole));
  for (std::size_t size = 4; size < whole.size(); size += 1 + size / 50) {
    const auto cut = parseElf(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_THAT(cut.error().text(), HasSubstr("cut short")) << size;
  }
}

TEST(Elf, rubbishInItsTablesIsRead) {
  auto program = fileOf("/usr/bin/true");
  for (std::size_t at = 4; at < program.size(); at += 7) {
    const char had = program[at];
    program[at] = static_cast<char>(~had);
    (void)parseElf(program);
    program[at] = had;
  }
}

TEST(Elf, ofAnotherArchitectureItsNameIsTold) {
  std::string other(
      "\x7f"
      "ELF\2\1\1",
      7);
  other.resize(64);
  other[18] = '\xb7';
  const auto elf = parseElf(other);
  ASSERT_TRUE(elf) << elf.error().str();
  EXPECT_EQ(elfMachineName(elf->machine), "AArch64");
  EXPECT_EQ(elfMachineName(999), "machine 999");
}

}  // namespace
}  // namespace muster
