// SPDX-License-Identifier: Apache-2.0
// Programs that are started with their standard streams closed.
#include "base/main_guard.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <string_view>

namespace muster {
namespace {

/// A store or a key that is opened must never be what the program prints into.
TEST(MainGuard, whatIsOpenedNeverTakesThePlaceOfAStandardStream) {
  for (int closed = 1; closed < 8; ++closed) {  // each set of the three
    const pid_t child = ::fork();
    if (child == 0) {
      for (int fd = 0; fd < 3; ++fd)
        if (closed & (1 << fd)) ::close(fd);
      const int code = guardedMain("test", [] {
        const int opened = ::open("/proc/self/stat", O_RDONLY);
        return opened > STDERR_FILENO && ::write(STDOUT_FILENO, "", 0) == 0 ? 0 : 1;
      });
      ::_exit(code);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << closed;
  }
}

/// The exit code of a program which is started without standard output and prints `text`.
int codeWithoutOutput(std::string_view text) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDOUT_FILENO);
    const RefusedOutput closed;
    const int code = guardedMain("test", [&] {
      std::cout << text;
      return 0;
    });
    ::_exit(codeOnceWritten("test", code, std::cout, STDOUT_FILENO, 4));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MainGuard, whatIsPrintedToAClosedOutputIsNoSuccess) {
  EXPECT_EQ(codeWithoutOutput("a verdict\n"), 4);
  EXPECT_EQ(codeWithoutOutput(""), 0);
}

}  // namespace
}  // namespace muster
