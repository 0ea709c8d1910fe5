// SPDX-License-Identifier: Apache-2.0
// muster-burn as a program: words that are no numbers, output that cannot be written, too little
// memory.
#include "base/io/process.h"
#include "tests/paths.h"

#include <gmock/gmock.h>

#include <chrono>

namespace muster::burn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNotPassed = 1, kWrongWords = 2, kUnwritten = 4;

/// By a shell: streams and limits are its own.
io::ProcessExit burnBy(const std::string& script) {
  io::Command command{"/bin/sh",
                      {"-c", script, "sh", (test::binFolder() / "muster-burn").string()}};
  command.timeout = std::chrono::minutes(4);  // a self-test on a machine that does much else
  auto ended = io::runBlocking(command);
  return ended ? std::move(*ended) : io::ProcessExit{-1, "", ended.error().str()};
}

TEST(BurnProgram, aNumberThatIsNoneIsRefusedWithItsOption) {
  for (const std::string option :
       {"--seconds", "--hold-seconds", "--hang-seconds", "--min-power-share"})
    for (const std::string text : {"nan", "-nan", "inf", "-inf", "1e999", "-1", "1e6", "1s", ""}) {
      const auto ended = burnBy("exec \"$1\" " + option + "='" + text + "' --stage units");
      EXPECT_EQ(ended.code, kWrongWords) << option << " " << text << ": " << ended.err;
      EXPECT_THAT(ended.err + ended.out, HasSubstr(option)) << text;
      EXPECT_THAT(ended.out, Not(HasSubstr("pass"))) << option << " " << text;
    }
}

TEST(BurnProgram, whatItWouldReadAsSomethingElseIsRefused) {
  for (const std::string words :
       {"--seed=-1", "--seed=18446744073709551616", "--seed=0x10", "--n 64", "--n 1", "--n 16512",
        "--n -128", "--n 0", "--min =1", "--min a=1,=2", "--min a=0x10", "--min a=1,5",
        "--min a=1 --min a=2"}) {
    const auto ended =
        burnBy("exec \"$1\" --threads 1 --no-canary --stage units --seconds 0 " + words);
    EXPECT_EQ(ended.code, kWrongWords) << words << ": " << ended.out << ended.err;
    EXPECT_THAT(ended.err + ended.out, HasSubstr(words.substr(0, words.find_first_of("= "))))
        << words;
  }
  const auto most = burnBy(
      "exec \"$1\" --threads 1 --no-canary --stage units --seconds 0 --n 128 "
      "--seed=18446744073709551615");
  EXPECT_EQ(most.code, 0) << most.err;
}

/// Once the kernel says that it has a handler for SIGTERM (bit 14), it is sent. A shell's
/// background ignores SIGINT.
TEST(BurnProgram, aSignalEndsItWithALine) {
  for (const auto& [name, number] : {std::pair{"INT", 2}, std::pair{"TERM", 15}}) {
    const auto ended =
        burnBy(std::string("env --default-signal=INT \"$1\" --threads 1 --no-canary "
                           "--stage gemm --dtype fp32 --n 128 --seconds 600 & "
                           "until grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$!/status; do "
                           "kill -0 $! || exit 99; done; kill -") +
               name + " $!; wait $!");
    EXPECT_EQ(ended.code, 128 + number) << name << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("ended by a signal before its end")) << name;
  }
}

TEST(BurnProgram, aSelfTestTakesNoWordThatItWouldNotHear) {
  for (const std::string words : {"--dtype bf16", "--stage foo", "--seconds 1", "--json -",
                                  "--min a=1", "--seed 7", "--no-canary"}) {
    const auto ended = burnBy("exec \"$1\" --threads 1 --self-test " + words);
    EXPECT_EQ(ended.code, kWrongWords) << words << ": " << ended.out << ended.err;
    EXPECT_THAT(ended.out, Not(HasSubstr("caught"))) << words;
  }
}

TEST(BurnProgram, aReportThatCannotBeWrittenIsNeitherPassedNorFailed) {
  for (const std::string words : {"--no-canary --stage units", "--no-canary --stage units --json -",
                                  "--self-test", "--help"}) {
    const auto full = burnBy("exec \"$1\" --threads 1 " + words + " >/dev/full");
    EXPECT_EQ(full.code, kUnwritten) << words << ": " << full.err;
    EXPECT_THAT(full.err, HasSubstr("not all of the output could be written")) << words;
  }
  const auto no_file =
      burnBy("exec \"$1\" --threads 1 --no-canary --stage units --seconds 0 --json /dev/full");
  EXPECT_EQ(no_file.code, kUnwritten) << no_file.err;
  EXPECT_THAT(no_file.err, HasSubstr("cannot write /dev/full"));
}

TEST(BurnProgram, withoutStandardOutputNothingIsTested) {
  for (const std::string words : {"--stage units", "--self-test"}) {
    const auto closed = burnBy("exec \"$1\" --threads 1 " + words + " >&-");
    EXPECT_EQ(closed.code, kUnwritten) << words << ": " << closed.err;
    EXPECT_THAT(closed.err, HasSubstr("standard output is closed")) << words;
  }
}

/// Whatever the limit cuts off (the loader, a library's memory, a thread, a matrix), it is no call
/// that hangs, and no word is about GPUs.
TEST(BurnProgram, tooLittleMemoryIsToldAtOnce) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers reserve more address space than any limit";
#endif
  bool told = false;
  for (const int kib : {60'000, 70'000, 180'000, 250'000, 300'000, 400'000, 500'000}) {
    const auto ended = burnBy("ulimit -v " + std::to_string(kib) +
                              "; exec \"$1\" --threads 1 --memory-percent 1 --no-canary --stage "
                              "gemm --seconds 0 --dtype fp32 --hang-seconds 20");
    if (ended.code == 127) continue;  // the loader itself found no room
    EXPECT_TRUE(ended.code == 0 || ended.code == kNotPassed) << kib << ": " << ended.err;
    EXPECT_THAT(ended.out, Not(HasSubstr("no answer within"))) << kib;
    EXPECT_THAT(ended.out, Not(HasSubstr("XID"))) << kib;
    told = told || (ended.out + ended.err).find("memory") != std::string::npos;
  }
  EXPECT_TRUE(told) << "no limit was too little";
}

}  // namespace
}  // namespace muster::burn
