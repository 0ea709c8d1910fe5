// SPDX-License-Identifier: Apache-2.0
// Files and units of the fabric's services on a node, with a crash at every point.
#include "agent/tasks/node_service.h"
#include "agent/tasks/nvlink_probe.h"

#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class NodeServiceTest : public ::testing::Test {
 protected:
  NodeServiceTest() {
    for (const char* program :
         {"usr/sbin/opensm", "usr/bin/nvidia-imex", "usr/bin/nv-fabricmanager", "usr/sbin/dcb"})
      put(program, "");
    programs.on("systemctl", "");
    for (const char* verb : {"systemctl start", "systemctl restart"})
      programs.on(verb, [this](const io::Command&) -> Result<io::ProcessExit> {
        state_ = starts_ ? "active" : "failed";
        ++read_;
        return io::ProcessExit{};
      });
    programs.on("systemctl show", [this](const io::Command&) -> Result<io::ProcessExit> {
      return io::ProcessExit{0, state_ + "\n", {}};
    });
    programs.on("journalctl", "osm_vendor_bind: ERR 5425: no port\n");
  }
  void put(const std::string& path, const std::string& content) {
    if (!io::makeDirs((root / path).parent_path()) || !io::writeFileAtomic(root / path, content))
      throw std::runtime_error(path);
  }
  std::string at(const std::string& path) const {
    return io::readFile(root / path).value_or("(none)");
  }
  Result<nlohmann::json> set(nlohmann::json params) {
    return muster::test::runAsync(
        context, setNodeService(tools, std::move(params), std::make_shared<TaskContext>("t", 60s)));
  }
  template <class T>
  static Async<T> wrapped(Task<T> work) {
    co_return co_await std::move(work);
  }
  std::string probe(const std::string& name) {
    return muster::test::runAsync(context, wrapped(nodeServiceProbe(tools, name))).value();
  }

  muster::test::TempFolder folder;
  fs::path root = folder.path();
  muster::test::ScriptedPrograms programs;
  Workers workers{1};
  FakeClock clock;
  asio::io_context context;
  TaskTools tools{root, "", programs, workers, clock, "muster-agent", {}};
  std::string state_ = "inactive";
  bool starts_ = true;
  int read_ = 0;  ///< how often the service has read its files
  nlohmann::json imex{{"service", "imex"},
                      {"value", "v1"},
                      {"files", {{"nodes_config.cfg", "10.0.0.1\n10.0.0.2\n"}}}};
  nlohmann::json opensm{{"service", "opensm"},
                        {"value", "s1"},
                        {"files",
                         {{"opensm.conf", "guid 0x1\n"},
                          {"partitions.conf", "Default=0x7fff : ALL;\n"},
                          {"guid2lid", "0x1 1 1\n"},
                          {"muster-opensm.service", "[Unit]\n"}}}};
};

TEST_F(NodeServiceTest, writesStartsAndTells) {
  EXPECT_EQ(probe("imex"), "");
  const auto done = set(imex);
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(at("etc/nvidia-imex/nodes_config.cfg"), "10.0.0.1\n10.0.0.2\n");
  EXPECT_EQ(programs.count("systemctl enable nvidia-imex.service"), 1u);
  EXPECT_EQ(probe("imex"), "v1");
  state_ = "failed";
  EXPECT_EQ(probe("imex"), "not active: failed");
  state_ = "active";
  put("etc/nvidia-imex/nodes_config.cfg", "10.0.0.1\n");
  EXPECT_EQ(probe("imex"), "changed: nodes_config.cfg");
}

TEST_F(NodeServiceTest, theSameAgainStartsNothing) {
  ASSERT_TRUE(set(imex));
  ASSERT_TRUE(set(imex));
  EXPECT_EQ(read_, 1);
  imex["files"]["nodes_config.cfg"] = "10.0.0.1\n10.0.0.2\n10.0.0.3\n";
  imex["value"] = "v2";
  ASSERT_TRUE(set(imex));
  EXPECT_EQ(read_, 2) << "IMEX reads its nodes only when it starts";
  EXPECT_EQ(probe("imex"), "v2");
}

// A kill between writing the files and starting the service leaves files that are right and a
// service that has not read them.
TEST_F(NodeServiceTest, aKillBeforeTheRestartIsMadeGood) {
  ASSERT_TRUE(set(imex));
  fs::remove(root / "etc/muster/services/imex.json");  // what the task does first
  put("etc/nvidia-imex/nodes_config.cfg", "10.0.0.1\n10.0.0.9\n");
  imex["files"]["nodes_config.cfg"] = "10.0.0.1\n10.0.0.9\n";
  imex["value"] = "v2";
  EXPECT_EQ(probe("imex"), "") << "nobody knows what it runs with";
  ASSERT_TRUE(set(imex));
  EXPECT_EQ(read_, 2);
  EXPECT_EQ(probe("imex"), "v2");
}

TEST_F(NodeServiceTest, aServiceThatDoesNotStartIsTriedAgain) {
  starts_ = false;
  const auto failed = set(opensm);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(), HasSubstr("ERR 5425"));
  EXPECT_EQ(probe("opensm"), "");
  starts_ = true;
  ASSERT_TRUE(set(opensm));
  EXPECT_EQ(probe("opensm"), "s1");
}

// A unit that runs once fails within `systemctl start`, which only says where to look.
TEST_F(NodeServiceTest, whatTheServiceSaidIsToldWhereItsStartIsRefused) {
  programs.fails("systemctl start", 1,
                 "Job for muster-opensm.service failed. See \"journalctl -xeu "
                 "muster-opensm.service\" for details.\n");
  const auto failed = set(opensm);
  ASSERT_FALSE(failed);
  EXPECT_THAT(
      failed.error().str(),
      HasSubstr("muster-opensm.service did not start; its last output: osm_vendor_bind: ERR 5425"));
  EXPECT_EQ(probe("opensm"), "");
}

TEST_F(NodeServiceTest, partitionsAloneNeedNoRestart) {
  ASSERT_TRUE(set(opensm));
  EXPECT_EQ(programs.count("systemctl daemon-reload"), 1u);
  opensm["files"]["partitions.conf"] = "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\n";
  opensm["value"] = "s2";
  ASSERT_TRUE(set(opensm));
  EXPECT_EQ(read_, 1);
  EXPECT_EQ(programs.count("systemctl reload muster-opensm.service"), 1u);
  opensm["files"]["opensm.conf"] = "guid 0x2\n";
  ASSERT_TRUE(set(opensm));
  EXPECT_EQ(read_, 2);
}

// The package brings opensm.service, enabled: at a take-over it would open the fabric with files of
// its own.
TEST_F(NodeServiceTest, thePackagesOwnServiceIsSilencedBeforeOursStarts) {
  ASSERT_TRUE(set(opensm));
  std::vector<std::string> verbs;
  for (const auto& command : programs.commands())
    verbs.push_back(muster::test::ScriptedPrograms::wordsOf(command));
  const auto at = [&verbs](const std::string& words) {
    return std::find(verbs.begin(), verbs.end(), words) - verbs.begin();
  };
  const auto start = at("systemctl start muster-opensm.service");
  for (const char* first : {"systemctl disable --now opensm.service",
                            "systemctl mask opensm.service", "systemctl stop opensm@*"})
    EXPECT_LT(at(first), start) << first;
  EXPECT_LT(start, static_cast<std::ptrdiff_t>(verbs.size()));
  programs.on("systemctl list-units", "opensm@0x1.service loaded active running OpenSM\n");
  EXPECT_EQ(probe("opensm"), "rival: opensm@0x1.service");
  programs.clear();
  const auto refused = set(opensm);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("opensm@0x1.service runs and cannot be stopped"));
  programs.on("systemctl list-units", "");
  programs.fails("systemctl mask", 1,
                 "Failed to mask unit: File /etc/systemd/system/opensm.service already exists.\n");
  EXPECT_THAT(set(opensm).error().str(), HasSubstr("already exists"));
  programs.clear();
  ASSERT_TRUE(set(imex));
  EXPECT_EQ(programs.count("systemctl mask"), 0u) << "nobody rivals IMEX";
}

// What marks runs once: that its files are right says nothing of what somebody has set since.
TEST_F(NodeServiceTest, theMarkingIsDoneAnewEachTime) {
  const nlohmann::json roce{
      {"service", "roce"},
      {"value", "r1"},
      {"files", {{"roce.sh", "#!/bin/sh\n"}, {"muster-roce.service", "[Unit]\n"}}}};
  ASSERT_TRUE(set(roce));
  ASSERT_TRUE(set(roce));
  EXPECT_EQ(read_, 2);
  EXPECT_EQ(programs.count("systemctl restart muster-roce.service"), 1u);
}

TEST_F(NodeServiceTest, theListOfLidsBelongsToTheServiceOnceItIsThere) {
  ASSERT_TRUE(set(opensm));
  put("etc/muster/opensm/guid2lid", "0x1 1 1\n0x2 2 2\n");
  EXPECT_EQ(probe("opensm"), "s1") << "it writes there itself";
  opensm["files"]["guid2lid"] = "0x1 9 9\n";
  ASSERT_TRUE(set(opensm));
  EXPECT_EQ(at("etc/muster/opensm/guid2lid"), "0x1 1 1\n0x2 2 2\n");
  EXPECT_EQ(read_, 1);
}

TEST_F(NodeServiceTest, settingsAreChangedAmongTheOthers) {
  const auto file = "usr/share/nvidia/nvswitch/fabricmanager.cfg";
  put(file, "# FABRIC_MODE=2\nLOG_LEVEL=4\nFABRIC_MODE=1\nFABRIC_MODE=2\n");
  nlohmann::json manager{
      {"service", "fabric-manager"},
      {"value", "m1"},
      {"settings", {{"FABRIC_MODE", "0"}, {"FM_STAY_RESIDENT_ON_FAILURES", "1"}}}};
  ASSERT_TRUE(set(manager));
  EXPECT_EQ(at(file),
            "# FABRIC_MODE=2\nLOG_LEVEL=4\nFABRIC_MODE=0\nFM_STAY_RESIDENT_ON_FAILURES=1\n");
  EXPECT_EQ(probe("fabric-manager"), "m1");
  put(file, at(file) + "FABRIC_MODE=1\n");
  EXPECT_EQ(probe("fabric-manager"), "changed: FABRIC_MODE") << "the last one counts";
  EXPECT_EQ(read_, 1);
  ASSERT_TRUE(set(manager));
  EXPECT_EQ(read_, 2) << "the other value may have been read";
  ASSERT_TRUE(set(manager));
  EXPECT_EQ(read_, 2) << "nothing has changed";
}

TEST_F(NodeServiceTest, withoutTheProgramItSaysWhereItComesFrom) {
  fs::remove(root / "usr/sbin/opensm");
  const auto refused = set(opensm);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(refused.error().str(), HasSubstr("add the package opensm to the image"));
  EXPECT_EQ(at("etc/muster/opensm/opensm.conf"), "(none)");
}

TEST_F(NodeServiceTest, refusesEverythingElse) {
  const auto refuses = [this](nlohmann::json params) {
    const auto done = set(params);
    EXPECT_TRUE(!done && done.error().code() == ErrorCode::InvalidInput) << params.dump();
  };
  refuses({{"service", "sshd"}, {"value", "v"}});
  refuses({{"service", "imex"}, {"value", ""}});
  refuses({{"service", "imex"}, {"value", "v"}, {"files", {{"../../etc/passwd", "x"}}}});
  refuses({{"service", "imex"}, {"value", "v"}, {"files", {{"opensm.conf", "x"}}}});
  refuses({{"service", "imex"}, {"value", "v"}, {"files", {{"nodes_config.cfg", 7}}}});
  refuses({{"service", "imex"}, {"value", "v"}, {"settings", {{"A", "1"}}}});
  refuses({{"service", "fabric-manager"}, {"value", "v"}, {"settings", {{"A", "1\nB=2"}}}});
  refuses({{"service", "fabric-manager"}, {"value", "v"}, {"settings", {{"A=1;B", "2"}}}});
  EXPECT_EQ(programs.commands().size(), 0u);
}

// As nvidia-imex-ctl -N -j of driver 580 was seen to answer (docs/adr/0054).
TEST(ImexState, aNodeThatIsReadyAndDoesNotReachAnotherIsNamed) {
  const auto answer = [](const char* domain, const char* second, const char* way) {
    const auto connections = [](const char* other) {
      return nlohmann::json{
          {"0", {{"host", "10.0.0.1"}, {"status", "CONNECTED"}, {"changed", true}}},
          {"1", {{"host", "10.0.0.2"}, {"status", other}, {"changed", true}}}};
    };
    const auto node = [](const char* state, const char* host, nlohmann::json to) {
      return nlohmann::json{{"status", state},   {"host", host},
                            {"hostName", "gpu"}, {"connections", std::move(to)},
                            {"changed", true},   {"version", "580.95.05"}};
    };
    return nlohmann::json{
        {"nodes",
         {{"0", node("READY", "10.0.0.1", connections(way))},
          {"1", node(second, "10.0.0.2",
                     connections(second == std::string("READY") ? "CONNECTED" : "INVALID"))}}},
        {"timestamp", "9/4/2026 00:37:39.905"},
        {"status", domain}}
        .dump();
  };
  EXPECT_EQ(*imexState(answer("UP", "READY", "CONNECTED")), "UP nodes=2");
  EXPECT_EQ(*imexState(answer("UP", "READY", "INVALID")),
            "NOT READY: 10.0.0.1 to 10.0.0.2 INVALID");
  EXPECT_EQ(*imexState(answer("DOWN", "UNAVAILABLE", "INVALID")),
            "DOWN: 10.0.0.1 to 10.0.0.2 INVALID, 10.0.0.2 UNAVAILABLE");
}

TEST(ImexState, isUpOnlyWhenAllNodesAreReady) {
  EXPECT_EQ(
      *imexState(
          R"({"status":"UP","nodes":{"0":{"status":"READY","host":"10.0.0.1","version":"570.1"},"1":{"status":"READY","host":"10.0.0.2","version":"570.1"}}})"),
      "UP nodes=2");
  EXPECT_EQ(
      *imexState(
          R"({"status":"DEGRADED","nodes":{"0":{"status":"READY","host":"10.0.0.1"},"1":{"status":"UNAVAILABLE","host":"10.0.0.2"}}})"),
      "DEGRADED: 10.0.0.2 UNAVAILABLE");
  EXPECT_THAT(
      *imexState(
          R"({"status":"UP","nodes":{"0":{"status":"READY","version":"570.1"},"1":{"status":"READY","version":"570.2"}}})"),
      HasSubstr("versions 570.1 and 570.2"));
  for (const char* bad :
       {"", "[]", "READY", R"({"status":"UP"})", R"({"nodes":{}})", R"({"status":1,"nodes":{}})"})
    EXPECT_FALSE(imexState(bad)) << bad;
}

}  // namespace
}  // namespace muster::agent
