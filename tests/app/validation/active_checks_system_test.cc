// SPDX-License-Identifier: Apache-2.0
// Checks of idle nodes beside a real slurmctld and slurmd: a job gets its node within seconds, and
// nothing is left behind by a process that was killed.
#include "app/validation/active_checks.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/monitor.h"
#include "inventory/model/profile.h"
#include "pool/reservations.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/memory_store.h"
#include "tests/fakes/real_slurm.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <gmock/gmock.h>

#include <future>
#include <iostream>

namespace muster::app {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kHold = "ReservationName=muster-hall-check-gpu001";
/// From submission to start. Slurm alone takes up to three seconds for a job on a free node.
constexpr auto kWithinSeconds = 20s;

/// What one process of muster has.
struct Process {
  explicit Process(const inventory::Cluster& cluster, lifecycle::Store& store,
                   gateway::AgentGateway& agents, const std::string& slurm_conf)
      : engine(cluster, {}, store, clock, [](const lifecycle::Event&) {}),
        holds(cluster, *processes, options(slurm_conf)),
        services{cluster,
                 agents,
                 store,
                 engine,
                 clock,
                 holds,
                 [this](const NodeName& node, const std::string&, const std::string& why) {
                   revoked.emplace_back(node.str() + ": " + why);
                   return Result<void>();
                 }} {
    engine.useOneThread();
  }
  static pool::PoolOptions options(const std::string& slurm_conf) {
    pool::PoolOptions out;
    out.slurm_conf = slurm_conf;
    return out;
  }

  SystemClock clock;
  std::unique_ptr<io::ProcessRunner> processes = io::makeProcessRunner();
  lifecycle::Engine engine;
  pool::IdleHolds holds;
  std::vector<std::string> revoked;
  ActiveCheckServices services;
};

class IdleNodes : public test::RealSlurm {
 protected:
  void SetUp() override {
    RealSlurm::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    startController(slurmConf(
        fmt::format("SlurmdTimeout=60\n"
                    "NodeName=gpu001 NodeHostname={0} NodeAddr=10.99.0.1 Port=17001 CPUs=1 "
                    "State=UNKNOWN\n"
                    "NodeName=gpu002 NodeHostname={0} NodeAddr=10.99.0.1 Port=17002 CPUs=1 "
                    "State=UNKNOWN\n"
                    "PartitionName=gpu Nodes=gpu[001-002] Default=YES State=UP\n",
                    kHost)));
    for (const char* node : {"gpu001", "gpu002"}) {
      start("slurmd", {"-D", "-N", node, "-f", path("slurm.conf")});
      ASSERT_TRUE(eventually([&] { return nodeIs(node, "State=IDLE "); })) << node;
      agents_.boot(NodeName(node), wire::Mode::Disk);
    }
    cluster_.name = "hall";
    cluster_.gates["quick"] = {"quick", inventory::GateLevel::Quick, {"host"}};
    cluster_.pools["batch"] = {"batch", inventory::SlurmPool{"gpu", {}, {}}};
    cluster_.pools["batch"].slurm->active_checks = inventory::ActiveChecks{"quick", 24, 1, 100};
    cluster_.profiles["gpu-node"].name = "gpu-node";
    cluster_.profiles["gpu-node"].pool = "batch";
    for (const char* name : {"gpu001", "gpu002"}) {
      inventory::Node node;
      node.name = NodeName(name);
      node.profile = "gpu-node";
      cluster_.nodes.push_back(node);
    }
    ASSERT_TRUE(store_.signOn("ctl1", 60s));
  }
  bool nodeIs(const char* node, const char* state) {
    return tool("scontrol", {"show", "node", node, "-o"})
               .value_or(io::ProcessExit{1})
               .out.find(state) != std::string::npos;
  }
  std::string reservations() {
    return tool("scontrol", {"show", "reservation", "-o"}).value_or(io::ProcessExit{1}).out;
  }
  std::string submit(const char* node) {
    const auto job =
        tool("sbatch", {"-w", node, "-t", "5", "-o", "/dev/null", "--wrap", "hostname"});
    EXPECT_TRUE(job && job->code == 0) << (job ? job->err : "");
    const auto number = job->out.substr(job->out.find_last_of(' ') + 1);
    return number.substr(0, number.find('\n'));
  }
  bool hasRun(const std::string& job) {
    return tool("scontrol", {"show", "job", job, "-o"})
               .value_or(io::ProcessExit{1})
               .out.find("JobState=COMPLETED") != std::string::npos;
  }
  /// How long a job of this node waits.
  std::chrono::milliseconds waited(const char* node) {
    const auto begun = std::chrono::steady_clock::now();
    const auto job = submit(node);
    EXPECT_TRUE(eventually([&] { return hasRun(job); }));
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begun);
  }
  void checksEnd(wire::CheckStatus status) {
    agents_.answer(wire::TaskKind::RunChecks,
                   [status](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                     const auto params = nlohmann::json::parse(task.params);
                     wire::CheckResult result;
                     result.id = params.at("checks").at(0).at("id");
                     result.status = status;
                     result.text = "40 of 50 GFLOPS";
                     return wire::toJson(std::vector{result});
                   });
  }
  ActiveCheckRound round(Process& process) {
    auto done = test::runAsync(checkIdleNodes(process.services, "batch"), kLimit);
    EXPECT_TRUE(done) << done.error().str();
    return done.value_or(ActiveCheckRound{});
  }
  std::optional<ActiveCheckRecord> record(const char* node) {
    const auto kept = store_.getValue(activeCheckKey(NodeName(node)));
    if (!kept || !*kept) return std::nullopt;
    const auto read = parseActiveCheck(**kept);
    return read ? std::optional(*read) : std::nullopt;
  }

  inventory::Cluster cluster_;
  test::FakeAgentGateway agents_;
  test::MemoryStore store_;
};

TEST_F(IdleNodes, arePassedOneAfterTheOtherAndLeftAloneForADay) {
  checksEnd(wire::CheckStatus::Pass);
  Process process(cluster_, store_, agents_, path("slurm.conf"));
  EXPECT_EQ(round(process).passed, 1u) << "one at a time";
  EXPECT_EQ(round(process).passed, 1u);
  EXPECT_EQ(round(process).begun, 0u) << "none is due";
  for (const char* node : {"gpu001", "gpu002"}) {
    ASSERT_TRUE(record(node)) << node;
    EXPECT_THAT(record(node)->failed, IsEmpty());
  }
  EXPECT_THAT(reservations(), Not(HasSubstr("muster-")));
  EXPECT_THAT(*store_.findings(nullptr), IsEmpty());
  EXPECT_THAT(*store_.claims(), IsEmpty());
}

TEST_F(IdleNodes, aJobGetsItsNodeWithinSecondsAndTheCheckHasFoundNothing) {
  agents_.hold(wire::TaskKind::RunChecks);
  Process process(cluster_, store_, agents_, path("slurm.conf"));
  auto job = std::async(std::launch::async, [this] {
    EXPECT_TRUE(eventually([this] { return reservations().find(kHold) != std::string::npos; }));
    return waited("gpu001");
  });
  const auto done = round(process);
  const auto time = job.get();
  EXPECT_LT(time, kWithinSeconds) << reservations();
  std::cout << "a job waited " << time.count() << " ms for a node whose check does not end\n";
  EXPECT_EQ(done.begun, 1u);
  EXPECT_EQ(done.gave_way, 1u);
  EXPECT_EQ(done.failed, 0u);
  EXPECT_FALSE(record("gpu001")) << "it is due again";
  EXPECT_THAT(process.revoked, IsEmpty());
  EXPECT_THAT(*store_.findings(nullptr), IsEmpty());
  EXPECT_THAT(reservations(), Not(HasSubstr("muster-")));
}

/// No job runs beside a check.
TEST_F(IdleNodes, nodesWithJobsOrReservedByOthersAreNotChecked) {
  checksEnd(wire::CheckStatus::Pass);
  ASSERT_EQ(
      tool("sbatch", {"-w", "gpu001", "-t", "5", "-o", "/dev/null", "--wrap", "sleep 300"})->code,
      0);
  ASSERT_EQ(tool("scontrol", {"create", "reservation", "ReservationName=course", "StartTime=now",
                              "Duration=60", "Users=root", "Nodes=gpu002"})
                ->code,
            0);
  ASSERT_TRUE(eventually([&] { return nodeIs("gpu001", "State=ALLOCATED "); }));
  Process process(cluster_, store_, agents_, path("slurm.conf"));
  const auto done = round(process);
  EXPECT_EQ(done.begun, 0u);
  EXPECT_THAT(agents_.submitted(), IsEmpty());
  EXPECT_THAT(reservations(), AllOf(HasSubstr("course"), Not(HasSubstr("muster-"))));
}

TEST_F(IdleNodes, oneThatFailsTwiceLosesItsCertificateAndStopsTheOthers) {
  checksEnd(wire::CheckStatus::Fail);
  Process process(cluster_, store_, agents_, path("slurm.conf"));
  EXPECT_EQ(round(process).failed, 1u);
  ASSERT_THAT(process.revoked, SizeIs(1));
  EXPECT_THAT(process.revoked[0],
              AllOf(HasSubstr("gpu001"), HasSubstr("host.gemm"), HasSubstr("40 of 50 GFLOPS")));
  ASSERT_TRUE(record("gpu001"));
  EXPECT_THAT(record("gpu001")->failed, Not(IsEmpty()));
  std::map<std::string, int> asked;
  for (const auto& [node, task] : agents_.submitted())
    ++asked[nlohmann::json::parse(task.params).at("checks").at(0).at("id")];
  for (const auto& [check, times] : asked) EXPECT_EQ(times, 2) << check;
  // The breaker of the pool is one node: a second one is not checked, and it is told.
  EXPECT_EQ(round(process).begun, 0u);
  const auto findings = *store_.findings(nullptr);
  ASSERT_THAT(findings, SizeIs(2));
  // It goes on once the first is seen to be well.
  const lifecycle::Subject node(NodeName("gpu001"));
  ASSERT_TRUE(store_.putFacts({{node,
                                FacetName("certificate"),
                                "valid:1234",
                                process.clock.now() + 1h,
                                "certificate store",
                                {}}}));
  checksEnd(wire::CheckStatus::Pass);
  EXPECT_EQ(round(process).passed, 1u);
  EXPECT_THAT(*store_.findings(nullptr), IsEmpty());
}

/// A real kill -9 of the process that holds a node.
TEST_F(IdleNodes, nothingIsLeftBehindByAProcessThatWasKilled) {
  agents_.hold(wire::TaskKind::RunChecks);
  const auto child = ::fork();
  if (child == 0) {
    asio::io_context io;
    Process process(cluster_, store_, agents_, path("slurm.conf"));
    asio::co_spawn(io, keepActiveChecks(process.services), asio::detached);
    io.run();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ASSERT_TRUE(eventually([this] { return reservations().find(kHold) != std::string::npos; }));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  // It would end by itself soon …
  const auto left = pool::parseReservations(
      tool("env", {"TZ=UTC", "scontrol", "show", "reservation", "-o"})->out);
  ASSERT_TRUE(left && left->size() == 1) << reservations();
  EXPECT_LE(left->at(0).until - SystemClock().now(), 2min + 1s) << "Slurm counts whole seconds";
  // … and the next process gives it back at once.
  test::FakeAgentGateway others;
  Process next(cluster_, store_, others, path("slurm.conf"));
  asio::io_context io;
  asio::co_spawn(io, keepActiveChecks(next.services), asio::detached);
  auto job = std::async(std::launch::async, [this] { return waited("gpu001"); });
  while (job.wait_for(0s) != std::future_status::ready) io.run_for(50ms);
  EXPECT_LT(job.get(), kWithinSeconds);
  EXPECT_THAT(reservations(), Not(HasSubstr("muster-")));
}

}  // namespace
}  // namespace muster::app
