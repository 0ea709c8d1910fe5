// A real ibsim with the declared (or a spoiled) fabric, and faults through its console.
#pragma once

#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

#include "base/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

namespace muster::fabric::test {

inline constexpr std::chrono::seconds kSimulatorLimit{20};
inline constexpr std::chrono::milliseconds kLookEvery{10};

/// Polls a condition of the outside world; false when it does not come true in time.
inline bool eventually(const std::function<bool()>& holds, std::chrono::seconds limit = kSimulatorLimit) {
  for (auto until = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < until;
       std::this_thread::sleep_for(kLookEvery))
    if (holds()) return true;
  return holds();
}

class SimulatedFabric {
 public:
  explicit SimulatedFabric(const Topology& topology) : processes_(io::makeProcessRunner()) {
    static int count = 0;
    socket_ = fmt::format("muster-test-{}-{}", ::getpid(), ++count);
    auto net = folder_ / "declared.net";
    console_ = folder_ / "console";
    EXPECT_TRUE(io::writeFileAtomic(net, toIbsimNet(topology)));
    EXPECT_EQ(::mkfifo(console_.c_str(), 0600), 0);
    io::Command command;
    command.program = "sh";
    command.args = {"-c", fmt::format("exec ibsim -s '{}' <>'{}'", net.string(), console_.string())};
    command.env["IBSIM_SOCKNAME"] = socket_;
    auto started = processes_->start(command, log());
    if (!started) {
      ADD_FAILURE() << started.error().str();
      return;
    }
    simulator_ = std::move(*started);
    EXPECT_TRUE(eventually([this] { return said("Network simulator ready") > 0; })) << io::readFile(log()).value_or("no log");
  }
  ~SimulatedFabric() {
    auto stopped = io::PidFile{options().run_folder / "opensm.pid"}.terminate(std::chrono::seconds(5));
    EXPECT_TRUE(stopped);
  }

  FabricOptions options() const {
    return {folder_ / "run", {"ibsim-run"}, {{"IBSIM_SOCKNAME", socket_}, {"SIM_HOST", ibsimNodeId(kControllerHca)}}, std::chrono::seconds(60)};
  }
  io::ProcessRunner& processes() { return *processes_; }

  /// One console command; returns when ibsim has carried it out.
  void say(const std::string& line) {
    auto prompts = said("sim> ");
    io::Fd fifo(::open(console_.c_str(), O_WRONLY | O_CLOEXEC));
    auto text = line + "\n";
    ASSERT_EQ(::write(fifo.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_TRUE(eventually([&] { return said("sim> ") > prompts; })) << line;
  }
  static std::string port(const Port& port) { return fmt::format("\"{}\"[{}]", ibsimNodeId(port.node), port.number); }
  void unlink(const Port& port) { say("Unlink " + SimulatedFabric::port(port)); }
  void link(const Port& one, const Port& other) { say("Link " + port(one) + " " + port(other)); }
  /// ibsim drops this share of the MADs at all ports of the device.
  void dropMads(const std::string& device, int percent) { say(fmt::format("Error \"{}\" {}", ibsimNodeId(device), percent)); }

 private:
  std::filesystem::path log() const { return folder_ / "ibsim.log"; }
  std::size_t said(std::string_view words) const {
    auto text = io::readFile(log()).value_or("");
    std::size_t times = 0;
    for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++times;
    return times;
  }

  muster::test::TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_;
  std::string socket_;
  std::filesystem::path console_;
  std::unique_ptr<io::Child> simulator_;
};

}  // namespace muster::fabric::test
