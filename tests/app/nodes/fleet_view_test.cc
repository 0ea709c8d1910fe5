// SPDX-License-Identifier: Apache-2.0
// The rows that are kept in memory are those that a reading of the whole store gives, whatever is
// written meanwhile by another connection.
#include "app/nodes/fleet_view.h"

#include "app/site/session.h"
#include "lifecycle/model/unread.h"
#include "tests/app/site_folder.h"

#include <fmt/format.h>

#include <random>

namespace muster::app {
namespace {

using lifecycle::Event;
using lifecycle::EventKind;
using lifecycle::Fact;
using lifecycle::Subject;

constexpr int kNodes = 24;

std::string nodeName(int i) { return fmt::format("gpu{:03}", i + 1); }

std::string inventoryText() {
  std::string out = R"(cluster: {name: hall-2}
networks:
  provisioning: {cidr: 10.20.0.0/16, dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}}
credentials:
  bmc: {username: admin, password: {file: bmc-password}}
images:
  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}
pools:
  batch: {slurm: {partition: gpu}}
profiles:
  gpu-node: {expect: {gpus: 8}, image: bookworm, pool: batch}
nodes:
)";
  for (int i = 0; i < kNodes; ++i)
    out += fmt::format(
        "  - {{names: {}, profile: gpu-node, mac: \"52:54:00:20:00:{:02x}\", address: 10.20.1.{}, "
        "bmc: \"https://10.20.250.{}\", rack: r{}, unit: {}}}\n",
        nodeName(i), i + 1, i + 1, i + 1, i / 8, i % 8 + 1);
  return out;
}

class FleetViewTest : public ::testing::Test {
 protected:
  FleetViewTest() {
    site_.write("cluster.yaml", inventoryText());
    store_ = site_.store();
    auto live = effectiveCluster(site_.options());
    EXPECT_TRUE(live) << live.error().str();
    auto session = Session::openStored(site_.options(), std::move(*live));
    EXPECT_TRUE(session) << session.error().str();
    session_ = std::move(*session);
  }

  Subject anyNode() { return Subject(NodeName(nodeName(below(kNodes)))); }
  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  void tell(const Subject& subject) {
    ASSERT_TRUE(store_->addEvent({0, now(), EventKind::Observed, subject, "", "changed"}));
  }
  WallTime now() { return start_ + std::chrono::seconds(++seconds_); }

  Fact anyFact(const Subject& subject) {
    static const std::vector<std::pair<std::string, std::vector<std::string>>> kFacts{
        {"pool", {"in", "drained", "out", "silent"}},
        {"enrolled", {"yes", "no"}},
        {"image", {"sha256:1", "none"}},
        {"quarantine", {"none", "held"}},
        {"certificate", {"valid:1", "none"}},
        {"health.gpu", {"ok", "fault:xid"}},
        {"unread.firmware", {"denied", "none"}},
        {"fabric.sm", {"active", "none"}}};
    const auto& [facet, values] = kFacts[static_cast<std::size_t>(below(int(kFacts.size())))];
    return {subject, FacetName(facet), values[static_cast<std::size_t>(below(int(values.size())))],
            now(),   "test",           R"({"text": "seen"})"};
  }
  /// What engines, monitors and people write, of one subject.
  void writeSomething(const Subject& subject) {
    const lifecycle::FacetRef facet{subject, FacetName(below(2) == 0 ? "health.gpu" : "image")};
    switch (below(6)) {
      case 0:
      case 1:
        ASSERT_TRUE(store_->putFacts({anyFact(subject), anyFact(subject)}));
        break;
      case 2:
        ASSERT_TRUE(store_->forgetFacts(subject, {anyFact(subject).facet}));
        break;
      case 3:
        ASSERT_TRUE(store_->addFinding(
            {facet, below(2) == 0 ? Severity::Error : Severity::Info, "bad", "", "", now(), "t"}));
        break;
      case 4:
        ASSERT_TRUE(store_->clearFindings(facet));
        break;
      default:
        if (open_.empty() || below(2) == 0) {
          lifecycle::Intent intent;
          intent.id = fmt::format("i{}", ++seconds_);
          intent.action.id = facet.str();
          intent.action.facet = facet;
          intent.opened_at = now();
          open_.push_back(intent.id);
          ASSERT_TRUE(store_->openIntent(intent));
        } else {
          ASSERT_TRUE(
              store_->closeIntent(open_.back(), lifecycle::IntentState::Done, "done", now()));
          open_.pop_back();
        }
    }
  }
  std::vector<NodeStatus> readAnew() {
    const auto read = readStatus(*session_);
    EXPECT_TRUE(read) << read.error().str();
    return read ? read->nodes : std::vector<NodeStatus>();
  }
  FleetLook look(FleetView& view, std::size_t in_turn = 0) {
    const auto looked = view.follow(in_turn);
    EXPECT_TRUE(looked) << looked.error().str();
    return looked.value_or(FleetLook{});
  }

  SiteFolder site_;
  std::mt19937 random_{20'261'126};
  const WallTime start_ = SystemClock().now();
  int seconds_ = 0;
  std::unique_ptr<lifecycle::Store> store_;  ///< of another process
  std::unique_ptr<Session> session_;
  std::vector<std::string> open_;
};

TEST_F(FleetViewTest, isWhatAReadingOfTheWholeStoreGivesAfterThousandsOfWrites) {
  FleetView view(*session_);
  EXPECT_TRUE(look(view).is_anew);
  std::size_t computed = 0, looks = 0, different = 0;
  std::vector<NodeStatus> before;
  for (int round = 0; round < 400; ++round) {
    for (int i = below(16); i >= 0; --i) {
      const auto subject = below(20) == 0 ? Subject::cluster() : anyNode();
      writeSomething(subject);
      tell(subject);
    }
    const auto looked = look(view);
    EXPECT_FALSE(looked.is_anew);
    computed += looked.computed;
    ++looks;
    const auto anew = readAnew();
    ASSERT_EQ(view.status().nodes, anew) << "round " << round;
    different += anew != before;
    before = anew;
  }
  EXPECT_GT(different, looks * 9 / 10) << "the rows must move, or this compares nothing";
  EXPECT_LT(computed, looks * kNodes * 2 / 3) << "only what was named is made anew";
}

TEST_F(FleetViewTest, whatTheLogDoesNotNameIsSeenInTurn) {
  FleetView view(*session_);
  look(view);
  for (int i = 0; i < kNodes; ++i) {
    const Subject node(NodeName(nodeName(i)));
    ASSERT_TRUE(store_->putFacts({{node, FacetName("pool"), "in", now(), "test", ""}}));
  }
  look(view);
  EXPECT_NE(view.status().nodes, readAnew()) << "nobody said so";
  EXPECT_EQ(look(view, kNodes / 2).in_turn, kNodes / 2);
  EXPECT_NE(view.status().nodes, readAnew());
  look(view, kNodes / 2);
  EXPECT_EQ(view.status().nodes, readAnew());
}

/// Who asks about one node is told what the store has, before the log has named it.
TEST_F(FleetViewTest, oneNodeIsReadNow) {
  FleetView view(*session_);
  look(view);
  const Subject node(NodeName(nodeName(3))), other(NodeName(nodeName(4)));
  const FacetName pool("pool");
  ASSERT_TRUE(store_->putFacts(
      {{node, pool, "in", now(), "test", ""}, {other, pool, "in", now(), "test", ""}}));
  ASSERT_TRUE(view.readNow(node));
  EXPECT_EQ(view.facts().value(node, pool), "in");
  EXPECT_EQ(view.facts().value(other, pool), std::nullopt) << "nobody asked about it";
  EXPECT_EQ(view.status().nodes[3].pool, "in") << "its row says the same";
  ASSERT_TRUE(view.readNow(Subject::cluster()));
  look(view, kNodes);
  EXPECT_EQ(view.status().nodes, readAnew());
}

TEST_F(FleetViewTest, rowsThatSayTheSameKeepTheirRevision) {
  FleetView view(*session_);
  look(view);
  const Subject node(NodeName(nodeName(3)));
  ASSERT_TRUE(store_->putFacts({{node, FacetName("pool"), "in", now(), "test", ""}}));
  tell(node);
  tell(Subject(NodeName(nodeName(4))));
  const auto before = view.revision(3), other = view.revision(4);
  EXPECT_EQ(look(view).computed, 2u);
  EXPECT_EQ(view.revision(3), before + 1);
  EXPECT_EQ(view.revision(4), other);
}

TEST_F(FleetViewTest, aLogThatIsShorterThanItWasOrHasRunAwayIsReadWhole) {
  FleetView view(*session_);
  const Subject node(NodeName(nodeName(0)));
  tell(node);
  look(view);
  ASSERT_TRUE(store_->putFacts({{node, FacetName("pool"), "in", now(), "test", ""}}));
  const auto ends = store_->auditEnds();
  const auto events = store_->lastEvents(1, nullptr);
  ASSERT_TRUE(ends && events && !events->empty());
  ASSERT_TRUE(store_->dropArchived(events->back().sequence, {ends->link, ends->hash}));
  EXPECT_TRUE(look(view).is_anew);
  EXPECT_EQ(view.status().nodes, readAnew());
  EXPECT_FALSE(look(view).is_anew);
  store_->together({[&] {
    for (std::size_t i = 0; i < FleetView::kMostFollowed; ++i)
      if (!store_->addEvent({0, now(), EventKind::ActionProgress, node, "", "writing", 0.5}))
        return false;
    return true;
  }});
  EXPECT_TRUE(look(view).is_anew);
  EXPECT_FALSE(look(view).is_anew);
}

}  // namespace
}  // namespace muster::app
