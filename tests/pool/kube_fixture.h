// SPDX-License-Identifier: Apache-2.0
// A pool phase on one KubeServer, over HTTPS on loopback.
#pragma once

#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/pool/context.h"
#include "tests/pool/kube_server.h"
#include "tests/pool/step_clock.h"
#include "tests/run_async.h"

#include "base/ids.h"
#include "base/io/files.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "inventory/model/pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::pool::test {

class KubeFixture : public ::testing::Test {
 protected:
  KubeFixture() {
    write("token", server_.token);
    write("ca.crt", server_.caPem());
    auto& pool = cluster_.pools["batch"];
    pool.slurm.reset();
    pool.kubernetes.emplace();
    pool.kubernetes->server = server_.url();
    pool.kubernetes->ca = folder_ / "ca.crt";
    pool.kubernetes->token.source = std::filesystem::path(folder_ / "token");
    server_.addNode("gpu001");
    server_.addNode("gpu002");
    restart();
  }

  /// What a new process is: nothing is left but the world outside.
  void restart() {
    phase_ = makePoolPhase(cluster_, agents_, certificates_, processes_, clock_, PoolOptions{});
  }
  inventory::Pool& pool() { return cluster_.pools["batch"]; }
  void write(const std::string& name, std::string_view text) {
    EXPECT_TRUE(io::writeFileAtomic(folder_ / name, text, 0600));
  }
  void certify() { certificates_.valid.insert(NodeName("gpu001")); }

  template <class T>
  Result<T> run(Async<T> work) {
    return muster::test::runAsync(io_, std::move(work));
  }
  Result<lifecycle::Outcome> act(std::string_view to) {
    return run(phase_->act(poolAction("gpu001", to), context_));
  }
  /// "done", "again: …", "blocked: …" or "error: …".
  std::string said(const Result<lifecycle::Outcome>& outcome) {
    if (!outcome) return "error: " + outcome.error().str();
    if (const auto* again = std::get_if<lifecycle::Again>(&*outcome))
      return "again: " + again->waiting_for;
    if (const auto* blocked = std::get_if<lifecycle::Blocked>(&*outcome))
      return "blocked: " + blocked->why;
    return "done";
  }
  std::string step(std::string_view to) { return said(act(to)); }
  /// As the engine: until it is not Again; the kubelets end what terminates between two steps.
  std::string drive(std::string_view to, int steps = 20) {
    std::string last;
    for (int i = 0; i < steps; ++i) {
      last = step(to);
      if (!last.starts_with("again")) return last;
      clock_.advance(std::chrono::seconds(5));
      server_.endTerminating();
    }
    return last;
  }
  lifecycle::Fact fact(const char* node = "gpu001") {
    auto facts = run(phase_->observe(lifecycle::Subject(NodeName(node))));
    lifecycle::Fact none;
    none.value = facts ? "nothing" : facts.error().str();
    return facts && !facts->empty() ? facts->front() : none;
  }
  std::string observed() { return fact().value; }

  muster::test::TempFolder folder_;
  StepClock clock_;
  asio::io_context io_;
  KubeServer server_{io_.get_executor(), clock_, folder_.path()};
  inventory::Cluster cluster_ = poolCluster();
  muster::test::FakeAgentGateway agents_;
  muster::test::FakeProcessRunner processes_;
  Certificates certificates_;
  Context context_;
  std::unique_ptr<lifecycle::Phase> phase_;
};

}  // namespace muster::pool::test
