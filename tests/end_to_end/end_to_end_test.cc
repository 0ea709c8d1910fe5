// SPDX-License-Identifier: Apache-2.0
// All stages on a virtual rack of two nodes, with muster killed on the way. Tests run in order
// on one rack.
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "lab/vbmc/firmware_file.h"
#include "tests/end_to_end/muster_process.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>

namespace muster::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class EndToEnd : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0) return;
    folder_ = fs::temp_directory_path() / "muster-end-to-end";
    fs::remove_all(folder_);
    setenv("MUSTER_INVENTORY", (folder_ / "cluster.yaml").c_str(), 1);
    setenv("MUSTER_STATE", (folder_ / "state").c_str(), 1);
    setenv("MUSTER_LAB", "/run/muster-lab/e2e", 1);
    const auto prepared = io::runBlocking({.program = test::sourceFolder() / "tools/prepare-lab",
                                           .args = {folder_.string()},
                                           .env = {{"MUSTER_BIN", test::binFolder()}},
                                           .timeout = std::chrono::seconds(300)});
    ASSERT_TRUE(prepared) << prepared.error().str();
    ASSERT_EQ(prepared->code, 0) << prepared->out << prepared->err;
    replaceInInventory("cluster: {name: demo}",
                       "cluster: {name: e2e}\nlimits: {max_unavailable: {pool: {percent: 100}}}");
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

  static json bmc(const std::string& node) {
    return json::parse(io::readFile("/run/muster-lab/e2e/bmc/" + node + ".json").value());
  }

  /// 0 for a BMC that has written nothing yet.
  static int failedLogins(const std::string& node) {
    if (!fs::exists("/run/muster-lab/e2e/bmc/" + node + ".json")) return 0;
    return bmc(node).at("failed_logins");
  }

  /// What the plan would do: ids of its actions.
  static std::vector<std::string> planned() {
    const auto plan = json::parse(expectOk({"--json", "plan"}));
    std::vector<std::string> ids;
    for (const auto& action : plan.at("actions")) ids.push_back(action.at("id"));
    return ids;
  }

  /// Applies, which must fail; then no node may be in the pool, and `why` must name `words` and a
  /// next step.
  static void expectKeptOut(const std::map<std::string, std::string>& words_of_node) {
    const auto applied = runMuster({"apply"});
    EXPECT_NE(applied.code, 0) << applied.out;
    for (const auto& [node, words] : words_of_node) {
      const auto why = expectOk({"why", node});
      EXPECT_NE(why.find(words), std::string::npos) << node << " should say: " << words << "\n"
                                                    << why;
      EXPECT_NE(why.find("next step"), std::string::npos) << why;
    }
    EXPECT_EQ(expectOk({"lab", "exec", "sinfo", "-h", "-t", "idle,alloc", "-o", "%n"}), "")
        << "a faulty node is in the pool";
  }

  /// Replaces text in a file for one scope.
  class Fault {
   public:
    Fault(fs::path file, const std::string& from, const std::string& to)
        : file_(std::move(file)), sound_(io::readFile(file_).value()) {
      auto text = sound_;
      const auto at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      EXPECT_TRUE(io::writeFileAtomic(file_, text.replace(at, from.size(), to), 0600));
    }
    Fault(const Fault&) = delete;
    ~Fault() { EXPECT_TRUE(io::writeFileAtomic(file_, sound_, 0600)); }

   private:
    fs::path file_;
    std::string sound_;
  };

  /// A copy of the image cache that a test may damage; muster uses it while this lives.
  class PrivateCache {
   public:
    explicit PrivateCache(fs::path folder) : folder_(std::move(folder)), shared_(sharedCache()) {
      for (const char* part : {"images", "ramos"}) {
        fs::create_directories(folder_ / part);
        for (const auto& entry : fs::directory_iterator(shared_ / part))
          if (entry.path().extension() != ".partial")  // what another process builds meanwhile
            fs::copy(entry.path(), folder_ / part / entry.path().filename(),
                     fs::copy_options::recursive | fs::copy_options::create_hard_links);
      }
      setenv("MUSTER_CACHE", folder_.c_str(), 1);
    }
    PrivateCache(const PrivateCache&) = delete;
    ~PrivateCache() { setenv("MUSTER_CACHE", shared_.c_str(), 1); }

    /// The newest: the one that this rack's key signed.
    fs::path signedIndex() const {
      fs::path newest;
      for (const auto& file : fs::recursive_directory_iterator(folder_ / "images"))
        if (file.path().filename().string().starts_with("index-") &&
            (newest.empty() || fs::last_write_time(newest) < file.last_write_time()))
          newest = file.path();
      return newest;
    }
    /// Turns bytes over in the middle of the pack, in a file of its own.
    void corruptPack() const {
      const auto pack = signedIndex().parent_path() / "pack";
      fs::copy_file(pack, pack.string() + ".own");
      fs::rename(pack.string() + ".own", pack);
      std::fstream file(pack, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(fs::file_size(pack) / 2));
      file << "not what the index says";
    }

   private:
    static fs::path sharedCache() {
      if (const char* set = std::getenv("MUSTER_CACHE")) return set;
      return fs::path(std::getenv("HOME")) / ".cache/muster";
    }
    fs::path folder_, shared_;
  };

  static bool isFacet(const json& event, std::string_view kind, const std::string& facet) {
    const std::string action = event.value("action", "");
    return event.value("kind", "") == kind && action.size() > facet.size() &&
           action.ends_with("/" + facet);
  }

  static inline fs::path folder_;
  static inline bool broken_ = false;
};

TEST_F(EndToEnd, aWrongPasswordAndAnUnreachableBmcKeepTheirNodesOut) {
  Fault password(folder_ / "secrets/bmc", io::readFile(folder_ / "secrets/bmc").value(),
                 "not-the-password");
  Fault address(folder_ / "racks.csv", "https://10.20.250.2", "https://10.20.250.99");
  // A rack that a killed run left goes on with what its BMCs had counted.
  const int before = failedLogins("gpu001");
  expectKeptOut({{"gpu001", "password"}, {"gpu002", "10.20.250.99"}});
  EXPECT_LE(failedLogins("gpu001"), before + 1) << "a storm of logins would lock the account";
}

TEST_F(EndToEnd, aFirmwareFileWithAnotherHashIsNeverUploaded) {
  Fault hash(folder_ / "cluster.yaml", "e8e5be50", "00000000");
  expectKeptOut({{"gpu001", "SHA-256"}, {"gpu002", "SHA-256"}});
  for (const char* node : {"gpu001", "gpu002"})
    EXPECT_EQ(bmc(node).at("components").at("BMC").at("uploads"), 0) << node;
}

TEST_F(EndToEnd, killedDuringTheFirmwareUpdate) {
  WatchedApply apply;
  ASSERT_TRUE(apply.until([](const json& e) {
    return isFacet(e, "action-waiting", "firmware.BMC");
  })) << "firmware was never under way";
  apply.kill();
}

TEST_F(EndToEnd, anImageWithAForeignSignatureOrACorruptChunkNeverBecomesASystem) {
  PrivateCache cache(folder_ / "cache");
  {
    Fault signature(cache.signedIndex(), "\"signature\":\"", "\"signature\":\"AAAA");
    expectKeptOut({{"gpu001", "signature"}, {"gpu002", "signature"}});
  }
  cache.corruptPack();
  expectKeptOut({{"gpu001", "corrupt"}, {"gpu002", "corrupt"}});
}

TEST_F(EndToEnd, killedDuringImagingAllReachThePoolAndNothingIsDoneTwice) {
  {
    WatchedApply apply;
    ASSERT_TRUE(apply.until([](const json& e) {
      return isFacet(e, "action-progress", "image") && e.value("fraction", 0.0) > 0.25;
    })) << "imaging was never under way";
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
    EXPECT_FALSE(event.value("kind", "") == "action-started" &&
                 event.value("action", "") == first_imaged + "/image")
        << "the imaged node was imaged again";
  for (const char* node : {"gpu001", "gpu002"}) {
    const auto state = bmc(node);
    for (const char* component : {"BMC", "BIOS"})
      EXPECT_EQ(state.at("components").at(component).at("flashes"), 1) << node << " " << component;
    EXPECT_EQ(state.at("starts"), 3) << node
                                     << " starts for its new BIOS, into the RAM OS, and from its "
                                        "disk; a crash adds no power cycle";
  }
}

TEST_F(EndToEnd, aSecondApplyHasNothingToDo) {
  EXPECT_NE(expectOk({"apply"}).find("Nothing to do"), std::string::npos);
}

TEST_F(EndToEnd, slurmRunsAJobOnBothNodes) {
  const auto out = expectOk({"lab", "exec", "srun", "-N2", "hostname"});
  EXPECT_NE(out.find("gpu001"), std::string::npos) << out;
  EXPECT_NE(out.find("gpu002"), std::string::npos) << out;
}

TEST_F(EndToEnd, bothCertificatesVerify) {
  const auto out = expectOk({"cert", "verify"});
  EXPECT_NE(out.find("gpu001: valid"), std::string::npos) << out;
  EXPECT_NE(out.find("gpu002: valid"), std::string::npos) << out;
}

TEST_F(EndToEnd, aNewDriverVersionIsAllThatChanges) {
  replaceInInventory("muster-sim-nvml=570.124.06-1", "muster-sim-nvml=575.57.08-1");
  replaceInInventory("nvml.driver: \"570.124.06\"", "nvml.driver: \"575.57.08\"");
  for (const auto& id : planned())
    EXPECT_TRUE(std::regex_match(
        id, std::regex("gpu00[12]/(driver\\.nvidia|gate\\..*|certificate|pool|pool#drain)")))
        << id;
  EXPECT_NE(runMuster({"cert", "verify"}).code, 0) << "the old certificate must be void";
  EXPECT_EQ(runMuster({"apply"}).code, 0);
  expectOk({"cert", "verify"});
  EXPECT_NE(expectOk({"lab", "exec", "sinfo", "-h", "-o", "%D %t"}).find("2 idle"),
            std::string::npos);
}

TEST_F(EndToEnd, aNewFirmwareVersionIsAllThatChanges) {
  const auto image = lab::vbmc::makeFirmware("BMC", "2.2.0");
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "firmware/bmc-2.2.0.fw", image));
  replaceInInventory(
      "version: 2.1.0, file: firmware/bmc-2.1.0.fw, sha256: "
      "\"e8e5be5036f0abf01128a4cb1064833a0f36366d6ea489a81b7b5356152434bf\"",
      "version: 2.2.0, file: firmware/bmc-2.2.0.fw, sha256: \"" + io::sha256Hex(image) + "\"");
  for (const auto& id : planned())
    EXPECT_TRUE(std::regex_match(
        id, std::regex("gpu00[12]/(firmware\\.BMC|gate\\..*|certificate|pool|pool#drain)")))
        << id;
  EXPECT_NE(runMuster({"cert", "verify"}).code, 0) << "the old certificate must be void";
  expectOk({"apply"});
  expectOk({"cert", "verify"});
  for (const char* node : {"gpu001", "gpu002"}) {
    EXPECT_EQ(bmc(node).at("components").at("BMC").at("flashes"), 2) << node;
    EXPECT_EQ(bmc(node).at("components").at("BIOS").at("flashes"), 1) << node;
  }
  EXPECT_NE(expectOk({"lab", "exec", "sinfo", "-h", "-o", "%D %t"}).find("2 idle"),
            std::string::npos);
}

TEST_F(EndToEnd, aNodeThatIsNotWhatItsProfileExpectsLeavesThePool) {
  replaceInInventory("gpu_model: H100, cpus_min", "gpu_model: B200, cpus_min");
  EXPECT_NE(runMuster({"apply"}).code, 0);
  EXPECT_NE(expectOk({"lab", "exec", "sinfo", "-h", "-o", "%D %t"}).find("2 drain"),
            std::string::npos);
  const auto why = expectOk({"why", "gpu001"});
  EXPECT_NE(why.find("B200"), std::string::npos) << why;
  EXPECT_NE(why.find("next step"), std::string::npos) << why;
}

}  // namespace
}  // namespace muster::test
