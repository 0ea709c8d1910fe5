// One-time tokens: stolen, guessed, shown twice, shown at once by many.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "agent/protocol/messages.h"
#include "tests/attack/attack_site.h"
#include "tests/attack/raw_connection.h"

namespace muster::attack {
namespace {

int statusOf(const std::string& token, const std::string& csr, const std::string& mac) {
  return askTls(site().address(),
                post("/agent/v1/enrol", agent::toJson(agent::EnrolRequest{token, csr, mac})))
      .status;
}
std::string anyCsr() { return io::makeKeyAndRequest("x")->csr_pem; }

TEST(AttackToken, ofManyWhoShowItAtOnceOneGetsACertificate) {
  constexpr int kThieves = 12;
  const auto token = site().token(2);
  std::vector<std::string> requests;
  for (int i = 0; i < kThieves; ++i) requests.push_back(anyCsr());
  std::atomic<int> certificates = 0, refused = 0;
  std::vector<std::thread> thieves;
  for (int i = 0; i < kThieves; ++i)
    thieves.emplace_back([&, i] {
      const int status = statusOf(token, requests[static_cast<std::size_t>(i)], macOf(2));
      (status == 200 ? certificates : refused) += 1;
    });
  for (auto& thief : thieves) thief.join();
  EXPECT_EQ(certificates, 1);
  EXPECT_EQ(refused, kThieves - 1);
}

TEST(AttackToken, guessesAreRefusedAndLeaveFewFindings) {
  constexpr int kGuesses = 100, kMostFindings = 10;
  const auto before = site().findings();
  const auto csr = anyCsr();
  (void)site().token(3);
  for (int i = 0; i < kGuesses; ++i) EXPECT_EQ(statusOf(io::randomToken(), csr, macOf(3)), 403);
  EXPECT_LE(site().findings() - before, kMostFindings) << "a stranger does not fill the store";
}

TEST(AttackToken, isGoodForOneNodeOneMacAndOneKey) {
  const auto token = site().token(3);
  EXPECT_EQ(statusOf(token, anyCsr(), macOf(4)), 403) << "another node's MAC";
  EXPECT_NE(statusOf(token, anyCsr(), "52:54:00:ff:ff:ff"), 200) << "a MAC of nobody";
  EXPECT_NE(statusOf(token, anyCsr(), ""), 200);
  EXPECT_NE(statusOf("", anyCsr(), macOf(3)), 200);
  const auto newer = site().token(3);
  EXPECT_EQ(statusOf(token, anyCsr(), macOf(3)), 403) << "a token that was replaced";
  const auto csr = anyCsr();
  EXPECT_EQ(statusOf(newer, csr, macOf(3)), 200);
  EXPECT_EQ(statusOf(newer, csr, macOf(3)), 200) << "the same request again: answers get lost";
  EXPECT_EQ(statusOf(newer, anyCsr(), macOf(3)), 403) << "another key";
}

}  // namespace
}  // namespace muster::attack
