// SPDX-License-Identifier: Apache-2.0
// Reservations ahead of maintenance, in a real slurmctld with real slurmds.
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "pool/reservations.h"
#include "pool/scontrol.h"
#include "tests/fakes/real_slurm.h"

#include <gmock/gmock.h>

namespace muster::pool::test {
namespace {

using muster::test::runAsync;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

class SlurmReservations : public muster::test::RealSlurm {
 protected:
  static constexpr const char* kName = "muster-hall-2-r-1f2e3d4c5b-batch";

  void SetUp() override {
    RealSlurm::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    cluster_.name = "hall-2";
    cluster_.pools["batch"] = {"batch", inventory::SlurmPool{"gpu", {}, 48}};
    startController(slurmConf(
        fmt::format("SlurmdTimeout=60\n"
                    "NodeName=gpu001 NodeHostname={0} NodeAddr=10.99.0.1 Port=17001 CPUs=1 "
                    "State=UNKNOWN\n"
                    "NodeName=gpu002 NodeHostname={0} NodeAddr=10.99.0.1 Port=17002 CPUs=1 "
                    "State=UNKNOWN\n"
                    "PartitionName=gpu Nodes=gpu[001-002] Default=YES State=UP\n",
                    kHost)));
    start("slurmd", {"-D", "-N", "gpu001", "-f", path("slurm.conf")});
    ASSERT_TRUE(eventually([&] {
      return tool("scontrol", {"show", "node", "gpu001", "-o"})->out.find("State=IDLE ") !=
             std::string::npos;
    }));
  }
  /// Nothing is remembered from one to the next, as after a kill -9.
  Result<void> keep(std::vector<Reservation> wanted) {
    PoolOptions options;
    options.slurm_conf = path("slurm.conf");
    Reservations process(cluster_, *processes_, clock_, options);
    return runAsync(process.keep(std::move(wanted)), kLimit);
  }
  Reservation wanted(std::chrono::minutes from, std::set<std::string> nodes = {"gpu001"}) {
    const auto begins = clock_.now() + from;
    return {"r-1f2e3d4c5b", "batch", std::move(nodes), begins, begins + 60min, true};
  }
  std::string shown() {
    return tool("scontrol", {"show", "reservation", "-o"}).value_or(io::ProcessExit{1}).out;
  }
  /// Whether a job of so many minutes has run.
  std::string submit(const std::string& minutes) {
    const auto job =
        tool("sbatch", {"-w", "gpu001", "-t", minutes, "-o", "/dev/null", "--wrap", "hostname"});
    EXPECT_TRUE(job && job->code == 0) << (job ? job->err : "");
    const auto number = job->out.substr(job->out.find_last_of(' ') + 1);
    return number.substr(0, number.find('\n'));
  }
  std::string job(const std::string& id) {
    return tool("scontrol", {"show", "job", id, "-o"}).value_or(io::ProcessExit{1}).out;
  }

  inventory::Cluster cluster_;
  SystemClock clock_;
};

/// What it is for: only jobs that end before the window start.
TEST_F(SlurmReservations, jobsThatWouldRunIntoTheWindowWait) {
  ASSERT_TRUE(keep({wanted(30min)}));
  EXPECT_THAT(shown(), AllOf(HasSubstr(kName), HasSubstr("Nodes=gpu001 "), HasSubstr("MAINT")));
  const auto longer = submit("120");
  ASSERT_TRUE(eventually([&] {
    return job(longer).find("Reason=ReqNodeNotAvail") != std::string::npos ||
           job(longer).find("Reserved_for_maintenance") != std::string::npos;
  })) << job(longer);
  const auto shorter = submit("5");
  ASSERT_TRUE(eventually([&] {
    return job(shorter).find("JobState=COMPLETED") != std::string::npos;
  })) << job(shorter);
  EXPECT_THAT(job(longer), HasSubstr("JobState=PENDING"));
  ASSERT_TRUE(keep({})) << "the run was cancelled";
  ASSERT_TRUE(eventually([&] {
    return job(longer).find("JobState=COMPLETED") != std::string::npos;
  })) << job(longer);
}

TEST_F(SlurmReservations, areMovedAndDeletedByANewProcess) {
  const auto first = wanted(30min, {"gpu001", "gpu002", "not-in-slurm-conf"});
  ASSERT_TRUE(keep({first}));
  EXPECT_THAT(shown(), HasSubstr("Nodes=gpu[001-002] "));
  const auto before = shown();
  ASSERT_TRUE(keep({first}));
  EXPECT_EQ(shown(), before) << "once more changes nothing";
  const auto later = wanted(90min, {"gpu002"});
  ASSERT_TRUE(keep({later}));
  EXPECT_THAT(shown(), AllOf(HasSubstr("Nodes=gpu002 "), Not(HasSubstr("gpu[001-002]"))));
  const auto read =
      parseReservations(tool("env", {"TZ=UTC", "scontrol", "show", "reservation", "-o"})->out);
  ASSERT_TRUE(read && read->size() == 1) << shown();
  EXPECT_EQ(read->at(0).from, std::chrono::floor<std::chrono::seconds>(later.from));
  ASSERT_TRUE(keep({}));
  EXPECT_THAT(shown(), Not(HasSubstr(kName)));
}

TEST_F(SlurmReservations, othersAreLeftAlone) {
  for (const auto* name : {"upgrade", "muster-hall-r-1f2e3d4c5b-batch", "muster-hall-2-by-hand"})
    ASSERT_EQ(tool("scontrol", {"create", "reservation", std::string("ReservationName=") + name,
                                "StartTime=now+2hours", "Duration=60", "Users=root",
                                "Flags=MAINT,IGNORE_JOBS", "Nodes=gpu001"})
                  ->code,
              0);
  const auto before = shown();
  ASSERT_TRUE(keep({wanted(30min)}));
  EXPECT_THAT(shown(), HasSubstr(kName));
  ASSERT_TRUE(keep({}));
  EXPECT_EQ(shown(), before);
}

/// The window is open and the run works: a node that was drained is free for jobs when it is back.
TEST_F(SlurmReservations, shrinkWhileTheRunWorks) {
  // Slurm takes a start that is just past for one that has begun.
  const auto begins = clock_.now() + 2s;
  Reservation run{"r-1f2e3d4c5b", "batch", {"gpu001", "gpu002"}, begins, begins + 60min, true};
  ASSERT_TRUE(keep({run}));
  ASSERT_TRUE(eventually([&] { return shown().find("State=ACTIVE") != std::string::npos; }));
  Scontrol slurm(*processes_, {{"SLURM_CONF", path("slurm.conf")}, {"TZ", "UTC"}}, clock_);
  const auto node = runAsync(slurm.node("gpu001"));
  ASSERT_TRUE(node && *node) << (node ? "" : node.error().str());
  EXPECT_TRUE((*node)->takesJobs()) << (*node)->state() << ": reserved is not out of its pool";
  const auto held = submit("120");
  ASSERT_TRUE(eventually([&] { return job(held).find("JobState=PENDING") != std::string::npos; }));
  run.is_ahead = false;
  run.nodes = {"gpu002"};  // gpu001 has been drained
  ASSERT_TRUE(keep({run}));
  EXPECT_THAT(shown(), HasSubstr("Nodes=gpu002 "));
  ASSERT_TRUE(eventually([&] { return job(held).find("JobState=COMPLETED") != std::string::npos; }))
      << job(held);
  run.nodes = {};
  ASSERT_TRUE(keep({run}));
  EXPECT_THAT(shown(), Not(HasSubstr(kName)));
}

TEST_F(SlurmReservations, aRunningJobIsNoObstacle) {
  const auto busy =
      tool("sbatch", {"-w", "gpu001", "-t", "600", "-o", "/dev/null", "--wrap", "sleep 600"});
  ASSERT_TRUE(busy && busy->code == 0);
  ASSERT_TRUE(eventually([&] {
    return tool("squeue", {"--noheader", "--format=%T"})->out.find("RUNNING") != std::string::npos;
  }));
  ASSERT_TRUE(keep({wanted(30min)}));
  EXPECT_THAT(shown(), HasSubstr(kName));
  EXPECT_THAT(tool("squeue", {"--noheader", "--format=%T"})->out, HasSubstr("RUNNING"));
}

TEST_F(SlurmReservations, aSlurmThatIsAwayIsSaid) {
  cluster_.pools.at("batch").slurm->config = path("another.conf");
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "another.conf",
                                  "ClusterName=none\nSlurmctldHost=nobody(127.0.0.1)\n"
                                  "SlurmctldPort=9\nAuthInfo=socket=" +
                                      path("munge.socket") + "\n"));
  const auto kept = keep({wanted(30min)});
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code(), ErrorCode::Unavailable) << kept.error().str();
}

}  // namespace
}  // namespace muster::pool::test
