// SPDX-License-Identifier: Apache-2.0
#include "lab/slowness.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <thread>

namespace muster::lab {
namespace {

TEST(Slowness, threadsThatShareAProcessorAreSlowerByTheirNumber) {
  double shared = 0;
  std::thread([&shared] {  // its threads inherit the one processor
    cpu_set_t before, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    shared = slowness(8);
  })
      .join();
  EXPECT_GT(shared, 4)
      << "eight threads on one processor: eight times as slow, when nothing else runs";
  EXPECT_GE(slowness(1), 1);
}

}  // namespace
}  // namespace muster::lab
