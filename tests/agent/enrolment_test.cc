// Who gets a certificate, and who is listened to.
#include "base/io/key_id.h"
#include "tests/agent/site.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

const NodeName kNode("gpu001");

class EnrolmentTest : public ::testing::Test {
 protected:
  Result<io::HttpResponse> enrol(const std::string& token, const std::string& mac, const std::string& csr) {
    return site.post("/agent/v1/enrol", toJson(EnrolRequest{token, csr, mac}));
  }
  std::string request() { return io::makeKeyAndRequest("anything")->csr_pem; }
  Site site;
};

TEST_F(EnrolmentTest, tokenGivesTheNodesCertificateOnce) {
  auto token = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  auto csr = request();
  auto first = enrol(token, kMac1, csr);
  ASSERT_TRUE(first) << first.error().str();
  ASSERT_EQ(first->status, 200) << first->body;
  auto answer = parseEnrolResponse(first->body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->node, "gpu001");
  EXPECT_EQ(io::describeCertificate(answer->certificate_pem)->common_name, "gpu001");

  auto replay = enrol(token, kMac1, request());
  EXPECT_EQ(replay->status, 403);
  EXPECT_THAT(replay->body, HasSubstr("used before"));
  auto findings = site.store->findings(nullptr);
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_THAT(findings->front().text, HasSubstr("enrolment of gpu001 refused: the token was used before"));
  enrol(token, kMac1, request());
  EXPECT_EQ(site.store->findings(nullptr)->size(), 1u) << "one finding, however often it is tried";
}

TEST_F(EnrolmentTest, sameRequestIsAnsweredAgainWhenTheAnswerWasLost) {
  auto token = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  auto csr = request();
  ASSERT_EQ(enrol(token, kMac1, csr)->status, 200);
  EXPECT_EQ(enrol(token, kMac1, csr)->status, 200);
  site.restartController();
  EXPECT_EQ(enrol(token, kMac1, csr)->status, 200);
  EXPECT_EQ(enrol(token, kMac1, request())->status, 403);
}

TEST_F(EnrolmentTest, tokenIsWorthNothingElsewhere) {
  auto token = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  (void)site.gateway().issueToken(NodeName("gpu002"), *Mac::parse(kMac2));
  EXPECT_EQ(enrol(token, kMac2, request())->status, 403);
  EXPECT_EQ(enrol(token, "52:54:00:00:00:99", request())->status, 403);
  EXPECT_EQ(enrol("guessed", kMac1, request())->status, 403);
  EXPECT_EQ(enrol(token, "no mac", request())->status, 400);
  EXPECT_EQ(enrol(token, kMac1, "no request")->status, 400);
  EXPECT_EQ(enrol(token, kMac1, request())->status, 200) << "a bad request must not burn the token";
}

TEST_F(EnrolmentTest, tokenIsWorthNothingFromAnotherAddress) {
  inventory::Network network;
  network.name = "provisioning";
  site.cluster.networks.push_back(network);
  site.cluster.nodes[0].address = *Ipv4::parse("10.20.1.1");
  site.restartController();
  auto token = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  auto stolen = enrol(token, kMac1, request());
  EXPECT_EQ(stolen->status, 403);
  EXPECT_THAT(stolen->body, HasSubstr("127.0.0.1 showed a token, but its address is 10.20.1.1"));
  EXPECT_EQ(site.store->findings(nullptr)->size(), 1u);
  site.cluster.nodes[0].address = *Ipv4::parse("127.0.0.1");
  EXPECT_EQ(enrol(token, kMac1, request())->status, 200) << "the thief has not burnt it";
}

TEST_F(EnrolmentTest, tokenExpiresAndIsReplacedByALaterOne) {
  auto old = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  auto token = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  EXPECT_EQ(enrol(old, kMac1, request())->status, 403);
  site.clock.advance(kTokenLifetime + 1s);
  auto late = enrol(token, kMac1, request());
  EXPECT_EQ(late->status, 403);
  EXPECT_THAT(late->body, HasSubstr("expired"));
}

TEST_F(EnrolmentTest, aTokenCountsBeforeItIsWrittenAndOutlivesAnOrderlyEnd) {
  ASSERT_EQ(enrol(*site.gateway().issueToken(NodeName("gpu002"), *Mac::parse(kMac2)), kMac2, request())->status, 200) << "from now on nobody waits for the store";
  const auto token = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  EXPECT_FALSE(*site.store->getValue("agent.token.gpu001")) << "the loop has not run";
  site.restartController();
  ASSERT_TRUE(*site.store->getValue("agent.token.gpu001"));
  EXPECT_EQ(enrol(token, kMac1, request())->status, 200);
  ASSERT_EQ(enrol(*site.gateway().issueToken(kNode, *Mac::parse(kMac1)), kMac1, request())->status, 200) << "issued and shown in one turn of the loop";
}

TEST_F(EnrolmentTest, tokenIsOnlyForANodeAndItsOwnMac) {
  EXPECT_EQ(site.gateway().issueToken(kNode, *Mac::parse(kMac2)).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(site.gateway().issueToken(NodeName("other"), *Mac::parse(kMac1)).error().code(), ErrorCode::NotFound);
}

TEST_F(EnrolmentTest, storeNeverHoldsTheToken) {
  auto token = *site.gateway().issueToken(kNode, *Mac::parse(kMac1));
  auto stored = site.store->getValue("agent.token.gpu001");
  ASSERT_TRUE(stored && *stored);
  EXPECT_THAT(**stored, ::testing::Not(HasSubstr(token)));
}

TEST_F(EnrolmentTest, strangersAreNotListenedTo) {
  PollRequest poll;
  poll.boot_id = "b";
  poll.sequence = 1;
  EXPECT_EQ(site.post("/agent/v1/poll", toJson(poll))->status, 403) << "no client certificate";
  auto stranger = site.post("/agent/v1/poll", toJson(poll), site.identityOf("gpu999"));
  EXPECT_EQ(stranger->status, 403);
  EXPECT_THAT(stranger->body, HasSubstr("gpu999 is not in the inventory"));
  EXPECT_EQ(site.post("/agent/v1/certificate", toJson(EnrolRequest{{}, request(), {}}))->status, 403);
  EXPECT_EQ(site.post("/agent/v1/poll", "garbage", site.identityOf("gpu001"))->status, 400);
}

TEST_F(EnrolmentTest, installedAgentsLiveLong) {
  auto answer = site.post("/agent/v1/certificate", toJson(EnrolRequest{{}, request(), {}}), site.identityOf("gpu001"));
  ASSERT_EQ(answer->status, 200) << answer->body;
  const auto info = io::describeCertificate(parseEnrolResponse(answer->body)->certificate_pem);
  EXPECT_GT(info->not_after, std::chrono::system_clock::now() + kInstalledCertificateLifetime - 1h);
}

TEST_F(EnrolmentTest, expiredCertificateRenewsAndDoesNothingElse) {
  const auto [valid, expired] = site.agedIdentityOf("gpu001");
  const auto renew = [&](const io::TlsIdentity& identity) {
    auto answer = site.post("/agent/v1/certificate", toJson(EnrolRequest{{}, request(), {}}), identity);
    return answer ? answer->status : 0;
  };
  PollRequest poll;
  poll.mode = Mode::Disk;
  poll.boot_id = "b";
  poll.sequence = 1;
  poll.session = "of another controller";  // answered at once
  EXPECT_EQ(renew(expired), 403) << "nobody has called with this key";
  ASSERT_EQ(site.post("/agent/v1/poll", toJson(poll), valid)->status, 200);
  site.restartController();
  EXPECT_EQ(renew(expired), 200);
  EXPECT_EQ(site.post("/agent/v1/poll", toJson(poll), expired)->status, 403);
  EXPECT_EQ(renew(site.agedIdentityOf("gpu001").second), 403) << "another key: the disk of an earlier life";
  EXPECT_EQ(renew(site.agedIdentityOf("gpu999").second), 403) << "not declared";
  auto other = io::CertificateAuthority::loadOrCreate(site.folder / "other", "test root");
  auto made = io::makeKeyAndRequest("gpu001");
  EXPECT_EQ(renew({made->key_pem, *other->signClient(made->csr_pem, "gpu001", std::chrono::hours(-1))}), 0) << "of another root: no handshake";
}

TEST_F(EnrolmentTest, anExpiredCertificateThatAnEarlierVersionKnewRenewsToo) {
  const auto [valid, expired] = site.agedIdentityOf("gpu001");
  const auto renew = [&](const io::TlsIdentity& identity) { return site.post("/agent/v1/certificate", toJson(EnrolRequest{{}, request(), {}}), identity)->status; };
  ASSERT_TRUE(site.store->putValue("agent.key.gpu001", *io::keyIdOf(valid.certificate_pem)));
  EXPECT_EQ(renew(site.agedIdentityOf("gpu001").second), 403);
  EXPECT_EQ(renew(expired), 200);
}

TEST_F(EnrolmentTest, agentRefusesAControllerThatIsNotPinned) {
  auto options = site.ramOptions("gpu001");
  options.ca_fingerprint = std::string(64, 'a');
  auto node = site.startNode(options);
  auto stored = [&] { return **site.store->getValue("agent.token.gpu001"); };
  auto before = stored();
  EXPECT_FALSE(site.until([&] { return site.isThere("gpu001", Mode::Ram); }, 2s));
  EXPECT_EQ(stored(), before) << "the token must not have been shown to a stranger";

  auto right = site.startNode(site.ramOptions("gpu002"));
  EXPECT_TRUE(site.until([&] { return site.isThere("gpu002", Mode::Ram); }));
  site.kill(node);
  site.kill(right);
}

}  // namespace
}  // namespace muster::agent
