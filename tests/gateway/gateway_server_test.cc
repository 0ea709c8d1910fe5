// SPDX-License-Identifier: Apache-2.0
// Who may send what to the agents' routes, decided before a body is read.
#include "gateway/failed_attempts.h"
#include "inventory/model/cluster.h"
#include "tests/agent/site.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

class AdmissionTest : public ::testing::Test {
 protected:
  io::Admission admit(const std::string& path, io::ServerRequest head) {
    head.method = "POST";
    head.target = path;
    for (const auto& route : site_.gateway().routes())
      if (route.path == path) return route.admit(head);
    ADD_FAILURE() << "no route " << path;
    return {};
  }
  static io::ServerRequest from(const std::string& address) {
    io::ServerRequest head;
    head.remote_address = address;
    return head;
  }
  static int statusOf(const io::Admission& admission) {
    return admission.refusal ? admission.refusal->status : 200;
  }
  int enroll(const std::string& address, const std::string& mac, const std::string& token) {
    auto request = from(address);
    const auto made = io::makeKeyAndRequest("x");
    wire::EnrollRequest body{token, made->csr_pem, mac};
    request.body = toJson(body);
    for (auto& route : site_.gateway().routes()) {
      if (route.path != "/agent/v1/enrol") continue;
      std::optional<int> status;
      asio::co_spawn(site_.controller->io, route.handle(std::move(request)),
                     [&status](std::exception_ptr thrown, io::ServerResponse answer) {
                       status = thrown ? -1 : answer.status;
                     });
      EXPECT_TRUE(site_.until([&] { return status.has_value(); }));
      return status.value_or(-1);
    }
    return -1;
  }
  ::muster::test::Site site_;
};

TEST_F(AdmissionTest, onlyNodesOfTheInventoryMaySendMuch) {
  const std::string poll = "/agent/v1/poll";
  EXPECT_EQ(statusOf(admit(poll, from("10.0.0.1"))), 403);
  auto unknown = from("10.0.0.1");
  unknown.client_common_name = "gpu999";
  EXPECT_EQ(statusOf(admit(poll, unknown)), 403);
  auto late = from("10.0.0.1");
  late.expired_client_common_name = "gpu001";
  EXPECT_EQ(statusOf(admit(poll, late)), 403);
  EXPECT_EQ(statusOf(admit("/agent/v1/renewal", late)), 403);
  EXPECT_EQ(statusOf(admit("/agent/v1/certificate", late)), 200) << "it may ask for its next one";
  EXPECT_LE(admit("/agent/v1/certificate", late).max_body_bytes, 32u << 10);
  late.expired_client_common_name = "gpu999";
  EXPECT_EQ(statusOf(admit("/agent/v1/certificate", late)), 403);
  auto node = from("10.0.0.1");
  node.client_common_name = "gpu001";
  EXPECT_EQ(statusOf(admit(poll, node)), 200);
  EXPECT_EQ(admit(poll, node).max_body_bytes, 16u << 20);
  for (const auto* path : {"/agent/v1/enrol", "/agent/v1/attest", "/agent/v1/attested"}) {
    EXPECT_EQ(statusOf(admit(path, from("10.0.0.1"))), 200);
    EXPECT_LE(admit(path, from("10.0.0.1")).max_body_bytes, 32u << 10) << path;
  }
}

/// Nobody can have the store asked, or findings written, as often as they like; and only who tried
/// is refused.
TEST_F(AdmissionTest, whoFailsToEnrollAgainAndAgainIsNotLookedAt) {
  const auto& node = site_.cluster.nodes.front();
  for (std::size_t i = 0; i < gateway::FailedAttempts::kPerAddress; ++i) {
    ASSERT_EQ(statusOf(admit("/agent/v1/enrol", from("10.0.0.66"))), 200) << i;
    ASSERT_EQ(enroll("10.0.0.66", i % 2 ? node.mac.str() : "52:54:00:99:99:99", "guess"), 403) << i;
  }
  for (const auto* path : {"/agent/v1/enrol", "/agent/v1/attest", "/agent/v1/attested"})
    EXPECT_EQ(statusOf(admit(path, from("10.0.0.66"))), 429) << path;
  EXPECT_EQ(statusOf(admit("/agent/v1/enrol", from("10.0.0.1"))), 200);
}

TEST(FailedAttempts, areForgottenAndAreBounded) {
  gateway::FailedAttempts attempts;
  auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < gateway::FailedAttempts::kPerAddress; ++i) attempts.failed("a", now);
  EXPECT_FALSE(attempts.mayTry("a", now));
  EXPECT_TRUE(attempts.mayTry("b", now));
  now += gateway::FailedAttempts::kInterval;
  EXPECT_TRUE(attempts.mayTry("a", now));
  for (std::size_t i = 0; i < gateway::FailedAttempts::kInAll; ++i)
    attempts.failed(std::to_string(i), now);
  EXPECT_FALSE(attempts.mayTry("b", now))
      << "thousands of addresses: nobody is told apart any more";
  now += gateway::FailedAttempts::kInterval;
  EXPECT_TRUE(attempts.mayTry("b", now));
}

}  // namespace
}  // namespace muster::agent
