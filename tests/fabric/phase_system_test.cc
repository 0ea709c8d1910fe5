// SPDX-License-Identifier: Apache-2.0
// The fabric phase against real ibsim and OpenSM.
#include "fabric/discovery/tools.h"
#include "fabric/fabric_diff.h"
#include "fabric/opensm/opensm_log.h"
#include "fabric/opensm/partitions.h"
#include "fabric/opensm/subnet_manager.h"
#include "fabric/packet_paths/forwarding.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/muster_over_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace muster::fabric::test {
namespace {

using namespace lifecycle;
using muster::test::runAsync;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class FabricSystem : public ::testing::Test {
 protected:
  DiffReport diffNow(const inventory::Cluster& cluster, SimulatedFabric& fabric) {
    auto report =
        runAsync(diff(cluster, fabric.processes(), fabric.options()), std::chrono::seconds(60));
    EXPECT_TRUE(report);
    return report ? *report : DiffReport{};
  }
  std::optional<pid_t> opensm(SimulatedFabric& fabric) {
    return io::PidFile{fabric.options().run_folder / "opensm.pid"}.alive();
  }
  std::set<std::string> tables(SimulatedFabric& fabric) {  // of all HCAs, read from the ports
    auto options = fabric.options();
    Tools tools(fabric.processes(), options);
    std::set<std::string> out;
    auto found = runAsync(tools.discover());
    EXPECT_TRUE(found);
    for (const auto& [name, device] : found->devices)
      if (!device.is_switch)
        out.insert(
            name + " " +
            toString(
                runAsync(tools.pkeys(device.addresses.at(1).lid, 1)).value_or(PkeyTable{0xdead})));
    return out;
  }

  inventory::Cluster cluster_ = railCluster(3);
  Topology declared_ = declared(cluster_);
};

TEST_F(FabricSystem, allTablesAreReadByOneProcessAndNoneWithoutAnAnswer) {
  SimulatedFabric fabric(declared_);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  const auto options = fabric.options();
  Tools tools(fabric.processes(), options);
  const auto found = runAsync(tools.discover());
  ASSERT_TRUE(found);
  const auto hca = found->devices.at("gpu001 mlx5_0").addresses.at(1).lid,
             leaf = found->devices.at("leaf-su1-r0").addresses.at(0).lid;
  const std::vector<PkeyPort> ports = {{hca, 1}, {leaf, 1}, {leaf, 9}};
  const auto tables = runAsync(tools.pkeyTables(ports));
  ASSERT_TRUE(tables) << tables.error().str();
  for (const auto& [lid, port] : ports)
    EXPECT_EQ(tables->at({lid, port}), runAsync(tools.pkeys(lid, port)).value())
        << lid << " " << port;
  EXPECT_EQ(tables->at({hca, 1}), (PkeyTable{0x7fff, 0x8010}));
  fabric.dropMads("gpu001 mlx5_0", 100);
  const auto lost = runAsync(tools.pkeyTables(ports), std::chrono::seconds(60));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(lost.error().str(), HasSubstr(fmt::format("LID {} port 1 did not answer", hca)));
}

TEST_F(FabricSystem, bringsAHealthyFabricUpOnceAndFindsItAgain) {
  SimulatedFabric fabric(declared_);
  EXPECT_EQ(diffNow(cluster_, fabric).exitCode(), DiffReport::kEqual);
  Muster first(cluster_, fabric);
  EXPECT_EQ(first.observed(first.whole, "fabric.sm"), "not-as-declared: opensm does not run");
  EXPECT_THAT(first.observed(node("gpu001"), "fabric.ports"),
              HasSubstr("the subnet manager has not reached gpu001 mlx5_0"));
  first.bringUp();
  EXPECT_EQ(first.tryTo(first.whole, "fabric.links"), "");
  EXPECT_TRUE(first.met(first.whole, "fabric.links"));
  for (auto name : {"gpu001", "gpu002", "gpu003"})
    EXPECT_EQ(first.verified(node(name), "fabric.ports"), "as-declared");
  EXPECT_EQ(tables(fabric),
            (std::set<std::string>{"controller mlx5_0 {0xffff}", "gpu001 mlx5_0 {0x7fff 0x8010}",
                                   "gpu001 mlx5_1 {0x7fff 0x8010}", "gpu002 mlx5_0 {0x7fff 0x8010}",
                                   "gpu002 mlx5_1 {0x7fff 0x8010}", "gpu003 mlx5_0 {0x7fff}",
                                   "gpu003 mlx5_1 {0x7fff}"}));
  EXPECT_EQ(diffNow(cluster_, fabric).exitCode(), DiffReport::kEqual);

  auto pid = opensm(fabric);
  ASSERT_TRUE(pid);
  Muster second(cluster_, fabric);
  EXPECT_TRUE(second.met(second.whole, "fabric.sm"));
  EXPECT_EQ(second.tryTo(second.whole, "fabric.sm"), "");
  EXPECT_EQ(opensm(fabric), pid);

  // muster died between starting opensm and writing down its pid: found by its command line, no
  // second one is started.
  std::filesystem::remove(fabric.options().run_folder / "opensm.pid");
  EXPECT_EQ(second.tryTo(second.whole, "fabric.sm"), "");
  EXPECT_EQ(opensm(fabric), pid);

  ::kill(*pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !opensm(fabric); }));
  EXPECT_EQ(second.verified(second.whole, "fabric.sm"), "not-as-declared: opensm does not run");
  EXPECT_EQ(second.tryTo(second.whole, "fabric.sm"), "");
  EXPECT_TRUE(second.met(second.whole, "fabric.sm"));
  EXPECT_NE(opensm(fabric), pid);
}

TEST_F(FabricSystem, leavesNoPairWithoutAWayWhereStorageAndUfmAreOnSpines) {
  cluster_ = railCluster(7, 2);
  cluster_.fabrics["ib"].cables = portsOnSpines();
  const auto topology = declared(cluster_);
  ASSERT_EQ(rootSwitches(topology).size(), 4u);
  SimulatedFabric fabric(topology);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  const auto options = fabric.options();
  Tools tools(fabric.processes(), options);
  const auto found = runAsync(tools.discover());
  const auto tables = runAsync(tools.forwardingTables());
  ASSERT_TRUE(found && tables);
  const auto reach = walk(*found, *tables, switchLevels(topology));
  EXPECT_EQ(reach.pairs, 18u * 17);  // 14 HCAs of nodes, the controller's, three on spines
  EXPECT_EQ(reach.lost, 0u);
  EXPECT_EQ(reach.down_up, 0u);
  EXPECT_THAT(io::readFile(options.run_folder / "opensm.log").value(),
              HasSubstr("ftree tables configured on all switches"));
}

// A kernel without rdma-ndd's setting, and switches with MLNX-OS: no cable is wrong.
TEST_F(FabricSystem, takesAFabricWhoseNamesAreNotTheDeclaredOnes) {
  auto found = declared_;
  for (const auto& [name, device] : declared_.devices)
    rename(found, name,
           device.is_switch
               ? fmt::format("MF0;ib-{}:MQM9700/U1", std::hash<std::string>()(name) % 100'000)
               : fmt::format("{} HCA-{}", hostOf(name), name.back() - '0' + 1));
  SimulatedFabric fabric(found, "controller HCA-1");
  Muster muster(cluster_, fabric);
  muster.bringUp();
  EXPECT_TRUE(muster.met(muster.whole, "fabric.links"));
  for (auto name : {"gpu001", "gpu002", "gpu003"})
    EXPECT_EQ(muster.verified(node(name), "fabric.ports"), "as-declared");
  const auto run = fabric.options().run_folder;
  EXPECT_THAT(io::readFile(run / "opensm.log").value(),
              HasSubstr("ftree tables configured on all switches"));
  // And by what the tools print, each in its form.
  const auto options = fabric.options();
  Tools tools(fabric.processes(), options);
  const std::vector<std::pair<std::string, std::vector<std::string>>> calls = {
      {"ibnetdiscover", {}},     {"ibnetdiscover", {"-p"}}, {"ibnetdiscover", {"-g"}},
      {"ibnetdiscover", {"-f"}}, {"iblinkinfo", {}},        {"iblinkinfo", {"-l"}},
      {"iblinkinfo", {"-p"}}};
  for (const auto& [tool, arguments] : calls) {
    const auto exit =
        runAsync(fabric.processes().run(tools.command(tool, arguments)), std::chrono::seconds(30));
    ASSERT_TRUE(exit) << exit.error().str();
    const auto report = diff(cluster_, exit->out);
    EXPECT_EQ(report.exitCode(), DiffReport::kEqual)
        << tool << " " << fmt::format("{}", fmt::join(arguments, " ")) << "\n"
        << toText(report);
    EXPECT_THAT(report.note, HasSubstr("recognized by their cables"));
  }
}

// What it was before: the spine with a port on it is missing from the roots, OpenSM reports ftree
// and SUBNET UP.
TEST_F(FabricSystem, namesTheRootThatAnotherSubnetManagerWasNotTold) {
  cluster_ = railCluster(6, 2);
  auto& ib = cluster_.fabrics["ib"];
  ib.subnet_managers.clear();
  ib.partitions.clear();
  ib.cables = portsOnSpines();
  SimulatedFabric fabric(declared(cluster_), "ufm1 mlx5_0");
  const auto options = fabric.options();
  Tools tools(fabric.processes(), options);
  const auto found = runAsync(tools.discover());
  ASSERT_TRUE(found);
  KnownGuids known;
  known.learn(declared(cluster_), *found);
  auto files = renderSm(ib, declared(cluster_), {}, known, {"0x0", "/", 0});
  const auto& forgotten = known.switches.at("spine-001");
  files.root_guids.erase(files.root_guids.find(forgotten), forgotten.size() + 1);
  OtherOpensm other(
      fabric, "ufm1 mlx5_0",
      "routing_engine ftree\nroot_guid_file roots\ncn_guid_file nodes\n"
      "io_guid_file io\nmax_reverse_hops 1\n",
      {{"roots", files.root_guids}, {"nodes", files.cn_guids}, {"io", files.io_guids}});
  ASSERT_TRUE(eventually([&] {
    return readSmLog(io::readFile(other.folder() / "opensm.log").value_or("")).subnet_up;
  }));
  Muster muster(cluster_, fabric);
  EXPECT_THAT(muster.observed(muster.whole, "fabric.sm"),
              AllOf(HasSubstr("pairs have no route, such as"), HasSubstr("spine-001"),
                    HasSubstr("must be roots")));
}

TEST_F(FabricSystem, changesPartitionsByAHangUpAndRoutingByARestart) {
  SimulatedFabric fabric(declared_);
  Muster(cluster_, fabric).bringUp();
  auto pid = opensm(fabric);
  cluster_.fabrics["ib"].partitions[1].full_members = {"gpu003"};
  Muster changed(cluster_, fabric);
  EXPECT_TRUE(changed.met(changed.whole, "fabric.sm"));
  EXPECT_THAT(changed.observed(changed.whole, "fabric.partitions"), StartsWith("not-as-declared"));
  EXPECT_EQ(changed.tryTo(changed.whole, "fabric.partitions"), "");
  EXPECT_TRUE(changed.met(changed.whole, "fabric.partitions"));
  EXPECT_EQ(opensm(fabric), pid);
  auto now = tables(fabric);
  EXPECT_TRUE(now.count("gpu003 mlx5_0 {0x7fff 0x8010}"));
  EXPECT_TRUE(now.count("gpu001 mlx5_0 {0x7fff}"));

  cluster_.fabrics["ib"].routing = "updn";
  Muster rerouted(cluster_, fabric);
  EXPECT_EQ(rerouted.observed(rerouted.whole, "fabric.sm"),
            "not-as-declared: opensm runs with another configuration");
  rerouted.bringUp();
  EXPECT_NE(opensm(fabric), pid);
}

/// The same OpenSM, with this text as its partitions whatever it is told.
void restartWithItsOwnPartitions(SimulatedFabric& fabric, const std::string& text) {
  const auto run = fabric.options().run_folder;
  ASSERT_TRUE(io::PidFile{run / "opensm.pid"}.terminate(std::chrono::seconds(5)));
  auto conf = io::readFile(run / "opensm.conf").value();
  const auto at = conf.find((run / "partitions.conf").string());
  ASSERT_NE(at, std::string::npos);
  conf.insert(at + (run / "partitions.conf").string().size(), ".own");
  ASSERT_TRUE(io::writeFileAtomic(run / "partitions.conf.own", text));
  ASSERT_TRUE(io::writeFileAtomic(run / "opensm.conf", conf));
  const auto options = fabric.options();
  Tools tools(fabric.processes(), options);
  auto command = tools.command("opensm", {"-F", (run / "opensm.conf").string()});
  command.env["OSM_CACHE_DIR"] = command.env["OSM_TMP_DIR"] = run.string();
  std::filesystem::remove(run / "opensm.log");
  const auto pid = fabric.processes().startDetached(std::move(command), run / "opensm.out");
  ASSERT_TRUE(pid && io::PidFile{run / "opensm.pid"}.write(*pid));
  ASSERT_TRUE(eventually([&] {
    return io::readFile(run / "opensm.log").value_or("").find("SUBNET UP") != std::string::npos;
  }));
}

// The new partitions are narrower, so tables as before are too wide.
TEST_F(FabricSystem, goesBackWhereTablesStayTooWide) {
  SimulatedFabric fabric(declared_);
  Muster(cluster_, fabric).bringUp();
  const auto former = tables(fabric);
  const auto file = fabric.options().run_folder / "partitions.conf";
  const auto proven = io::readFile(file).value();
  restartWithItsOwnPartitions(fabric, proven);
  auto narrower = cluster_;
  narrower.fabrics["ib"].partitions[1].full_members = {"gpu001"};
  Muster after(narrower, fabric);
  const auto told = after.tryTo(after.whole, "fabric.partitions");
  EXPECT_THAT(told, HasSubstr("has PKeys"));
  EXPECT_THAT(told,
              HasSubstr("the previous partitions are active again; every table was verified"));
  EXPECT_EQ(io::readFile(file).value(), proven);
  EXPECT_EQ(tables(fabric), former);
}

// Somebody opened the fabric by a file that OpenSM reads well, and the tables stay wide: that file
// is nothing to go back to.
TEST_F(FabricSystem, goesBackOnlyToWhatWasProven) {
  constexpr const char* kOpen = "Default=0x7fff, ipoib : ALL=full ;\n";
  SimulatedFabric fabric(declared_);
  Muster(cluster_, fabric).bringUp();
  const auto file = fabric.options().run_folder / "partitions.conf";
  const auto proven = io::readFile(file).value();
  ASSERT_TRUE(io::writeFileAtomic(file, kOpen));
  restartWithItsOwnPartitions(fabric, kOpen);
  Muster again(cluster_, fabric);
  EXPECT_THAT(again.tryTo(again.whole, "fabric.partitions"), HasSubstr("has PKeys"));
  EXPECT_EQ(io::readFile(file).value(), proven)
      << "these were proven: the file is not what is wrong";
}

TEST_F(FabricSystem, closesAFabricThatATypoOpened) {
  SimulatedFabric fabric(declared_);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  auto before = tables(fabric);
  auto file = fabric.options().run_folder / "partitions.conf";
  ASSERT_TRUE(io::writeFileAtomic(
      file, "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\nbatch=0x00zz10,bla : ;\n"));
  ::kill(*opensm(fabric), SIGHUP);
  ASSERT_TRUE(eventually([&] { return tables(fabric).count("gpu003 mlx5_0 {0xffff}") > 0; }))
      << "OpenSM did not open the fabric: the test tests nothing";
  EXPECT_THAT(muster.verified(muster.whole, "fabric.partitions"),
              HasSubstr("partitions.conf is not the declared one"));
  EXPECT_THAT(muster.verified(node("gpu003"), "fabric.ports"),
              HasSubstr("has PKeys {0xffff}, declared {0x7fff}"));
  EXPECT_EQ(muster.tryTo(muster.whole, "fabric.partitions"), "");
  EXPECT_TRUE(muster.met(muster.whole, "fabric.partitions"));
  EXPECT_EQ(tables(fabric), before);
}

TEST_F(FabricSystem, startsNothingForADeclarationWithAnUnknownMember) {
  SimulatedFabric fabric(declared_);
  cluster_.fabrics["ib"].partitions[1].full_members = {"gpu[001-002]", "gpu0O3"};
  Muster muster(cluster_, fabric);
  for (auto facet : {"fabric.sm", "fabric.partitions", "fabric.links"})
    EXPECT_THAT(muster.tryTo(muster.whole, facet),
                AllOf(StartsWith("blocked"), HasSubstr("gpu0O3")));
  EXPECT_FALSE(muster.met(muster.whole, "fabric.sm"));
  EXPECT_FALSE(opensm(fabric));
}

TEST_F(FabricSystem, namesAPulledUplinkAndLetsTheNodesGoOn) {
  SimulatedFabric fabric(declared_);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  fabric.unlink({"leaf-su1-r0", 9});
  auto report = diffNow(cluster_, fabric);
  ASSERT_EQ(report.exitCode(), DiffReport::kDeviates) << toText(report);
  ASSERT_EQ(report.comparison.deviations.size(), 1u) << toText(report);
  EXPECT_EQ(report.comparison.deviations[0].kind, DeviationKind::MissingLink);
  EXPECT_EQ(report.comparison.deviations[0].at, (Port{"leaf-su1-r0", 9}));
  EXPECT_THAT(muster.tryTo(muster.whole, "fabric.links"),
              HasSubstr("between leaf-su1-r0 port 9 and spine-001 port 1"));
  ASSERT_EQ(muster.context.found.size(), 1u);
  EXPECT_THAT(muster.context.found[0].evidence, HasSubstr("missing-link"));
  EXPECT_FALSE(muster.met(muster.whole, "fabric.links"));
  EXPECT_TRUE(muster.met(muster.whole, "fabric.sm"))
      << "with root GUIDs ftree survives a pulled uplink";
  EXPECT_TRUE(muster.met(node("gpu001"), "fabric.ports"));
}

TEST_F(FabricSystem, keepsOnlyTheMiswiredNodeOut) {
  SimulatedFabric fabric(declared_);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  fabric.unlink({"gpu002 mlx5_0", 1});
  fabric.unlink({"gpu002 mlx5_1", 1});
  fabric.link({"gpu002 mlx5_0", 1}, {"leaf-su1-r1", 2});
  fabric.link({"gpu002 mlx5_1", 1}, {"leaf-su1-r0", 2});
  EXPECT_THAT(muster.tryTo(node("gpu002"), "fabric.ports"),
              AllOf(StartsWith("blocked"), HasSubstr("swap the cables at gpu002 mlx5_0")));
  EXPECT_EQ(muster.context.found.size(), 2u);
  EXPECT_FALSE(muster.met(node("gpu002"), "fabric.ports"));
  EXPECT_TRUE(muster.met(node("gpu001"), "fabric.ports"));
  EXPECT_TRUE(muster.met(node("gpu003"), "fabric.ports"));
  EXPECT_EQ(diffNow(cluster_, fabric).comparison.deviations.size(), 2u);
}

TEST_F(FabricSystem, seesUnknownSendersAndNarrowLinks) {
  auto real = declared_;
  real.devices["unknown mlx5_0"] = {"unknown mlx5_0", false, 1, {}, {}};
  plug(real, {"leaf-su1-r1", 7}, {"unknown mlx5_0", 1});
  findLink(real, {"gpu003 mlx5_1", 1})->width_speed = "1xHDR";
  SimulatedFabric fabric(real);
  auto report = diffNow(cluster_, fabric);
  ASSERT_EQ(report.comparison.deviations.size(), 2u) << toText(report);
  EXPECT_EQ(report.comparison.deviations[0].kind, DeviationKind::WrongWidthSpeed);
  EXPECT_EQ(report.comparison.deviations[0].found, "1xHDR");
  EXPECT_EQ(report.comparison.deviations[1].kind, DeviationKind::ExtraNode);
  EXPECT_EQ(report.comparison.deviations[1].at.node, "unknown mlx5_0");
  Muster muster(cluster_, fabric);
  muster.bringUp();
  EXPECT_TRUE(tables(fabric).count("unknown mlx5_0 {0x7fff}"));
  EXPECT_FALSE(muster.met(node("gpu003"), "fabric.ports"));
  EXPECT_TRUE(muster.met(node("gpu001"), "fabric.ports"));
}

TEST_F(FabricSystem, doesNotTakeALossyDiscoveryForTheTruth) {
  SimulatedFabric fabric(declared_);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  fabric.dropMads("leaf-su1-r1", 10);
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    auto report = diffNow(cluster_, fabric);
    EXPECT_NE(report.exitCode(), DiffReport::kDeviates)
        << "devices that did not answer were called missing\n"
        << toText(report);
    refused += report.exitCode() == DiffReport::kNoAnswer;
  }
  EXPECT_GT(refused, 0);
  fabric.dropMads("leaf-su1-r1", 60);
  EXPECT_EQ(muster.verified(node("gpu001"), "fabric.ports"), "unreadable");
  EXPECT_EQ(muster.verified(muster.whole, "fabric.links"), "unreadable");
  auto outcome = muster.act(muster.whole, "fabric.links");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::Unavailable);
}

/// As switches with in-network reduction have one, each on a port that nobody sees.
constexpr const char* kAggregationNode = "Mellanox Technologies Aggregation Node";

TEST_F(FabricSystem, discoversTheWholeFabricWhereASwitchHasAnAggregationNode) {
  auto real = declared_;
  real.devices[kAggregationNode] = {kAggregationNode, false, 1, {}, {}};
  plug(real, {"leaf-su1-r1", 16}, {kAggregationNode, 1});
  SimulatedFabric fabric(real);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  const auto found =
      runAsync(discover(fabric.processes(), fabric.options()), std::chrono::seconds(60));
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->links, declared_.links);
  EXPECT_TRUE(muster.met(muster.whole, "fabric.links"));
}

// Every HCA is a node for ftree that has no list of them, and nodes at several levels are no fat
// tree.
TEST_F(FabricSystem, keepsTheFatTreeWhereASpineHasAnAggregationNode) {
  auto real = declared_;
  real.devices[kAggregationNode] = {kAggregationNode, false, 1, {}, {}};
  plug(real, {"spine-001", 16}, {kAggregationNode, 1});
  SimulatedFabric fabric(real);
  fabric.unlink({"gpu003 mlx5_1", 1});
  Muster muster(cluster_, fabric);
  muster.bringUp();
  const auto pid = opensm(fabric);
  // A node that comes later: its HCA is told without a restart.
  const auto conf = fabric.options().run_folder / "cn_guids";
  const auto before = io::readFile(conf).value();
  fabric.say("ReLink \"gpu003-mlx5_1\"[1]");
  EXPECT_THAT(muster.verified(muster.whole, "fabric.sm"), HasSubstr("for other nodes"));
  EXPECT_EQ(muster.tryTo(muster.whole, "fabric.sm"), "");
  EXPECT_TRUE(muster.met(muster.whole, "fabric.sm"));
  EXPECT_GT(io::readFile(conf).value().size(), before.size());
  EXPECT_EQ(opensm(fabric), pid);
}

TEST_F(FabricSystem, isNotContentWithAnotherRoutingEngine) {
  auto flat = railCluster(2, 1, 4, 1, 0);
  auto& pair = flat.fabrics["ib"];  // no fat tree: OpenSM falls back to minhop and says SUBNET UP
  pair.shape = inventory::FabricShape::Explicit;
  pair.cables = {{.from_node = "gpu001", .to_node = "sw1", .to_port = 1},
                 {.from_node = "gpu002", .to_node = "sw2", .to_port = 1},
                 {.from_node = "controller mlx5_0", .to_node = "sw1", .to_port = 2},
                 {.from_node = "sw1", .from_port = 8, .to_node = "sw2", .to_port = 8}};
  SimulatedFabric fabric(declared(flat));
  Muster muster(flat, fabric);
  EXPECT_THAT(muster.tryTo(muster.whole, "fabric.sm"),
              AllOf(StartsWith("blocked"),
                    HasSubstr("routing engine 'minhop' is in force, 'ftree' is declared")));
  EXPECT_EQ(muster.context.found.size(), 1u);
  EXPECT_FALSE(muster.met(muster.whole, "fabric.sm"));
  flat.fabrics["ib"].routing = "minhop";
  Muster again(flat, fabric);
  again.bringUp();
}

// What was wrong: the default, ftree, could never be met, and the fabric was blocked for ever.
TEST_F(FabricSystem, aFabricOfOneSwitchComesUpByItsDefault) {
  const auto one = railCluster(2, 1, 4, 1, 0);
  SimulatedFabric fabric(declared(one));
  Muster muster(one, fabric);
  muster.bringUp();
  EXPECT_TRUE(muster.met(muster.whole, "fabric.sm"));
}

TEST_F(FabricSystem, saysSoWhenAnotherSubnetManagerIsMaster) {
  SimulatedFabric fabric(declared_);
  muster::test::TempFolder folder;
  auto options = fabric.options();
  options.tool_env["SIM_HOST"] = ibsimNodeId("gpu001 mlx5_0");
  Tools tools(fabric.processes(), options);
  auto log = folder / "log";
  ASSERT_TRUE(io::writeFileAtomic(
      folder / "conf",
      fmt::format(
          "sm_priority 15\nforce_log_flush TRUE\nconsole off\nlog_file {}\ndump_files_dir {}\n",
          log.string(), folder.path().string())));
  auto command = tools.command("opensm", {"-F", (folder / "conf").string()});
  command.env["OSM_CACHE_DIR"] = command.env["OSM_TMP_DIR"] = folder.path().string();
  auto other = fabric.processes().start(command, folder / "out");
  ASSERT_TRUE(other);
  ASSERT_TRUE(eventually(
      [&] { return io::readFile(log).value_or("").find("SUBNET UP") != std::string::npos; }));
  Muster muster(cluster_, fabric);
  EXPECT_THAT(muster.tryTo(muster.whole, "fabric.sm"),
              AllOf(StartsWith("blocked"), HasSubstr("another subnet manager is master")));
  (*other)->terminate(std::chrono::seconds(5));
}

TEST_F(FabricSystem, namesASubnetManagerThatNobodyDeclaredAlsoWhenItOnlyStandsBy) {
  SimulatedFabric fabric(declared_);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  OtherOpensm rogue(fabric, "gpu002 mlx5_0", "sm_priority 1\n");
  ASSERT_TRUE(rogue.standsBy());
  EXPECT_THAT(muster.verified(muster.whole, "fabric.sm"), HasSubstr("gpu002 mlx5_0 (LID "));
  EXPECT_THAT(muster.verified(muster.whole, "fabric.sm"),
              HasSubstr("runs a subnet manager that is not declared"));
}

TEST_F(FabricSystem, isContentWhenTheDeclaredStandbyStandsByAndSaysHowToStartIt) {
  cluster_.fabrics["ib"].subnet_managers = {"controller", "gpu002"};
  SimulatedFabric fabric(declared_);
  Muster muster(cluster_, fabric);
  muster.bringUp();
  EXPECT_THAT(muster.tryTo(muster.whole, "fabric.standby"),
              AllOf(HasSubstr("no standby subnet manager answers on gpu002 mlx5_0"),
                    HasSubstr("muster fabric render")));
  EXPECT_TRUE(muster.met(node("gpu002"), "fabric.ports")) << "its own node must not wait for it";
  OtherOpensm standby(fabric, "gpu002 mlx5_0", "sm_priority 13\n");
  ASSERT_TRUE(standby.standsBy());
  EXPECT_EQ(muster.tryTo(muster.whole, "fabric.standby"), "");
  EXPECT_TRUE(muster.met(muster.whole, "fabric.standby"));
  EXPECT_TRUE(muster.met(muster.whole, "fabric.sm"));
}

TEST_F(FabricSystem, healsWhatItsRepairsSay) {
  SimulatedFabric fabric(declared_);
  fabric.unlink({"gpu001 mlx5_0", 1});
  fabric.unlink({"gpu002 mlx5_0", 1});
  fabric.unlink({"leaf-su1-r1", 9});
  fabric.link({"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 2});
  fabric.link({"gpu002 mlx5_0", 1}, {"leaf-su1-r0", 1});
  auto report = diffNow(cluster_, fabric);
  ASSERT_EQ(report.comparison.repairs.size(), 2u) << toText(report);
  EXPECT_THAT(toText(report), HasSubstr("swap the cables in ports 1 and 2 of leaf-su1-r0"));
  fabric.carryOut(report.comparison.repairs);
  EXPECT_EQ(diffNow(cluster_, fabric).exitCode(), DiffReport::kEqual);
}

TEST_F(FabricSystem, namesTwoHcasWithOneGuid) {
  SimulatedFabric fabric(declared_);
  auto guid = diffNow(cluster_, fabric).found.devices.at("gpu001 mlx5_0").guid;
  fabric.say(fmt::format("Guid \"gpu003-mlx5_0\" {}", guid));
  auto report = diffNow(cluster_, fabric);
  EXPECT_EQ(report.exitCode(), DiffReport::kDeviates) << toText(report);
  ASSERT_EQ(report.comparison.repairs.size(), 1u) << toText(report);
  EXPECT_THAT(report.comparison.repairs[0].text,
              AllOf(HasSubstr("gpu001 mlx5_0"), HasSubstr("gpu003 mlx5_0"),
                    HasSubstr("have the same GUID")));
}

TEST_F(FabricSystem, watchTellsOnlyWhatHasChanged) {
  SimulatedFabric fabric(declared_);
  SystemClock clock;
  std::vector<int> codes;
  auto tell = [&](const DiffReport& report) {
    codes.push_back(report.exitCode());
    if (codes.size() == 1) fabric.unlink({"leaf-su1-r0", 9});
    if (codes.size() == 2) fabric.say("ReLink \"leaf-su1-r0\"[9]");
    return codes.size() < 3;
  };
  auto ended = runAsync(watch(cluster_, fabric.processes(), clock, fabric.options(),
                              std::chrono::milliseconds(50), tell),
                        std::chrono::seconds(60));
  EXPECT_TRUE(ended);
  EXPECT_EQ(codes,
            (std::vector<int>{DiffReport::kEqual, DiffReport::kDeviates, DiffReport::kEqual}));
}

TEST_F(FabricSystem, saysWhatIsMissingWhenThereIsNoFabric) {
  FabricOptions options{std::filesystem::temp_directory_path() / "muster-none",
                        {"ibsim-run"},
                        {{"IBSIM_SOCKNAME", fmt::format("nobody-{}", ::getpid())}}};
  options.discovery_limit = std::chrono::seconds(1);
  auto processes = io::makeProcessRunner();
  auto report = runAsync(diff(cluster_, *processes, options), std::chrono::seconds(60));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->exitCode(), DiffReport::kNoAnswer);
  EXPECT_THAT(toText(*report), HasSubstr("muster-ibnetdisc"));
}

}  // namespace
}  // namespace muster::fabric::test
