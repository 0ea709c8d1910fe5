// SPDX-License-Identifier: Apache-2.0
// Two hosts with the real program, a state folder each, one PostgreSQL, and a simulated fleet whose
// agents know both. One host is killed, or stopped and woken: agents report to the other one, it
// finishes, nothing is done twice, and the one that wakes up stops.
#include "base/io/crypto.h"
#include "base/io/process.h"
#include "lab/fleet/fleet.h"
#include "lab/vbmc/firmware_file.h"
#include "lifecycle/store/leader_lease.h"
#include "lifecycle/store/runs.h"
#include "tests/crash/fleet_images.h"
#include "tests/lifecycle/postgres_server.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <fstream>

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNodes = 4;
constexpr auto kLimit =
    180s;  ///< of one thing that has to happen: a lease, an agent's long poll, and a slow machine

/// A program that runs, and what it has said.
struct Program {
  std::unique_ptr<io::Child> child;
  fs::path log;
  std::string said() const { return io::readFile(log).value_or(""); }
  bool hasSaid(std::string_view words) const { return said().find(words) != std::string::npos; }
};

class TwoHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for a network namespace";
    if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "network namespaces cannot be made here";
    const auto up = io::runChecked(
        {.program = "sh",
         .args = {"-c", "ip link set lo up && ip addr add 127.0.0.2/8 dev lo" + neighbours()}});
    ASSERT_TRUE(up) << up.error().str();
    url_ = postgresServer().createDatabase();
    store_ = std::move(*lifecycle::openStore(url_));
    ::setenv("MUSTER_FLEET_PASSWORD", "secret", 1);
    declare();
    makeKeysAndImages();
    startFleet();
  }
  void TearDown() override {
    for (auto* each : {&a_, &b_, &fleet_}) {
      if (HasFailure() && each->child)
        std::cerr << "---- " << each->log.filename() << "\n" << each->said() << "\n";
      if (each->child) each->child->signal(SIGCONT);
      each->child.reset();
    }
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
  }

  /// On loopback nobody is a neighbour: the kernel is told of each node's MAC, on a device of its
  /// own.
  static std::string neighbours() {
    std::string out;
    for (int number = 1; number <= kNodes; ++number)
      out += fmt::format(
          " && ip link add node{0} type bridge && ip link set node{0} up && ip neigh add 127.0.0.1 "
          "lladdr {1} dev node{0} nud permanent",
          number, lab::fleet::specOf(number).mac);
    return out;
  }
  virtual void declare() { declare("", ""); }
  /// `more`: sections of the inventory; `of_profile`: keys of the nodes' profile.
  void declare(std::string_view more, std::string_view of_profile) {
    std::string nodes;
    for (int number = 1; number <= kNodes; ++number) {
      const auto spec = lab::fleet::specOf(number);
      nodes += fmt::format(
          "  - {{names: {}, profile: sim, mac: \"{}\", address: 127.80.0.{}, bmc: "
          "\"https://{}:{}\", serial: {}}}\n",
          spec.name, spec.mac, number, spec.bmc_address, spec.bmc_port, spec.serial);
    }
    std::ofstream(folder_ / "cluster.yaml") << R"(cluster: {name: two-hosts}
networks:
  provisioning: {cidr: 127.0.0.0/8, controllers: [127.0.0.1, 127.0.0.2], dhcp: {mode: none}}
credentials:
  bmc: {username: admin, password: {env: MUSTER_FLEET_PASSWORD}}
images:
  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}
drivers:
  rdma: {packages: [rdma-core], verify: {package.rdma-core: "44.*"}}
gates:
  burn-in: {level: quick, groups: [host]}
profiles:
  sim: {expect: {gpus: 0, cpus_min: 1}, image: bookworm, drivers: [rdma], gates: [burn-in])"
                                            << of_profile << "}\n"
                                            << more << "nodes:\n"
                                            << nodes;
  }
  /// Made on the first host, and copied to the second one as docs/two-hosts.md says.
  void makeKeysAndImages() {
    ASSERT_TRUE(io::CertificateAuthority::loadOrCreate(folder_ / "a/ca", "muster CA"));
    for (const char* name : {"signing", "firmware", "audit"})
      ASSERT_TRUE(io::SigningKey::loadOrCreate(folder_ / fmt::format("a/keys/{}.pem", name)));
    const auto key = io::SigningKey::loadOrCreate(folder_ / "a/keys/images.pem");
    ASSERT_TRUE(key);
    const auto made = makeFleetImages(folder_ / "cluster.yaml", folder_ / "cache", *key);
    ASSERT_TRUE(made) << made.error().str();
  }
  void copyKeys() {
    fs::create_directories(folder_ / "b");
    for (const char* what : {"ca", "keys"})
      fs::copy(folder_ / "a" / what, folder_ / "b" / what, fs::copy_options::recursive);
  }
  virtual void startFleet() { startFleet({}); }
  void startFleet(const std::vector<std::string>& more) {
    std::vector<std::string> args{"serve",
                                  "--nodes",
                                  std::to_string(kNodes),
                                  "--boot-url",
                                  "http://127.0.0.1:8080,http://127.0.0.2:8080",
                                  "--boot-s",
                                  "3",
                                  "--tasks-file",
                                  (folder_ / "tasks").string()};
    args.insert(args.end(), more.begin(), more.end());
    fleet_ = start({(binFolder() / "muster-fleet").string(), args}, "fleet.log");
    ASSERT_TRUE(becomes([&] { return fleet_.hasSaid("BMCs answer"); }));
  }
  Program start(io::Command command, const std::string& log) {
    auto child = io::makeProcessRunner()->start(std::move(command), folder_ / log);
    EXPECT_TRUE(child) << child.error().str();
    return {child ? std::move(*child) : nullptr, folder_ / log};
  }
  /// `host`: a or b.
  Program muster(const std::string& host, std::vector<std::string> words) {
    const auto log = fmt::format("{}-{}-{}.log", host, words.front(), ++programs_);
    io::Command command{(binFolder() / "muster").string(), std::move(words)};
    command.env = {{"MUSTER_INVENTORY", (folder_ / "cluster.yaml").string()},
                   {"MUSTER_STATE", (folder_ / host).string()},
                   {"MUSTER_CACHE", (folder_ / "cache").string()},
                   {"MUSTER_LAB", (folder_ / "no-lab").string()},
                   {"MUSTER_STORE", url_},
                   {"HOME", folder_.path().string()},
                   {"MUSTER_FLEET_PASSWORD", "secret"},
                   {"MUSTER_ADDRESS", host == "a" ? "127.0.0.1" : "127.0.0.2"}};
    return start(std::move(command), log);
  }
  /// Other processes work: looking from time to time is all there is.
  template <class Condition>
  bool becomes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }
  bool ends(const Program& program) {
    return becomes([&] { return !program.child->running(); });
  }
  int tasks(std::string_view kind, std::string_view phase) {
    std::ifstream in(folder_ / "tasks");
    int count = 0;
    for (std::string node, what, id, which; in >> node >> what >> id >> which;)
      count += what == kind && which == phase;
    return count;
  }
  std::string whoServes() {
    const auto holder = lifecycle::currentLeader(*store_);
    return holder && *holder ? (*holder)->address : "";
  }
  void expectEverythingOnce() {
    // A writing that found no controller to certify what it would write has failed before its first
    // byte, and was tried again.
    EXPECT_EQ(tasks("write-image", "done"), kNodes);
    EXPECT_EQ(tasks("install-driver", "running"), kNodes);
    for (int number = 1; number <= kNodes; ++number) {
      const NodeName node(lab::fleet::specOf(number).name);
      std::map<std::string, int> done;
      const lifecycle::Subject subject(node);
      const auto intents = store_->intentsOf(subject, 1000);
      ASSERT_TRUE(intents);
      for (const auto& intent : *intents) {
        EXPECT_NE(intent.state, lifecycle::IntentState::Open) << intent.action.facet.str();
        done[intent.action.facet.str()] += intent.state == lifecycle::IntentState::Done;
      }
      for (const auto& [facet, times] : done) EXPECT_LE(times, 1) << node.str() << " " << facet;
      EXPECT_EQ(done[node.str() + "/image"], 1);
    }
    EXPECT_TRUE(store_->openIntents()->empty());
  }
  /// The first of two hosts is in the middle of its work: an image is being written, or is.
  void beginOnA() {
    a_ = muster("a", {"apply"});
    ASSERT_TRUE(
        becomes([&] { return tasks("write-image", "running") > 0 || !a_.child->running(); }));
    ASSERT_TRUE(a_.child->running());
    EXPECT_EQ(whoServes(), "127.0.0.1");
  }
  void finishOnB() {
    copyKeys();
    b_ = muster("b", {"apply"});
    ASSERT_TRUE(ends(b_));
    EXPECT_THAT(b_.said(), HasSubstr("looking for 30 s whether it still does"));
    EXPECT_EQ(whoServes(), "127.0.0.2");
    expectEverythingOnce();
  }

  TempFolder folder_;
  std::string url_;
  std::unique_ptr<lifecycle::Store> store_;
  Program a_, b_, fleet_;
  int programs_ = 0;
  io::Fd home_;
};

TEST_F(TwoHosts, oneIsKilledInTheMiddleAndTheOtherFinishes) {
  beginOnA();
  a_.child->signal(SIGKILL);
  ASSERT_TRUE(ends(a_));
  finishOnB();
}

TEST_F(TwoHosts, oneThatWasStoppedWakesUpAndEnds) {
  beginOnA();
  a_.child->signal(SIGSTOP);
  finishOnB();
  const auto before = *io::readFile(folder_ / "tasks");
  a_.child->signal(SIGCONT);
  ASSERT_TRUE(ends(a_));
  EXPECT_THAT(a_.said(), HasSubstr("this host does not serve the site any more"));
  EXPECT_THAT(a_.said(), HasSubstr("serves the site now, at 127.0.0.2"));
  EXPECT_EQ(*io::readFile(folder_ / "tasks"), before) << "none of its orders was taken up";
  expectEverythingOnce();
}

TEST_F(TwoHosts, aSecondHostWithoutTheSitesKeysIsToldWhatToCopy) {
  a_ = muster("a", {"monitor"});
  ASSERT_TRUE(becomes([&] { return a_.hasSaid("muster monitor: 4 nodes"); }));
  b_ = muster("b", {"monitor"});
  ASSERT_TRUE(ends(b_));
  EXPECT_THAT(b_.said(), HasSubstr("the site has its keys already"));
  EXPECT_THAT(b_.said(), HasSubstr("nothing else of that folder"));
  EXPECT_FALSE(fs::exists(folder_ / "b/ca/ca.key")) << "it made none of its own";

  ASSERT_TRUE(io::CertificateAuthority::loadOrCreate(folder_ / "b/ca", "muster CA"));
  fs::copy(folder_ / "a/keys", folder_ / "b/keys", fs::copy_options::recursive);
  b_ = muster("b", {"monitor"});
  ASSERT_TRUE(ends(b_));
  EXPECT_THAT(b_.said(), HasSubstr("the CA (SHA-256 of ca/ca.crt) of this host is"));
}

/// As another host left it in the store that has served with an image of its own making.
TEST_F(TwoHosts, aHostWithAnotherImageIsToldWhatToCopyAndOrdersNothing) {
  ASSERT_TRUE(store_->putValue("site/image/bookworm", "0123abcd ctl-b (3f9c)"));
  a_ = muster("a", {"apply"});
  ASSERT_TRUE(ends(a_));
  EXPECT_THAT(a_.said(),
              HasSubstr("here, the site's is 0123abcd: every node would be taken for wrong"));
  EXPECT_THAT(a_.said(), HasSubstr("/images from ctl-b (3f9c)"));
  EXPECT_EQ(tasks("write-image", "running"), 0);
  EXPECT_EQ(store_->getValue("site/image/bookworm").value(), "0123abcd ctl-b (3f9c)");
}

TEST_F(TwoHosts, keepStandsByCommandsAreSentToWhoServesAndTheHostsChangeHands) {
  copyKeys();
  a_ = muster("a", {"monitor"});
  ASSERT_TRUE(becomes([&] { return a_.hasSaid("muster monitor: 4 nodes"); }));
  b_ = muster("b", {"monitor"});
  ASSERT_TRUE(becomes([&] { return b_.hasSaid("stands by;"); }));
  EXPECT_THAT(b_.said(), HasSubstr("serves, at 127.0.0.1"));
  auto plan = muster("b", {"plan"});
  ASSERT_TRUE(ends(plan));
  EXPECT_THAT(plan.said(), HasSubstr("serves the site, at 127.0.0.1: run the command there"));
  auto status = muster("b", {"status"});
  ASSERT_TRUE(ends(status));
  EXPECT_THAT(status.said(), HasSubstr("serves the site, at 127.0.0.1"));

  a_.child->signal(SIGKILL);
  ASSERT_TRUE(becomes([&] { return b_.hasSaid("muster monitor: 4 nodes"); }));
  EXPECT_EQ(whoServes(), "127.0.0.2");
  a_ = muster("a", {"monitor"});
  ASSERT_TRUE(becomes([&] { return a_.hasSaid("serves, at 127.0.0.2"); }))
      << "and does not fight for it";
  plan = muster("b", {"plan"});  // keep stands aside for it, the host stays the one that serves
  ASSERT_TRUE(ends(plan));
  EXPECT_THAT(plan.said(), Not(HasSubstr("run the command there")));
  EXPECT_EQ(whoServes(), "127.0.0.2");
}

/// A run under way when its host dies goes on at the other one, by itself and within 90 s; an order
/// that was given meanwhile counts.
class TwoHostsRun : public TwoHosts {
 protected:
  void serveOnBoth() {
    copyKeys();
    a_ = muster("a", {"monitor"});
    ASSERT_TRUE(becomes([&] { return a_.hasSaid("muster monitor: 4 nodes"); }));
    b_ = muster("b", {"monitor"});
    ASSERT_TRUE(becomes([&] { return b_.hasSaid("stands by;"); }));
    runs_ = std::move(*lifecycle::openRuns(url_));
  }
  void beginRunOnA() {
    serveOnBoth();
    apply_ = muster("a", {"apply"});
    ASSERT_TRUE(becomes([&] { return tasks("write-image", "running") > 0; })) << apply_.said();
    const auto all = runs_->list({});
    ASSERT_TRUE(all && all->size() == 1u) << apply_.said();
    id_ = all->front().id;
    ASSERT_EQ(run().state, lifecycle::RunState::Running);
  }
  void TearDown() override {
    if (HasFailure() && apply_.child) std::cerr << "---- apply\n" << apply_.said() << "\n";
    apply_.child.reset();
    TwoHosts::TearDown();
  }
  lifecycle::Run run() { return **runs_->read(id_); }
  /// How long until somebody else works on it.
  std::chrono::milliseconds untilTakenOver(const std::string& before) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(becomes([&] { return run().worked_on_by != before; }));
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 began);
  }

  std::unique_ptr<lifecycle::RunStore> runs_;
  std::string id_;
  Program apply_;
};

TEST_F(TwoHostsRun, goesOnAtTheOtherHostWhenItsOwnIsKilled) {
  beginRunOnA();
  const auto worker = run().worked_on_by;
  a_.child->signal(SIGKILL);
  ASSERT_TRUE(ends(a_));
  const auto waited = untilTakenOver(worker);
  EXPECT_LE(waited, 90s);
  std::cout << "taken over after " << waited.count() << " ms\n";
  EXPECT_EQ(whoServes(), "127.0.0.2");
  ASSERT_TRUE(becomes([&] { return isEnd(run().state); }));
  EXPECT_EQ(toString(run().state), toString(lifecycle::RunState::Done)) << run().text;
  ASSERT_TRUE(ends(apply_)) << "it follows the run, whoever works on it";
  EXPECT_THAT(apply_.said(), HasSubstr("run " + id_ + " is done"));
  expectEverythingOnce();
}

TEST_F(TwoHostsRun, isCancelledByAnOrderThatItsHostDidNotLiveToObey) {
  beginRunOnA();
  a_.child->signal(SIGSTOP);
  auto cancel = muster("b", {"run", "cancel", id_});
  ASSERT_TRUE(ends(cancel));
  EXPECT_EQ(run().order, lifecycle::RunOrder::Cancel) << cancel.said();
  a_.child->signal(SIGKILL);
  ASSERT_TRUE(becomes([&] { return isEnd(run().state); }));
  EXPECT_EQ(toString(run().state), toString(lifecycle::RunState::Cancelled));
  EXPECT_EQ(whoServes(), "127.0.0.2");
}

/// The newer kinds of run, each under way when its host is killed: the other host goes on with it,
/// and the one that was killed stands by when it is started again.
class TwoHostsKinds : public TwoHostsRun {
 protected:
  void declare() override {
    const auto image = lab::vbmc::makeFirmware("BIOS", "1.5.0", 64u << 10);
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "bios.fw", image));
    // Large enough that packing it takes a while.
    const auto tree = sourceFolder() / "tests/provision/images/make_startable_tree.sh";
    const auto made = io::runChecked(
        {.program = "sh",
         .args = {"-ec",
                  "cd \"$1\"; \"$2\" tree; head -c 250000000 /dev/urandom >tree/var/data; "
                  "tar -C tree -cf tree.tar .; rm -r tree",
                  "sh", folder_.path().string(), tree.string()}});
    ASSERT_TRUE(made) << made.error().str();
    TwoHosts::declare(
        fmt::format("firmware:\n  f1: {{components: {{BIOS: {{version: 1.5.0, file: bios.fw, "
                    "sha256: {}}}}}}}\n",
                    io::sha256Hex(image)),
        ", firmware: f1");
    auto text = *io::readFile(folder_ / "cluster.yaml");
    text.replace(
        text.find("drivers:\n"), 0,
        "  extra: {import: tree.tar, sha256: " + *io::sha256File(folder_ / "tree.tar") + "}\n");
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "cluster.yaml", text));
  }
  /// A gate takes as long as it takes to be killed in its middle.
  void startFleet() override { TwoHosts::startFleet({"--task-ms", "4000"}); }

  struct Host {
    const char *name, *address;
  };
  static constexpr Host kA{"a", "127.0.0.1"}, kB{"b", "127.0.0.2"};
  Program& programOf(const Host& host) { return host.name == kA.name ? a_ : b_; }

  std::string curl(std::vector<std::string> words) const {
    const auto spec = lab::fleet::specOf(1);
    words.insert(words.begin(), {"-sk", "-u", "admin:secret"});
    words.back() = fmt::format("https://{}:{}{}", spec.bmc_address, spec.bmc_port, words.back());
    const auto said = io::runBlocking({.program = "curl", .args = std::move(words)});
    return said ? said->out : said.error().str();
  }
  /// How the BMC of the first node ends its next updates.
  void updatesEnd(const std::string& faults) {
    ASSERT_THAT(curl({"-X", "PUT", "-d", faults, "/lab/faults"}), HasSubstr("update_faults"));
  }
  /// That this BMC has taken, by its own word: one task each.
  int updatesTaken() const {
    const auto all = nlohmann::json::parse(curl({"/redfish/v1/TaskService/Tasks"}), nullptr, false);
    return all.is_object() ? all.value("Members@odata.count", -1) : -1;
  }
  int gatesRun(const std::string& node) {
    std::ifstream in(folder_ / "tasks");
    int count = 0;
    for (std::string who, what, id, which; in >> who >> what >> id >> which;)
      count += who == node && what == "run-checks" && which == "running";
    return count;
  }
  /// All nodes are what they should be but the first one, whose firmware has failed for good.
  void bringUp() {
    serveOnBoth();
    if (HasFatalFailure()) return;
    updatesEnd(R"({"update_faults": [{"kind": "task-fails", "count": 9}]})");
    apply_ = muster("a", {"apply"});
    ASSERT_TRUE(ends(apply_));
    EXPECT_THAT(apply_.said(), HasSubstr("action-failed"));
    for (int number = 2; number <= kNodes; ++number)
      ASSERT_EQ(gatesRun(lab::fleet::specOf(number).name), 1) << apply_.said();
    updatesEnd("{}");
  }
  void ask(const Host& host, std::vector<std::string> words) {
    auto before = *runs_->list({});
    apply_ = muster(host.name, std::move(words));
    ASSERT_TRUE(becomes([&] { return runs_->list({})->size() > before.size(); })) << apply_.said();
    for (const auto& each : *runs_->list({}))
      if (std::ranges::none_of(before, [&](const auto& old) { return old.id == each.id; }))
        id_ = each.id;
  }
  /// Kills the host that works on the run, and waits for its end at the other one.
  void expectTakenOver(const Host& from, const Host& to) {
    ASSERT_EQ(run().state, lifecycle::RunState::Running) << apply_.said();
    const auto worker = run().worked_on_by;
    auto& killed = programOf(from);
    killed.child->signal(SIGKILL);
    ASSERT_TRUE(ends(killed));
    const auto waited = untilTakenOver(worker);
    EXPECT_LE(waited, 90s);
    std::cout << toString(run().kind) << ": taken over after " << waited.count() << " ms\n";
    EXPECT_EQ(whoServes(), to.address);
    ASSERT_TRUE(becomes([&] { return isEnd(run().state); }));
    EXPECT_EQ(toString(run().state), toString(lifecycle::RunState::Done)) << run().text << "\n"
                                                                          << programOf(to).said();
    ASSERT_TRUE(ends(apply_)) << "it follows the run, whoever works on it";
    EXPECT_TRUE(store_->openIntents()->empty());
    killed = muster(from.name, {"monitor"});
    ASSERT_TRUE(becomes([&] { return killed.hasSaid(std::string("serves, at ") + to.address); }));
  }
  /// Gates of working nodes again: one of them is run, once, by each agent.
  void validate() {
    ask(kA, {"validate", "run", "--nodes", "node0000[2-4]"});
    ASSERT_TRUE(becomes([&] { return gatesRun("node00002") > 1 || gatesRun("node00003") > 1; }));
    expectTakenOver(kA, kB);
    for (int number = 2; number <= kNodes; ++number)
      EXPECT_EQ(gatesRun(lab::fleet::specOf(number).name), 2) << number;
  }
  void retryFirmware() {
    const auto before = updatesTaken();
    ASSERT_GT(before, 0);
    ask(kB, {"firmware", "retry", "node00001", "--reason", "reseated, BMC log clean"});
    // The BMC has it, and it is not active yet.
    ASSERT_TRUE(becomes([&] {
      return b_.hasSaid("BIOS 1.5.0 to be active") || isEnd(run().state);
    })) << apply_.said();
    expectTakenOver(kB, kA);
    EXPECT_EQ(updatesTaken(), before + 1) << "it was sent to the BMC once";
    EXPECT_THAT(curl({"/redfish/v1/UpdateService/FirmwareInventory/BIOS"}), HasSubstr("1.5.0"));
    EXPECT_EQ(gatesRun("node00001"), 1);
    EXPECT_EQ(tasks("write-image", "done"), kNodes);
  }
  void buildImage() {
    ask(kA, {"image", "build", "extra"});
    ASSERT_TRUE(becomes([&] { return run().state == lifecycle::RunState::Running; }))
        << apply_.said();
    expectTakenOver(kA, kB);
    EXPECT_THAT(apply_.said(), HasSubstr("image extra@"));
    const auto left = io::runBlocking({.program = "sh",
                                       .args = {"-c", "ls -d \"$1\"/images/*.part* 2>/dev/null",
                                                "sh", (folder_ / "cache").string()}});
    EXPECT_EQ(left->out, "") << "of the build that was killed";
  }
};

TEST_F(TwoHostsKinds, validationFirmwareRetryAndImageBuildGoOnAtTheOtherHost) {
  bringUp();
  if (HasFatalFailure()) return;
  validate();
  if (HasFatalFailure()) return;
  retryFirmware();
  if (HasFatalFailure()) return;
  buildImage();
}

/// `muster server` on both, each with HTTPS: the one that stands by names the other one's URL for
/// what needs the live process, and takes orders that are rows.
class TwoHostsServers : public TwoHosts {
 protected:
  Program serve(const std::string& host) {
    const std::string address = host == "a" ? "127.0.0.1" : "127.0.0.2";
    return muster(
        host, {"server", "--socket", socketOf(host), "--access", (folder_ / "access.conf").string(),
               "--listen", address + ":9443", "--announce", urlOf(host)});
  }
  std::string socketOf(const std::string& host) const {
    return (folder_ / (host + ".sock")).string();
  }
  static std::string urlOf(const std::string& host) {
    return std::string("https://") + (host == "a" ? "127.0.0.1" : "127.0.0.2") + ":9443";
  }
  nlohmann::json ask(const std::string& host, const std::string& method,
                     const std::string& resource, const std::string& body = {}) {
    std::vector<std::string> words{"-s",           "--max-time", "20",  "--unix-socket",
                                   socketOf(host), "-X",         method};
    if (!body.empty())
      words.insert(words.end(), {"-H", "Content-Type: application/json", "-d", body});
    words.push_back("http://localhost/api/v1" + resource);
    const auto said = io::runBlocking({.program = "curl", .args = std::move(words)});
    return nlohmann::json::parse(said ? said->out : "", nullptr, false);
  }
  std::string locatorOnce(const std::string& host) {
    nlohmann::json said;
    EXPECT_TRUE(becomes([&] {
      said = ask(host, "GET", "/nodes/node00001/locator");
      return said.is_object() && said.value("state", "") != "asking";
    }));
    return said.is_object() ? said.value("state", said.value("code", "")) : "";
  }
};

TEST_F(TwoHostsServers, theOneThatStandsByNamesTheUrlOfTheOneThatServes) {
  copyKeys();
  a_ = serve("a");
  ASSERT_TRUE(becomes([&] { return a_.hasSaid("muster server: 4 nodes"); }));
  b_ = serve("b");
  ASSERT_TRUE(becomes([&] { return b_.hasSaid("stands by;"); }));

  const auto refused = ask("b", "POST", "/nodes/node00001/locator", R"({"led": "on"})");
  ASSERT_TRUE(refused.is_object());
  EXPECT_EQ(refused["status"], 409);
  EXPECT_EQ(refused["code"], "not-serving");
  EXPECT_EQ(refused["serves"]["url"], urlOf("a"));
  EXPECT_EQ(refused["serves"]["address"], "127.0.0.1");
  EXPECT_EQ(ask("a", "POST", "/nodes/node00001/locator", R"({"led": "on"})")["state"], "asking");
  EXPECT_EQ(locatorOnce("a"), "on") << "by its BMC's word";

  auto led = muster("b", {"--server", socketOf("b"), "bmc", "locate", "node00001", "on"});
  ASSERT_TRUE(ends(led));
  EXPECT_THAT(led.said(), HasSubstr("serves the site, at 127.0.0.1"));
  EXPECT_THAT(led.said(), HasSubstr("--server " + urlOf("a")));
  EXPECT_EQ(ask("b", "GET", "/nodes")["total"], kNodes) << "it looks";
  const auto held =
      ask("b", "POST", "/quarantine", R"({"nodes": "node00002", "reason": "loose cable"})");
  EXPECT_EQ(held["items"].size(), 1u) << "and takes orders that are rows";
  EXPECT_EQ(ask("a", "GET", "/quarantine")["items"].size(), 1u);

  a_.child->signal(SIGKILL);
  ASSERT_TRUE(becomes([&] { return b_.hasSaid("muster server: 4 nodes"); }));
  EXPECT_EQ(ask("b", "POST", "/nodes/node00001/locator", R"({"led": "off"})")["state"], "asking");
  EXPECT_EQ(locatorOnce("b"), "off");
  a_ = serve("a");
  ASSERT_TRUE(becomes([&] { return a_.hasSaid("serves, at 127.0.0.2"); }));
  const auto turned = ask("a", "GET", "/nodes/node00001/boots");
  EXPECT_EQ(turned["serves"]["url"], urlOf("b")) << "the URL changes hands with the site";
}

}  // namespace
}  // namespace muster::test
