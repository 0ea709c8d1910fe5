// SPDX-License-Identifier: Apache-2.0
// Readers of other processes beside a writer that is killed: every write that was answered is there
// afterwards.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/io/process.h"
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/store.h"
#include "tests/attack/known_open.h"
#include "tests/attack/store_writer.h"
#include "tests/cli/muster_folder.h"

namespace muster::attack {
namespace {

constexpr int kRounds = 2, kReadersARound = 2;

std::string keyOf(pid_t writer, int number) {
  return fmt::format("attack.write.{}.{}", writer, number);
}

}  // namespace

int writeUntilKilled(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder) / "muster.db";
  auto store = lifecycle::openSqliteStore(file);
  auto measurements =
      lifecycle::openMeasurements("sqlite:" + file.string());  // a running muster has both
  if (!store || !measurements) return 1;
  for (int number = 0;; ++number) {
    if (const auto written = (*store)->putValue(keyOf(::getpid(), number), "written"); !written) {
      // It says so and ends: nothing more is answered as written.
      std::fprintf(stderr, "%s\n", written.error().str().c_str());
      return 2;
    }
    std::printf("%d\n", number);
    std::fflush(stdout);
  }
}

TEST(AttackStore, readersBesideAWriterTakeNoAnsweredWriteAway) {
  test::MusterFolder folder;
  ASSERT_EQ(folder.muster({"quarantine", "add", "gpu001", "--reason", "makes the store"}).code, 0);
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  int lost = 0, answered = 0;
  for (int round = 0; round < kRounds; ++round) {
    int ends[2] = {};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const auto state = (folder / "state").string();
    const pid_t writer = ::vfork();
    if (writer == 0) {
      ::dup2(ends[1], 1);
      ::execl(self.c_str(), self.c_str(), "--writer", state.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    FILE* said = ::fdopen(ends[0], "r");
    int last = -1;
    ASSERT_EQ(std::fscanf(said, "%d", &last), 1) << "the writer does not write";
    for (int reader = 0; reader < kReadersARound; ++reader)
      for (const auto& words :
           {std::vector<std::string>{"status"}, {"findings"}, {"why", "gpu001"}})
        EXPECT_LT(folder.muster(words).code, 128) << words.front();
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    while (std::fscanf(said, "%d", &last) == 1) continue;
    std::fclose(said);
    auto store = lifecycle::openSqliteStore(folder / "state" / "muster.db");
    ASSERT_TRUE(store) << store.error().str();
    for (int number = 0; number <= last; ++number) {
      const auto value = (*store)->getValue(keyOf(writer, number));
      lost += value && *value == "written" ? 0 : 1;
    }
    answered += last + 1;
  }
  expectRefused("store.readers-beside-a-writer", lost == 0,
                fmt::format("{} of {} answered writes lost", lost, answered));
}

}  // namespace muster::attack
