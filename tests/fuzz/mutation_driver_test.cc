// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutation_driver.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

namespace muster::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxInput = 64;
constexpr auto kShare = 1ms;  ///< one input or a few
constexpr unsigned long long kSeed = 7;

/// With a corpus of one entry for a target "t", and whatever the driver writes beside it.
class MutationDriver : public testing::Test {
 protected:
  MutationDriver() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ / "t");
    std::ofstream(folder_ / "t" / "entry") << "plain";
    std::filesystem::current_path(folder_);
  }
  ~MutationDriver() override {
    std::filesystem::current_path("/");
    std::filesystem::remove_all(folder_);
  }

  bool holds(void (*run)(std::string_view), const Limits& limits) {
    return tryTarget({"t", kMaxInput, run, {}}, folder_, kShare, kSeed, limits);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(MutationDriver, endsATargetThatUsesTheProcessorForTooLong) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(holds(
      [](std::string_view) {
        for (volatile int i = 0;; i = i + 1) {
        }
      },
      {.processor = 100ms, .wall = 60s}));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
}

TEST_F(MutationDriver, endsATargetThatSleepsForTooLong) {
  EXPECT_FALSE(holds([](std::string_view) { std::this_thread::sleep_for(60s); },
                     {.processor = 15s, .wall = 200ms}));
}

// A machine with other work gave a process no time for longer than an input may take.
TEST_F(MutationDriver, waitsForATargetThatGetsNoProcessor) {
  EXPECT_TRUE(holds([](std::string_view) { std::this_thread::sleep_for(500ms); },
                    {.processor = 100ms, .wall = 60s}));
}

TEST_F(MutationDriver, countsTheTimeOfOneInput) {
  EXPECT_TRUE(tryTarget({"t",
                         kMaxInput,
                         [](std::string_view) {
                           const auto used = [] {
                             timespec time{};
                             ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
                             return time.tv_sec * 1s + time.tv_nsec * 1ns;
                           };
                           for (const auto until = used() + 20ms; used() < until;) {
                           }
                         },
                         {}},
                        std::filesystem::current_path(), 1'000ms, kSeed,
                        {.processor = 500ms, .wall = 60s}));
}

TEST_F(MutationDriver, reportsASignalWithItsInput) {
  EXPECT_FALSE(holds([](std::string_view) { std::raise(SIGABRT); }, {}));
  bool kept = false;
  for (const auto& entry : std::filesystem::directory_iterator("."))
    kept = kept || entry.is_regular_file();
  EXPECT_TRUE(kept);
}

}  // namespace
}  // namespace muster::fuzz
