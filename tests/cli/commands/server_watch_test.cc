// SPDX-License-Identifier: Apache-2.0
// muster server as the real program that also watches, in a network namespace of its own.
#include "base/io/files.h"
#include "base/json_input.h"
#include "tests/cli/muster_folder.h"
#include "tests/own_network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit{60};

class ServerWatch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = network_.enter(); !why.empty()) GTEST_SKIP() << why;
    const auto made = network_.addWire("end", "10.20.0.1/16");
    ASSERT_TRUE(made) << made.error().str();
    auto started =
        processes_->start(folder_.command({"server", "--socket", socket().string(), "--access",
                                           (folder_ / "access.conf").string()}),
                          folder_ / "server.out");
    ASSERT_TRUE(started) << started.error().str();
    server_ = std::move(*started);
  }
  void TearDown() override {
    server_.reset();
    if (const auto ended = io::PidFile{folder_ / "state/run/netboot/dnsmasq.pid"}.terminate(
            std::chrono::seconds(2));
        !ended)
      ADD_FAILURE() << ended.error().str();
    network_.leave();
    if (HasFailure()) std::cerr << said();
  }
  std::filesystem::path socket() const { return folder_ / "api.sock"; }
  std::string said() const { return io::readFile(folder_ / "server.out").value_or(""); }
  nlohmann::json ask(const std::string& target) const {
    const auto answer = io::runBlocking({"curl",
                                         {"-sS", "--max-time", "20", "--unix-socket",
                                          socket().string(), "http://localhost" + target}});
    auto json = answer ? jsonOrNone(answer->out, kServerJson) : nlohmann::json();
    return json.is_object() ? json : nlohmann::json::object();
  }
  /// Another process works: looking from time to time is all there is.
  template <class Condition>
  bool becomes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      if (!server_->running()) return condition();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  test::MusterFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> server_;
  test::OwnNetwork network_;
};

TEST_F(ServerWatch, watchesAnswersReadsAgainAndEnds) {
  ASSERT_TRUE(becomes([&] { return said().find("muster server: 2 nodes") != std::string::npos; }));
  ASSERT_TRUE(becomes([&] {
    const auto site = ask("/api/v1/site");
    return site.is_object() && site.contains("monitor") && site["monitor"]["running"] == true;
  }));
  folder_.write("cluster.yaml",
                std::string(test::MusterFolder::kInventory) +
                    "  - {names: gpu003, profile: gpu-node, mac: \"52:54:00:20:00:03\", address: "
                    "10.20.1.3, bmc: \"https://10.20.250.3\"}\n");
  server_->signal(SIGHUP);
  ASSERT_TRUE(becomes([&] { return said().find("muster server: 3 nodes") != std::string::npos; }));
  ASSERT_TRUE(becomes([&] { return ask("/api/v1/nodes").value("total", 0) == 3; }));
  // Commands beside it work as beside a monitor.
  EXPECT_EQ(folder_.muster({"quarantine", "add", "gpu001", "--reason", "test"}).code, 0);
  ASSERT_TRUE(becomes([&] { return ask("/api/v1/quarantine").value("total", 0) == 1; }));
  ASSERT_TRUE(io::PidFile{folder_ / "state/run/netboot/dnsmasq.pid"}.alive());
  server_->signal(SIGTERM);
  ASSERT_TRUE(becomes([&] { return !server_->running(); }));
  EXPECT_THAT(said(), HasSubstr("ended as asked"));
  EXPECT_FALSE(std::filesystem::exists(socket()));
  EXPECT_FALSE(io::PidFile{folder_ / "state/run/netboot/dnsmasq.pid"}.alive())
      << "who was told to stop leaves no DHCP server behind";
}

}  // namespace
}  // namespace muster::cli
