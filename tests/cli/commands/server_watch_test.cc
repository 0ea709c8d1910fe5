// SPDX-License-Identifier: Apache-2.0
// muster server as the real program that also watches, in a network namespace of its own.
#include "base/io/files.h"
#include "base/json_input.h"
#include "tests/cli/emulated_bmc.h"
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
using ::testing::Not;

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

/// BMCs' passwords and certificates are changed by who serves the site, as runs.
TEST_F(ServerWatch, changesBmcsForWhoAsksIt) {
  const auto write = [this](const std::string& name, const std::string& text) {
    folder_.write(name, text + "\n");
    std::filesystem::permissions(
        folder_ / name, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  };
  const auto asked = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {"--server", socket().string()});
    return folder_.muster(words);
  };
  ASSERT_TRUE(becomes([&] { return said().find("muster server: 2 nodes") != std::string::npos; }));
  EXPECT_THAT(asked({"bmc", "rotate", "gpu001", "--yes"}).err,
              HasSubstr("no next password is declared"));
  test::EmulatedBmc bmc;  // in this network, as the server is
  write("bmc-password", test::EmulatedBmc::kPassword);
  write("bmc-next", "new-password");
  std::string text(test::MusterFolder::kInventory);
  const auto replace = [&text](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  replace("https://10.20.250.1\"", bmc.url() + "\"");
  replace("password: {file: bmc-password}",
          "password: {file: bmc-password}, rotate_to: {file: bmc-next}");
  folder_.write("cluster.yaml", text);
  const auto before = ask("/api/v1/site").value("inventory_digest", "");
  server_->signal(SIGHUP);
  ASSERT_TRUE(becomes([&] {
    const auto now = ask("/api/v1/site").value("inventory_digest", "");
    return !now.empty() && now != before;
  }));
  EXPECT_THAT(asked({"bmc", "rotate", "gpu001"}).out, HasSubstr("has the old password"));
  const auto rotated = asked({"bmc", "rotate", "gpu001", "--yes"});
  ASSERT_EQ(rotated.code, 0) << rotated.out << rotated.err;
  EXPECT_THAT(rotated.out, HasSubstr("1 of 1 done"));
  EXPECT_THAT(asked({"bmc", "show", "--nodes", "gpu001"}).out, HasSubstr("has the next password"));
  EXPECT_THAT(asked({"bmc", "rotate", "gpu001", "--yes"}).out, HasSubstr("nothing-to-do"));
  const auto pinned = bmc.fingerprint();
  const auto certified = asked({"bmc", "certificate", "gpu001", "--yes"});
  ASSERT_EQ(certified.code, 0) << certified.out << certified.err;
  EXPECT_NE(bmc.fingerprint(), pinned);
  EXPECT_THAT(asked({"bmc", "show", "--nodes", "gpu001"}).out,
              HasSubstr(bmc.fingerprint().substr(0, 16)));
  EXPECT_EQ(bmc.state().failed_logins, 0u);
  const auto log = asked({"events", "gpu001"}).out;
  EXPECT_THAT(log, HasSubstr("change of the BMC's password: done (run r-"));
  EXPECT_THAT(log, HasSubstr("certificate of the BMC: done (run r-"));
  for (const auto& text_of : {rotated.out, rotated.err, log, said()}) {
    EXPECT_THAT(text_of, Not(HasSubstr(test::EmulatedBmc::kPassword)));
    EXPECT_THAT(text_of, Not(HasSubstr("new-password")));
  }
}

}  // namespace
}  // namespace muster::cli
