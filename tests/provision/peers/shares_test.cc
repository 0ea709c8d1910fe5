// SPDX-License-Identifier: Apache-2.0
#include "provision/peers/shares.h"

#include <gmock/gmock.h>

#include <string>

namespace muster::provision {
namespace {

using namespace std::chrono_literals;
const Shares::Time kStart{1h};

TEST(Shares, eachPieceIsGivenOnceInTheOrderOfTheImage) {
  Shares shares(10);
  EXPECT_EQ(shares.next("", 4, kStart), (Share{0, 4}));
  EXPECT_EQ(shares.next("", 4, kStart), (Share{4, 4}));
  EXPECT_EQ(shares.next("", 4, kStart), (Share{8, 2}));
  EXPECT_EQ(shares.next("", 4, kStart), std::nullopt);
}

TEST(Shares, nobodyIsGivenWhatItHas) {
  Shares shares(10);
  const std::string has_first_three_and_sixth("\xe4\x00", 2);
  EXPECT_EQ(shares.next(has_first_three_and_sixth, 8, kStart), (Share{3, 2}));
  EXPECT_EQ(shares.next(has_first_three_and_sixth, 8, kStart), (Share{6, 4}));
  EXPECT_EQ(shares.next("", 8, kStart), (Share{0, 3})) << "others lack it";
}

TEST(Shares, whatIsStillLackingMuchLaterIsGivenAgainTheRarestFirst) {
  Shares shares(4);
  shares.next("", 4, kStart);
  const std::string lacks_second_and_third("\x90", 1);
  EXPECT_EQ(shares.next(lacks_second_and_third, 1, kStart + kShareAgainAfter - 1ms), std::nullopt)
      << "it may be on its way";
  EXPECT_EQ(shares.next(lacks_second_and_third, 1, kStart + kShareAgainAfter), (Share{1, 1}));
  EXPECT_EQ(shares.next(lacks_second_and_third, 4, kStart + kShareAgainAfter), (Share{2, 1}));
  EXPECT_EQ(shares.next("", 4, kStart + kShareAgainAfter), (Share{0, 1}))
      << "then what was given once";
}

TEST(Shares, aNodeAloneIsGivenEverything) {
  Shares shares(200);
  std::uint32_t pieces = 0;
  while (const auto share = shares.next("", 1000, kStart)) {
    EXPECT_LE(share->count, kMaxSharePieces);
    EXPECT_EQ(share->first, pieces);
    pieces += share->count;
  }
  EXPECT_EQ(pieces, 200u);
}

}  // namespace
}  // namespace muster::provision
