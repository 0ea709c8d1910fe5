// SPDX-License-Identifier: Apache-2.0
// The pool phase on Kubernetes: no certificate, no pod; eviction only as budgets allow; nobody's
// cordon is undone but our own.
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "tests/pool/kube_fixture.h"

#include <boost/asio/co_spawn.hpp>

namespace muster::pool::test {
namespace {

using namespace lifecycle;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using json = nlohmann::json;

constexpr const char* kOut = "muster/out";

class KubePhase : public KubeFixture {
 protected:
  void TearDown() override {
    EXPECT_THAT(server_.broken_budgets, IsEmpty());
    EXPECT_EQ(server_.count("DELETE"), static_cast<int>(server_.deleted.size()));
  }
  void keepOut() {
    server_.patchNode("gpu001",
                      json{{"spec", {{"taints", {{{"key", kOut}, {"effect", "NoSchedule"}}}}}}});
  }
  const json& node() { return server_.node("gpu001"); }
  bool cordoned() { return node()["spec"].contains("unschedulable"); }
  json mark(const char* name) { return node()["metadata"]["annotations"].value(name, json()); }
  json label(const char* name) { return node()["metadata"]["labels"].value(name, json()); }
};

// ---- join

TEST_F(KubePhase, doesNothingWithoutACertificate) {
  keepOut();
  EXPECT_THAT(step("in"), AllOf(StartsWith("blocked: gpu001 may not join pool batch"),
                                HasSubstr("no certificate of gpu001; run the gates")));
  EXPECT_THAT(server_.requests, IsEmpty());
  EXPECT_EQ(observed(), "drained");
}

TEST_F(KubePhase, joinWaitsForTheKubeletThenOpensTheNodeInOnePatch) {
  certify();
  pool().kubernetes->labels = {{"example.com/hall", "two"}};
  context_.known.put(
      {Subject(NodeName("gpu001")), FacetName("certificate"), "valid:abc", clock_.now(), "", ""});
  restart();
  cluster_.nodes.front().name = NodeName("gpu001");
  server_.setReady("gpu001", "False");
  keepOut();
  EXPECT_THAT(step("in"),
              StartsWith("again: gpu001 to be Ready (KubeletNotReady: container runtime is down)"));
  EXPECT_EQ(server_.count("PATCH"), 0);
  server_.setReady("gpu001", "True");
  EXPECT_EQ(step("in"), "done");
  EXPECT_EQ(server_.count("PATCH"), 1);
  EXPECT_TRUE(server_.taint("gpu001", kOut).is_null());
  EXPECT_EQ(label("muster/certified"), "true");
  EXPECT_EQ(label("example.com/hall"), "two");
  EXPECT_EQ(mark("muster/certificate"), "valid:abc");
  EXPECT_EQ(label("kubernetes.io/hostname"), "gpu001") << "what others wrote stays";
  EXPECT_EQ(observed(), "in");
  EXPECT_EQ(step("in"), "done");
  EXPECT_EQ(server_.count("PATCH"), 1) << "a node that takes pods is not patched again";
  EXPECT_THAT(agents_.submitted(), IsEmpty());
}

TEST_F(KubePhase, joinWaitsForANodeThatHasNotRegistered) {
  certificates_.valid.insert(NodeName("gpu001"));
  pool().kubernetes->domain = "hall.example";
  restart();
  EXPECT_THAT(step("in"),
              AllOf(StartsWith("again: "),
                    HasSubstr("has no node gpu001.hall.example: its kubelet has not registered")));
  EXPECT_EQ(observed(), "out");
  server_.addNode("gpu001.hall.example");
  EXPECT_EQ(step("in"), "done");
  EXPECT_EQ(observed(), "in");
}

TEST_F(KubePhase, keepsTheTaintsOfOthers) {
  certify();
  server_.patchNode(
      "gpu001",
      json{{"spec",
            {{"taints",
              {{{"key", "nvidia.com/gpu"}, {"value", "present"}, {"effect", "NoSchedule"}},
               {{"key", kOut}, {"effect", "NoSchedule"}}}}}}});
  EXPECT_EQ(step("in"), "done");
  EXPECT_EQ(server_.taint("gpu001", "nvidia.com/gpu")["value"], "present");
  EXPECT_EQ(drive("drained"), "done");
  EXPECT_EQ(server_.taint("gpu001", "nvidia.com/gpu")["value"], "present");
}

TEST_F(KubePhase, doesNotUndoAPersonsCordon) {
  certify();
  server_.patchNode("gpu001", json{{"spec", {{"unschedulable", true}}}});
  EXPECT_THAT(step("in"), AllOf(StartsWith("blocked: gpu001 was drained by a person"),
                                HasSubstr("'cordoned'")));
  EXPECT_EQ(drive("drained"), "done") << "drained by muster as well, for its own work";
  EXPECT_TRUE(mark("muster/cordoned").is_null()) << "the cordon is not claimed";
  EXPECT_THAT(step("in"), StartsWith("blocked: gpu001 was drained by a person"));
  EXPECT_TRUE(cordoned());
  server_.patchNode("gpu001", json{{"spec", {{"unschedulable", nullptr}}}});
  EXPECT_EQ(step("in"), "done");
}

TEST_F(KubePhase, aCordonThatComesBetweenReadingAndPatchingIsSeen) {
  certify();
  keepOut();
  server_.before_patch = [](KubeServer& server) {
    server.patchNode("gpu001", json{{"spec", {{"unschedulable", true}}}});
  };
  EXPECT_THAT(step("in"), StartsWith("blocked: gpu001 was cordoned by a person just now"));
  EXPECT_TRUE(cordoned());
  EXPECT_FALSE(server_.taint("gpu001", kOut).is_null());
}

TEST_F(KubePhase, whatAPersonUncordonsWhileMusterDrainsStaysClosedByTheTaintOnly) {
  certify();
  server_.addPod({.name = "train", .controller = "Job", .restart_policy = "Never"});
  EXPECT_THAT(step("drained"), StartsWith("again"));
  server_.patchNode("gpu001", json{{"spec", {{"unschedulable", nullptr}}}});
  EXPECT_THAT(step("drained"), StartsWith("again"));
  EXPECT_FALSE(cordoned());
  EXPECT_TRUE(mark("muster/cordoned").is_null());
  EXPECT_FALSE(server_.taint("gpu001", kOut).is_null());
  server_.patchNode("gpu001", json{{"spec", {{"unschedulable", true}}}});
  server_.endPod("train", "Succeeded");
  EXPECT_EQ(drive("drained"), "done");
  EXPECT_THAT(step("in"), StartsWith("blocked: gpu001 was drained by a person"))
      << "that cordon was not ours";
}

// ---- drain

TEST_F(KubePhase, drainCordonsWithAReasonThenEvictsWhatMayGo) {
  server_.addPod({.name = "web-1"});
  server_.addPod({.name = "dcgm", .controller = "DaemonSet"});
  server_.addPod({.name = "kube-proxy", .controller = "Node", .is_static = true});
  server_.addPod(
      {.name = "old-job", .controller = "Job", .restart_policy = "Never", .phase = "Succeeded"});
  server_.addPod({.name = "elsewhere", .node = "gpu002"});
  EXPECT_EQ(observed(), "in");
  EXPECT_EQ(step("drained"), "again: running jobs to end");
  EXPECT_TRUE(cordoned());
  EXPECT_EQ(server_.taint("gpu001", kOut)["effect"], "NoSchedule");
  EXPECT_EQ(mark("muster/drain-reason"), "muster: driver nvidia changes");
  EXPECT_EQ(mark("muster/drain-since"), toString(clock_.now()));
  EXPECT_TRUE(label("muster/certified").is_null());
  EXPECT_THAT(server_.evicted, IsEmpty()) << "first closed, then emptied";

  EXPECT_EQ(step("drained"), "again: default/web-1 is being evicted");
  EXPECT_EQ(observed(), "in") << "it still ends: nothing may disturb the node";
  EXPECT_THAT(step("drained"), HasSubstr("default/web-1 is ending, by 2026-"));
  EXPECT_THAT(server_.evicted, ElementsAre("web-1")) << "asked once";
  server_.endTerminating();
  EXPECT_EQ(step("drained"), "done");
  EXPECT_EQ(observed(), "drained");
  EXPECT_EQ(server_.count("PATCH"), 1);
  EXPECT_TRUE(server_.hasPod("dcgm") && server_.hasPod("kube-proxy") && server_.hasPod("old-job") &&
              server_.hasPod("elsewhere"));
  EXPECT_THAT(fact().evidence, AllOf(HasSubstr("Ready,SchedulingDisabled"),
                                     HasSubstr("muster: driver nvidia changes")));
}

TEST_F(KubePhase, anOlderServerTakesEvictionsInTheVersionThatItServes) {
  server_.eviction_version = "v1beta1";
  for (const char* name : {"web-1", "web-2"}) server_.addPod({.name = name});
  step("drained");
  EXPECT_THAT(step("drained"), HasSubstr("default/web-1 is being evicted"));
  EXPECT_THAT(server_.evicted, ElementsAre("web-1", "web-2"));
  EXPECT_EQ(server_.count("GET /api/v1"), server_.count("GET /api/v1/") + 1) << "asked once";
}

TEST_F(KubePhase, aBudgetDecidesWhenAndIsNamed) {
  for (const char* name : {"web-1", "web-2"}) server_.addPod({.name = name, .app = "web"});
  server_.addPod({.name = "web-3", .node = "gpu002", .app = "web"});
  server_.addBudget("web-budget", "web", 2);
  step("drained");
  EXPECT_THAT(step("drained"),
              AllOf(HasSubstr("default/web-1 is being evicted"),
                    HasSubstr("default/web-2 is held by its disruption budget: The disruption "
                              "budget web-budget needs 2 healthy pods and has 2 currently")));
  server_.endTerminating();
  EXPECT_THAT(step("drained"), HasSubstr("default/web-2 is held by its disruption budget"));
  server_.addPod(
      {.name = "web-4", .node = "gpu002", .app = "web"});  // the ReplicaSet has started another
  EXPECT_EQ(drive("drained"), "done");
  EXPECT_THAT(server_.evicted, ElementsAre("web-1", "web-2"));
}

TEST_F(KubePhase, waitsForABudgetThatIsStillBeingCountedWithoutHammering) {
  server_.addPod({.name = "web-1", .app = "web"});
  server_.addBudget("web-budget", "web", 0);
  server_.staleBudget("web-budget");
  step("drained");
  EXPECT_THAT(
      step("drained"),
      HasSubstr("The disruption budget web-budget is still being processed by the server."));
  EXPECT_EQ(server_.count("POST"), 1);
  EXPECT_THAT(clock_.sleeps, IsEmpty()) << "the engine waits, not the request";
}

TEST_F(KubePhase, saysWhenTwoBudgetsMakeEvictionImpossible) {
  server_.addPod({.name = "web-1", .app = "web"});
  server_.addBudget("one", "web", 0);
  server_.addBudget("two", "web", 0);
  step("drained");
  EXPECT_THAT(step("drained"), AllOf(StartsWith("again: default/web-1 could not be evicted"),
                                     HasSubstr("more than one PodDisruptionBudget")));
}

TEST_F(KubePhase, aRunningJobIsNeverEvictedUnlessThePoolSaysSo) {
  server_.addPod({.name = "train-0",
                  .controller = "PyTorchJob",
                  .restart_policy = "OnFailure",
                  .empty_dir = "shm"});
  server_.addPod({.name = "run-1", .controller = "", .restart_policy = "Never"});
  step("drained");
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(step("drained"),
                AllOf(HasSubstr("default/train-0 runs to its end (restartPolicy OnFailure)"),
                      HasSubstr("default/run-1 runs to its end")));
  EXPECT_EQ(server_.count("POST"), 0);
  EXPECT_EQ(observed(), "in");
  server_.endPod("train-0", "Succeeded");
  server_.endPod("run-1", "Failed");
  EXPECT_EQ(step("drained"), "done");
  EXPECT_THAT(server_.evicted, IsEmpty());

  pool().kubernetes->evict = {inventory::JobPods::Evict, inventory::FragilePods::Evict,
                              inventory::FragilePods::Evict};
  restart();
  server_.addPod(
      {.name = "train-1", .controller = "Job", .restart_policy = "Never", .empty_dir = "shm"});
  EXPECT_EQ(drive("drained"), "done");
  EXPECT_THAT(server_.evicted, ElementsAre("train-1"));
}

TEST_F(KubePhase, podsThatWouldLoseSomethingHoldTheDrainByName) {
  server_.addPod({.name = "cache", .empty_dir = "scratch"});
  server_.addPod({.name = "bare", .controller = ""});
  server_.addPod({.name = "web-1"});
  step("drained");
  EXPECT_THAT(step("drained"), AllOf(HasSubstr("default/cache keeps data in the emptyDir scratch"),
                                     HasSubstr("default/bare has no controller"),
                                     HasSubstr("default/web-1 is being evicted")));
  EXPECT_THAT(server_.evicted, ElementsAre("web-1"));
  pool().kubernetes->evict.empty_dir = inventory::FragilePods::Evict;
  pool().kubernetes->evict.unmanaged = inventory::FragilePods::Evict;
  restart();
  EXPECT_EQ(drive("drained"), "done");
  EXPECT_THAT(server_.evicted, UnorderedElementsAre("web-1", "cache", "bare"));
}

TEST_F(KubePhase, podsOfASilentNodeAreOverOnlyWhenKubernetesGaveThemUp) {
  server_.addPod({.name = "web-1"});
  step("drained");
  step("drained");
  server_.setReady("gpu001", "Unknown", "NodeStatusUnknown");
  EXPECT_EQ(observed(), "in") << "its grace is not over";
  clock_.advance(std::chrono::seconds(31));
  EXPECT_EQ(observed(), "drained");
  EXPECT_EQ(step("drained"), "done");
  server_.addPod({.name = "web-2"});
  EXPECT_EQ(observed(), "in") << "nobody has deleted it: it may still run";
  server_.setReady("gpu002", "Unknown", "NodeStatusUnknown");
  EXPECT_EQ(fact("gpu002").value, "silent")
      << "open, so it takes pods as soon as it is heard again";
}

TEST_F(KubePhase, drainIsBlockedWhereTheNodeIsUnknown) {
  pool().kubernetes->domain = "nowhere";
  restart();
  EXPECT_THAT(step("drained"),
              AllOf(StartsWith("blocked: "), HasSubstr("has no node gpu001.nowhere"),
                    HasSubstr("cannot be drained")));
}

// ---- the drain's deadline

TEST_F(KubePhase, atTheDeadlineItStaysAndSaysWhatHoldsIt) {
  pool().drain.deadline_minutes = 60;
  restart();
  server_.addPod({.name = "web-1", .app = "web"});
  server_.addBudget("web-budget", "web", 1);
  step("drained");
  clock_.advance(std::chrono::minutes(59));
  EXPECT_THAT(step("drained"), StartsWith("again"));
  restart();  // the deadline counts from the order, whoever remembers it
  clock_.advance(std::chrono::minutes(1));
  EXPECT_THAT(step("drained"),
              AllOf(StartsWith("blocked: gpu001 is not drained after 60 minutes: default/web-1 is "
                               "held by its disruption budget"),
                    HasSubstr("web-budget needs 1 healthy pods"), HasSubstr("stays drained")));
  ASSERT_EQ(context_.found.size(), 1u);
  EXPECT_THAT(context_.found[0].text, HasSubstr("web-budget"));
  EXPECT_TRUE(cordoned());
  EXPECT_TRUE(server_.hasPod("web-1"));
  EXPECT_THAT(server_.deleted, IsEmpty());
}

TEST_F(KubePhase, atTheDeadlineItMayGiveTheNodeBackButOnlyWithACertificate) {
  pool().drain = {30, inventory::OnTimeout::Undrain};
  restart();
  server_.addPod({.name = "train", .controller = "Job", .restart_policy = "Never"});
  step("drained");
  clock_.advance(std::chrono::minutes(31));
  EXPECT_THAT(step("drained"),
              AllOf(StartsWith("blocked: "),
                    HasSubstr("it is not undrained, because no certificate of gpu001")));
  EXPECT_TRUE(cordoned());
  certify();
  EXPECT_THAT(step("drained"), AllOf(StartsWith("blocked: "), HasSubstr("train runs to its end"),
                                     HasSubstr("it was undrained in pool batch")));
  EXPECT_FALSE(cordoned());
  EXPECT_TRUE(server_.taint("gpu001", kOut).is_null());
  EXPECT_TRUE(mark("muster/drain-since").is_null()) << "the next drain has a deadline of its own";
  EXPECT_TRUE(server_.hasPod("train"));
}

TEST_F(KubePhase, deletesOnlyByDeclaredPolicyAndSaysSoFirst) {
  pool().drain = {30, inventory::OnTimeout::DeletePods};
  server_.rights.insert("delete pods");
  restart();
  server_.addPod({.name = "web-1", .app = "web"});
  server_.addBudget("web-budget", "web", 1);
  step("drained");
  step("drained");
  clock_.advance(std::chrono::minutes(29));
  EXPECT_THAT(step("drained"), StartsWith("again"));
  EXPECT_THAT(server_.deleted, IsEmpty());
  clock_.advance(std::chrono::minutes(2));
  EXPECT_EQ(step("drained"), "again: the pods deleted at the deadline to terminate: default/web-1");
  ASSERT_EQ(context_.found.size(), 1u);
  EXPECT_THAT(context_.found[0].what_to_do,
              HasSubstr("the remaining pods are deleted, as the pool's drain policy says"));
  EXPECT_THAT(step("drained"), HasSubstr("is ending"));
  EXPECT_THAT(server_.deleted, ElementsAre("web-1")) << "once, with its own grace";
  EXPECT_EQ(context_.found.size(), 1u);
  server_.endTerminating();
  EXPECT_EQ(step("drained"), "done");
}

class DeletesAtTheDeadline : public KubePhase {
 protected:
  DeletesAtTheDeadline() {
    pool().drain = {30, inventory::OnTimeout::DeletePods};
    server_.rights.insert("delete pods");
    restart();
    server_.addPod({.name = "web-1", .app = "web"});
    server_.addBudget("web-budget", "web", 1);
    step("drained");
    step("drained");
  }
};

TEST_F(DeletesAtTheDeadline, aClockThatIsSetForwardDeletesNothing) {
  clock_.setForward(std::chrono::hours(24));
  EXPECT_THAT(step("drained"), StartsWith("again"));
  clock_.advance(std::chrono::minutes(29));
  EXPECT_THAT(step("drained"), StartsWith("again"));
  EXPECT_THAT(server_.deleted, IsEmpty());
  clock_.advance(std::chrono::minutes(1));
  EXPECT_THAT(step("drained"), HasSubstr("the pods deleted at the deadline"))
      << "it has really waited";
}

TEST_F(DeletesAtTheDeadline, afterARestartItIsBelievedAfterMinutes) {
  clock_.advance(std::chrono::minutes(31));
  restart();
  EXPECT_THAT(step("drained"), StartsWith("again"));
  clock_.advance(std::chrono::minutes(4));
  EXPECT_THAT(step("drained"), StartsWith("again"));
  EXPECT_THAT(server_.deleted, IsEmpty());
  clock_.advance(std::chrono::minutes(1));
  EXPECT_THAT(step("drained"), HasSubstr("the pods deleted at the deadline"));
}

TEST_F(DeletesAtTheDeadline, aClockThatIsCorrectedAfterABootDeletesNothing) {
  clock_.setForward(std::chrono::hours(24));
  restart();
  EXPECT_THAT(step("drained"), StartsWith("again"));
  clock_.setForward(-std::chrono::hours(24));
  clock_.advance(std::chrono::minutes(10));
  EXPECT_THAT(step("drained"), StartsWith("again"));
  EXPECT_THAT(server_.deleted, IsEmpty());
}

// ---- crashes

/// Kills muster at every request of a drain and a join, before the request has its effect and
/// after.
TEST_F(KubePhase, goesOnAfterDeathAtEveryRequest) {
  certify();
  int kill_points = 0;
  for (bool done_first : {false, true}) {
    for (int at = 0;; ++at) {
      server_.evicted.clear();
      for (const char* name : {"web-1", "web-2"}) server_.addPod({.name = name, .app = "web"});
      server_.faults.push_back({.match = "", .status = 500, .done_first = done_first, .skip = at});
      int deaths = 0;
      for (std::string_view to : {"drained", "in"}) {
        std::string last;
        for (int i = 0; i < 20 && last != "done"; ++i) {
          last = step(to);
          if (last.starts_with("error") || last.find("500 InternalError") != std::string::npos) {
            ++deaths;
            restart();
          }
          ASSERT_THAT(last, Not(StartsWith("blocked")));
          clock_.advance(std::chrono::seconds(5));
          server_.endTerminating();
        }
        ASSERT_EQ(last, "done") << "killed at request " << at;
        EXPECT_EQ(cordoned(), to == "drained");
        EXPECT_EQ(server_.hasPod("web-1") || server_.hasPod("web-2"), false);
      }
      server_.faults.clear();
      EXPECT_THAT(server_.evicted, UnorderedElementsAre("web-1", "web-2"))
          << "each once, killed at request " << at;
      EXPECT_FALSE(cordoned());
      EXPECT_TRUE(mark("muster/cordoned").is_null());
      EXPECT_EQ(observed(), "in");
      kill_points += deaths;
      if (deaths == 0) break;
    }
  }
  EXPECT_GE(kill_points, 20);
}

// ---- many looks at once

class KubeRound : public KubeFixture {
 protected:
  /// All nodes in one turn of the loop, as keep looks.
  std::vector<std::string> lookAtAll(int nodes) {
    std::vector<std::string> out(static_cast<std::size_t>(nodes));
    for (int i = 0; i < nodes; ++i)
      asio::co_spawn(io_, phase_->observe(Subject(NodeName(fmt::format("gpu{:03}", i + 1)))),
                     [&out, i](std::exception_ptr, Result<std::vector<Fact>> facts) {
                       out[static_cast<std::size_t>(i)] = facts && !facts->empty()
                                                              ? facts->front().value
                                                          : facts ? "nothing"
                                                                  : facts.error().str();
                     });
    const auto all = [&out] {
      return std::none_of(out.begin(), out.end(), [](const auto& one) { return one.empty(); });
    };
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
         !all() && std::chrono::steady_clock::now() < end;) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return out;
  }
  void fill(int nodes) {
    for (int i = 1; i <= nodes; ++i) {
      const auto name = fmt::format("gpu{:03}", i);
      if (i <= 2) continue;  // they are there
      auto more = cluster_.nodes.front();
      more.name = NodeName(name);
      cluster_.nodes.insert(cluster_.nodes.end() - 1, more);  // before login1: they are in order
      server_.addNode(name);
    }
    restart();
  }
};

TEST_F(KubeRound, isTwoQuestionsHoweverManyNodesThereAre) {
  fill(40);
  server_.setReady("gpu007", "Unknown");
  server_.patchNode("gpu009", json{{"spec", {{"unschedulable", true}}}});
  const auto seen = lookAtAll(40);
  EXPECT_EQ(seen[0], "in");
  EXPECT_EQ(seen[6], "silent");
  EXPECT_EQ(seen[8], "drained");
  EXPECT_EQ(server_.requests.size(), 2u);
  EXPECT_EQ(server_.count("GET /api/v1/nodes"), 1);
  EXPECT_EQ(server_.count("GET /api/v1/pods"), 1);
}

TEST_F(KubeRound, ourOwnOrderIsSeenAtOnceThoughAListIsFresh) {
  fill(4);
  ASSERT_EQ(lookAtAll(4)[0], "in");
  EXPECT_THAT(step("drained"), StartsWith("again"));
  EXPECT_EQ(lookAtAll(4)[0], "drained") << "the list from before the order is not believed";
}

TEST_F(KubeRound, anAccountWithoutTheRightToListAsksForEachNode) {
  fill(4);
  server_.rights.erase("list nodes");
  const auto seen = lookAtAll(4);
  EXPECT_THAT(seen, ElementsAre("in", "in", "in", "in"));
  EXPECT_EQ(server_.count("GET /api/v1/nodes/"), 4);
  EXPECT_THAT(lookAtAll(4), ElementsAre("in", "in", "in", "in"));
  EXPECT_EQ(server_.count("GET /api/v1/nodes"), 9) << "it is not tried again";
}

}  // namespace
}  // namespace muster::pool::test
