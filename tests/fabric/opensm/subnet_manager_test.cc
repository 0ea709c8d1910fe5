// SPDX-License-Identifier: Apache-2.0
// OpenSM's files and words: rendering, its log, the tools' answers.
#include "fabric/opensm/subnet_manager.h"
#include "fabric/fabric_diff.h"
#include "fabric/opensm/opensm_files.h"

#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace muster::fabric::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The declared fabric as a discovery would see it: every device with GUIDs.
Topology seen(const Topology& declared) {
  Topology found = declared;
  int next = 1;
  for (auto& [name, device] : found.devices) {
    device.guid = fmt::format("0x{:016x}", 0x100 * next);
    device.addresses[device.is_switch ? 0 : 1] = {
        device.is_switch ? device.guid : fmt::format("0x{:016x}", 0x100 * next + 1), next};
    ++next;
  }
  return found;
}

TEST(OpensmConf, namesTheSpinesAsRootsAndTheOptionsThatMatter) {
  auto cluster = railCluster(2);
  auto topology = declared(cluster);
  KnownGuids known;
  known.learn(topology, seen(topology));
  auto rules = declaredPartitions(cluster, cluster.fabrics["ib"], topology).value();
  auto files =
      renderSm(cluster.fabrics["ib"], topology, rules, known, {"0x0000000000000101", "/run/x", 0});
  for (auto line :
       {"guid 0x0000000000000101\n", "routing_engine ftree\n", "cn_guid_file /run/x/cn_guids\n",
        "root_guid_file /run/x/root_guids\n", "partition_config_file /run/x/partitions.conf\n",
        "part_enforce both\n", "allow_both_pkeys FALSE\n", "force_log_flush TRUE\n",
        "console off\n", "exit_on_fatal TRUE\n"})
    EXPECT_THAT(files.opensm_conf, HasSubstr(line));
  EXPECT_EQ(files.root_guids,
            known.switches.at("spine-001") + "\n" + known.switches.at("spine-002") + "\n");
  EXPECT_EQ(files.cn_guids,
            known.hcas.at("controller mlx5_0") + "\n" + known.hcas.at("gpu001 mlx5_0") + "\n" +
                known.hcas.at("gpu001 mlx5_1") + "\n" + known.hcas.at("gpu002 mlx5_0") + "\n" +
                known.hcas.at("gpu002 mlx5_1") + "\n");
  const auto digest = files.digest();
  files.cn_guids.clear();
  EXPECT_EQ(files.digest(), digest) << "a node that comes is no reason to restart";
  EXPECT_THAT(files.partitions,
              HasSubstr("batch=0x0010 : " + known.hcas.at("gpu001 mlx5_0") + "=full"));
}

TEST(OpensmConf, digestOfTheDeclarationNeedsNoDiscoveryAndChangesWithIt) {
  auto cluster = railCluster(2);
  auto& fabric = cluster.fabrics["ib"];
  auto before = declaredSmDigest(fabric, declared(cluster));
  EXPECT_EQ(declaredSmDigest(fabric, declared(cluster)), before);
  fabric.routing = "updn";
  auto updn = declaredSmDigest(fabric, declared(cluster));
  EXPECT_NE(updn, before);
  fabric.spines_per_su = 3;
  EXPECT_NE(declaredSmDigest(fabric, declared(cluster)), updn);
}

TEST(OpensmConf, hasNoRootsInAFabricOfOneTier) {
  auto cluster = railCluster(2, 1, 4, 1, 0);
  EXPECT_TRUE(rootSwitches(declared(cluster)).empty());
}

TEST(OpensmConf, refusesEnginesAndSubnetManagersThatAreNotThere) {
  auto fabric = railCluster(1).fabrics["ib"];
  EXPECT_TRUE(checkSubnetManagers(fabric));
  fabric.routing = "ftree,no_fallback";
  EXPECT_THAT(checkSubnetManagers(fabric).error().text(),
              HasSubstr("no routing engine 'no_fallback'"));
  fabric.routing = "ftree";
  fabric.subnet_managers = {"controller", "gpu001"};
  EXPECT_TRUE(checkSubnetManagers(fabric));
  fabric.subnet_managers = {"gpu001", "controller"};
  EXPECT_THAT(checkSubnetManagers(fabric).error().text(),
              HasSubstr("the first of subnet_managers must be controller"));
}

TEST(OpensmConf, takesEnginesInOrderOfPreference) {
  auto cluster = railCluster(2);
  auto& fabric = cluster.fabrics["ib"];
  fabric.routing = "updn,ftree";
  EXPECT_TRUE(checkSubnetManagers(fabric));
  const auto files = renderSm(fabric, declared(cluster), {}, {}, {"0x1", "/run/x", 0});
  EXPECT_THAT(files.opensm_conf, HasSubstr("routing_engine updn,ftree\n"));
  EXPECT_THAT(files.opensm_conf, HasSubstr("cn_guid_file")) << "it may come to ftree";
  fabric.routing = "updn";
  EXPECT_THAT(renderSm(fabric, declared(cluster), {}, {}, {"0x1", "/run/x", 0}).opensm_conf,
              ::testing::Not(HasSubstr("cn_guid_file")));
}

TEST(KnownGuids, learnAHcaOnlyWhereItIsDeclared) {
  auto topology = declared(railCluster(2));
  auto found = seen(topology);
  unplug(found, {"gpu001 mlx5_0", 1});
  plug(found, {"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 6});
  KnownGuids known;
  known.learn(topology, found);
  EXPECT_EQ(known.hcas.count("gpu001 mlx5_0"), 0u);
  EXPECT_EQ(known.hcas.count("gpu001 mlx5_1"), 1u);
}

TEST(KnownGuids, keepANodeThatIsSwitchedOffAndFollowAReplacedHca) {
  auto topology = declared(railCluster(2));
  auto found = seen(topology);
  KnownGuids known;
  known.learn(topology, found);
  auto old = known.hcas.at("gpu001 mlx5_0");
  auto off = found;
  unplug(off, {"gpu001 mlx5_0", 1});
  off.devices.erase("gpu001 mlx5_0");
  known.learn(topology, off);
  EXPECT_EQ(known.hcas.at("gpu001 mlx5_0"), old);
  found.devices["gpu001 mlx5_0"].addresses[1].guid = "0x00000000deadbeef";
  known.learn(topology, found);
  EXPECT_EQ(known.hcas.at("gpu001 mlx5_0"), "0x00000000deadbeef");
  // The old HCA in another node: it must not stay a member under its former name.
  found.devices["gpu002 mlx5_0"].addresses[1].guid = "0x00000000deadbeef";
  found.devices["gpu001 mlx5_0"].addresses[1].guid = old;
  known.learn(topology, found);
  EXPECT_EQ(known.hcas.at("gpu001 mlx5_0"), old);
  EXPECT_EQ(known.hcas.at("gpu002 mlx5_0"), "0x00000000deadbeef");
}

TEST(KnownGuids, surviveTheFileAndDropWhatIsNotOurs) {
  auto topology = declared(railCluster(2));
  KnownGuids known;
  known.learn(topology, seen(topology));
  auto again = KnownGuids::fromJson(known.toJson());
  EXPECT_EQ(again.hcas, known.hcas);
  EXPECT_EQ(again.switches, known.switches);
  EXPECT_TRUE(KnownGuids::fromJson("{\"ports\": {\"a\": \"0x1=full ; x\"}}").hcas.empty());
  EXPECT_TRUE(KnownGuids::fromJson("half a fi").hcas.empty());
}

constexpr std::string_view kUp =
    R"(Nov 20 14:28:41 322883 [7DB41740] 0x80 -> Entering DISCOVERING state
Nov 20 14:28:41 328749 [7AB3A6C0] 0x80 -> Entering MASTER state
Nov 20 14:28:41 330887 [7AB3A6C0] 0x02 -> osm_ucast_mgr_process: ftree tables configured on all switches
Nov 20 14:28:41 333013 [7AB3A6C0] 0x02 -> SUBNET UP
)";

TEST(SmLog, tellsWhoRoutesAndWhetherTheSubnetIsUp) {
  auto log = readSmLog(kUp);
  EXPECT_TRUE(log.master);
  EXPECT_TRUE(log.subnet_up);
  EXPECT_EQ(log.routing_engine, "ftree");
  EXPECT_FALSE(log.partitions_refused);
  EXPECT_TRUE(log.complaints.empty());
}

TEST(SmLog, seesTheFallBackToMinhopAndWhy) {
  auto log = readSmLog(
      std::string(kUp) +
      R"(Nov 20 14:20:07 368141 [709B46C0] 0x02 -> Fabric rank is 1 (should be between 2 and 8)
Nov 20 14:20:07 368148 [709B46C0] 0x01 -> ucast_mgr_route: ftree: cannot build lid matrices
Nov 20 14:20:07 368289 [709B46C0] 0x02 -> osm_ucast_mgr_process: minhop tables configured on all switches
Nov 20 14:20:07 369184 [709B46C0] 0x02 -> SUBNET UP
)");
  EXPECT_EQ(log.routing_engine, "minhop");
  EXPECT_THAT(log.complaints, ElementsAre(HasSubstr("cannot build lid matrices")));
}

TEST(SmLog, rememberThatPartitionsWereThrownAwayUntilASweepReadsThemAgain) {
  const std::string typo =
      std::string(kUp) +
      R"(Nov 20 14:28:54 672938 [7AB3A6C0] 0x01 -> parse_part_conf: PARSE ERROR: line 2: bad partition definition
Nov 20 14:28:54 672958 [7AB3A6C0] 0x01 -> osm_prtn_make_partitions: Partition configuration in error; retrying with default config
)";
  const std::string swept = "Nov 20 14:28:54 674148 [7AB3A6C0] 0x02 -> SUBNET UP\n";
  EXPECT_TRUE(readSmLog(typo).partitions_refused);
  EXPECT_TRUE(readSmLog(typo + swept).partitions_refused);
  EXPECT_FALSE(readSmLog(typo + swept + swept).partitions_refused);
}

TEST(SmLog, isNotUpBeforeTheFirstSweepOrAsStandby) {
  EXPECT_FALSE(readSmLog("").subnet_up);
  EXPECT_FALSE(readSmLog(std::string(kUp) +
                         "Nov 20 14:28:41 328749 [7AB3A6C0] 0x80 -> Entering STANDBY state\n")
                   .subnet_up);
}

class SmLogFile : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::PidFile{options_.run_folder / "opensm.pid"}.write(::getpid()));
  }
  /// Into the same file, as OpenSM does.
  void write(std::string_view text, std::ios::openmode how) {
    std::ofstream(options_.run_folder / "opensm.log", how) << text;
  }
  muster::test::TempFolder folder_;
  FabricOptions options_{folder_.path(), {}, {}};
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  Tools tools_{*processes_, options_};
};

TEST_F(SmLogFile, thatOpensmEmptiedForgetsNothing) {
  SubnetManager manager(*processes_, tools_, folder_.path());
  write(std::string(kUp) + "Nov 20 14:28:41 330887 [7A] 0x02 -> half a li", std::ios::trunc);
  EXPECT_EQ(manager.log().routing_engine, "ftree");
  write("", std::ios::trunc);
  EXPECT_TRUE(manager.log().subnet_up);
  write("Nov 20 14:29:41 333013 [7AB3A6C0] 0x02 -> SUBNET UP\n", std::ios::app);
  for (const auto& log :
       {manager.log(), SubnetManager(*processes_, tools_, folder_.path()).log()}) {
    EXPECT_TRUE(log.master);
    EXPECT_TRUE(log.subnet_up);
    EXPECT_EQ(log.routing_engine, "ftree");
  }
  write(
      "Nov 20 14:30:07 368289 [709B46C0] 0x02 -> osm_ucast_mgr_process: minhop tables configured "
      "on all switches\n",
      std::ios::app);
  EXPECT_EQ(manager.log().routing_engine, "minhop") << "what it says now counts";
  EXPECT_EQ(SubnetManager(*processes_, tools_, folder_.path()).log().routing_engine, "minhop");
}

TEST_F(SmLogFile, ofAnotherProcessProvesNothing) {
  write(kUp, std::ios::trunc);
  EXPECT_TRUE(SubnetManager(*processes_, tools_, folder_.path()).log().subnet_up);
  ASSERT_TRUE(io::PidFile{folder_ / "opensm.pid"}.write(::getppid()));
  write("", std::ios::trunc);
  const auto log = SubnetManager(*processes_, tools_, folder_.path()).log();
  EXPECT_FALSE(log.subnet_up);
  EXPECT_EQ(log.routing_engine, "");
}

TEST_F(SmLogFile, anOpensmThatIsNotMustersIsNamedAndNothingIsStartedBesideIt) {
  std::filesystem::copy("/bin/sleep", folder_ / "opensm");
  io::Command command;
  command.program = (folder_ / "opensm").string();
  command.args = {"600"};
  auto other = processes_->start(command, folder_ / "other.out");
  ASSERT_TRUE(other) << other.error().str();
  std::filesystem::remove(folder_ / "opensm.pid");  // it is this test's own
  SubnetManager manager(*processes_, tools_, folder_.path());
  const auto started = manager.start({});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(started.error().str(), HasSubstr("systemctl mask opensm"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "opensm.conf"));
  const FabricOptions twin{folder_.path(), {"ibsim-run"}, {}};
  const Tools simulated(*processes_, twin);
  EXPECT_EQ(SubnetManager(*processes_, simulated, folder_.path()).rival(), "")
      << "in the twin many run on one machine";
  (*other)->terminate(std::chrono::seconds(5));
}

TEST(SmLogReader, readsALogThatGrowsInPiecesAsTheWholeOne) {
  constexpr std::string_view kLog =
      "Nov 20 14:28:41 330887 [7A] 0x80 -> Entering MASTER state\nNov 20 14:28:41 330887 [7A] 0x02 "
      "-> osm_ucast_mgr_process: ftree tables configured on all switches\n"
      "Nov 20 14:28:41 330887 [7A] 0x02 -> SUBNET UP\nNov 20 14:28:42 330887 [7A] 0x01 -> x: ERR "
      "AB0B: y\nNov 20 14:28:42 330887 [7A] 0x02 -> SUBNET UP\n";
  const auto whole = readSmLog(kLog);
  EXPECT_EQ(whole.sweeps, 2u);
  for (std::size_t step : {1u, 7u, 80u}) {
    SmLogReader reader;
    for (std::size_t at = 0; at < kLog.size(); at += step) reader.feed(kLog.substr(at, step));
    EXPECT_EQ(reader.state().sweeps, whole.sweeps);
    EXPECT_EQ(reader.state().routing_engine, "ftree");
    EXPECT_EQ(reader.state().complaints, whole.complaints);
    EXPECT_TRUE(reader.state().subnet_up);
  }
}

TEST(DiffReport, hasAnExitCodeForEachAnswer) {
  DiffReport report;
  report.fabric = "ib";
  EXPECT_EQ(report.exitCode(), 0);
  EXPECT_THAT(toText(report), HasSubstr("all as declared"));
  report.comparison.deviations.push_back(
      {DeviationKind::Miswired, {"gpu001 mlx5_0", 1}, "here", "there", "move it"});
  report.comparison.repairs.push_back(
      {"move it", {{Move::Kind::MoveEnd, {"gpu001 mlx5_0", 1}, {"leaf", 2}, {"leaf", 1}}}});
  EXPECT_EQ(report.exitCode(), 1);
  EXPECT_THAT(toText(report), HasSubstr("to do:\n   1. move it\n"));
  auto json = nlohmann::json::parse(toJson(report));
  EXPECT_EQ(json["deviations"][0]["kind"], "miswired");
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["repairs"][0]["moves"][0],
            nlohmann::json::parse(
                R"({"do": "move-end", "other_end": {"device": "gpu001 mlx5_0", "port": 1},
      "from": {"device": "leaf", "port": 2}, "to": {"device": "leaf", "port": 1}})"));
  report.comparison.deviations.clear();
  report.error = "a MAD timed out";
  EXPECT_EQ(report.exitCode(), 2);
  EXPECT_EQ(nlohmann::json::parse(toJson(report))["equal"], false);
}

// What the unit lets OpenSM read: what muster writes, and of OpenSM's own list of options nothing
// that could leave the fabric.
const std::filesystem::path kUnitFolder = "/var/lib/muster-opensm";

std::string refusal(std::string_view name, const std::string& text) {
  const auto done = checkOpensmFile(name, text, kUnitFolder);
  return done ? "" : done.error().str();
}

SmFiles rendered() {
  auto cluster = railCluster(2);
  auto topology = declared(cluster);
  const auto& fabric = cluster.fabrics["ib"];
  auto rules = declaredPartitions(cluster, fabric, topology).value();
  KnownGuids known;
  known.hcas["gpu001 mlx5_0"] = "0x0000000000000201";
  known.switches["spine-001"] = "0x0000000000000301";
  return renderSm(fabric, topology, rules, known, {"0x0000000000000101", kUnitFolder, 1});
}

TEST(OpensmFiles, takesWhatMusterWrites) {
  const auto files = rendered();
  EXPECT_EQ(refusal("opensm.conf", files.opensm_conf), "");
  EXPECT_EQ(refusal("root_guids", files.root_guids), "");
  EXPECT_EQ(refusal("io_guids", files.io_guids), "");
  EXPECT_EQ(refusal("cn_guids", files.cn_guids), "");
  EXPECT_EQ(refusal("partitions.conf", files.partitions), "");
  EXPECT_NE(files.root_guids, "");
}

/// Options with the values that OpenSM has of its own, as it writes them itself.
std::map<std::string, std::string> optionsOfOpensm() {
  muster::test::TempFolder folder;
  io::Command make{.program = "opensm", .args = {"-c", (folder / "template").string()}};
  make.working_dir = folder.path();
  const auto done = io::runBlocking(make);
  EXPECT_TRUE(done) << done.error().str();
  std::map<std::string, std::string> out;
  std::istringstream lines(io::readFile(folder / "template").value_or(""));
  for (std::string line; std::getline(lines, line);)
    if (const auto blank = line.find(' '); blank != std::string::npos && !line.starts_with("#"))
      out[line.substr(0, blank)] = line.substr(blank + 1);
  return out;
}

TEST(OpensmFiles, ofAllOptionsOfOpensmOnlyThoseThatMusterWrites) {
  const auto files = rendered();
  const auto options = optionsOfOpensm();
  ASSERT_GT(options.size(), 150u);
  for (const char* known :
       {"event_plugin_name", "console", "log_file", "dump_files_dir", "sm_assigned_guid"})
    EXPECT_TRUE(options.contains(known)) << known << ": does this still read OpenSM's list?";
  for (const auto& [option, value] : options) {
    if (files.opensm_conf.contains("\n" + option + " ")) continue;
    const auto said = refusal("opensm.conf", files.opensm_conf + option + " " + value + "\n");
    // What a fabric without a fat tree does not need.
    const bool may = option == "max_reverse_hops" || option == "io_guid_file";
    EXPECT_TRUE(may || said.contains("is none that this unit takes")) << option << ": " << said;
  }
}

TEST(OpensmFiles, valuesThatLeadElsewhere) {
  const auto good = rendered().opensm_conf;
  for (const char* line : {"event_plugin_name libosmevil.so",
                           "console local",
                           "console socket",
                           "console",
                           "log_file /etc/passwd",
                           "log_file /var/lib/muster-opensm/../x",
                           "dump_files_dir /",
                           "root_guid_file /etc/shadow",
                           "partition_config_file partitions.conf",
                           "guid 0x1",
                           "guid 0x00000000000001010",
                           "sm_priority 1 1",
                           "sm_priority -1",
                           "routing_engine file;x",
                           "routing_engine ",
                           "use_ucast_cache yes",
                           " event_plugin_name x",
                           "EVENT_PLUGIN_NAME x",
                           "#log_file x",
                           "log_flags 0xff"})
    EXPECT_THAT(refusal("opensm.conf", good + line + "\n"), HasSubstr("line ")) << line;
  EXPECT_THAT(refusal("opensm.conf", good + "routing_engine " + std::string(600, 'a') + "\n"),
              HasSubstr("more than 500 bytes"));
  EXPECT_THAT(refusal("opensm.conf", "console off\n"), HasSubstr("guid is missing"));
}

TEST(OpensmFiles, listsAreListsAndPartitionsAreRead) {
  EXPECT_EQ(refusal("guid2lid", "0x0000000000000101 0x0001 0x0001\n"), "");
  EXPECT_NE(refusal("guid2lid", "; rm\n"), "");
  EXPECT_NE(refusal("root_guids", "0x1\n"), "");
  EXPECT_NE(refusal("cn_guids", "0x0000000000000101 # x\n"), "");
  // OpenSM answers a typo with a fabric that is open to all.
  EXPECT_NE(refusal("partitions.conf", "Default=0x7fff: ALL=ful;\n"), "");
  for (const char* name : {"", "osm-plugin.so", "../opensm.conf", "prefix-routes.conf"})
    EXPECT_NE(refusal(name, ""), "") << name;
}

/// What is declared where nothing else is, for `spines` spines over one leaf a rail.
std::string routed(inventory::Cluster cluster, const std::string& declared_routing = "ftree") {
  cluster.fabrics["ib"].routing = declared_routing;
  return routingOf(cluster.fabrics["ib"], declared(cluster));
}

TEST(OpensmRouting, isAsDeclared) {
  EXPECT_EQ(routed(railCluster(3)), "ftree");
  EXPECT_EQ(routed(railCluster(3), "updn,ftree"), "updn,ftree");
}

// OpenSM 3.3.23 over ibsim: ftree ends with minhop tables there, updn with its own.
TEST(OpensmRouting, oneSwitchIsNoTree) {
  const auto one = railCluster(2, 1, 4, 1, 0);
  EXPECT_EQ(routed(one), "minhop");
  EXPECT_EQ(routed(one, "updn"), "updn");
  EXPECT_EQ(routed(one, "ftree,updn"), "ftree,updn") << "OpenSM takes the second then";
  const auto files = renderSm(one.fabrics.at("ib"), declared(one), {}, {},
                              {"0x0002c90300100001", "/run/muster-opensm", 0});
  EXPECT_THAT(files.opensm_conf, HasSubstr("\nrouting_engine minhop\n"));
  EXPECT_THAT(files.opensm_conf, Not(HasSubstr("cn_guid_file")));
  EXPECT_EQ(files.cn_guids, "");
}

}  // namespace
}  // namespace muster::fabric::test
