// SPDX-License-Identifier: Apache-2.0
// What an agent is told of its image: all that is declared, and where other nodes have it. Peers
// admit the node while it is imaged, and dismiss it when it is written.
#include "provision/facets.h"
#include "provision/peers/peer_service.h"
#include "provision/provision.h"

#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/networks.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/fake_netboot.h"
#include "tests/provision/clusters.h"
#include "tests/provision/phase_rack.h"
#include "tests/run_async.h"
#include "wire/task_params.h"
#include "wire/write_image.h"

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

// ---- the bytes of the task: agents of every version read them

TEST_F(ProvisionPhaseTest, taskOfAnImageSaysNoMoreThanWhatIsDeclared) {
  startWriting();
  EXPECT_EQ(
      agents.submitted(kNode, TaskKind::WriteImage).at(0).params,
      R"({"address_cidr":"10.20.1.1/16","agent":{"ca_pem":"CA","url":"https://10.20.0.1:8443"},)"
      R"("authorized_keys":["ssh-ed25519 AAAA operator"],"boot":"uefi","data_wipe_allowed":false,)"
      R"("digest":"d1d1","disk":"","dns":[],"hostname":"gpu001",)"
      R"("index_url":"http://10.20.0.1:8080/images/d1d1/index.json","kernel_args":[],)"
      R"("pack_url":"http://10.20.0.1:8080/images/d1d1/pack","signing_public_pem":"KEY",)"
      R"("wipe_allowed":false})");
}

TEST_F(ProvisionPhaseTest, taskOfAnImageSaysAllThatIsDeclared) {
  auto& network = cluster.networks.front();
  network.gateway = *Ipv4::parse("10.20.0.254");
  network.dns = {*Ipv4::parse("10.20.0.2")};
  network.image_mirrors = {"http://cache:8080/"};
  auto& profile = cluster.profiles.at("uefi");
  profile.disk = "size:400GB-500GB";
  profile.kernel_args = {"quiet"};
  profile.secure_boot = true;
  profile.user_data = "#cloud-config\n";
  profile.root =
      inventory::RootLayout{2, inventory::RaidLevel::Raid1, inventory::RootKey::Tpm, 100};
  profile.storage = {{"scratch",
                      "size:3TB-",
                      4,
                      inventory::RaidLevel::Raid10,
                      true,
                      4096,
                      {{"home", 10, inventory::FileSystem::Ext4, "/home"},
                       {"rest", 0, inventory::FileSystem::Xfs, "/scratch"}}},
                     {"spare",
                      "serial:S",
                      1,
                      inventory::RaidLevel::None,
                      false,
                      0,
                      {{"spare", 0, inventory::FileSystem::Xfs, "/spare"}}}};
  context.wipe = true;
  startWriting();
  EXPECT_EQ(
      agents.submitted(kNode, TaskKind::WriteImage).at(0).params,
      R"({"address_cidr":"10.20.1.1/16","agent":{"ca_pem":"CA","url":"https://10.20.0.1:8443"},)"
      R"("authorized_keys":["ssh-ed25519 AAAA operator"],"boot":"uefi","data_wipe_allowed":false,)"
      R"("digest":"d1d1","disk":"size:400GB-500GB","dns":["10.20.0.2"],"gateway":"10.20.0.254",)"
      R"("hostname":"gpu001","index_url":"http://10.20.0.1:8080/images/d1d1/index.json",)"
      R"("kernel_args":["quiet"],"mirror_urls":["http://cache:8080/images/d1d1/pack"],)"
      R"("pack_url":"http://10.20.0.1:8080/images/d1d1/pack",)"
      R"("root":{"count":2,"encrypt":"tpm","lvm_gib":100,"raid":1},"secure_boot":true,)"
      R"("signing_public_pem":"KEY","storage":[{"count":4,"disks":"size:3TB-","encrypt":true,)"
      R"("name":"scratch","raid":10,"sector_bytes":4096,"volumes":[{"filesystem":"ext4",)"
      R"("mount":"/home","name":"home","size_gib":10},{"filesystem":"xfs","mount":"/scratch",)"
      R"("name":"rest","size_gib":0}]},{"count":1,"disks":"serial:S","encrypt":false,)"
      R"("name":"spare","volumes":[{"filesystem":"xfs","mount":"/spare","name":"spare",)"
      R"("size_gib":0}]}],"user_data":"#cloud-config\n","wipe_allowed":true})");
}

TEST_F(ProvisionPhaseTest, taskOfAnImageLeavesTheAddressToDhcpWhereNoneIsDeclared) {
  cluster.networks.front().dns = {*Ipv4::parse("10.20.0.2")};
  cluster.nodes.front().address = Ipv4();
  startWriting();
  const auto task = imageTask();
  EXPECT_EQ(task["address_cidr"], "dhcp");
  EXPECT_FALSE(task.contains("dns") || task.contains("gateway"));
}

TEST_F(ProvisionPhaseTest, taskOfAnImageHasTheWholeNetworkWhereItIsDeclared) {
  inventory::Network storage;
  storage.name = "storage";
  storage.cidr = *Cidr::parse("10.30.0.0/16");
  storage.pool.emplace().base = *IpAddress::parse("10.30.0.0");
  cluster.networks.push_back(storage);
  inventory::DeclaredEthernet boot, data;
  boot.name = "boot", boot.match = *inventory::NicMatch::parse("provisioning");
  data.name = "data0", data.match = *inventory::NicMatch::parse("pci:0000:18:00.0");
  data.addresses = {"storage"};
  cluster.profiles["uefi"].network.emplace().ethernets = {boot, data};
  startWriting();
  const auto task = wire::parseWriteImageParams(imageTask().dump());
  ASSERT_TRUE(task) << task.error().str();
  ASSERT_TRUE(task->network);
  EXPECT_EQ(task->network->find("boot")->mac, "52:54:00:00:00:01");
  EXPECT_THAT(task->network->find("data0")->addresses, ElementsAre("10.30.1.1/16"));
  EXPECT_THAT(task->network->provisioning.controllers, ElementsAre("10.20.0.1"));
}

}  // namespace
}  // namespace muster::provision
