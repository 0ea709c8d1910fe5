// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

enum class Trouble { Small, Large };
enum class Other { Small };

TEST(Error, carriesReasonsThatItsTextDoesNotDecide) {
  const auto error = Error(ErrorCode::Denied, "no")
                         .because(Trouble::Large)
                         .because(Trouble::Large)
                         .within("a task")
                         .retryable(true);
  EXPECT_TRUE(error.has(Trouble::Large));
  EXPECT_FALSE(error.has(Trouble::Small));
  EXPECT_FALSE(Error(ErrorCode::Denied, "no").because(Other::Small).has(Trouble::Small))
      << "an equal number of another enum";
  ASSERT_EQ(error.reasons().size(), 1u) << "the same one twice is one";
  EXPECT_EQ(error.reasons()[0].as<Trouble>(), Trouble::Large);
  EXPECT_FALSE(error.reasons()[0].as<Other>());
  EXPECT_EQ(error.str(), "a task: no");
}

}  // namespace
}  // namespace muster
