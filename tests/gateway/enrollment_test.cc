// SPDX-License-Identifier: Apache-2.0
// Who gets a certificate, and who is listened to.
#include "gateway/enrollment.h"
#include "base/io/key_id.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "tests/agent/site.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

class EnrollmentTest : public ::testing::Test {
 protected:
  Result<io::HttpResponse> enroll(const std::string& id, const std::string& mac,
                                  const std::string& csr) {
    return site.post("/agent/v1/enrol", toJson(wire::EnrollRequest{id, csr, mac}));
  }
  std::string request() { return io::makeKeyAndRequest("anything")->csr_pem; }
  std::string arm(const NodeName& node = kNode, const char* mac = kMac1) {
    return *site.gateway().openEnrollment(node, *Mac::parse(mac));
  }
  /// A controller that leases the addresses; gpu001's is that of this test.
  void leaseAddresses(const std::string& address = "127.0.0.1",
                      inventory::DhcpMode mode = inventory::DhcpMode::Authoritative) {
    inventory::Network network;
    network.name = "provisioning";
    network.cidr = *Cidr::parse("127.0.0.0/24");
    network.dhcp_mode = mode;
    site.cluster.networks = {network};
    site.cluster.nodes[0].address = *Ipv4::parse(address);
    site.restartController();
  }
  std::size_t findings() { return site.store->findings(nullptr)->size(); }
  void expectRefused(const Result<io::HttpResponse>& answer, const std::string& why) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 403) << answer->body;
    EXPECT_THAT(answer->body, HasSubstr(why));
  }
  int polls(const io::TlsIdentity& who) {
    wire::PollRequest poll;
    poll.boot_id = "b";
    poll.sequence = ++sequence;
    poll.session = "of another controller";  // answered at once
    return site.post("/agent/v1/poll", toJson(poll), who)->status;
  }
  Site site;
  std::uint64_t sequence = 0;
};

TEST_F(EnrollmentTest, anArmingGivesTheNodesCertificateToOneKey) {
  const auto id = arm();
  auto first = enroll(id, kMac1, request());
  ASSERT_TRUE(first) << first.error().str();
  ASSERT_EQ(first->status, 200) << first->body;
  auto answer = wire::parseEnrollResponse(first->body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->node, "gpu001");
  EXPECT_EQ(io::describeCertificate(answer->certificate_pem)->common_name, "gpu001");

  expectRefused(enroll(id, kMac1, request()), "two machines asked to enroll");
  auto left = site.store->findings(nullptr);
  ASSERT_EQ(left->size(), 1u);
  EXPECT_THAT(
      left->front().text,
      HasSubstr(
          "enrollment of gpu001 refused: two machines asked to enroll as this node in one arming"));
  enroll(id, kMac1, request());
  EXPECT_EQ(findings(), 1u) << "one finding, however often it is tried";
}

TEST_F(EnrollmentTest, aSecondKeyEndsTheFirstAndOnlyANewArmingLetsTheNodeIn) {
  for (const bool restarted : {false, true}) {
    const auto id = arm();
    const auto first = io::makeKeyAndRequest("x"), second = io::makeKeyAndRequest("x");
    auto answer = enroll(id, kMac1, first->csr_pem);
    ASSERT_EQ(answer->status, 200) << answer->body;
    const io::TlsIdentity taken{first->key_pem,
                                wire::parseEnrollResponse(answer->body)->certificate_pem};
    ASSERT_EQ(polls(taken), 200);
    if (restarted) site.restartController();
    expectRefused(enroll(id, kMac1, second->csr_pem), "neither is listened to");
    EXPECT_EQ(polls(taken), 403) << "who was first may be the wrong one";
    expectRefused(enroll(id, kMac1, first->csr_pem), "neither is listened to");
    site.restartController();
    expectRefused(enroll(id, kMac1, second->csr_pem), "neither is listened to");
    EXPECT_EQ(enroll(arm(), kMac1, second->csr_pem)->status, 200);
  }
}

TEST_F(EnrollmentTest, twoKeysAtTheSameMomentAreBothRefused) {
  const auto id = arm();
  std::vector<std::optional<Result<io::HttpResponse>>> answers(2);
  std::vector<std::unique_ptr<io::HttpClient>> clients;
  io::TlsTrust trust;
  trust.ca_pem = site.ca->certificatePem();
  const std::string csrs[] = {request(), request()};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    clients.push_back(io::makeHttpClient(trust));
    io::HttpRequest ask;
    ask.method = "POST";
    ask.url = *io::Url::parse(site.url() + "/agent/v1/enrol");
    ask.body = toJson(wire::EnrollRequest{id, csrs[i], kMac1});
    asio::co_spawn(site.controller->io, clients.back()->send(ask),
                   [&answers, i](std::exception_ptr, Result<io::HttpResponse> got) {
                     answers[i] = std::move(got);
                   });
  }
  ASSERT_TRUE(site.until([&] { return answers[0] && answers[1]; }));
  EXPECT_TRUE((*answers[0])->status == 403 || (*answers[1])->status == 403);
  for (const auto& csr : csrs) EXPECT_EQ(enroll(id, kMac1, csr)->status, 403);
  EXPECT_GE(findings(), 1u);
}

/// Away until it is back.
class LeavingSigner final : public signer::SiteSigner {
 public:
  explicit LeavingSigner(const io::CertificateAuthority& ca) : ca_(ca) {}
  Result<std::string> sign(signer::Statement, std::string_view) const override {
    return fail(ErrorCode::Internal, "not asked here");
  }
  Result<std::string> certify(const signer::CertificateOrder& order) const override {
    if (is_away)
      return fail(Error(ErrorCode::Unavailable, "the signer does not answer")
                      .because(signer::SignerProblem::Away));
    return ca_.signClient(order.csr_pem, order.name, order.lifetime);
  }
  bool is_away = true;

 private:
  const io::CertificateAuthority& ca_;
};

TEST_F(EnrollmentTest, whileTheSignerIsAwayItWaitsAndNothingIsUsedUp) {
  const auto signer = std::make_shared<LeavingSigner>(*site.ca);
  site.authority.emplace(*signer::Authority::signedBy(site.ca->certificatePem(), signer, {}));
  site.restartController();
  const auto id = arm();
  const auto csr = request();
  for (int i = 0; i < 3; ++i) {
    const auto answer = enroll(id, kMac1, csr);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503) << answer->body;
    EXPECT_THAT(answer->body, HasSubstr("the signer does not answer"));
  }
  const auto left = site.store->findings(nullptr);
  ASSERT_EQ(left->size(), 1u) << "one finding, however often it asks";
  EXPECT_THAT(left->front().text, HasSubstr("enrollment of gpu001 waits"));
  signer->is_away = false;
  EXPECT_EQ(enroll(id, kMac1, csr)->status, 200) << "the same arming, the same request";
}

TEST_F(EnrollmentTest, sameRequestIsAnsweredAgainWhenTheAnswerWasLost) {
  const auto id = arm();
  auto csr = request();
  ASSERT_EQ(enroll(id, kMac1, csr)->status, 200);
  EXPECT_EQ(enroll(id, kMac1, csr)->status, 200);
  site.restartController();
  EXPECT_EQ(enroll(id, kMac1, csr)->status, 200);
  EXPECT_EQ(enroll(id, kMac1, request())->status, 403);
}

TEST_F(EnrollmentTest, anIdIsWorthNothingElsewhere) {
  const auto id = arm();
  (void)arm(NodeName("gpu002"), kMac2);
  EXPECT_EQ(enroll(id, kMac2, request())->status, 403);
  EXPECT_EQ(enroll(id, "52:54:00:00:00:99", request())->status, 403);
  EXPECT_EQ(enroll("guessed", kMac1, request())->status, 403);
  EXPECT_EQ(enroll(id, "no mac", request())->status, 400);
  EXPECT_EQ(enroll(id, kMac1, "no request")->status, 400);
  EXPECT_EQ(enroll(id, kMac1, request())->status, 200) << "a bad request must not use the arming";
}

TEST_F(EnrollmentTest, anIdIsWorthNothingFromAnotherAddress) {
  leaseAddresses("127.0.0.9");
  const auto id = arm();
  expectRefused(enroll(id, kMac1, request()),
                "127.0.0.1 asked to enroll as this node, but its address is 127.0.0.9");
  EXPECT_EQ(findings(), 1u);
  site.cluster.nodes[0].address = *Ipv4::parse("127.0.0.1");
  site.network.lease(kMac1, "127.0.0.1", "2000");
  EXPECT_EQ(enroll(id, kMac1, request())->status, 200) << "the thief has not used it";
}

TEST_F(EnrollmentTest, whereMusterLeasesAddressesTheLeaseMustBeOfThisStartAndTheNeighbourTheNode) {
  leaseAddresses();
  site.network.lease(kMac1, "127.0.0.1", "1000");
  const auto id = arm();
  expectRefused(enroll(id, kMac1, request()), "is older than this start of the node");
  site.network.lease(kMac1, "127.0.0.1", "2000");
  site.network.neighbours.clear();
  expectRefused(enroll(id, kMac1, request()),
                "the neighbour table does not show who has 127.0.0.1");
  site.network.show("127.0.0.1", "52:54:00:00:00:66");
  expectRefused(enroll(id, kMac1, request()),
                "the neighbour table shows another MAC than 52:54:00:00:00:01 at 127.0.0.1");
  site.network.leases.clear();
  site.network.show("127.0.0.1", kMac1);
  expectRefused(enroll(id, kMac1, request()), "has leased no 127.0.0.1 to 52:54:00:00:00:01");
  site.network.lease(kMac1, "127.0.0.5", "2000");
  expectRefused(enroll(id, kMac1, request()), "has leased no 127.0.0.1");
  site.network.lease(kMac1, "127.0.0.1", "2000");
  site.restartController();
  EXPECT_EQ(enroll(id, kMac1, request())->status, 200)
      << "nobody of the others has used the arming, and the lease at arming was kept";
}

TEST_F(EnrollmentTest, behindARelayTheLeaseAloneCounts) {
  leaseAddresses("127.0.0.1", inventory::DhcpMode::Relay);
  inventory::Subnet row;
  row.name = "row-a";
  row.cidr = *Cidr::parse("127.0.0.0/28");
  site.cluster.networks[0].subnets = {row};
  site.network.neighbours.clear();
  site.network.lease(kMac1, "127.0.0.1", "1000");
  const auto id = arm();
  expectRefused(enroll(id, kMac1, request()), "is older than this start of the node");
  site.network.lease(kMac1, "127.0.0.1", "2000");
  EXPECT_EQ(enroll(id, kMac1, request())->status, 200);
}

TEST_F(EnrollmentTest, besideAnotherDhcpServerAnIdAloneIsNotEnough) {
  for (const auto mode : {inventory::DhcpMode::Proxy, inventory::DhcpMode::None}) {
    leaseAddresses("127.0.0.1", mode);
    site.network.neighbours.clear();
    const auto id = arm();
    const auto csr = request();
    expectRefused(enroll(id, kMac1, csr), "the neighbour table does not show who has 127.0.0.1");
    EXPECT_THAT(*site.store->findings(nullptr),
                ::testing::Contains(::testing::Field(
                    &lifecycle::Finding::what_to_do,
                    HasSubstr("muster bmc approve-key gpu001 " + wire::requestFingerprint(csr)))));
    site.network.show("127.0.0.1", "52:54:00:00:00:66");
    expectRefused(enroll(id, kMac1, csr), "shows another MAC");
    site.network.show("127.0.0.1", kMac1);
    EXPECT_EQ(enroll(id, kMac1, csr)->status, 200);
  }
}

TEST_F(EnrollmentTest, aPersonApprovesOneKeyForAnArmedNode) {
  leaseAddresses("127.0.0.1", inventory::DhcpMode::None);
  site.network.neighbours.clear();
  const auto id = arm();
  const auto csr = request(), other = request();
  EXPECT_EQ(gateway::approveKey(*site.store, kNode, "gpu001").error().code(),
            ErrorCode::InvalidInput);
  ASSERT_TRUE(gateway::approveKey(*site.store, kNode, wire::requestFingerprint(csr)));
  EXPECT_EQ(enroll(id, kMac1, other)->status, 403) << "another key";
  EXPECT_EQ(enroll("guessed", kMac1, csr)->status, 403) << "another arming";
  EXPECT_EQ(enroll(id, kMac1, csr)->status, 200);
  EXPECT_EQ(enroll(id, kMac1, other)->status, 403);
  EXPECT_EQ(enroll(id, kMac1, csr)->status, 200) << "who has no proof makes nothing void";
}

TEST_F(EnrollmentTest, planSaysWhichProofIsUsed) {
  leaseAddresses();
  site.cluster.nodes[1].address = *Ipv4::parse("127.0.1.2");
  EXPECT_EQ(gateway::describeProofs(site.cluster),
            "enrollment of 2 nodes is proven by: DHCP lease and neighbour table\n");
  inventory::Subnet row;
  row.name = "row-a";
  row.cidr = *Cidr::parse("127.0.1.0/28");
  site.cluster.networks[0].subnets = {row};
  EXPECT_THAT(gateway::describeProofs(site.cluster),
              HasSubstr("enrollment of 1 nodes is proven by: DHCP lease (behind a relay)\n"));
  site.cluster.networks[0].dhcp_mode = inventory::DhcpMode::Proxy;
  EXPECT_THAT(gateway::describeProofs(site.cluster), HasSubstr("muster bmc approve-key"));
}

TEST_F(EnrollmentTest, anIdExpiresAndIsReplacedByALaterOne) {
  const auto old = arm(), id = arm();
  EXPECT_EQ(enroll(old, kMac1, request())->status, 403);
  site.clock.advance(gateway::kEnrollmentWindow + 1s);
  expectRefused(enroll(id, kMac1, request()), "expired");
}

TEST_F(EnrollmentTest, anIdHoldsLongerWhereNodesStartSlowly) {
  site.place.set(3);
  const auto late = arm();
  site.clock.advance(3 * gateway::kEnrollmentWindow - 1s);
  EXPECT_EQ(enroll(late, kMac1, request())->status, 200);
  const auto id = arm();
  site.clock.advance(3 * gateway::kEnrollmentWindow + 1s);
  expectRefused(enroll(id, kMac1, request()), "expired");
}

TEST_F(EnrollmentTest, anArmingCountsBeforeItIsWrittenAndOutlivesAnOrderlyEnd) {
  ASSERT_EQ(enroll(arm(NodeName("gpu002"), kMac2), kMac2, request())->status, 200)
      << "from now on nobody waits for the store";
  const auto id = arm();
  EXPECT_FALSE(*site.store->getValue("agent.enrolment.gpu001")) << "the loop has not run";
  site.restartController();
  ASSERT_TRUE(*site.store->getValue("agent.enrolment.gpu001"));
  EXPECT_EQ(enroll(id, kMac1, request())->status, 200);
  ASSERT_EQ(enroll(arm(), kMac1, request())->status, 200)
      << "armed and used in one turn of the loop";
}

TEST_F(EnrollmentTest, anArmingIsOnlyForANodeAndItsOwnMac) {
  EXPECT_EQ(site.gateway().openEnrollment(kNode, *Mac::parse(kMac2)).error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(site.gateway().openEnrollment(NodeName("other"), *Mac::parse(kMac1)).error().code(),
            ErrorCode::NotFound);
}

TEST_F(EnrollmentTest, storeNeverHoldsTheId) {
  const auto id = arm();
  auto stored = site.store->getValue("agent.enrolment.gpu001");
  ASSERT_TRUE(stored && *stored);
  EXPECT_THAT(**stored, ::testing::Not(HasSubstr(id)));
}

TEST_F(EnrollmentTest, unknownSendersAreNotListenedTo) {
  wire::PollRequest poll;
  poll.boot_id = "b";
  poll.sequence = 1;
  EXPECT_EQ(site.post("/agent/v1/poll", toJson(poll))->status, 403) << "no client certificate";
  auto unknown = site.post("/agent/v1/poll", toJson(poll), site.identityOf("gpu999"));
  EXPECT_EQ(unknown->status, 403);
  EXPECT_THAT(unknown->body, HasSubstr("gpu999 is not in the inventory"));
  EXPECT_EQ(
      site.post("/agent/v1/certificate", toJson(wire::EnrollRequest{{}, request(), {}}))->status,
      403);
  EXPECT_EQ(site.post("/agent/v1/poll", "garbage", site.identityOf("gpu001"))->status, 400);
}

TEST_F(EnrollmentTest, installedAgentsLiveLong) {
  auto answer = site.post("/agent/v1/certificate", toJson(wire::EnrollRequest{{}, request(), {}}),
                          site.identityOf("gpu001"));
  ASSERT_EQ(answer->status, 200) << answer->body;
  const auto info =
      io::describeCertificate(wire::parseEnrollResponse(answer->body)->certificate_pem);
  EXPECT_GT(info->not_after,
            std::chrono::system_clock::now() + gateway::kInstalledCertificateLifetime - 1h);
}

TEST_F(EnrollmentTest, expiredCertificateRenewsAndDoesNothingElse) {
  const auto [valid, expired] = site.agedIdentityOf("gpu001");
  const auto renew = [&](const io::TlsIdentity& identity) {
    auto answer = site.post("/agent/v1/certificate", toJson(wire::EnrollRequest{{}, request(), {}}),
                            identity);
    return answer ? answer->status : 0;
  };
  wire::PollRequest poll;
  poll.mode = wire::Mode::Disk;
  poll.boot_id = "b";
  poll.sequence = 1;
  poll.session = "of another controller";  // answered at once
  EXPECT_EQ(renew(expired), 403) << "nobody has called with this key";
  ASSERT_EQ(site.post("/agent/v1/poll", toJson(poll), valid)->status, 200);
  site.restartController();
  EXPECT_EQ(renew(expired), 200);
  EXPECT_EQ(site.post("/agent/v1/poll", toJson(poll), expired)->status, 403);
  EXPECT_EQ(renew(site.agedIdentityOf("gpu001").second), 403)
      << "another key: the disk of an earlier life";
  EXPECT_EQ(renew(site.agedIdentityOf("gpu999").second), 403) << "not declared";
  auto other = io::CertificateAuthority::loadOrCreate(site.folder / "other", "test root");
  auto made = io::makeKeyAndRequest("gpu001");
  EXPECT_EQ(
      renew({made->key_pem, *other->signClient(made->csr_pem, "gpu001", std::chrono::hours(-1))}),
      0)
      << "of another root: no handshake";
}

TEST_F(EnrollmentTest, anExpiredCertificateThatAnEarlierVersionKnewRenewsToo) {
  const auto [valid, expired] = site.agedIdentityOf("gpu001");
  const auto renew = [&](const io::TlsIdentity& identity) {
    return site
        .post("/agent/v1/certificate", toJson(wire::EnrollRequest{{}, request(), {}}), identity)
        ->status;
  };
  ASSERT_TRUE(site.store->putValue("agent.key.gpu001", *io::keyIdOf(valid.certificate_pem)));
  EXPECT_EQ(renew(site.agedIdentityOf("gpu001").second), 403);
  EXPECT_EQ(renew(expired), 200);
}

TEST_F(EnrollmentTest, agentRefusesAControllerThatIsNotPinned) {
  auto options = site.ramOptions("gpu001");
  options.ca_fingerprint = std::string(64, 'a');
  auto node = site.startNode(options);
  auto stored = [&] { return **site.store->getValue("agent.enrolment.gpu001"); };
  auto before = stored();
  EXPECT_FALSE(site.until([&] { return site.isThere("gpu001", wire::Mode::Ram); }, 2s));
  EXPECT_EQ(stored(), before) << "the request must not have been shown to an unknown sender";

  auto right = site.startNode(site.ramOptions("gpu002"));
  EXPECT_TRUE(site.until([&] { return site.isThere("gpu002", wire::Mode::Ram); }));
  site.kill(node);
  site.kill(right);
}

}  // namespace
}  // namespace muster::agent
