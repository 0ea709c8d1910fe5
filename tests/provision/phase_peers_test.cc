// SPDX-License-Identifier: Apache-2.0
// What the provision phase has to do with peers: it admits the node that it images, and dismisses
// it when it is written.
#include "provision/facets.h"
#include "provision/peers/peer_service.h"
#include "provision/provision.h"

#include "inventory/model/cluster.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/fake_netboot.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FakePeers final : public PeerService {
 public:
  std::optional<wire::PeerParams> offer(const inventory::Node& node,
                                        const PackedImage& image) override {
    offered.push_back(node.name.str() + " " + image.digest);
    return answer;
  }
  void dismiss(const NodeName& node) override { dismissed.push_back(node.str()); }
  std::vector<io::Route> routes() override { return {}; }

  std::optional<wire::PeerParams> answer = wire::PeerParams{.announce_url = "u"};
  std::vector<std::string> offered, dismissed;
};

class PhasePeersTest : public ::testing::Test {
 protected:
  PhasePeersTest() {
    fleet.fake(kNode);
    images.add("bookworm", "d1d1");
    agents.hold(wire::TaskKind::WriteImage);
    agents.boot(kNode, wire::Mode::Ram, "boot-1").hardware.cpus = 4;
  }
  nlohmann::json taskOf(PeerService* service) {
    phase =
        makeProvisionPhase({cluster, fleet, agents, images, netboot, clock, "http://10.20.0.1:8080",
                            "https://10.20.0.1:8443", "CA", "KEY", service});
    act();
    const auto tasks = agents.submitted(kNode, wire::TaskKind::WriteImage);
    EXPECT_EQ(tasks.size(), 1u);
    return tasks.empty() ? nlohmann::json() : nlohmann::json::parse(tasks[0].params);
  }
  void act() {
    lifecycle::Action action;
    action.facet = {lifecycle::Subject(kNode), facet(kImage)};
    action.id = action.facet.str();
    const auto outcome = test::runAsync(phase->act(action, context));
    EXPECT_TRUE(outcome && std::holds_alternative<lifecycle::Again>(*outcome));
  }

  inventory::Cluster cluster = twoNodes();
  FakeClock clock;
  muster::test::FakeBmcFleet fleet;
  muster::test::FakeAgentGateway agents;
  muster::test::FakeImageStore images;
  muster::test::FakeNetboot netboot;
  muster::test::FakeActContext context;
  FakePeers peers;
  std::unique_ptr<lifecycle::Phase> phase;
};

TEST_F(PhasePeersTest, theTaskNamesThemAndEachLookAdmitsTheNodeAnew) {
  EXPECT_EQ(taskOf(&peers)["peers"]["announce_url"], "u");
  const auto before = peers.offered.size();
  act();
  EXPECT_GT(peers.offered.size(), before);
  EXPECT_THAT(peers.offered, ::testing::Each("gpu001 d1d1"));
  EXPECT_THAT(peers.dismissed, IsEmpty());
}

TEST_F(PhasePeersTest, aNodeThatIsWrittenIsDismissed) {
  taskOf(&peers);
  agents.finish(context.intent, "{}");
  act();
  EXPECT_THAT(peers.dismissed, ElementsAre("gpu001"));
}

TEST_F(PhasePeersTest, withoutThemTheTaskIsAsItWas) {
  peers.answer = std::nullopt;  // the metainfo is being made
  const auto none_yet = taskOf(&peers);
  EXPECT_FALSE(none_yet.contains("peers"));
}

TEST_F(PhasePeersTest, aClusterThatDoesNotWantThemHasNone) {
  EXPECT_FALSE(taskOf(nullptr).contains("peers"));
}

}  // namespace
}  // namespace muster::provision
