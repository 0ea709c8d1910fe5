// SPDX-License-Identifier: Apache-2.0
// Controller and agent through good days and bad ones, over mutual TLS on loopback.
#include "tests/agent/site.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

class AgentTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (node) site.kill(node);
  }
  void startRam(const std::string& boot = "ram-1") {
    node = site.startNode(site.ramOptions("gpu001", boot));
    ASSERT_TRUE(site.until([&] {
      auto state = site.gateway().state(kNode);
      return state && state->boot_id == boot;
    }));
  }
  Site site;
  std::unique_ptr<Node> node;
};

TEST_F(AgentTest, agentEnrollsAndSaysWhatItIs) {
  startRam();
  auto state = site.await(site.gateway().waitFor(kNode, wire::Mode::Ram, {}, 5s));
  ASSERT_TRUE(state) << state.error().str();
  EXPECT_EQ(state->hardware.serial, "SN-1");
  EXPECT_EQ(state->probes.at("kernel"), "6.1.0");
  EXPECT_EQ(state->boot_id, "ram-1");
  EXPECT_EQ(state->address, "127.0.0.1");
}

TEST_F(AgentTest, submittedTaskWakesTheLongPoll) {
  startRam();
  // The controller's clock stands still: a poll that waits would wait for ever.
  auto report = site.await(site.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe)));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(report->phase, wire::TaskPhase::Done);
  EXPECT_EQ(report->result, R"({"answer":"t1"})");
}

TEST_F(AgentTest, sameIdIsNotRunTwice) {
  startRam();
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe))));
  auto again = site.await(site.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe)));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->result, R"({"answer":"t1"})");
  site.restartController();
  auto later = site.await(site.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe)));
  ASSERT_TRUE(later) << later.error().str();
  EXPECT_EQ(later->result, R"({"answer":"t1"})");
  EXPECT_EQ(node->runs["t1"], 1);
}

TEST_F(AgentTest, resultArrivesAfterTheControllerDiedInTheMiddle) {
  startRam();
  ASSERT_TRUE(site.gateway().submit(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "i1") == wire::TaskPhase::Running; }));
  EXPECT_TRUE(site.until([&] { return site.gateway().report(kNode, "i1")->text == "half way"; }));
  site.restartController();
  EXPECT_FALSE(site.gateway().state(kNode));
  site.gate.open();
  auto report =
      site.await(site.gateway().runTask(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(report->result, R"({"answer":"i1"})");
  EXPECT_EQ(node->runs["i1"], 1);
  EXPECT_EQ(site.gateway().state(kNode)->hardware.serial, "SN-1")
      << "hardware is said again to a new controller";
}

TEST_F(AgentTest, whatADiskHoldsIsLookedAtAgainAlsoAfterAnErasureThatFailed) {
  startRam();
  ASSERT_TRUE(site.until([&] {
    return site.gateway().state(kNode) &&
           site.gateway().state(kNode)->hardware.manufacturer == "look 1";
  }));
  EXPECT_FALSE(site.await(site.gateway().runTask(kNode, task("e1", wire::TaskKind::EraseDisks))));
  EXPECT_TRUE(site.until([&] {
    return site.gateway().state(kNode)->hardware.manufacturer == "look 2" &&
           site.gateway().state(kNode)->fresh;
  }));
}

TEST_F(AgentTest, taskOfAnAgentThatDiedIsFailedWithThatReason) {
  startRam();
  ASSERT_TRUE(site.gateway().submit(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "i1") == wire::TaskPhase::Running; }));
  auto options = node->options;
  site.kill(node);
  node = site.startNode(options);  // same boot, same folder: only the program was restarted
  auto report =
      site.await(site.gateway().runTask(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().str(), HasSubstr("the agent was restarted while the task ran"));
  EXPECT_EQ(node->runs["i1"], 0);
}

TEST_F(AgentTest, taskLostWithItsBootFailsAndMayBeTriedOnTheNext) {
  startRam("ram-1");
  ASSERT_TRUE(site.gateway().submit(kNode, task("w1", wire::TaskKind::WriteImage)));
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "w1") == wire::TaskPhase::Running; }));
  site.kill(node);
  startRam("ram-2");
  auto lost = site.gateway().report(kNode, "w1");
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->phase, wire::TaskPhase::Failed);
  EXPECT_EQ(lost->code, ErrorCode::Unavailable);
  EXPECT_THAT(lost->text, HasSubstr("restarted"));
  site.never.open();
  auto second = site.await(site.gateway().runTask(kNode, task("w1", wire::TaskKind::WriteImage)));
  ASSERT_TRUE(second) << second.error().str();
  EXPECT_EQ(node->runs["w1"], 1);
}

/// SIGSTOP for longer than the lease, then SIGCONT: it still believes that it holds the node.
TEST_F(AgentTest, controllerThatLostItsClaimIsRefusedByTheAgent) {
  const lifecycle::Subject subject(kNode);
  auto other = *lifecycle::openSqliteStore(site.folder / "muster.db");
  ASSERT_TRUE(site.store->signOn("a", 1ms));
  ASSERT_TRUE(site.store->claim(subject)->ours);
  startRam();
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe))));
  ASSERT_TRUE(other->signOn("b", 1h));
  ASSERT_TRUE(site.until([&] { return other->claim(subject)->ours; })) << "the lease of a ends";
  auto as = [&](std::unique_ptr<lifecycle::Store>& store) {
    std::swap(site.store, store);
    site.restartController();
  };
  as(other);
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("t2", wire::TaskKind::Probe))));
  as(other);  // a again
  auto late = site.await(site.gateway().runTask(kNode, task("t3", wire::TaskKind::Probe)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(late.error().str(), HasSubstr("taken over"));
  EXPECT_EQ(node->runs["t3"], 0);
  as(other);  // and b: the id is free for it
  EXPECT_TRUE(site.await(site.gateway().runTask(kNode, task("t3", wire::TaskKind::Probe))));
  EXPECT_EQ(node->runs["t3"], 1);
}

/// Nothing has happened since the last poll: the next one says so in a line, and everything once
/// somebody new listens.
TEST_F(AgentTest, anAgentDoesNotRepeatItself) {
  startRam();
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe))));
  const auto isShort = [&] {
    return node->said.back().find("unchanged_since") != std::string::npos;
  };
  ASSERT_TRUE(site.until([&] {
    site.clock.advance(wire::kPollWait);  // every long poll is answered
    return isShort();
  }));
  EXPECT_EQ(node->said.back().find("t1"), std::string::npos);
  EXPECT_EQ(site.phase("gpu001", "t1"), wire::TaskPhase::Done);
  EXPECT_EQ(site.gateway().state(kNode)->probes.at("kernel"), "6.1.0");

  site.restartController();
  ASSERT_TRUE(site.until([&] { return site.gateway().state(kNode).has_value(); }));
  EXPECT_EQ(site.phase("gpu001", "t1"), wire::TaskPhase::Done);
  EXPECT_EQ(site.gateway().state(kNode)->hardware.serial, "SN-1");
  ASSERT_TRUE(site.until([&] {
    site.clock.advance(wire::kPollWait);
    return isShort();
  }));
}

TEST_F(AgentTest, anOlderControllerGetsWholePollsUntilItIsUpgraded) {
  startRam();
  node->rewrite = [](std::string body) {  // as it answered before the key was renamed
    if (const auto at = body.find("supports_delta"); at != std::string::npos)
      body.replace(at, std::string_view("supports_delta").size(), "takes_short");
    return body;
  };
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe))));
  const auto before = node->said.size();
  ASSERT_TRUE(site.until([&] {
    site.clock.advance(wire::kPollWait);
    return node->said.size() > before + 4;
  }));
  for (const auto& body : node->said) {
    EXPECT_EQ(body.find("unchanged_since"), std::string::npos);
    EXPECT_EQ(body.find("as_before"), std::string::npos);
  }
  EXPECT_EQ(site.phase("gpu001", "t1"), wire::TaskPhase::Done);
  node->rewrite = nullptr;
  EXPECT_TRUE(site.until([&] {
    site.clock.advance(wire::kPollWait);
    return node->said.back().find("unchanged_since") != std::string::npos;
  }));
}

TEST_F(AgentTest, waitForTellsBootsApart) {
  startRam("ram-1");
  std::optional<Result<gateway::AgentState>> found;
  asio::co_spawn(
      site.controller->io, site.gateway().waitFor(kNode, wire::Mode::Ram, "ram-1", 60s),
      [&](std::exception_ptr, Result<gateway::AgentState> state) { found = std::move(state); });
  EXPECT_FALSE(site.until([&] { return found.has_value(); }, 1s));
  site.kill(node);
  startRam("ram-2");
  ASSERT_TRUE(site.until([&] { return found.has_value(); }));
  EXPECT_EQ((*found)->boot_id, "ram-2");
}

TEST_F(AgentTest, waitForSaysWhatWasHeardLast) {
  startRam("ram-1");
  std::optional<Result<gateway::AgentState>> found;
  asio::co_spawn(
      site.controller->io, site.gateway().waitFor(kNode, wire::Mode::Disk, {}, 60s),
      [&](std::exception_ptr, Result<gateway::AgentState> state) { found = std::move(state); });
  ASSERT_FALSE(site.until([&] { return found.has_value(); }, 1s));
  site.clock.advance(61s);
  ASSERT_TRUE(site.until([&] { return found.has_value(); }));
  ASSERT_FALSE(*found);
  EXPECT_EQ(found->error().code(), ErrorCode::Timeout);
  EXPECT_THAT(found->error().str(), HasSubstr("ram mode, boot ram-1"));
}

TEST_F(AgentTest, silentAgentIsGone) {
  startRam();
  site.kill(node);
  site.clock.advance(wire::kAgentTimeout - 1s);
  EXPECT_TRUE(site.gateway().state(kNode));
  site.clock.advance(2s);
  EXPECT_FALSE(site.gateway().state(kNode));
  EXPECT_EQ(site.gateway().submit(kNode, task("t", wire::TaskKind::Probe)).error().code(),
            ErrorCode::Unavailable);
}

TEST_F(AgentTest, silenceDuringATaskEndsTheWait) {
  startRam();
  std::optional<Result<wire::AgentTaskReport>> end;
  asio::co_spawn(
      site.controller->io, site.gateway().runTask(kNode, task("i1", wire::TaskKind::InstallDriver)),
      [&](std::exception_ptr, Result<wire::AgentTaskReport> report) { end = std::move(report); });
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "i1") == wire::TaskPhase::Running; }));
  site.kill(node);
  ASSERT_TRUE(site.until([&] {
    site.clock.advance(1s);
    return end.has_value();
  }));
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(end->error().str(), HasSubstr("stopped polling"));
}

TEST_F(AgentTest, taskEndsAtItsDeadline) {
  startRam();
  auto report =
      site.await(site.gateway().runTask(kNode, task("w1", wire::TaskKind::WriteImage, 1s)));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::Timeout);
  EXPECT_THAT(report.error().str(), HasSubstr("did not finish within 1"));
}

/// A check that gives way to a job; the agent says so at once, and does it no more.
TEST_F(AgentTest, aTaskThatNobodyWantsAnyMoreIsEnded) {
  startRam();
  ASSERT_TRUE(site.gateway().submit(kNode, task("c1", wire::TaskKind::RunChecks)));
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "c1") == wire::TaskPhase::Running; }));
  site.gateway().abandon(kNode, "c1");
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "c1") == wire::TaskPhase::Failed; }));
  const auto report = site.gateway().report(kNode, "c1");
  EXPECT_EQ(report->code, ErrorCode::Unavailable);
  EXPECT_THAT(report->text, HasSubstr("nobody wants its outcome"));
  EXPECT_EQ(node->runs["c1 was left"], 1) << "by its handler too";
  // The agent goes on, and the next check is another one.
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("p1", wire::TaskKind::Probe))));
  site.gateway().abandon(kNode, "c1");
  site.gateway().abandon(kNode, "unknown");
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("p2", wire::TaskKind::Probe))));
  EXPECT_EQ(node->runs["c1"], 1);
}

TEST_F(AgentTest, aTaskThatNobodyWantsBeforeTheAgentHasItIsNotBegun) {
  startRam();
  ASSERT_TRUE(site.gateway().submit(kNode, task("c1", wire::TaskKind::RunChecks)));
  site.gateway().abandon(kNode, "c1");
  EXPECT_EQ(site.phase("gpu001", "c1"), wire::TaskPhase::Failed);
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("p1", wire::TaskKind::Probe))));
  EXPECT_EQ(node->runs["c1"], 0);
}

/// Half a change of a node is worse than a whole one.
TEST_F(AgentTest, aChangeOfTheNodeGoesOnAlthoughNobodyWantsItsOutcome) {
  startRam();
  ASSERT_TRUE(site.gateway().submit(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "i1") == wire::TaskPhase::Running; }));
  site.gateway().abandon(kNode, "i1");
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("p1", wire::TaskKind::Probe))));
  EXPECT_EQ(site.phase("gpu001", "i1"), wire::TaskPhase::Running);
  site.gate.open();
  EXPECT_TRUE(site.until([&] { return site.phase("gpu001", "i1") == wire::TaskPhase::Done; }));
}

TEST_F(AgentTest, oneChangeOfTheNodeAtATime) {
  startRam();
  ASSERT_TRUE(site.gateway().submit(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(site.gateway().submit(kNode, task("i2", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(site.until([&] { return site.phase("gpu001", "i1") == wire::TaskPhase::Running; }));
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("p1", wire::TaskKind::Probe))))
      << "looking is always allowed";
  EXPECT_EQ(site.phase("gpu001", "i2"), wire::TaskPhase::Queued);
  EXPECT_EQ(node->runs["i2"], 0);
  site.gate.open();
  EXPECT_TRUE(site.until([&] { return site.phase("gpu001", "i2") == wire::TaskPhase::Done; }));
  EXPECT_EQ(site.phase("gpu001", "i1"), wire::TaskPhase::Done);
}

TEST_F(AgentTest, kindThatTheModeDoesNotKnowIsRefused) {
  startRam();
  auto report = site.await(site.gateway().runTask(kNode, task("j1", wire::TaskKind::JoinPool)));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(report.error().str(), HasSubstr("join-pool is no task for an agent in ram mode"));
}

TEST_F(AgentTest, machineRestartsOnlyAfterItsTaskWasReported) {
  startRam();
  auto report = site.await(site.gateway().runTask(kNode, task("r1", wire::TaskKind::Reboot)));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(site.until([&] { return node->reboots == 1; }));
  EXPECT_EQ(site.phase("gpu001", "r1"), wire::TaskPhase::Done);
}

TEST_F(AgentTest, aLiveImageTakesOverOnlyAfterItsTaskWasReported) {
  startRam();
  auto report = site.await(site.gateway().runTask(kNode, task("l1", wire::TaskKind::StartImage)));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(site.until([&] { return node->gave_way == 1; }));
  EXPECT_EQ(node->reboots, 0);
  EXPECT_EQ(site.phase("gpu001", "l1"), wire::TaskPhase::Done);
}

TEST_F(AgentTest, installedSystemComesWithTheCertificateMadeForIt) {
  startRam();
  auto made = io::makeKeyAndRequest("gpu001");
  Result<wire::EnrollResponse> answer = fail(ErrorCode::Timeout, "none");
  bool answered = false;
  asio::co_spawn(node->io, node->agent->certify(made->csr_pem),
                 [&](std::exception_ptr, Result<wire::EnrollResponse> got) {
                   answer = std::move(got);
                   answered = true;
                 });
  ASSERT_TRUE(site.until([&] { return answered; }));
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(io::describeCertificate(answer->certificate_pem)->common_name, "gpu001");
  site.kill(node);

  auto root = site.folder / "disk";
  Site::setBoot(root, "disk-1");
  ASSERT_TRUE(io::writeFileAtomic(root / "key", made->key_pem.reveal(), 0600));
  ASSERT_TRUE(io::writeFileAtomic(root / "crt", answer->certificate_pem));
  ASSERT_TRUE(io::writeFileAtomic(root / "ca", answer->ca_pem));
  nlohmann::json config{{"url", site.url()},
                        {"node", "gpu001"},
                        {"ca_pem_file", root / "ca"},
                        {"key_file", root / "key"},
                        {"certificate_file", root / "crt"},
                        {"image_digest", "abc123"}};
  auto options = optionsFromFile(config.dump());
  ASSERT_TRUE(options) << options.error().str();
  options->root = root;
  options->state_folder = root / "var/lib/muster";
  node = site.startNode(*options);
  ASSERT_TRUE(site.until([&] { return site.isThere("gpu001", wire::Mode::Disk); }));
  EXPECT_EQ(site.gateway().state(kNode)->image_digest, "abc123");
}

TEST_F(AgentTest, renewedIdentityOutlivesTheInstalledOne) {
  auto root = site.folder / "renew";
  AgentOptions options;
  options.mode = wire::Mode::Disk;
  options.url = *io::Url::parse(site.url());
  options.node = "gpu001";
  options.state_folder = root / "state";
  auto installed = site.identityOf("gpu001");  // for an hour
  options.key_file = root / "key";
  options.certificate_file = root / "crt";
  options.ca_pem_file = root / "ca";
  ASSERT_TRUE(io::makeDirs(root));
  ASSERT_TRUE(io::writeFileAtomic(options.key_file, installed.key_pem.reveal()));
  ASSERT_TRUE(io::writeFileAtomic(options.certificate_file, installed.certificate_pem));
  ASSERT_TRUE(io::writeFileAtomic(options.ca_pem_file, site.ca->certificatePem()));
  auto before = loadIdentity(options);
  ASSERT_TRUE(before) << before.error().str();
  EXPECT_EQ(before->tls.certificate_pem, installed.certificate_pem);

  auto client = io::makeHttpClient(before->trust());
  auto renewed = site.await(renewIdentity(options, *before, *client));
  ASSERT_TRUE(renewed) << renewed.error().str();
  auto after = loadIdentity(options);
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_EQ(after->tls.certificate_pem, renewed->tls.certificate_pem);
  EXPECT_GT(after->not_after, before->not_after + 24h);
  EXPECT_NE(after->tls.key_pem.reveal(), installed.key_pem.reveal());
}

TEST_F(AgentTest, agentThatWasAwayForTooLongComesBack) {
  auto root = site.folder / "late";
  Site::setBoot(root, "disk-9");
  const auto [valid, expired] = site.agedIdentityOf("gpu001");
  wire::PollRequest before;
  before.mode = wire::Mode::Disk;
  before.boot_id = "disk-8";
  before.sequence = 1;
  before.session = "of another controller";
  ASSERT_EQ(site.post("/agent/v1/poll", toJson(before), valid)->status, 200);
  AgentOptions options;
  options.mode = wire::Mode::Disk;
  options.url = *io::Url::parse(site.url());
  options.node = "gpu001";
  options.root = root;
  options.state_folder = root / "state";
  options.key_file = root / "key";
  options.certificate_file = root / "crt";
  options.ca_pem_file = root / "ca";
  ASSERT_TRUE(io::writeFileAtomic(options.key_file, expired.key_pem.reveal()));
  ASSERT_TRUE(io::writeFileAtomic(options.certificate_file, expired.certificate_pem));
  ASSERT_TRUE(io::writeFileAtomic(options.ca_pem_file, site.ca->certificatePem()));
  auto late = site.startNode(options);
  EXPECT_TRUE(site.until([&] { return site.isThere("gpu001", wire::Mode::Disk); }));
  EXPECT_GT(loadIdentity(options)->not_after,
            std::chrono::system_clock::now() + gateway::kInstalledCertificateLifetime - 1h);
  site.kill(late);
}

TEST(Renewal, isDueAfterAMonthOrHalfALifeAndWhenItIsOver) {
  Identity identity;
  identity.not_before = WallTime{} + 24h * 365;
  identity.not_after = identity.not_before + gateway::kInstalledCertificateLifetime;
  EXPECT_FALSE(identity.renewalDue(identity.not_before + kRenewAge));
  EXPECT_TRUE(identity.renewalDue(identity.not_before + kRenewAge + 1s));
  EXPECT_TRUE(identity.renewalDue(identity.not_after + 24h));
  identity.not_after = identity.not_before + 24h;
  EXPECT_TRUE(identity.renewalDue(identity.not_before + 13h));
}

TEST_F(AgentTest, probesThatATaskAskedAboutAreToldFromThenOn) {
  startRam();
  auto asked = task("p1", wire::TaskKind::Probe);
  asked.params = R"({"probes":["module.rdma_rxe"],"verify":{"package.x":"1"}})";
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, asked)));
  EXPECT_TRUE(site.until(
      [&] { return site.gateway().state(kNode)->probes.count("module.rdma_rxe") == 1; }));
  EXPECT_EQ(site.gateway().state(kNode)->probes.count("package.x"), 1u);
}

TEST_F(AgentTest, oldResultsAreForgottenButNeverRunAgain) {
  startRam();
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(site.await(
        site.gateway().runTask(kNode, task("p" + std::to_string(i), wire::TaskKind::Probe))));
  EXPECT_TRUE(site.until([&] { return !site.gateway().report(kNode, "p0"); }));
  EXPECT_TRUE(site.gateway().report(kNode, "p39"));
  auto again = site.await(site.gateway().runTask(kNode, task("p0", wire::TaskKind::Probe)));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::Conflict);
  EXPECT_EQ(node->runs["p0"], 1);
}

}  // namespace
}  // namespace muster::agent
