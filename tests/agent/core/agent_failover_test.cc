// SPDX-License-Identifier: Apache-2.0
// Two controllers on one store, each at an address of its own: an agent speaks to the one that
// answers, and both hear the same of it.
#include "inventory/model/gates.h"
#include "tests/agent/site.h"
#include "wire/controllers.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

const lifecycle::Subject kSubject(kNode);

/// The other host: its own session on the store that it shares with the site's controller.
class OtherHost {
 public:
  explicit OtherHost(Site& site)
      : site_(site), store_(std::move(*lifecycle::openSqliteStore(site.folder / "muster.db"))) {
    start();
  }
  ~OtherHost() { die(); }

  /// `controllers`: what it tells agents.
  void start(std::string controllers = {}) {
    life_.emplace();
    life_->serve(gateway::makeGatewayServer(site_.cluster, *site_.ca, *store_, site_.clock,
                                            site_.network, std::move(controllers)),
                 *site_.ca, port_);
    site_.others.push_back(&life_->io);
  }
  void die() {
    if (!life_) return;
    std::erase(site_.others, &life_->io);
    life_.reset();
  }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  gateway::GatewayServer& gateway() { return *life_->gateway; }
  lifecycle::Store& store() { return *store_; }
  bool hears() { return gateway().state(kNode).has_value(); }

 private:
  Site& site_;
  std::unique_ptr<lifecycle::Store> store_;
  std::uint16_t port_ = 0;
  std::optional<test::Controller> life_;
};

class Failover : public ::testing::Test {
 protected:
  void TearDown() override {
    if (node) site.kill(node);
  }
  /// `urls`: in the order to try.
  AgentOptions optionsFor(const std::string& urls) {
    auto options = site.ramOptions("gpu001");
    options.urls = *wire::parseControllers(urls);
    options.url = options.urls.front();
    return options;
  }
  bool hears() { return site.gateway().state(kNode).has_value(); }

  Site site;
  OtherHost other{site};
  std::unique_ptr<Node> node;
};

TEST_F(Failover, whoIsAwayIsPassedOverAlsoAtTheFirstCall) {
  other.die();
  node = site.startNode(optionsFor(other.url() + "," + site.url()));
  EXPECT_TRUE(site.until([&] { return hears(); })) << "enrolled with the second";
}

TEST_F(Failover, aTaskThatOneBeganIsReportedToTheOtherAndRunsOnce) {
  node = site.startNode(optionsFor(other.url() + "," + site.url()));
  ASSERT_TRUE(site.until([&] { return other.hears(); }));
  ASSERT_TRUE(other.gateway().submit(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(site.until([&] { return node->runs["i1"] == 1; }));
  EXPECT_FALSE(hears()) << "it speaks to one at a time";
  other.die();
  ASSERT_TRUE(site.until(
      [&] { return hears() && site.phase("gpu001", "i1") == wire::TaskPhase::Running; }));
  EXPECT_EQ(site.gateway().state(kNode)->hardware.serial, "SN-1") << "everything is said again";
  site.gate.open();
  auto report =
      site.await(site.gateway().runTask(kNode, task("i1", wire::TaskKind::InstallDriver)));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(node->runs["i1"], 1);

  other.start();
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("p1", wire::TaskKind::Probe))));
  EXPECT_FALSE(other.hears()) << "it stays with the one that works";
}

TEST_F(Failover, oneThatStartsAnewIsFoundAgainBeforeAnotherIsWaitedFor) {
  site.controller->server.reset();
  node = site.startNode(optionsFor(site.url() + "," + other.url()));
  ASSERT_TRUE(site.until([&] { return other.hears(); }));
  for (int life = 0; life < 3; ++life) {
    other.die();
    other.start();
    ASSERT_TRUE(site.until([&] { return other.hears(); }));
  }
}

/// The old one was stopped for longer than its lease, wakes up, and gets the agent back because the
/// new one has died.
TEST_F(Failover, ordersOfAnEarlierHolderAreRefusedWhereverTheyComeFrom) {
  ASSERT_TRUE(other.store().signOn("a", 1ms));
  ASSERT_TRUE(other.store().claim(kSubject)->ours);
  node = site.startNode(optionsFor(other.url() + "," + site.url()));
  ASSERT_TRUE(site.until([&] { return other.hears(); }));
  ASSERT_TRUE(site.await(other.gateway().runTask(kNode, task("t1", wire::TaskKind::Probe))));
  other.die();
  ASSERT_TRUE(site.store->signOn("b", 1h));
  ASSERT_TRUE(site.until([&] { return site.store->claim(kSubject)->ours; }))
      << "the lease of a ends";
  ASSERT_TRUE(site.until([&] { return hears(); }));
  ASSERT_TRUE(site.await(site.gateway().runTask(kNode, task("t2", wire::TaskKind::Probe))));

  site.controller->server.reset();
  other.start();  // with the claim that it believes to have
  ASSERT_TRUE(site.until([&] { return other.hears(); }));
  auto late = site.await(other.gateway().runTask(kNode, task("t3", wire::TaskKind::Probe)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(late.error().str(), HasSubstr("taken over"));
  EXPECT_EQ(node->runs["t3"], 0);
}

TEST_F(Failover, whatAControllerSaysOfTheOthersIsKnownAfterARestart) {
  other.die();
  other.start(other.url() + "," + site.url());
  auto options = optionsFor(other.url());
  node = site.startNode(options);
  const auto file = options.state_folder / "controllers";
  ASSERT_TRUE(site.await(other.gateway().runTask(kNode, task("p1", wire::TaskKind::Probe))))
      << "a poll is answered";
  ASSERT_TRUE(site.until([&] { return std::filesystem::exists(file); }));
  EXPECT_EQ(*io::readFile(file), other.url() + "," + site.url());
  site.kill(node);
  other.die();
  node = site.startNode(options);
  EXPECT_TRUE(site.until([&] { return hears(); }));

  site.kill(node);
  ASSERT_TRUE(io::writeFileAtomic(file, "nonsense"));
  other.start("http://nowhere,,");
  node = site.startNode(options);
  EXPECT_TRUE(site.await(other.gateway().runTask(kNode, task("p2", wire::TaskKind::Probe))))
      << "what cannot be read is left aside";
  EXPECT_EQ(*io::readFile(file), "nonsense") << "nor is it learned";
}

TEST_F(Failover, aControllerOfAnotherRootIsNotSpokenTo) {
  auto unknown = *io::CertificateAuthority::loadOrCreate(site.folder / "unknown", "another root");
  std::swap(*site.ca, unknown);
  other.die();
  other.start();
  std::swap(*site.ca, unknown);
  node = site.startNode(optionsFor(other.url() + "," + site.url()));
  ASSERT_TRUE(site.until([&] { return hears(); }));
  EXPECT_FALSE(other.hears());
}

}  // namespace
}  // namespace muster::agent
