// SPDX-License-Identifier: Apache-2.0
// A real `muster server` with a simulated fleet, ended by real SIGKILLs at random moments of
// rollouts, and started again: what it was told to do goes on by itself, and what machines were
// told by it they were told once. Counted by the machines' own books: the agents' tasks, the BMCs'
// updates and power. MUSTER_CRASH_KILLS kills: `ctest -R server_kills_long`, some minutes.
#include "base/io/crypto.h"
#include "base/io/process.h"
#include "base/json_output.h"
#include "lab/fleet/fleet.h"
#include "lab/vbmc/firmware_file.h"
#include "lifecycle/store/runs.h"
#include "lifecycle/store/store.h"
#include "tests/crash/fleet_images.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sched.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <set>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::RunState;
using Steady = std::chrono::steady_clock;

constexpr int kNodes = 3;
constexpr int kFewKills = 8;
constexpr auto kLimit = 240s;         ///< of anything that has to happen, on a slow machine
constexpr auto kGoesOnWithin = 60s;   ///< after its server was started again
constexpr auto kLongestLife = 4'000;  ///< milliseconds
constexpr const char* kPassword = "secret";

int numberIn(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  int out = otherwise;
  if (text) (void)std::from_chars(text, text + std::string_view(text).size(), out);
  return out;
}

class ServerKills : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for a network namespace";
    if (!std::getenv("MUSTER_CRASH_KILLS")) GTEST_SKIP() << "on request: MUSTER_CRASH_KILLS=8";
    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "network namespaces cannot be made here";
    // On loopback nobody is a neighbour: the kernel is told of each node's MAC, on a device of its
    // own.
    std::string network = "ip link set lo up";
    for (int number = 1; number <= kNodes; ++number)
      network += fmt::format(
          " && ip link add node{0} type bridge && ip link set node{0} up && ip neigh add 127.0.0.1 "
          "lladdr {1} dev node{0} nud permanent",
          number, lab::fleet::specOf(number).mac);
    const auto up = io::runChecked({.program = "sh", .args = {"-c", network}});
    ASSERT_TRUE(up) << up.error().str();
    ::setenv("MUSTER_FLEET_PASSWORD", kPassword, 1);
    declare();
    makeKeysAndImages();
  }
  void TearDown() override {
    for (auto* each : {&server_, &fleet_}) each->reset();
    if (HasFailure())
      for (const char* log : {"server.log", "fleet.log", "tasks"})
        std::cerr << "---- " << log << "\n" << io::readFile(folder_ / log).value_or("") << "\n";
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
  }

  virtual std::string_view rules() const { return ""; }
  void declare() {
    std::string nodes;
    for (int number = 1; number <= kNodes; ++number) {
      const auto spec = lab::fleet::specOf(number);
      nodes += fmt::format(
          "  - {{names: {}, profile: sim, mac: \"{}\", address: 127.80.0.{}, bmc: "
          "\"https://{}:{}\", serial: {}}}\n",
          spec.name, spec.mac, number, spec.bmc_address, spec.bmc_port, spec.serial);
    }
    std::ofstream(folder_ / "cluster.yaml") << R"(cluster: {name: kills}
networks:
  provisioning: {cidr: 127.0.0.0/8, controllers: [127.0.0.1], dhcp: {mode: none}}
credentials:
  bmc: {username: admin, password: {env: MUSTER_FLEET_PASSWORD}}
images:
  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}
drivers:
  rdma: {packages: [rdma-core], verify: {package.rdma-core: "44.*"}}
gates:
  burn-in: {level: quick, groups: [host]}
profiles:
  sim: {expect: {gpus: 0, cpus_min: 1}, image: bookworm, drivers: [rdma], gates: [burn-in]}
)" << rules() << "nodes:\n" << nodes;
  }
  void makeKeysAndImages() {
    ASSERT_TRUE(io::makeDirs(folder_ / "state/keys", 0700));
    const auto key = io::SigningKey::loadOrCreate(folder_ / "state/keys/images.pem");
    ASSERT_TRUE(key);
    const auto made = makeFleetImages(folder_ / "cluster.yaml", folder_ / "cache", *key);
    ASSERT_TRUE(made) << made.error().str();
  }

  // The machines.

  void startFleet(const std::string& boot_s, const std::string& task_ms) {
    io::Command command{
        (binFolder() / "muster-fleet").string(),
        {"serve", "--nodes", std::to_string(kNodes), "--boot-url", "http://127.0.0.1:8080",
         "--boot-s", boot_s, "--task-ms", task_ms, "--tasks-file", tasksFile().string()}};
    command.env = {{"MUSTER_FLEET_PASSWORD", kPassword}};
    fleet_ = start(std::move(command), "fleet.log");
    ASSERT_TRUE(becomes([&] { return said("fleet.log", "BMCs answer"); }));
  }
  std::filesystem::path tasksFile() const { return folder_ / "tasks"; }
  /// Lines of the machines' book; `node`: empty: of all.
  int told(const std::string& node, std::string_view kind, std::string_view phase) const {
    std::ifstream in(tasksFile());
    int count = 0;
    for (std::string who, what, id, which; in >> who >> what >> id >> which;)
      count += (node.empty() || who == node) && what == kind && which == phase;
    return count;
  }
  /// How its power was switched before it was first told to do `kind`: "on", "off".
  std::vector<std::string> switchedBefore(const std::string& node, std::string_view kind) const {
    std::ifstream in(tasksFile());
    std::vector<std::string> out;
    for (std::string who, what, id, which; in >> who >> what >> id >> which;) {
      if (who == node && what == kind) break;
      if (who == node && what == "power") out.push_back(which);
    }
    return out;
  }
  static std::string nameOf(int number) { return lab::fleet::specOf(number).name; }
  /// That this BMC has taken, by its own word: one task each.
  int updatesOf(int number) const {
    const auto spec = lab::fleet::specOf(number);
    const auto answer =
        io::runBlocking({.program = "curl",
                         .args = {"-sk", "-u", std::string("admin:") + kPassword,
                                  fmt::format("https://{}:{}/redfish/v1/TaskService/Tasks",
                                              spec.bmc_address, spec.bmc_port)}});
    const auto all = nlohmann::json::parse(answer ? answer->out : "", nullptr, false);
    return all.is_object() ? all.value("Members@odata.count", -1) : -1;
  }

  // The server.

  std::map<std::string, std::string> environment() const {
    return {{"MUSTER_INVENTORY", (folder_ / "cluster.yaml").string()},
            {"MUSTER_STATE", (folder_ / "state").string()},
            {"MUSTER_CACHE", (folder_ / "cache").string()},
            {"MUSTER_LAB", (folder_ / "no-lab").string()},
            {"HOME", folder_.path().string()},
            {"MUSTER_FLEET_PASSWORD", kPassword},
            {"MUSTER_ADDRESS", "127.0.0.1"}};
  }
  std::unique_ptr<io::Child> start(io::Command command, const std::string& log) {
    auto child = io::makeProcessRunner()->start(std::move(command), folder_ / log);
    EXPECT_TRUE(child) << child.error().str();
    return child ? std::move(*child) : nullptr;
  }
  std::string socket() const { return (folder_ / "api.sock").string(); }
  /// And waits until it answers.
  void serve() {
    io::Command command{
        (binFolder() / "muster").string(),
        {"server", "--socket", socket(), "--access", (folder_ / "access.conf").string()}};
    command.env = environment();
    server_ = start(std::move(command), "server.log");
    started_ = Steady::now();
    ASSERT_TRUE(becomes([&] { return ask("GET", "/me").is_object(); })) << "it does not answer";
  }
  void kill() {
    server_->signal(SIGKILL);
    ASSERT_TRUE(becomes([&] { return !server_->running(); }));
    ++kills_;
  }
  std::string muster(std::vector<std::string> words) const {
    io::Command command{(binFolder() / "muster").string(), std::move(words)};
    command.env = environment();
    const auto ended = io::runBlocking(std::move(command));
    EXPECT_TRUE(ended && ended->code == 0) << (ended ? ended->err : ended.error().str());
    return ended ? ended->out : "";
  }
  /// Discarded where nobody answers.
  nlohmann::json ask(const std::string& method, const std::string& resource,
                     const nlohmann::json& body = nullptr,
                     const std::vector<std::string>& headers = {}) const {
    io::Command command{"curl",
                        {"-s", "--max-time", "20", "--unix-socket", socket(), "-X", method}};
    for (const auto& header : headers) command.args.insert(command.args.end(), {"-H", header});
    if (!body.is_null())
      command.args.insert(command.args.end(),
                          {"-H", "Content-Type: application/json", "-d", jsonText(body)});
    command.args.push_back("http://localhost/api/v1" + resource);
    const auto answer = io::runBlocking(std::move(command));
    return nlohmann::json::parse(answer ? answer->out : "", nullptr, false);
  }
  bool said(const std::string& log, std::string_view words) const {
    return io::readFile(folder_ / log).value_or("").find(words) != std::string::npos;
  }
  /// Other processes work: looking from time to time is all there is.
  template <class Condition>
  static bool becomes(Condition condition, std::chrono::milliseconds limit = kLimit) {
    const auto end = Steady::now() + limit;
    do {
      if (condition()) return true;
      std::this_thread::sleep_for(20ms);
    } while (Steady::now() < end);
    return false;
  }

  std::string storeUrl() const { return "sqlite:" + (folder_ / "state/muster.db").string(); }
  std::unique_ptr<lifecycle::Store> store() const { return *lifecycle::openStore(storeUrl()); }
  /// As the store has it, whether somebody serves or not.
  lifecycle::Run run(const std::string& id) const {
    auto runs = *lifecycle::openRuns(storeUrl());
    auto found = runs->read(id);
    EXPECT_TRUE(found && *found) << id;
    return found && *found ? **found : lifecycle::Run{};
  }

  TempFolder folder_;
  std::unique_ptr<io::Child> fleet_, server_;
  Steady::time_point started_;  ///< of the server that runs
  int kills_ = 0;
  io::Fd home_;
};

/// Rollouts that another person has to agree to, killed on their way.
class RolloutKills : public ServerKills {
 protected:
  std::string_view rules() const override {
    return "approvals:\n  - {disruption: any, approvals: 1}\n";
  }

  void bringUp() {
    startFleet("1", "400");
    if (HasFatalFailure()) return;
    serve();
    if (HasFatalFailure()) return;
    anna_ = tokenOf("anna", "admin");
    ben_ = tokenOf("ben", "approver");
    const auto asked = ask("POST", "/runs", {{"kind", "apply"}}, {anna_});
    ASSERT_TRUE(asked.is_object() && asked.contains("id")) << asked;
    const auto id = asked["id"].get<std::string>();
    ASSERT_TRUE(becomes([&] {
      approveOnce(id);
      return isEnd(run(id).state);
    }));
    ASSERT_EQ(toString(run(id).state), toString(RunState::Done)) << run(id).text;
    for (int number = 1; number <= kNodes; ++number)
      ASSERT_EQ(told(nameOf(number), "install-driver", "running"), 1);
  }
  /// As a header.
  std::string tokenOf(const std::string& name, const std::string& role) const {
    auto token = muster({"token", "create", name, "--role", role, "--owner", name});
    while (token.ends_with('\n')) token.pop_back();
    return "Authorization: Bearer " + token;
  }
  /// By ben, where the run waits for somebody and he has not said it yet.
  void approveOnce(const std::string& id) {
    if (agreed_.contains(id)) return;
    const auto now = run(id);
    if (now.state != RunState::NeedsApproval) return;
    EXPECT_TRUE(now.approvals.empty()) << "nobody has agreed to " << id << " yet";
    const auto answer = ask("POST", "/runs/" + id + "/approve", {{"plan_hash", now.plan_hash}},
                            {ben_, "Idempotency-Key: approve-" + id});
    if (!answer.is_object()) return;  // nobody answers at the moment
    EXPECT_TRUE(answer.contains("id")) << answer;
    agreed_.insert(id);
  }
  /// Every third one is of firmware, the others of a driver.
  static bool isFirmware(int number) { return number % 3 == 0; }
  std::string changeOf(int number) {
    const std::string policy =
        ", rollout: {canary: {nodes: 1}, waves: [100], regression: {on_inconclusive: continue}}}";
    if (!isFirmware(number))
      return fmt::format(
                 "{{drivers: {{rdma-{0}: {{packages: [rdma-core={0}.0], verify: "
                 "{{package.rdma-core: \"{0}.*\"}}}}}}, profiles: {{sim: {{drivers: "
                 "[rdma-{0}]}}}}",
                 44 + number) +
             policy;
    const auto version = fmt::format("1.{}.0", number);
    const auto image = lab::vbmc::makeFirmware("BIOS", version, 64u << 10);
    const auto file = fmt::format("bios-{}.fw", number);
    EXPECT_TRUE(io::writeFileAtomic(folder_ / file, image));
    return fmt::format(
               "{{firmware: {{f{}: {{components: {{BIOS: {{version: {}, file: {}, sha256: "
               "{}}}}}}}}}"
               ", profiles: {{sim: {{firmware: f{}}}}}",
               number, version, (folder_ / file).string(), io::sha256Hex(image), number) +
           policy;
  }
  /// The order is given until somebody has answered, under one key; a server that is killed with
  /// the order in its hands has it, or has not, and never twice.
  std::string order(int number) {
    const auto key = fmt::format("Idempotency-Key: rollout-{}", number);
    const nlohmann::json body = {
        {"kind", "rollout"},
        {"nodes", fmt::format("{},{},{}", nameOf(1), nameOf(2), nameOf(3))},
        {"change", changeOf(number)}};
    nlohmann::json answer;
    EXPECT_TRUE(becomes([&] {
      answer = ask("POST", "/runs", body, {key, anna_});
      return answer.is_object();
    }));
    EXPECT_TRUE(answer.is_object() && answer.contains("id")) << answer;
    return answer.is_object() ? answer.value("id", "") : "";
  }
  /// One life of the server, to a random moment; what a person has to do is done meanwhile.
  void liveAndDie(const std::string& id) {
    const auto end = Steady::now() + std::chrono::milliseconds(random_() % kLongestLife);
    while (Steady::now() < end && !isEnd(run(id).state)) {
      approveOnce(id);
      std::this_thread::sleep_for(10ms);
    }
    kill();
    serve();
  }
  /// What is seen from outside of a run that goes on.
  std::string mark(const std::string& id) const {
    const auto now = run(id);
    std::error_code error;
    return fmt::format("{} {} {}", toString(now.state), now.text,
                       std::filesystem::file_size(tasksFile(), error));
  }
  void expectItGoesOn(const std::string& id) {
    const auto before = mark(id);
    ASSERT_TRUE(becomes([&] {
      approveOnce(id);
      return isEnd(run(id).state) || mark(id) != before;
    })) << before;
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - started_);
    EXPECT_LE(took, kGoesOnWithin) << before;
    slowest_ = std::max(slowest_, took);
  }
  /// An order that was answered a moment before the server died is obeyed by the next one.
  void pauseAndDie(const std::string& id) {
    const auto answer = ask("POST", "/runs/" + id + "/pause", nlohmann::json::object(), {anna_});
    if (!answer.is_object() || !answer.contains("id")) return;  // it has ended meanwhile
    kill();
    serve();
    ASSERT_TRUE(becomes([&] {
      const auto now = run(id);
      return now.state == RunState::Paused || isEnd(now.state);
    })) << toString(run(id).state);
    EXPECT_EQ(toString(run(id).state), toString(RunState::Paused)) << "an order was lost";
    ++pauses_;
    const auto resumed = ask("POST", "/runs/" + id + "/resume", nlohmann::json::object(), {anna_});
    EXPECT_TRUE(resumed.is_object() && resumed.contains("id")) << resumed;
  }
  void expectOnce(const std::string& id, int number, const std::vector<int>& updates,
                  const std::vector<int>& installs) {
    const auto ended = run(id);
    ASSERT_EQ(toString(ended.state), toString(RunState::Done)) << ended.text;
    ASSERT_EQ(ended.approvals.size(), 1u) << id;
    EXPECT_EQ(ended.approvals.front().by.principal, "token:ben");
    for (int each = 1; each <= kNodes; ++each) {
      const auto at = static_cast<std::size_t>(each - 1);
      EXPECT_EQ(updatesOf(each) - updates[at], isFirmware(number) ? 1 : 0) << nameOf(each);
      EXPECT_EQ(told(nameOf(each), "install-driver", "running") - installs[at],
                isFirmware(number) ? 0 : 1)
          << nameOf(each);
      EXPECT_EQ(told(nameOf(each), "write-image", "done"), 1) << nameOf(each);
    }
    const auto opened = store();
    EXPECT_TRUE(opened->openIntents()->empty());
  }
  void rollOutUnderKills(int number, int kills) {
    std::vector<int> updates, installs;
    for (int each = 1; each <= kNodes; ++each) {
      updates.push_back(updatesOf(each));
      installs.push_back(told(nameOf(each), "install-driver", "running"));
    }
    const auto id = order(number);
    ASSERT_FALSE(id.empty());
    const auto again = order(number);
    EXPECT_EQ(again, id) << "the same order is one run";
    for (bool paused = false; !isEnd(run(id).state);) {
      if (kills_ >= kills) {
        ASSERT_TRUE(becomes([&] {
          approveOnce(id);
          return isEnd(run(id).state);
        })) << toString(run(id).state);
        break;
      }
      if (!std::exchange(paused, paused || run(id).state == RunState::Running) &&
          run(id).state == RunState::Running)
        pauseAndDie(id);
      else
        liveAndDie(id);
      if (HasFatalFailure()) return;
      if (kills_ % 2 == 0) expectItGoesOn(id);
      if (HasFatalFailure()) return;
    }
    expectOnce(id, number, updates, installs);
  }

  std::string anna_, ben_;  ///< who asks, and who agrees
  std::set<std::string> agreed_;
  std::mt19937 random_{static_cast<unsigned>(numberIn("MUSTER_CRASH_SEED", 1))};
  std::chrono::milliseconds slowest_{0};
  int pauses_ = 0;
};

TEST_F(RolloutKills, goOnByThemselvesAndNothingIsDoneTwice) {
  bringUp();
  if (HasFatalFailure()) return;
  const int kills = numberIn("MUSTER_CRASH_KILLS", kFewKills);
  int number = 0;
  while (kills_ < kills && !HasFailure()) {
    SCOPED_TRACE(fmt::format("rollout {}, after {} kills", number + 1, kills_));
    rollOutUnderKills(++number, kills);
  }
  EXPECT_EQ(static_cast<int>(agreed_.size()), number + 1) << "each was agreed to once";
  std::cout << fmt::format(
      "{} rollouts of {} nodes, {} SIGKILLs, {} of them right behind an order; the slowest start "
      "that went on took {} ms\n",
      number, kNodes, kills_, pauses_, slowest_.count());
}

/// Once each restart of muster power-cycled machines that were still booting: six boots for one
/// inspection.
class InspectionKills : public ServerKills {};

TEST_F(InspectionKills, aRestartedServerWaitsForTheBootThatItFindsUnderWay) {
  startFleet("120", "100");  // 108 s at least
  if (HasFatalFailure()) return;
  serve();
  if (HasFatalFailure()) return;
  const auto asked = ask("POST", "/runs", {{"kind", "apply"}, {"nodes", nameOf(1)}});
  ASSERT_TRUE(asked.is_object() && asked.contains("id")) << asked;
  const auto id = asked["id"].get<std::string>();
  ASSERT_TRUE(becomes([&] { return told(nameOf(1), "power", "on") > 0; })) << run(id).text;
  const auto begun = Steady::now();
  constexpr int kRestarts = 6;
  constexpr auto kLooksFor = 14s;  ///< longer than a system that runs already is given to call
  for (int restart = 0; restart < kRestarts; ++restart) {
    kill();
    serve();
    if (HasFatalFailure()) return;
    // It is at the node again, or the node has called.
    ASSERT_TRUE(becomes([&] {
      const auto state = run(id).state;
      return (state == RunState::Running || state == RunState::Planning) &&
             Steady::now() - started_ > kLooksFor;
    })) << toString(run(id).state);
    EXPECT_EQ(told(nameOf(1), "write-image", "running"), 0) << "it was to be killed before";
    EXPECT_EQ(told(nameOf(1), "power", "off"), 0) << "its power was cut in the middle of its boot";
    if (Steady::now() - begun > 90s) break;  // a slow machine: the next one would meet its end
  }
  // What the hardware is comes with the enrollment; the image is the first thing that it is told.
  ASSERT_TRUE(becomes([&] { return told(nameOf(1), "write-image", "running") > 0; }))
      << run(id).text;
  EXPECT_GE(kills_, 3) << "this machine is too slow to show anything";
  EXPECT_THAT(switchedBefore(nameOf(1), "write-image"), testing::ElementsAre("on"))
      << "one boot for one inspection";
  std::cout << fmt::format(
      "{} restarts within one boot, inspected {} ms after it began\n", kills_,
      std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begun).count());
}

}  // namespace
}  // namespace muster::test
