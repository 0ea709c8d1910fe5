// SPDX-License-Identifier: Apache-2.0
// What a node reads of its RoCE interfaces in sysfs.
#include "agent/tasks/roce_probe.h"

#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::agent {
namespace {

using nlohmann::json;

class RoceProbe : public ::testing::Test {
 protected:
  RoceProbe() {
    put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
    std::filesystem::create_directories(folder_ / "sys/class/infiniband/mlx5_0/device/net/eth0");
    put("sys/class/net/eth0/mtu", "9000\n");
    programs_.on("dcb", "{}");
    programs_.on("ip", "[]");
    programs_.fails("lldpctl", 1, "");
  }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    ASSERT_TRUE(io::writeFileAtomic(folder_ / path, text));
  }
  static Async<std::string> wrapped(Task<std::string> work) { co_return co_await std::move(work); }
  json row() {
    return json::parse(muster::test::runAsync(context_, wrapped(roceProbe(tools_))).value())
        .at("mlx5_0");
  }

  muster::test::TempFolder folder_;
  muster::test::ScriptedPrograms programs_;
  Workers workers_{1};
  FakeClock clock_;
  asio::io_context context_;
  TaskTools tools_{folder_.path(), "", programs_, workers_, clock_, "muster-agent", {}};
};

TEST_F(RoceProbe, tellsCongestionControlWhereTheDriverShowsIt) {
  EXPECT_FALSE(row().contains("ecn"));
  for (int priority = 0; priority < 8; ++priority) {
    put("sys/class/net/eth0/ecn/roce_np/enable/" + std::to_string(priority),
        priority == 3 ? "1\n" : "0\n");
    put("sys/class/net/eth0/ecn/roce_rp/enable/" + std::to_string(priority), "0\n");
  }
  put("sys/class/net/eth0/ecn/roce_np/cnp_dscp", "48\n");
  EXPECT_EQ(row().at("ecn"),
            (json{{"roce_np", {3}}, {"roce_rp", json::array()}, {"cnp_dscp", 48}}));
}

}  // namespace
}  // namespace muster::agent
