// The whole road on a virtual rack of two nodes, with muster killed on the way. Tests run in order on one rack.
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/road/muster_process.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

namespace muster::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class Road : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0) return;
    folder_ = fs::temp_directory_path() / "muster-road";
    fs::remove_all(folder_);
    setenv("MUSTER_INVENTORY", (folder_ / "cluster.yaml").c_str(), 1);
    setenv("MUSTER_STATE", (folder_ / "state").c_str(), 1);
    setenv("MUSTER_LAB", "/run/muster-lab/road", 1);
    const auto prepared = io::runBlocking({.program = test::sourceFolder() / "tools/prepare-lab",
                                           .args = {folder_.string()},
                                           .env = {{"MUSTER_BIN", test::binFolder()}},
                                           .timeout = std::chrono::seconds(300)});
    ASSERT_TRUE(prepared) << prepared.error().str();
    ASSERT_EQ(prepared->code, 0) << prepared->out << prepared->err;
    replaceInInventory("cluster: {name: demo}", "cluster: {name: road}");
    expectOk({"image", "build"});
    expectOk({"lab", "up"});
  }

  static void TearDownTestSuite() {
    if (geteuid() != 0) return;
    expectOk({"lab", "down"});
    if (!testing::UnitTest::GetInstance()->Failed()) fs::remove_all(folder_);
  }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "virtual machines and network namespaces need root";
    if (broken_) GTEST_SKIP() << "an earlier test left the rack where this one cannot start";
    broken_ = true;
  }
  void TearDown() override { broken_ = HasFailure() || IsSkipped(); }

  static std::string expectOk(const std::vector<std::string>& args) {
    const auto done = runMuster(args);
    EXPECT_EQ(done.code, 0) << "muster " << args.front() << ":\n" << done.out;
    return done.out;
  }

  static void replaceInInventory(const std::string& from, const std::string& to) {
    auto text = io::readFile(folder_ / "cluster.yaml").value();
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "cluster.yaml", text.replace(at, from.size(), to)));
  }

  static json bmc(const std::string& node) { return json::parse(io::readFile("/run/muster-lab/road/bmc/" + node + ".json").value()); }

  /// What the plan would do: ids of its actions.
  static std::vector<std::string> planned() {
    const auto plan = json::parse(expectOk({"--json", "plan"}));
    std::vector<std::string> ids;
    for (const auto& action : plan.at("actions")) ids.push_back(action.at("id"));
    return ids;
  }

  static bool isFacet(const json& event, std::string_view kind, const std::string& facet) {
    const std::string action = event.value("action", "");
    return event.value("kind", "") == kind && action.size() > facet.size() && action.ends_with("/" + facet);
  }

  static inline fs::path folder_;
  static inline bool broken_ = false;
};

TEST_F(Road, killedDuringFirmwareAndImagingAllReachThePool) {
  {
    WatchedApply apply;
    ASSERT_TRUE(apply.until([](const json& e) { return isFacet(e, "action-waiting", "firmware.BMC"); })) << "firmware was never under way";
    apply.kill();
  }
  {
    WatchedApply apply;
    ASSERT_TRUE(apply.until([](const json& e) { return isFacet(e, "action-progress", "image") && e.value("fraction", 0.0) > 0.25; }))
        << "imaging was never under way";
    apply.kill();
  }
  std::string first_imaged;
  {
    WatchedApply apply;
    ASSERT_TRUE(apply.until([&](const json& e) {
      if (isFacet(e, "action-done", "image")) first_imaged = e.at("subject");
      return !first_imaged.empty();
    })) << "no node was imaged";
    apply.kill();
  }
  WatchedApply apply;
  ASSERT_EQ(apply.wait(), 0);
  for (const auto& event : apply.events())
    EXPECT_FALSE(event.value("kind", "") == "action-started" && event.value("action", "") == first_imaged + "/image") << "the imaged node was imaged again";
  for (const char* node : {"gpu001", "gpu002"}) {
    const auto state = bmc(node);
    for (const char* component : {"BMC", "BIOS"}) EXPECT_EQ(state.at("components").at(component).at("flashes"), 1) << node << " " << component;
    const auto console = io::readFile("/run/muster-lab/road/console/" + std::string(node) + ".log").value();
    EXPECT_NE(console.find("muster"), std::string::npos);
  }
}

TEST_F(Road, aSecondApplyHasNothingToDo) { EXPECT_NE(expectOk({"apply"}).find("Nothing to do"), std::string::npos); }

TEST_F(Road, slurmRunsAJobOnBothNodes) {
  const auto out = expectOk({"lab", "exec", "srun", "-N2", "hostname"});
  EXPECT_NE(out.find("gpu001"), std::string::npos) << out;
  EXPECT_NE(out.find("gpu002"), std::string::npos) << out;
}

TEST_F(Road, bothCertificatesVerify) {
  const auto out = expectOk({"cert", "verify"});
  EXPECT_NE(out.find("gpu001: valid"), std::string::npos) << out;
  EXPECT_NE(out.find("gpu002: valid"), std::string::npos) << out;
}

TEST_F(Road, aNewDriverVersionIsAllThatChanges) {
  replaceInInventory("muster-sim-nvml=570.124.06-1", "muster-sim-nvml=575.57.08-1");
  replaceInInventory("nvml.driver: \"570.124.06\"", "nvml.driver: \"575.57.08\"");
  for (const auto& id : planned())
    EXPECT_TRUE(std::regex_match(id, std::regex("gpu00[12]/(driver\\.nvidia|gate\\..*|certificate|pool|pool#drain)"))) << id;
  EXPECT_NE(runMuster({"cert", "verify"}).code, 0) << "the old certificate must be void";
  EXPECT_EQ(runMuster({"apply"}).code, 0);
  expectOk({"cert", "verify"});
  EXPECT_NE(expectOk({"lab", "exec", "sinfo", "-h", "-o", "%D %t"}).find("2 idle"), std::string::npos);
}

TEST_F(Road, aNodeThatIsNotWhatItsProfileExpectsLeavesThePool) {
  replaceInInventory("gpu_model: H100, cpus_min", "gpu_model: B200, cpus_min");
  EXPECT_NE(runMuster({"apply"}).code, 0);
  EXPECT_NE(expectOk({"lab", "exec", "sinfo", "-h", "-o", "%D %t"}).find("2 drain"), std::string::npos);
  const auto why = expectOk({"why", "gpu001"});
  EXPECT_NE(why.find("B200"), std::string::npos) << why;
  EXPECT_NE(why.find("next step"), std::string::npos) << why;
}

}  // namespace
}  // namespace muster::test
