// SPDX-License-Identifier: Apache-2.0
// fabric.roce on soft-RoCE: a virtual machine starts a live image, its agent loads rdma_rxe, and
// the real checks read what kernel, LLDP and ping say. No network card that QEMU emulates has DCB:
// that dcb is refused is the one thing that must be left. Minutes under TCG, so on request only.
#include "fabric/node_services.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "tests/provision/vm_site.h"

#include <nlohmann/json.hpp>

#include <thread>

namespace muster::fabric::test {
namespace {

using lifecycle::Subject;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kTaskLimit{120};

class RoceVmTest : public provision::VmSite {
 protected:
  std::optional<inventory::Image> image() override {
    return inventory::Image{
        "roce-node",
        inventory::ImageBuild{
            "bookworm", {"linux-image-amd64", "rdma-core", "lldpd", "iputils-ping"}, ""},
        {},
        inventory::ImageKind::Live};
  }
  void declare(inventory::Profile& profile) override {
    profile.fabric = "roce";
    profile.rails = {{"rxe0", std::nullopt, ""}};
    inventory::Fabric fabric;
    fabric.name = "roce";
    fabric.nodes_per_su = 4;
    fabric.switch_ports = 16;
    fabric.roce = inventory::Roce{};
    fabric.roce->mtu = 1500;
    fabric.roce->gid_index =
        1;  // soft-RoCE knows version 2 only: 0 is link-local, 1 the IPv4 address
    cluster_.fabrics["roce"] = std::move(fabric);
  }
  void TearDown() override {
    if (switch_) switch_->terminate(std::chrono::seconds(5));
    VmSite::TearDown();
  }

  /// The switch of the machine's cable: a real lldpd at the other end, that calls the port as
  /// Cumulus would.
  void startSwitch() {
    const auto socket = (folder_ / "leaf.sock").string();
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    auto started = processes_->start(
        {.program = "unshare",
         .args = {"-u", "sh", "-c",
                  "hostname leaf-su1-r0 && exec lldpd -d -u \"$1\" -S leaf-su1-r0 -I tap0", "sh",
                  socket}},
        folder_ / "leaf.log");
    ASSERT_TRUE(started) << started.error().str();
    switch_ = std::move(*started);
    const auto tell = [&](std::vector<std::string> words) {
      words.insert(words.begin(), {"-u", socket});
      const auto done = io::runBlocking({.program = "lldpcli", .args = words});
      return done && done->code == 0;
    };
    ASSERT_TRUE(eventually([&] { return tell({"resume"}); }))
        << io::readFile(folder_ / "leaf.log").value_or("");
    ASSERT_TRUE(tell({"configure", "lldp", "tx-interval", "1"}));
    ASSERT_TRUE(tell({"configure", "ports", "tap0", "lldp", "portidsubtype", "local", "swp1"}));
  }
  bool eventually(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
         std::chrono::steady_clock::now() < until;
         std::this_thread::sleep_for(std::chrono::milliseconds(200)))
      if (holds()) return true;
    return holds();
  }

  json task(wire::TaskKind kind, const json& params) {
    const wire::AgentTask task{fmt::format("roce-{}", ++tasks_), kind, params.dump(), kTaskLimit};
    const auto report = muster::test::runAsync(io_, gateway_->runTask(node_, task),
                                               kTaskLimit + std::chrono::seconds(30));
    EXPECT_TRUE(report) << report.error().str();
    return report ? json::parse(report->result) : json::object();
  }
  std::string probe(const std::string& name) {
    return task(wire::TaskKind::Probe, {{"probes", {name}}}).value(name, "");
  }
  std::vector<std::string> problems() {
    const auto& fabric = cluster_.fabrics.at("roce");
    const auto declared = declaredTopology(cluster_, fabric);
    EXPECT_TRUE(declared) << declared.error().str();
    const auto found =
        roceProblems(cluster_, fabric, *declared, *cluster_.findNode(node_), marking_);
    EXPECT_TRUE(found) << found.error().str();
    return found.value_or(std::vector<std::string>{});
  }
  bool hearsTheSwitch() {
    marking_ = probe("roce.marking");
    return json::parse(marking_).value("rxe0", json::object()).contains("neighbour");
  }

  std::unique_ptr<io::Child> switch_;
  std::string marking_;
  int tasks_ = 0;
};

TEST_F(RoceVmTest, gidsMtuNeighbourAndPathAreReadOfSoftRoce) {
  mustDo(provision::kImage, std::chrono::seconds(900));
  ASSERT_TRUE(state());
  task(wire::TaskKind::InstallDriver, {{"packages", json::array()},
                                       {"modules", {"rdma_rxe"}},
                                       {"verify", {{"module.rdma_rxe", "loaded"}}}});
  startSwitch();
  ASSERT_TRUE(eventually([this] { return hearsTheSwitch(); })) << marking_;
  std::cout << marking_ << std::endl;
  const auto row = json::parse(marking_).at("rxe0");
  EXPECT_EQ(row.at("mtu"), 1500);
  EXPECT_EQ(row.at("address"), cluster_.findNode(node_)->address.str());
  EXPECT_EQ(row.at("gids").at("1").at("type"), "RoCE v2");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("rxe0: dcb does not answer"))) << "all else agrees";

  auto& roce = *cluster_.fabrics.at("roce").roce;
  roce.gid_index = 0;
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("dcb"),
                          HasSubstr("GID 0 (gid_index, which NCCL uses) is RoCE v2 fe80:")));
  roce.gid_index = 3;
  EXPECT_THAT(
      problems(),
      ElementsAre(HasSubstr("dcb"), AllOf(HasSubstr("GID 3 (gid_index, which NCCL uses) is empty"),
                                          HasSubstr("is 1: set gid_index"))));
  roce.gid_index = 1;
  roce.mtu = 9000;
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("dcb"), "rxe0: the MTU is 1500 instead of 9000"));
  roce.mtu = 1500;
  EXPECT_EQ(probe("roce.path.rxe0.10.20.0.1"), "passes 1500");
  EXPECT_THAT(probe("roce.path.rxe0.10.20.0.77"), HasSubstr("silent: "));

  // The phase itself: the script comes as far as dcb, and what dcb says is what the operator reads.
  const auto nodes = makeNodeServicesPhase(cluster_, *gateway_, clock_, [this](const std::string&) {
    return FabricOptions{folder_ / "fabric", {}, {}};
  });
  lifecycle::Action action;
  action.facet = {Subject(node_), FacetName(std::string(kRoce))};
  const auto outcome = muster::test::runAsync(io_, nodes->act(action, context_), kTaskLimit);
  std::string said = outcome ? "" : outcome.error().str();
  if (outcome)
    if (const auto* blocked = std::get_if<lifecycle::Blocked>(&*outcome)) said = blocked->why;
  EXPECT_THAT(said, AllOf(HasSubstr("muster-roce.service did not start"),
                          HasSubstr("of rxe0 does not take what dcb says")))
      << "or it went through without DCB";
  std::cout << said << std::endl;
}

}  // namespace
}  // namespace muster::fabric::test
