// SPDX-License-Identifier: Apache-2.0
// Checks of idle nodes from end to end: the real monitor, a real slurmctld and slurmd, and real
// agents that run the checks. What one of them says of the others nobody has made up here.
#include "app/validation/active_checks.h"
#include "lifecycle/store/store.h"
#include "tests/cli/muster_folder.h"
#include "tests/fakes/real_slurm.h"
#include "tests/provision/images/kept_bytes.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>
#include <iostream>

namespace muster::app {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kNodes = 2;
/// From submission to start. Slurm alone takes up to three seconds for a job on a free node.
constexpr auto kWithinSeconds = 20s;
constexpr auto kDrainedWithin = 60s;
constexpr auto kCheckEndsWithin = 10s;  ///< after the job that it gave way to has run

class ActiveChecksOnAgents : public test::RealSlurm {
 protected:
  void SetUp() override {
    RealSlurm::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    keepImage();
    site_.write("cluster.yaml", inventory(""));
    const auto authority =
        io::CertificateAuthority::loadOrCreate(site_ / "state" / "ca", "muster CA");
    ASSERT_TRUE(authority) << authority.error().str();
    for (int n = 1; n <= kNodes; ++n) agent(n, *authority);
    haveCertificates();
    startController(slurmConf(fmt::format(
        "SlurmdTimeout=60\nNodeName=n1 NodeHostname={0} NodeAddr=10.99.0.1 Port=17001 CPUs=1 "
        "State=UNKNOWN\nNodeName=n2 NodeHostname={0} NodeAddr=10.99.0.1 Port=17002 CPUs=1 "
        "State=UNKNOWN\nPartitionName=gpu Nodes=n[1-2] Default=YES State=UP\n",
        kHost)));
    if (HasFatalFailure()) return;
    site_.write("slurm.conf", *io::readFile(path("slurm.conf")));
    for (const char* node : {"n1", "n2"}) {
      start("slurmd", {"-D", "-N", node, "-f", path("slurm.conf")});
      ASSERT_TRUE(eventually([&] { return nodeSays(node, "State=IDLE "); })) << node;
    }
  }
  void TearDown() override {
    if (HasFailure())
      for (const auto& log : {site_ / "monitor.log", site_ / "n1/log", site_ / "n2/log"})
        std::cerr << "---- " << log << "\n" << io::readFile(log).value_or("no log") << "\n";
    monitor_.reset();
    agents_.clear();
    RealSlurm::TearDown();
  }

  /// `pool`: of the profile and of the pools; empty: nodes are of none.
  std::string inventory(std::string_view idle_gate) const {
    std::string nodes;
    for (int n = 1; n <= kNodes; ++n)
      nodes += fmt::format(
          "  - {{names: {}, profile: node, mac: \"{}\", address: 10.99.0.{}, bmc: "
          "\"https://10.99.0.{}\"}}\n",
          name(n), mac(n), 10 + n, 200 + n);
    return fmt::format(R"(cluster: {{name: hall}}
networks:
  provisioning: {{cidr: 10.99.0.0/24, controllers: [10.99.0.1], dhcp: {{mode: none}}}}
credentials:
  bmc: {{username: admin, password: {{file: bmc-password}}}}
images:
  bookworm: {{build: {{suite: bookworm, packages: [linux-image-amd64]}}}}
gates:
  burn-in: {{level: quick, groups: [host]}}
  idle: {{level: quick, groups: [host]{}}}
{}profiles:
  node: {{image: bookworm, gates: [burn-in]{}}}
nodes:
{})",
                       idle_gate.empty() ? "" : idle_gate,
                       is_pooled_ ? "pools:\n  batch: {slurm: {partition: gpu, config: slurm.conf, "
                                    "active_checks: {gate: idle, every_hours: 24, nodes: 1, "
                                    "idle_percent: 100}}}\n"
                                  : "",
                       is_pooled_ ? ", pool: batch" : "", nodes);
  }
  static std::string name(int n) { return fmt::format("n{}", n); }
  static std::string mac(int n) { return fmt::format("52:54:00:20:00:{:02x}", n); }

  void keepImage() {
    ASSERT_TRUE(io::makeDirs(site_ / "state" / "keys", 0700));
    const auto key = io::SigningKey::loadOrCreate(site_ / "state" / "keys" / "signing.pem");
    ASSERT_TRUE(key);
    const auto digest = test::keepImageOfBytes(site_ / "cache", site_ / "agent", *key);
    ASSERT_TRUE(digest) << digest.error().str();
    image_digest_ = *digest;
  }
  /// As the installed system of node n runs it; sysfs shows it the NIC that is declared.
  void agent(int n, const io::CertificateAuthority& authority) {
    const auto home = site_ / name(n);
    const auto write = [&home](const std::string& file, const std::string& text) {
      ASSERT_TRUE(io::makeDirs((home / file).parent_path()));
      ASSERT_TRUE(io::writeFileAtomic(home / file, text, 0600));
    };
    const auto made = io::makeKeyAndRequest(name(n));
    ASSERT_TRUE(made);
    const auto certificate = authority.signClient(made->csr_pem, name(n), 24h);
    ASSERT_TRUE(certificate);
    write("key", made->key_pem.reveal());
    write("certificate", *certificate);
    write("ca", authority.certificatePem());
    write("net/eth0/address", mac(n) + "\n");
    ASSERT_TRUE(io::makeDirs(home / "net/eth0/device"));
    write("agent.json", nlohmann::json{{"url", "https://10.99.0.1:8443"},
                                       {"node", name(n)},
                                       {"ca_pem_file", home / "ca"},
                                       {"key_file", home / "key"},
                                       {"certificate_file", home / "certificate"},
                                       {"image_digest", image_digest_}}
                            .dump());
    io::Command command;
    command.program = "unshare";
    command.args = {
        "--mount",
        "sh",
        "-c",
        "mount --bind \"$1\" /sys/class/net && exec \"$2\" --config \"$3\" --state \"$4\"",
        "sh",
        home / "net",
        (test::binFolder() / "muster-agent").string(),
        home / "agent.json",
        home / "state"};
    auto child = processes_->start(command, home / "log");
    ASSERT_TRUE(child) << child.error().str();
    agents_.push_back(std::move(*child));
  }
  /// Earned by their gates, which the same agents run. No BMC is here: who the nodes are was seen
  /// earlier.
  void haveCertificates() {
    ASSERT_EQ(site_.muster({"wipe", "n1", "--reason", "makes the store"}).code, 0);
    std::vector<lifecycle::Fact> known;
    for (int n = 1; n <= kNodes; ++n)
      for (const auto& [facet, value] : {std::pair("enrolled", "yes"), std::pair("os", "running")})
        known.push_back({lifecycle::Subject(NodeName(name(n))), FacetName(facet), value,
                         SystemClock().now(), "test", ""});
    ASSERT_TRUE(store()->putFacts(known));
    const auto gates = site_.muster({"validate", "run", "--nodes", "n[1-2]"});
    ASSERT_EQ(gates.code, 0) << gates.out << gates.err;
  }
  std::unique_ptr<lifecycle::Store> store() const {
    auto opened = lifecycle::openStore("sqlite:" + (site_ / "state" / "muster.db").string());
    EXPECT_TRUE(opened) << opened.error().str();
    return std::move(*opened);
  }
  void startMonitor(std::string_view idle_gate = "") {
    is_pooled_ = true;
    site_.write("cluster.yaml", inventory(idle_gate));
    auto started = processes_->start(site_.command({"monitor"}), site_ / "monitor.log");
    ASSERT_TRUE(started) << started.error().str();
    monitor_ = std::move(*started);
  }

  std::string show(const char* what, const std::string& which) {
    return tool("scontrol", {"show", what, which, "-o"}).value_or(io::ProcessExit{1}).out;
  }
  bool nodeSays(const std::string& node, std::string_view words) {
    return show("node", node).find(words) != std::string::npos;
  }
  std::string reservations() {
    return tool("scontrol", {"show", "reservation", "-o"}).value_or(io::ProcessExit{1}).out;
  }
  bool isHeld(const std::string& node) {
    return reservations().find("muster-hall-check-" + node) != std::string::npos;
  }
  std::optional<ActiveCheckRecord> record(const std::string& node) const {
    const auto kept = store()->getValue(activeCheckKey(NodeName(node)));
    if (!kept || !*kept) return std::nullopt;
    const auto read = parseActiveCheck(**kept);
    return read ? std::optional(*read) : std::nullopt;
  }
  /// Tasks that the node's own agent has taken, by its own book.
  int checksTaken(const std::string& node) const {
    const auto kept = nlohmann::json::parse(
        io::readFile(site_ / node / "state/tasks.json").value_or(""), nullptr, false);
    const auto kinds =
        kept.is_object() ? kept.value("kinds", nlohmann::json::array()) : nlohmann::json::array();
    return static_cast<int>(std::count(kinds.begin(), kinds.end(), "run-checks"));
  }
  /// Processes that the agent of node n has started, by the kernel's word.
  std::vector<pid_t> checksOf(int n) const {
    const auto agent = agents_.at(static_cast<std::size_t>(n - 1))->pid();
    std::vector<pid_t> out;
    std::error_code gone;
    for (const auto& thread :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", agent), gone)) {
      std::ifstream children(thread.path() / "children");
      for (pid_t pid = 0; children >> pid;) {
        const auto line =
            io::readFile(fmt::format("/proc/{}/cmdline", pid), 4096).value_or(std::string());
        if (line.find("checks") != std::string::npos) out.push_back(pid);
      }
    }
    return out;
  }
  std::chrono::milliseconds untilRun(const std::string& node) {
    const auto begun = std::chrono::steady_clock::now();
    const auto job =
        tool("sbatch", {"-w", node, "-t", "5", "-o", "/dev/null", "--wrap", "hostname"});
    EXPECT_TRUE(job && job->code == 0) << (job ? job->err : "");
    auto number = job->out.substr(job->out.find_last_of(' ') + 1);
    number = number.substr(0, number.find('\n'));
    EXPECT_TRUE(eventually(
        [&] { return show("job", number).find("JobState=COMPLETED") != std::string::npos; }));
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begun);
  }
  std::vector<std::string> findingsOfChecks() const {
    std::vector<std::string> out;
    for (const auto& finding : *store()->findings(nullptr))
      if (finding.source.starts_with("active-check"))
        out.push_back(finding.facet.str() + ": " + finding.text);
    return out;
  }

  test::MusterFolder site_;
  bool is_pooled_ = false;
  std::string image_digest_;
  std::vector<std::unique_ptr<io::Child>> agents_;
  std::unique_ptr<io::Child> monitor_;
};

/// One node passes; a job comes while the other one is checked, and runs within seconds.
TEST_F(ActiveChecksOnAgents, anIdleNodeIsCheckedByItsAgentAndAJobTakesTheOther) {
  const std::map<std::string, int> before{{"n1", checksTaken("n1")}, {"n2", checksTaken("n2")}};
  startMonitor();
  std::string first;
  ASSERT_TRUE(eventually([&] {
    for (const char* node : {"n1", "n2"})
      if (record(node)) first = node;
    return !first.empty() || !monitor_->running();
  }));
  ASSERT_FALSE(first.empty()) << "the monitor has ended";
  EXPECT_THAT(record(first)->failed, IsEmpty());
  EXPECT_GE(checksTaken(first) - before.at(first), 2) << "host.gemm and host.memory, by its agent";

  const std::string second = first == "n1" ? "n2" : "n1";
  ASSERT_TRUE(
      eventually([&] { return isHeld(second) && checksTaken(second) > before.at(second); }));
  const auto time = untilRun(second);
  std::cout << "a job waited " << time.count() << " ms for a node that its agent was checking\n";
  EXPECT_LT(time, kWithinSeconds);
  EXPECT_FALSE(isHeld(second)) << reservations();
  EXPECT_FALSE(record(second)) << "what gave way has found nothing, and is due again";
  EXPECT_THAT(findingsOfChecks(), IsEmpty());
  EXPECT_TRUE(nodeSays(first, "State=IDLE ")) << show("node", first);
}

/// A check that hangs: a job wants its node, and the agent ends it with all that it has started.
TEST_F(ActiveChecksOnAgents, aCheckThatGivesWayEndsAtItsNodeAtOnce) {
  startMonitor(", checks: {host.gemm: {seconds: 10}}");
  std::string checked;
  ASSERT_TRUE(eventually([&] {
    for (int n = 1; n <= kNodes; ++n)
      if (!checksOf(n).empty()) checked = name(n);
    return !checked.empty() || !monitor_->running();
  }));
  ASSERT_FALSE(checked.empty()) << "the monitor has ended";
  const int number = checked == "n1" ? 1 : 2;
  for (const auto pid : checksOf(number)) ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  const auto time = untilRun(checked);
  EXPECT_LT(time, kWithinSeconds);
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return checksOf(number).empty(); }))
      << "the check goes on beside the job";
  const auto ended = std::chrono::steady_clock::now() - begun;
  std::cout << "a job waited " << time.count() << " ms, and its node's check had ended "
            << std::chrono::duration_cast<std::chrono::milliseconds>(ended).count()
            << " ms after it\n";
  EXPECT_LT(ended, kCheckEndsWithin);
  EXPECT_FALSE(record(checked)) << "what gave way has found nothing, and is due again";
  EXPECT_THAT(findingsOfChecks(), IsEmpty());
  EXPECT_TRUE(agents_.at(static_cast<std::size_t>(number - 1))->running());
}

/// A real check that fails for a floor that no machine reaches: twice, then the certificate is void
/// and the monitor takes the node out of Slurm.
TEST_F(ActiveChecksOnAgents, aNodeThatFailsTwiceIsOutOfSlurmWithinAMinute) {
  startMonitor(", checks: {host.gemm: {seconds: 1, min_gflops: 1000000000}}");
  std::string failed;
  ASSERT_TRUE(eventually([&] {
    for (const char* node : {"n1", "n2"})
      if (record(node)) failed = node;
    return !failed.empty() || !monitor_->running();
  }));
  ASSERT_FALSE(failed.empty()) << "the monitor has ended";
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THAT(record(failed)->failed, ::testing::ElementsAre("host.gemm"));
  ASSERT_TRUE(eventually([&] { return nodeSays(failed, "DRAIN"); })) << show("node", failed);
  const auto time = std::chrono::steady_clock::now() - begun;
  std::cout << "drained " << std::chrono::duration_cast<std::chrono::milliseconds>(time).count()
            << " ms after its check had failed\n";
  EXPECT_LT(time, kDrainedWithin);
  EXPECT_THAT(findingsOfChecks(),
              ::testing::Contains(AllOf(HasSubstr(failed), HasSubstr("host.gemm"))));
  const std::string other = failed == "n1" ? "n2" : "n1";
  EXPECT_TRUE(nodeSays(other, "State=IDLE")) << show("node", other);
  EXPECT_FALSE(isHeld(failed)) << reservations();
}

}  // namespace
}  // namespace muster::app
