// SPDX-License-Identifier: Apache-2.0
// HealthCheckProgram and Prolog as slurmd itself runs them: `muster-agent fit` over a file that
// says whether the node is fit.
#include "agent/core/fitness.h"
#include "tests/fakes/real_slurm.h"
#include "tests/paths.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SlurmHooks : public muster::test::RealSlurm {
 protected:
  void SetUp() override {
    RealSlurm::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    script("health", "--drain");
    script("prolog", "--drain --prolog");
    const auto conf = slurmConf(fmt::format(
        "SlurmdTimeout=60\nHealthCheckProgram={1}\nHealthCheckInterval=1\nProlog={2}\n"
        "NodeName=gpu001 NodeHostname={0} NodeAddr=10.99.0.1 Port=17001 CPUs=1 State=UNKNOWN\n"
        "PartitionName=gpu Nodes=gpu001 Default=YES State=UP\n",
        kHost, path("health"), path("prolog")));
    startController(conf);
    say(FitnessState::Fit);
    start("slurmd", {"-D", "-N", "gpu001", "-f", path("slurm.conf")});
    ASSERT_TRUE(eventually([&] { return shown().find("State=IDLE ") != std::string::npos; }))
        << shown();
  }
  /// As the scripts of an installed node, but for where things are.
  void script(const std::string& name, const std::string& words) {
    ASSERT_TRUE(io::writeFileAtomic(
        folder_ / name,
        fmt::format("#!/bin/sh\nSLURM_CONF={} exec {} fit {} --root {}\n", path("slurm.conf"),
                    (muster::test::binFolder() / "muster-agent").string(), words, path("node")),
        0755));
  }
  void say(FitnessState state, const std::string& reason = "") {
    const auto boot = bootIdOf("/");
    ASSERT_TRUE(boot);
    ASSERT_TRUE(io::makeDirs(folder_ / "node/proc/sys/kernel/random"));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "node/proc/sys/kernel/random/boot_id", *boot));
    ASSERT_TRUE(writeFitness(folder_ / "node", {state, reason, *boot, bootMilliseconds()}));
  }
  std::string shown() {
    return tool("scontrol", {"show", "node", "gpu001", "-o"}).value_or(io::ProcessExit{1}).out;
  }
  bool becomes(const std::string& words) {
    return eventually([&] { return shown().find(words) != std::string::npos; });
  }
};

TEST_F(SlurmHooks, anUnfitNodeIsDrainedWithTheAgentsWords) {
  say(FitnessState::Unfit, "xid.79 at 0000:18:00.0: GPU has \"fallen\" off the bus");
  ASSERT_TRUE(becomes("+DRAIN")) << shown();
  EXPECT_THAT(shown(), HasSubstr("Reason=muster: xid.79 at 0000:18:00.0: GPU has"));
}

/// A person has drained it first: their words stay, whatever the agent says.
TEST_F(SlurmHooks, wordsOfAPersonAreNotWrittenOver) {
  ASSERT_EQ(
      tool("scontrol", {"update", "NodeName=gpu001", "State=DRAIN", "Reason=dimm swap"})->code, 0);
  const auto before = shown();
  say(FitnessState::Unfit, "xid.79");
  // Run by hand as slurmd runs it: when it has ended, it has done what it does.
  const auto ran = tool(path("health"), {});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->code, 1);
  EXPECT_EQ(ran->out, "unfit: xid.79\n");
  EXPECT_THAT(shown(), AllOf(HasSubstr("Reason=dimm swap"), Not(HasSubstr("xid"))));
}

/// Slurm puts a job whose prolog fails back into its queue.
TEST_F(SlurmHooks, thePrologKeepsAJobOffAnUnfitNode) {
  const auto hello = tool("srun", {"-w", "gpu001", "hostname"});
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->out, std::string(kHost) + "\n") << hello->err;
  // Only the prolog may drain: the health check is another script from now on.
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "health", "#!/bin/sh\n", 0755));
  say(FitnessState::Unfit, "xid.79");
  const auto job =
      tool("sbatch", {"-w", "gpu001", "-o", "/dev/null", "--wrap", "touch " + path("ran")});
  ASSERT_TRUE(job && job->code == 0);
  ASSERT_TRUE(becomes("+DRAIN")) << shown();
  EXPECT_THAT(shown(), HasSubstr("muster: xid.79"));
  // The prolog drains while it runs; slurmd gives the job back when it has ended.
  const auto inQueue = [&] {
    return tool("squeue", {"--noheader", "--format=%T"}).value_or(io::ProcessExit{1}).out;
  };
  EXPECT_TRUE(eventually([&] { return inQueue().find("PENDING") != std::string::npos; }))
      << inQueue();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
}

/// An agent that is away is no reason to lose nodes: the controller sees to it.
TEST_F(SlurmHooks, anAgentThatIsAwayIsSaidAndHoldsNobodyUp) {
  std::filesystem::remove(folder_ / "node" / kFitnessFile);
  const auto began = std::chrono::steady_clock::now();
  const auto health = tool(path("health"), {}), prolog = tool(path("prolog"), {});
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2)) << "both";
  ASSERT_TRUE(health && prolog);
  EXPECT_EQ(health->code, 3);
  EXPECT_THAT(health->out, HasSubstr("unknown: muster's agent has not looked"));
  EXPECT_EQ(prolog->code, 0);
  const auto hello = tool("srun", {"-w", "gpu001", "hostname"});
  EXPECT_EQ(hello->out, std::string(kHost) + "\n") << hello->err;
  EXPECT_THAT(shown(), Not(HasSubstr("DRAIN")));
}

}  // namespace
}  // namespace muster::agent
