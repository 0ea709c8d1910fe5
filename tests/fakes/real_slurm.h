// SPDX-License-Identifier: Apache-2.0
// A real munged and slurmctld in a network namespace of the test's own, whose host has the name
// that slurm.conf says.
#pragma once

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace muster::test {

class RealSlurm : public ::testing::Test {
 protected:
  static constexpr std::chrono::seconds kLimit{150};
  static constexpr std::string_view kHost = "muster-controller";

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    // Who starts jobs for slurmd (slurmstepd) leaves it at once, and comes to this process then.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    // Names without a network of their own do not resolve: Slurm wants an address that is not
    // loopback.
    ASSERT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWUTS), 0);
    ASSERT_EQ(::sethostname(kHost.data(), kHost.size()), 0);
    for (auto args :
         std::vector<std::vector<std::string>>{{"link", "set", "lo", "up"},
                                               {"link", "add", "br0", "type", "bridge"},
                                               {"addr", "add", "10.99.0.1/24", "dev", "br0"},
                                               {"link", "set", "br0", "up"}})
      ASSERT_EQ(tool("ip", args)->code, 0);
    std::string key;
    for (int i = 0; i < 16; ++i) key += io::sha256Hex(io::randomToken());
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "munge.key", key, 0400));
    ASSERT_TRUE(io::makeDirs(folder_ / "state"));
  }

  /// A job that still runs outlives slurmd, and would run on beside later tests.
  void TearDown() override {
    daemons_.clear();
    processes_.reset();
    EXPECT_TRUE(eventually([] {
      endChildren();
      return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
    })) << "a process of a job is left";
  }
  /// By their ids: what is left belongs to no daemon of the test any more.
  static void endChildren() {
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream children(thread.path() / "children");
      for (pid_t pid = 0; children >> pid;) ::kill(pid, SIGKILL);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }

  /// slurm.conf with these lines of nodes and partitions behind what every one needs.
  std::string slurmConf(std::string_view more) const {
    return fmt::format(
        "ClusterName=test\nSlurmctldHost={0}(10.99.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType="
        "auth/munge\n"
        "AuthInfo=socket={1}/munge.socket\nStateSaveLocation={1}/state\nSlurmdSpoolDir={1}/"
        "spool.%n\nSlurmctldPidFile={1}/slurmctld.pid\n"
        "SlurmdPidFile={1}/slurmd.%n.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/"
        "none\nReturnToService=0\nMpiDefault=none\n{2}",
        kHost, folder_.path().string(), more);
  }
  /// Until slurmctld answers.
  void startController(const std::string& conf) {
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "slurm.conf", conf));
    start("munged", {"--foreground", "--force", "--key-file=" + path("munge.key"),
                     "--socket=" + path("munge.socket"), "--pid-file=" + path("munged.pid"),
                     "--log-file=" + path("munged.log"), "--seed-file=" + path("munged.seed")});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder_ / "munge.socket"); }));
    start("slurmctld", {"-D", "-f", path("slurm.conf")});
    ASSERT_TRUE(eventually([&] {
      return tool("scontrol", {"ping"}).value_or(io::ProcessExit{1}).out.find("is UP") !=
             std::string::npos;
    })) << io::readFile(folder_ / "slurmctld.log").value_or("no log");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void start(const std::string& program, std::vector<std::string> args) {
    io::Command command;
    command.program = program;
    command.args = std::move(args);
    auto child = processes_->start(command, folder_ / (program + ".log"));
    ASSERT_TRUE(child) << child.error().str();
    daemons_.push_back(std::move(*child));
  }
  Result<io::ProcessExit> tool(const std::string& program, std::vector<std::string> args) {
    io::Command command;
    command.program = program;
    command.args = std::move(args);
    command.env["SLURM_CONF"] = path("slurm.conf");
    return io::runBlocking(command);
  }
  static bool eventually(const std::function<bool()>& holds) {
    for (auto until = std::chrono::steady_clock::now() + kLimit;
         std::chrono::steady_clock::now() < until;
         std::this_thread::sleep_for(std::chrono::milliseconds(50)))
      if (holds()) return true;
    return holds();
  }

  TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::vector<std::unique_ptr<io::Child>>
      daemons_;  // ended in the destructor, the youngest last: none needs another to end
};

}  // namespace muster::test
