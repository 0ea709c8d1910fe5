// SPDX-License-Identifier: Apache-2.0
// The RMA bundle: whole, checkable, the same bytes for the same facts.
#include "monitor/rma.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "bmc/console/boot_log.h"
#include "inventory/model/cluster.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/monitor/pool_rig.h"
#include "tests/run_async.h"

namespace muster::monitor::test {
namespace {

using muster::test::runAsync;
using ::testing::HasSubstr;

class LoggingBmc final : public bmc::BmcFleet {
 public:
  bmc::Bmc& at(const NodeName&) override { return bmc_; }
  Async<void> close() override { co_return Result<void>(); }

 private:
  struct WithLog final : bmc::Bmc {
    std::string address() const override { return "https://bmc.fake"; }
    Async<bmc::SystemInfo> system() override {
      co_return bmc::SystemInfo{bmc::PowerState::On, "ACME", "X1", "SN-1", "", {}, {}};
    }
    Async<void> power(bmc::PowerAction) override { co_return Result<void>(); }
    Async<void> bootOnce(bmc::BootTarget) override { co_return Result<void>(); }
    Async<std::vector<bmc::FirmwareItem>> firmware() override {
      co_return std::vector<bmc::FirmwareItem>();
    }
    Async<std::string> startUpdate(bmc::FirmwareUpdate) override { co_return std::string(); }
    Async<bmc::TaskStatus> task(std::string) override { co_return bmc::TaskStatus(); }
    Async<bmc::TaskList> tasks() override { co_return bmc::TaskList(); }
    Async<void> resetBmc() override { co_return Result<void>(); }
    Async<bmc::EventLog> eventLog(std::size_t) override {
      co_return bmc::EventLog{
          {{"17", "2026-11-01T00:00:00Z", "Critical", "PSU 2 lost AC", "/log/sel"}}, {"/log/sel"}};
    }
  } bmc_;
};

class Rma : public ::testing::Test {
 protected:
  std::vector<RmaFile> gather(bmc::BmcFleet& bmcs) {
    auto files = runAsync(
        gatherRma(cluster_, store_, bmcs, folder_.path(), NodeName("gpu001"), clock_.now()));
    EXPECT_TRUE(files) << (files ? "" : files.error().str());
    return files ? *files : std::vector<RmaFile>();
  }
  static std::string contentOf(const std::vector<RmaFile>& files, const std::string& name) {
    for (const auto& file : files)
      if (file.name == name) return file.content;
    return "no such file";
  }
  std::string listOf(const std::filesystem::path& archive) {
    io::Command tar;
    tar.program = "tar";
    tar.args = {"--list", "--file=" + archive.string()};
    auto out = io::runChecked(tar);
    return out ? *out : out.error().str();
  }

  muster::test::TempFolder folder_;
  inventory::Cluster cluster_ = clusterOf(2);
  muster::test::MemoryStore store_;
  FakeClock clock_;
};

TEST_F(Rma, holdsWhatIsKnownWithAManifestThatFits) {
  ASSERT_TRUE(store_.putFacts(
      {factOf("gpu001", "hw.gpu.0", "SN-7", nlohmann::json::object(), clock_.now())}));
  ASSERT_TRUE(store_.addFinding(
      {facetOf("gpu001", "health.gpu"), Severity::Error, "xid.79", "", "reseat", clock_.now()}));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "muster.log",
                                  "about gpu001\nabout gpu002\nabout gpu0010\nabout xgpu001\n"));
  LoggingBmc bmcs;
  const auto files = gather(bmcs);
  EXPECT_THAT(contentOf(files, "serials.json"), HasSubstr("SN-7"));
  EXPECT_THAT(contentOf(files, "findings.json"), HasSubstr("reseat"));
  EXPECT_THAT(contentOf(files, "bmc-event-log.json"), HasSubstr("PSU 2 lost AC"));
  EXPECT_EQ(contentOf(files, "muster.log"), "about gpu001\n");
  const auto manifest = nlohmann::json::parse(contentOf(files, "manifest.json"));
  EXPECT_EQ(manifest["files"].size(), files.size() - 1);
  for (const auto& entry : manifest["files"])
    EXPECT_EQ(entry["sha256"], io::sha256Hex(contentOf(files, entry["name"]))) << entry["name"];
}

TEST_F(Rma, holdsWhatTheConsolesSaidAsText) {
  bmc::BootLogArchive shelf(bmc::keptConsoles(folder_.path()), NodeName("gpu001"));
  ASSERT_TRUE(shelf.begin(clock_.now(), "restart")->append("\x1b[31mMachine check\r\n"));
  LoggingBmc bmcs;
  EXPECT_THAT(contentOf(gather(bmcs), "console-1.log"),
              ::testing::EndsWith("(restart)\nMachine check\n"));
}

TEST_F(Rma, aBmcThatDoesNotAnswerLeavesAFileThatSaysSo) {
  muster::test::FakeBmcFleet bmcs;
  bmcs.fake("gpu001").failNext("system", Error(ErrorCode::Unavailable, "no route to host"));
  const auto files = gather(bmcs);
  EXPECT_THAT(contentOf(files, "bmc-system.json"), HasSubstr("no route to host"));
  EXPECT_THAT(contentOf(files, "bmc-event-log.json"), HasSubstr("keeps no system event log"));
}

TEST_F(Rma, equalFactsGiveEqualArchives) {
  LoggingBmc bmcs;
  const auto files = gather(bmcs);
  for (const char* name : {"a.tar.gz", "b.tar.gz"}) {
    auto written = writeRma(files, NodeName("gpu001"), clock_.now(), folder_ / name);
    ASSERT_TRUE(written) << written.error().str();
  }
  EXPECT_EQ(*io::readFile(folder_ / "a.tar.gz"), *io::readFile(folder_ / "b.tar.gz"));
  EXPECT_THAT(listOf(folder_ / "a.tar.gz"), HasSubstr("rma-gpu001/manifest.json\n"));
  EXPECT_EQ(writeRma(files, NodeName("gpu001"), clock_.now(), folder_ / "a.tar.gz").error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(writeRma(files, NodeName("gpu001"), clock_.now(), folder_ / "a.zip").error().code(),
            ErrorCode::InvalidInput);
  EXPECT_EQ(
      runAsync(gatherRma(cluster_, store_, bmcs, folder_.path(), NodeName("nobody"), clock_.now()))
          .error()
          .code(),
      ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::monitor::test
