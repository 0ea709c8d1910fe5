// SPDX-License-Identifier: Apache-2.0
// A boot medium in the virtual CD of OpenStack's sushy-tools, an emulator that nobody here wrote
// (a checkout, docs/development/outside-tools.md), over real HTTPS: it reads the image by its URL.
#include "bmc/bmc.h"
#include "bmc/fleet.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/http.h"
#include "base/io/process.h"
#include "tests/bmc/values_store.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPython = "/usr/bin/python3";  // Debian's own, which knows Debian's flask

class SushyTools : public ::testing::Test {
 protected:
  static std::filesystem::path checkout() {
    if (const char* set = std::getenv("MUSTER_REDFISH_TOOLS"))
      return std::filesystem::path(set) / "sushy-tools";
    const char* cache = std::getenv("MUSTER_CACHE");
    const char* home = std::getenv("HOME");
    return (cache ? std::filesystem::path(cache)
                  : std::filesystem::path(home ? home : "/nonexistent") / ".cache/muster") /
           "redfish-tools/sushy-tools";
  }
  void SetUp() override {
    if (!std::filesystem::exists(checkout()))
      GTEST_SKIP() << checkout() << " is not there (docs/development/outside-tools.md)";
    if (!io::runChecked({.program = kPython, .args = {"-c", "import flask, requests"}}))
      GTEST_SKIP() << "needs python3-flask and python3-requests";
    io::ServerOptions plain;
    images_ = *io::startHttpServer(io_.get_executor(), plain);
    images_->addRoutes({{"GET", "/media/",
                         [this](io::ServerRequest request) { return image(std::move(request)); }}});
    {
      auto nobody = *io::startHttpServer(io_.get_executor(), plain);
      port_ = nobody->port();  // free a moment ago
    }
    const auto identity = *io::selfSigned("bmc", {"127.0.0.1"});
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "key", identity.key_pem.reveal(), 0600));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "crt", identity.certificate_pem));
    ASSERT_TRUE(io::writeFileAtomic(
        folder_ / "conf",
        fmt::format("SUSHY_EMULATOR_STATE_DIR = '{}'\n", folder_.path().string())));
    io::Command command{.program = kPython};
    command.args = {"-c",
                    "import sys; from sushy_tools.emulator.main import main; sys.exit(main())",
                    "--fake",
                    "--config",
                    (folder_ / "conf").string(),
                    "-i",
                    "127.0.0.1",
                    "-p",
                    std::to_string(port_),
                    "--ssl-certificate",
                    (folder_ / "crt").string(),
                    "--ssl-key",
                    (folder_ / "key").string()};
    command.env = {{"PYTHONPATH", checkout().string()}};
    auto started = processes_->start(std::move(command), folder_ / "log");
    ASSERT_TRUE(started) << started.error().str();
    emulator_ = std::move(*started);
    cluster_ = test::clusterWithBmcAt(port_);
    fleet_ = makeBmcFleet(cluster_, store_, clock_, workers_);
    ASSERT_TRUE(test::runAsync(io_, waitUntilItAnswers(), 90s))
        << io::readFile(folder_ / "log").value_or("");
  }
  void TearDown() override {
    if (fleet_) (void)test::runAsync(io_, fleet_->close(), 30s);
    if (emulator_) emulator_->terminate(3s);
    if (HasFailure()) std::cerr << io::readFile(folder_ / "log").value_or("") << "\n";
  }
  Async<void> waitUntilItAnswers() {
    for (int attempt = 0; attempt < 60; ++attempt) {
      const auto system = co_await bmc().system();
      if (system) co_return Result<void>();
      co_await clock_.sleep(1s);
    }
    co_return fail(ErrorCode::Timeout, "sushy-tools does not answer");
  }
  Task<io::ServerResponse> image(io::ServerRequest request) {
    asked_.push_back(request.target);
    co_return io::ServerResponse::text(200, std::string(100'000, 'i'));
  }
  Bmc& bmc() { return fleet_->at(NodeName("gpu001")); }
  std::string url() const {
    return fmt::format("http://127.0.0.1:{}/media/id/muster-gpu001.iso", images_->port());
  }

  asio::io_context io_;
  test::TempFolder folder_;
  SystemClock clock_;
  Workers workers_{1};
  test::ValuesStore store_;
  inventory::Cluster cluster_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::HttpServer> images_;
  std::unique_ptr<io::Child> emulator_;
  std::unique_ptr<BmcFleet> fleet_;
  std::vector<std::string> asked_;
  std::uint16_t port_ = 0;
};

TEST_F(SushyTools, readsTheMediumBootsFromItOnceAndLetsItGo) {
  const auto before = test::runAsync(io_, bmc().virtualMedia(), 60s);
  ASSERT_TRUE(before) << before.error().str();
  ASSERT_EQ(before->size(), 1u) << "the floppy takes no CD";
  EXPECT_FALSE(before->front().inserted);
  const auto inserted =
      test::runAsync(io_, bmc().insertMedia({url(), "https://127.0.0.1:1/nothing.iso"}), 60s);
  ASSERT_TRUE(inserted) << inserted.error().str();
  EXPECT_EQ(inserted->id, "Cd");
  EXPECT_EQ(inserted->boots_by, BootTarget::Cd);
  EXPECT_THAT(asked_, ::testing::ElementsAre("/media/id/muster-gpu001.iso"));
  const auto shown = test::runAsync(io_, bmc().virtualMedia(), 60s);
  ASSERT_TRUE(shown) << shown.error().str();
  EXPECT_EQ(shown->front().image, url());
  const auto set = test::runAsync(io_, bmc().bootOnce(inserted->boots_by), 60s);
  ASSERT_TRUE(set) << set.error().str();
  const auto ejected = test::runAsync(io_, bmc().ejectMedia("Cd"), 60s);
  ASSERT_TRUE(ejected) << ejected.error().str();
  EXPECT_FALSE(test::runAsync(io_, bmc().virtualMedia(), 60s)->front().inserted);
}

TEST_F(SushyTools, anImageThatItCannotReadIsAnErrorAndNothingIsInserted) {
  const auto refused = test::runAsync(
      io_, bmc().insertMedia({fmt::format("http://127.0.0.1:{}/elsewhere.iso", images_->port())}),
      120s);
  EXPECT_FALSE(refused);
  EXPECT_FALSE(test::runAsync(io_, bmc().virtualMedia(), 60s)->front().inserted);
}

}  // namespace
}  // namespace muster::bmc
