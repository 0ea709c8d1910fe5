// SPDX-License-Identifier: Apache-2.0
// Proof by a software TPM: real tpm2-tools, the real agent, gateway and verifier. Wrong PCR → no
// certificate, and a finding.
#include "agent/core/tpm.h"
#include "base/io/process.h"
#include "gateway/attestor.h"
#include "inventory/model/access.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "tests/agent/site.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using testing::HasSubstr;

const std::string kZero(64, '0');  ///< a PCR that nothing was measured into

/// A TPM of its own for as long as it lives.
class SoftTpm {
 public:
  explicit SoftTpm(const std::filesystem::path& folder) : folder_(folder) {
    (void)io::makeDirs(folder_ / "state");
    const auto socket = (folder_ / "tpm.sock").string();
    auto started = processes_->start(
        {"swtpm",
         {"socket", "--tpm2", "--server", "type=unixio,path=" + socket, "--ctrl",
          "type=unixio,path=" + socket + ".ctrl", "--tpmstate",
          "dir=" + (folder_ / "state").string(), "--flags", "not-need-init,startup-clear"}},
        folder_ / "swtpm.log");
    if (!started) throw std::runtime_error(started.error().str());
    child_ = std::move(*started);
    for (int tries = 0; tries < 500 && !std::filesystem::exists(socket + ".ctrl"); ++tries)
      std::this_thread::sleep_for(10ms);
  }
  ~SoftTpm() { child_->terminate(2s); }
  std::string tcti() const { return "swtpm:path=" + (folder_ / "tpm.sock").string(); }
  std::unique_ptr<Tpm> tools() const { return makeTpmTools(folder_ / "work", tcti()); }
  /// As firmware that boots something else.
  void measure(int pcr) {
    io::Command command{"tpm2_pcrextend",
                        {std::to_string(pcr) + ":sha256=" + io::sha256Hex("another boot loader")},
                        {{"TPM2TOOLS_TCTI", tcti()}}};
    const auto ran = io::runChecked(command);
    ASSERT_TRUE(ran) << ran.error().str();
  }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> child_;
};

class AttestedTest : public testing::Test {
 protected:
  AttestedTest() {
    inventory::Profile profile;
    profile.tpm = inventory::TpmSpec{{{"0", {kZero}}, {"7", {std::string(64, 'a'), kZero}}}, {}};
    site.cluster.profiles["trusted"] = profile;
    for (auto& node : site.cluster.nodes) node.profile = "trusted";
  }
  AgentOptions options(const SoftTpm& tpm, const std::string& boot = "ram-1") {
    auto out = site.ramOptions("gpu001", boot);
    out.tpm_tcti = tpm.tcti();
    return out;
  }
  /// Whether the agent gets in.
  bool enrolls(const AgentOptions& with) {
    auto node = site.startNode(with);
    const auto over = [&] {
      return site.isThere("gpu001", wire::Mode::Ram) || !findings().empty();
    };
    site.until(over, 30s);
    const bool in = site.isThere("gpu001", wire::Mode::Ram);
    site.kill(node);
    return in;
  }
  std::string findings() {
    std::string out;
    const auto open = *site.store->findings(nullptr);
    for (const auto& finding : open) out += finding.text + "\n";
    return out;
  }
  void forgetFindings() {
    ASSERT_TRUE(site.store->clearFindings({lifecycle::Subject(kNode), FacetName("enrolled")}));
  }

  Site site;
  SoftTpm tpm{site.folder / "tpm-a"};
};

TEST_F(AttestedTest, theRightBootGetsItsCertificateAndTheTpmIsKnownFromThenOn) {
  EXPECT_TRUE(enrolls(options(tpm))) << findings();
  EXPECT_EQ(findings(), "");
  const auto ek = io::parseTpmPublic(tpm.tools()->makeKeys()->ek_public);
  EXPECT_EQ(site.store->getValue("tpm.ek.gpu001")->value_or("none"), ek->id());
}

TEST_F(AttestedTest, aWrongPcrGetsNothingAndIsAFinding) {
  tpm.measure(7);
  const auto with = options(tpm);
  EXPECT_FALSE(enrolls(with));
  EXPECT_THAT(findings(), HasSubstr("PCR 7 is "));
  EXPECT_THAT(findings(), HasSubstr("which its profile does not list"));
  EXPECT_FALSE(loadIdentity(with)) << "no certificate reached the node";
  EXPECT_THAT(**site.store->getValue("agent.enrolment.gpu001"), HasSubstr("issued"))
      << "the arming is not used";
}

TEST_F(AttestedTest, withoutATpmThereIsNoCertificate) {
  auto with = options(tpm);
  with.tpm_tcti = "device:/dev/no-tpm-here";
  EXPECT_FALSE(enrolls(with));
  EXPECT_THAT(findings(), HasSubstr("cannot prove it by the TPM"));
}

TEST_F(AttestedTest, anAgentThatKnowsOfNoProofGetsNothing) {
  const auto enrollment = *site.gateway().openEnrollment(kNode, *Mac::parse(kMac1));
  const auto answer = site.post(
      "/agent/v1/enrol",
      toJson(wire::EnrollRequest{enrollment, io::makeKeyAndRequest("x")->csr_pem, kMac1}));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 403);
  EXPECT_THAT(answer->body, HasSubstr("\"attest\":true"));
}

TEST_F(AttestedTest, anotherMachinesTpmIsRefusedUntilAPersonSaysSo) {
  ASSERT_TRUE(enrolls(options(tpm)));
  SoftTpm other(site.folder / "tpm-b");
  site.restartController();
  EXPECT_FALSE(enrolls(options(other, "ram-2")));
  EXPECT_THAT(findings(), HasSubstr("another one than before"));
  forgetFindings();
  ASSERT_TRUE(gateway::forgetTpm(*site.store, kNode));
  site.restartController();
  EXPECT_TRUE(enrolls(options(other, "ram-3"))) << findings();
}

/// The verifier itself, against what somebody with a TPM of his own could send.
class ForgedProof : public AttestedTest {
 protected:
  const inventory::Node& node() { return *site.cluster.findNode(kNode); }
  Tpm::Keys keysOf(Tpm& tools) {
    auto made = tools.makeKeys();
    EXPECT_TRUE(made) << made.error().str();
    return made.value_or(Tpm::Keys{});
  }
  wire::AttestedRequest answer(Tpm& tools, const wire::AttestChallenge& challenge) {
    wire::AttestedRequest request;
    request.csr_pem = "the request";
    request.secret = tools.activate(challenge.id_object, challenge.encrypted_secret).value_or("");
    const auto quote =
        tools.quote(challenge.pcrs, wire::qualifyingData(challenge.nonce, request.csr_pem));
    EXPECT_TRUE(quote);
    request.quote = quote->quote, request.signature = quote->signature, request.pcrs = quote->pcrs;
    return request;
  }
  gateway::Attestor attestor{site.cluster, *site.store, site.clock};
};

TEST_F(ForgedProof, anHonestAnswerPassesOnce) {
  auto tools = tpm.tools();
  const auto keys = keysOf(*tools);
  const auto challenge =
      attestor.challenge(node(), {"", "", keys.ek_public, keys.ek_certificate, keys.ak_public});
  ASSERT_TRUE(challenge) << challenge.error().str();
  const auto request = answer(*tools, *challenge);
  const auto passed = attestor.check(node(), request);
  EXPECT_TRUE(passed) << passed.error().str();
  EXPECT_THAT(attestor.check(node(), request).error().str(), HasSubstr("no challenge"))
      << "a replay";
}

TEST_F(ForgedProof, theEkOfAnotherTpmOpensNothing) {
  SoftTpm own(site.folder / "tpm-attacker");
  auto victim = tpm.tools(), corrupt = own.tools();
  const auto named = keysOf(*victim), mine = keysOf(*corrupt);
  const auto challenge = attestor.challenge(node(), {"", "", named.ek_public, "", mine.ak_public});
  ASSERT_TRUE(challenge);
  EXPECT_FALSE(corrupt->activate(challenge->id_object, challenge->encrypted_secret))
      << "it has not this EK";
  EXPECT_FALSE(victim->activate(challenge->id_object, challenge->encrypted_secret))
      << "it has not this AK: a victim's TPM is no help";
  EXPECT_THAT(attestor.check(node(), answer(*corrupt, *challenge)).error().str(),
              HasSubstr("did not open the challenge"));
}

TEST_F(ForgedProof, aQuoteIsForOneRequestAndOneChallenge) {
  auto tools = tpm.tools();
  const auto keys = keysOf(*tools);
  const wire::AttestRequest ask{"", "", keys.ek_public, "", keys.ak_public};
  auto first = attestor.challenge(node(), ask);
  auto other_key = answer(*tools, *first);
  other_key.csr_pem = "the attacker's own request";
  EXPECT_THAT(attestor.check(node(), other_key).error().str(), HasSubstr("for another key"));
  first = attestor.challenge(node(), ask);
  const auto old = answer(*tools, *first);
  auto second = attestor.challenge(node(), ask);
  auto replay = answer(*tools, *second);
  replay.quote = old.quote, replay.signature = old.signature;
  EXPECT_THAT(attestor.check(node(), replay).error().str(), HasSubstr("of another time"));
}

TEST_F(ForgedProof, valuesThatTheTpmHasNotSignedAreWorthNothing) {
  tpm.measure(7);
  auto tools = tpm.tools();
  const auto keys = keysOf(*tools);
  auto challenge = attestor.challenge(node(), {"", "", keys.ek_public, "", keys.ak_public});
  auto request = answer(*tools, *challenge);
  request.pcrs[7] = std::string(32, '\0');
  EXPECT_THAT(attestor.check(node(), request).error().str(),
              HasSubstr("not those that its TPM signed"));
  challenge = attestor.challenge(node(), {"", "", keys.ek_public, "", keys.ak_public});
  auto fewer = *challenge;
  fewer.pcrs = {0};
  EXPECT_THAT(attestor.check(node(), answer(*tools, fewer)).error().str(),
              HasSubstr("not of the PCRs that were asked for"));
}

TEST_F(ForgedProof, aChallengeGrowsOld) {
  auto tools = tpm.tools();
  const auto keys = keysOf(*tools);
  const auto challenge = attestor.challenge(node(), {"", "", keys.ek_public, "", keys.ak_public});
  const auto request = answer(*tools, *challenge);
  site.clock.advance(wire::kChallengeLife + 1s);
  EXPECT_THAT(attestor.check(node(), request).error().str(), HasSubstr("too late"));
}

TEST_F(ForgedProof, whereRootsAreDeclaredATpmWithoutCertificateIsRefused) {
  site.cluster.profiles["trusted"].tpm->ek_roots_pem = site.ca->certificatePem();
  const auto keys = keysOf(*tpm.tools());
  EXPECT_THAT(
      attestor.challenge(node(), {"", "", keys.ek_public, keys.ek_certificate, keys.ak_public})
          .error()
          .str(),
      HasSubstr("no certificate of its endorsement key"));
}

}  // namespace
}  // namespace muster::agent
