// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/progress_heartbeat.h"

#include <gtest/gtest.h>

#include <latch>
#include <vector>

namespace muster::agent {
namespace {

TEST(ProgressHeartbeat, saysSoUntilTheWorkIsDone) {
  std::vector<std::string> said;
  {
    std::latch three(3);
    const ProgressHeartbeat working(
        [&](const std::string& text) {
          if (said.size() == 3) return;
          said.push_back(text);
          three.count_down();
        },
        "the system makes its initrd", std::chrono::milliseconds(1));
    three.wait();
  }
  EXPECT_EQ(said, (std::vector<std::string>{"the system makes its initrd",
                                            "the system makes its initrd (0 s)",
                                            "the system makes its initrd (0 s)"}));
}

TEST(ProgressHeartbeat, endsAtOnceWithTheWork) {
  std::vector<std::string> said;
  {
    const ProgressHeartbeat working([&](const std::string& text) { said.push_back(text); },
                                    "growing", std::chrono::hours(1));
  }
  EXPECT_EQ(said, std::vector<std::string>{"growing"});
}

}  // namespace
}  // namespace muster::agent
