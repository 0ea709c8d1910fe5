// SPDX-License-Identifier: Apache-2.0
// Bad weather: a fleet that loses all its connections at once and comes back at once, and polls
// that a confused network delivers twice or in another order. Nothing is executed twice, nothing
// that is known goes backwards, and nothing is left over.
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "tests/agent/relay.h"
#include "tests/agent/site.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>
#include <malloc.h>

#include <filesystem>
#include <random>

namespace muster::agent {
namespace {

using namespace test;

constexpr int kNodes = 16;
constexpr int kStorms = 4;

int rankOf(wire::TaskPhase phase) {
  return phase == wire::TaskPhase::Queued ? 0 : phase == wire::TaskPhase::Running ? 1 : 2;
}

/// Sockets of this process: all ends of all connections are in it.
std::size_t openSockets() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count +=
        std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:") ? 1 : 0;
  }
  return count;
}

class StormTest : public ::testing::Test {
 protected:
  StormTest() : site_(kNodes), relay_(site_.port) {
    site_.others.push_back(&relay_.io);
    for (const auto& node : site_.cluster.nodes) {
      auto options = site_.ramOptions(node.name.str());
      options.url.port = relay_.port();
      nodes_.push_back(site_.startNode(options));
    }
  }
  void TearDown() override {
    for (auto& node : nodes_) site_.kill(node);
  }

  /// As site.until, and meanwhile nothing that is known of any node may go backwards.
  template <class Condition>
  bool until(Condition holds) {
    return site_.until([&] {
      watch();
      return holds();
    });
  }
  void watch() {
    for (const auto& node : site_.cluster.nodes) {
      const auto state = site_.gateway().state(node.name);
      if (!state) continue;
      seen_.insert(node.name);
      EXPECT_EQ(state->boot_id, "ram-1");
      EXPECT_EQ(state->hardware.serial, "SN-1");
      for (const auto& id : ids_) {
        const auto report = site_.gateway().report(node.name, id);
        auto& before = ranks_[{node.name, id}];
        const int now = report ? rankOf(report->phase) : 0;
        EXPECT_GE(now, before) << node.name.str() << " " << id << " went backwards";
        before = std::max(before, now);
      }
    }
  }
  void submitToAll(const std::string& id, wire::TaskKind kind) {
    ids_.insert(id);
    for (const auto& node : site_.cluster.nodes) {
      const auto taken = site_.gateway().submit(node.name, task(id, kind));
      ASSERT_TRUE(taken) << taken.error().str();
    }
  }
  bool all(const std::string& id, wire::TaskPhase phase) {
    return std::all_of(site_.cluster.nodes.begin(), site_.cluster.nodes.end(),
                       [&](const auto& node) {
                         const auto report = site_.gateway().report(node.name, id);
                         return report && report->phase == phase;
                       });
  }
  /// Every agent waits in a poll, and nothing else is open.
  bool isIdle(std::size_t sockets) {
    return relay_.connections() == static_cast<std::size_t>(kNodes) && openSockets() == sockets;
  }
  void storm(int number) {
    const auto before = "before-" + std::to_string(number),
               after = "after-" + std::to_string(number);
    submitToAll(
        before,
        wire::TaskKind::Probe);  // its order, its answer, or neither has arrived when it is cut
    for (int turns = 0; turns < number * 7; ++turns) (void)site_.until([] { return true; });
    relay_.cut();
    submitToAll(after, wire::TaskKind::Probe);
    ASSERT_TRUE(until(
        [&] { return all(before, wire::TaskPhase::Done) && all(after, wire::TaskPhase::Done); }));
  }

  Site site_;
  Relay relay_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::set<std::string> ids_;
  std::set<NodeName> seen_;
  std::map<std::pair<NodeName, std::string>, int> ranks_;
};

TEST_F(StormTest, aFleetThatComesBackAtOnceDoesNothingTwiceAndLeavesNothing) {
  ASSERT_TRUE(until([&] { return seen_.size() == static_cast<std::size_t>(kNodes); }));
  submitToAll("long", wire::TaskKind::InstallDriver);  // runs through all storms
  ASSERT_TRUE(until([&] { return all("long", wire::TaskPhase::Running); }));
  storm(0);
  std::size_t sockets = 0;
  ASSERT_TRUE(until([&] {
    const auto now = openSockets();
    return relay_.connections() == static_cast<std::size_t>(kNodes) &&
           std::exchange(sockets, now) == now;
  }));
  storm(1);
  const auto heap = ::mallinfo2().uordblks;
  for (int number = 2; number < 2 + kStorms; ++number) storm(number);
  site_.gate.open();
  ASSERT_TRUE(until([&] { return all("long", wire::TaskPhase::Done); }));
  EXPECT_TRUE(until([&] { return isIdle(sockets); }))
      << relay_.connections() << " connections and " << openSockets() << " sockets, " << sockets
      << " before";
  EXPECT_GE(relay_.accepted(), kNodes * (2 + kStorms)) << "the storms were none";
  for (const auto& node : nodes_)
    for (const auto& id : ids_) EXPECT_EQ(node->runs[id], 1) << node->options.node << " " << id;
  // One connection that is left over holds more than 30 KiB of buffers and TLS; a storm that left
  // those of all nodes would show.
  EXPECT_LT(::mallinfo2().uordblks, heap + kStorms * kNodes * 15'000u);
}

TEST_F(StormTest, aControllerThatRestartsInTheStormIsToldEverythingAnew) {
  ASSERT_TRUE(until([&] { return seen_.size() == static_cast<std::size_t>(kNodes); }));
  submitToAll("long", wire::TaskKind::InstallDriver);
  ASSERT_TRUE(until([&] { return all("long", wire::TaskPhase::Running); }));
  for (int life = 0; life < 3; ++life) {
    site_.restartController();
    relay_.cut();
    ranks_.clear();  // what a new controller knows begins with nothing
    ASSERT_TRUE(until([&] { return all("long", wire::TaskPhase::Running); })) << "life " << life;
  }
  site_.gate.open();
  ASSERT_TRUE(until([&] { return all("long", wire::TaskPhase::Done); }));
  for (const auto& node : nodes_) EXPECT_EQ(node->runs["long"], 1);
}

// ---- polls in any order

/// What one boot of an agent says of one task, as time goes by.
std::vector<wire::PollRequest> conversation(const std::string& boot, int polls) {
  std::vector<wire::PollRequest> out;
  for (int i = 1; i <= polls; ++i) {
    wire::PollRequest poll;
    poll.mode = wire::Mode::Disk;
    poll.boot_id = boot;
    poll.sequence = static_cast<std::uint64_t>(i) * 10;
    poll.probes["kernel"] = std::to_string(i);
    wire::AgentTaskReport report, busy;
    report.id = "t";
    report.phase = i <= polls / 3       ? wire::TaskPhase::Queued
                   : i <= 2 * polls / 3 ? wire::TaskPhase::Running
                                        : wire::TaskPhase::Done;
    report.fraction = report.phase == wire::TaskPhase::Queued ? -1 : static_cast<double>(i) / polls;
    if (report.phase == wire::TaskPhase::Done) report.result = "{\"by\":\"" + boot + "\"}";
    busy.id = "other";
    busy.phase = wire::TaskPhase::Running;  // so that the answer comes at once
    poll.reports = {report, busy};
    out.push_back(std::move(poll));
  }
  return out;
}

class OrderTest : public ::testing::Test {
 protected:
  int deliver(const wire::PollRequest& poll) {
    io::ServerRequest request;
    request.method = "POST";
    request.target = "/agent/v1/poll";
    request.client_common_name = "gpu001";
    request.client_key_id = "key";
    request.body = toJson(poll);
    for (auto& route : site_.gateway().routes()) {
      if (route.path != request.target) continue;
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
  Site site_;
  const NodeName node_{"gpu001"};
};

TEST_F(OrderTest, whateverTheNetworkDoesToPollsTheNewestIsWhatIsKnown) {
  constexpr int kPolls = 12;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    site_.restartController();
    auto first = conversation("boot-1", kPolls), second = conversation("boot-2", kPolls);
    for (auto* polls : {&first, &second}) {  // each up to three times
      const auto once = *polls;
      for (const auto& poll : once)
        for (unsigned copies = random() % 3; copies > 0; --copies) polls->push_back(poll);
      std::shuffle(polls->begin(), polls->end(), random);
    }
    // The first boot has been heard before the second begins; the rest of its polls comes among
    // those of the second.
    const auto heard = 1 + random() % (first.size() - 1);
    std::vector<wire::PollRequest> late(first.begin() + static_cast<std::ptrdiff_t>(heard),
                                        first.end());
    first.resize(heard);
    late.insert(late.end(), second.begin(), second.end());
    std::shuffle(late.begin(), late.end(), random);
    first.insert(first.end(), late.begin(), late.end());
    std::string boot;
    std::uint64_t newest = 0;
    int rank = 0;
    for (const auto& poll : first) {
      const bool next_boot = boot != "boot-2" && poll.boot_id == "boot-2";
      const bool fresh =
          boot.empty() || next_boot || (poll.boot_id == boot && poll.sequence > newest);
      ASSERT_EQ(deliver(poll), fresh ? 200 : 409) << "seed " << seed;
      if (fresh && next_boot) rank = 0;
      if (fresh) boot = poll.boot_id, newest = poll.sequence;
      const auto report = site_.gateway().report(node_, "t");
      ASSERT_TRUE(report);
      ASSERT_EQ(site_.gateway().state(node_)->boot_id, boot) << "seed " << seed;
      ASSERT_EQ(site_.gateway().state(node_)->probes.at("kernel"), std::to_string(newest / 10))
          << "seed " << seed;
      ASSERT_GE(rankOf(report->phase), rank) << "seed " << seed;
      rank = rankOf(report->phase);
      if (report->phase == wire::TaskPhase::Done) {
        ASSERT_EQ(report->result, "{\"by\":\"" + boot + "\"}");
      }
    }
    EXPECT_EQ(boot, "boot-2");
    EXPECT_EQ(newest, kPolls * 10u);
  }
}

}  // namespace
}  // namespace muster::agent
