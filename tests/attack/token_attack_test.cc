// SPDX-License-Identifier: Apache-2.0
// Ids of armings: read by others, guessed, used twice, used at once by many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/attack/attack_site.h"
#include "tests/attack/raw_connection.h"
#include "wire/messages.h"

namespace muster::attack {
namespace {

int statusOf(const std::string& id, const std::string& csr, const std::string& mac) {
  return askTls(site().address(),
                post("/agent/v1/enrol", wire::toJson(wire::EnrollRequest{id, csr, mac})))
      .status;
}
std::string anyCsr() { return io::makeKeyAndRequest("x")->csr_pem; }

TEST(AttackEnrollment, isGoodForOneNodeOneMacAndOneKey) {
  const auto id = site().arm(3);
  EXPECT_EQ(statusOf(id, anyCsr(), macOf(4)), 403) << "another node's MAC";
  EXPECT_NE(statusOf(id, anyCsr(), "52:54:00:ff:ff:ff"), 200) << "a MAC of nobody";
  EXPECT_NE(statusOf(id, anyCsr(), ""), 200);
  EXPECT_NE(statusOf("", anyCsr(), macOf(3)), 200);
  const auto newer = site().arm(3);
  EXPECT_EQ(statusOf(id, anyCsr(), macOf(3)), 403) << "an arming that was replaced";
  const auto csr = anyCsr();
  const auto answer =
      askTls(site().address(),
             post("/agent/v1/enrol", wire::toJson(wire::EnrollRequest{newer, csr, macOf(3)})));
  EXPECT_EQ(answer.status, 200) << answer.bytes;
  EXPECT_EQ(statusOf(newer, csr, macOf(3)), 200) << "the same request again: answers get lost";
  EXPECT_EQ(statusOf(newer, anyCsr(), macOf(3)), 403) << "another key";
}

TEST(AttackEnrollment, ofManyAtOnceAtMostOneGetsACertificateAndThenNobody) {
  constexpr int kThieves = 12;
  const auto id = site().arm(2);
  std::vector<std::string> requests;
  for (int i = 0; i < kThieves; ++i) requests.push_back(anyCsr());
  std::atomic<int> certificates = 0, refused = 0;
  std::vector<std::thread> thieves;
  for (int i = 0; i < kThieves; ++i)
    thieves.emplace_back([&, i] {
      const int status = statusOf(id, requests[static_cast<std::size_t>(i)], macOf(2));
      (status == 200 ? certificates : refused) += 1;
    });
  for (auto& thief : thieves) thief.join();
  EXPECT_LE(certificates, 1);
  EXPECT_GE(refused, kThieves - 1);
  for (const auto& csr : requests)
    EXPECT_THAT(statusOf(id, csr, macOf(2)), ::testing::AnyOf(403, 429))
        << "nobody can say who of them was the node";
}

TEST(AttackEnrollment, guessesAreRefusedAndLeaveFewFindings) {
  constexpr int kGuesses = 100, kMostFindings = 10;
  const auto before = site().findings();
  const auto csr = anyCsr();
  (void)site().arm(3);
  int unheard = 0;
  for (int i = 0; i < kGuesses; ++i) {
    const int status = statusOf(io::randomToken(), csr, macOf(3));
    EXPECT_THAT(status, ::testing::AnyOf(403, 429));
    unheard += status == 429 ? 1 : 0;
  }
  EXPECT_GT(unheard, kGuesses / 2) << "who fails so often is heard now and then only";
  EXPECT_LE(site().findings() - before, kMostFindings)
      << "an unknown sender does not fill the store";
}

}  // namespace
}  // namespace muster::attack
