// SPDX-License-Identifier: Apache-2.0
// The validate phase with everything around it in memory, and an agent that answers what a test
// says.
#pragma once

#include "base/async/task.h"
#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/store/store.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/plain_act_context.h"
#include "tests/run_async.h"
#include "validate/validate.h"

#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>

namespace muster::validate {

using namespace lifecycle;
using wire::TaskKind;

using FakeContext = muster::test::PlainActContext;

class ValidatePhaseTest : public testing::Test {
 protected:
  ValidatePhaseTest() {
    cluster_.gates["burn-in"] = {"burn-in", inventory::GateLevel::Quick, {"host"}};
    cluster_.gates["collective"] = {"collective", inventory::GateLevel::Quick, {"rdma"}};
    auto& profile = cluster_.profiles["p"];
    profile.name = "p";
    profile.gates = {"burn-in", "collective"};
    for (const char* name : {"n1", "n2", "n3"}) {
      inventory::Node node;
      node.name = NodeName(name);
      node.profile = "p";
      cluster_.nodes.push_back(node);
    }
    store_ = openSqliteStore(folder_ / "muster.db").value();
    certificates_ = makeCertificateStore(cluster_, *store_, clock_, *io::SigningKey::generate(),
                                         folder_.path());
    phase_ = makeValidatePhase(cluster_, agents_, *certificates_, *store_, clock_,
                               [this](Subject subject) { return observePool(subject); });
    agents_.boot(NodeName("n1"), wire::Mode::Disk).probes["rdma.devices"] = "rxe0";
  }

  template <class T>
  T wait(Task<T> work) {
    asio::io_context io;
    std::optional<T> answer;
    async::start(io, async::answerInto(answer, std::move(work)), [](std::exception_ptr broken) {
      if (broken) std::rethrow_exception(broken);
    });
    io.run();
    return std::move(*answer);
  }
  Async<std::vector<Fact>> observePool(Subject subject) {
    std::vector<Fact> facts;
    ++pool_state_reads_;
    if (const auto* fact = pool_now_.find(subject, FacetName("pool"))) facts.push_back(*fact);
    co_return facts;
  }
  void setPool(FactSet& facts, const char* node, std::string value, bool jobs = false) {
    facts.put({Subject(NodeName(node)), FacetName("pool"), std::move(value), clock_.now(), "",
               nlohmann::json{{"jobs", jobs}}.dump()});
  }
  void bootWithRdma(const char* node) {
    agents_.boot(NodeName(node), wire::Mode::Disk).probes["rdma.devices"] = "rxe0";
  }
  /// Tests with `bad` at either end fail.
  void pairsFailWith(const std::string& bad) {
    agents_.answer(
        TaskKind::RdmaPair,
        [this, bad](const NodeName& node, const wire::AgentTask& task) -> Result<std::string> {
          if (task.id.ends_with("/server")) server_ = node.str();
          return results({{"rdma.pair", node.str() == bad || server_ == bad ? "fail" : "pass"}});
        });
  }
  /// As the engine does: again and again while it only waits for its next step.
  Result<Outcome> actToEnd(const std::string& facet) {
    auto outcome = act(facet);
    for (int turn = 0; turn < 12 && outcome && std::holds_alternative<Again>(*outcome); ++turn)
      outcome = act(facet);
    return outcome;
  }
  Action action(const std::string& facet) {
    return {.id = "n1/" + facet,
            .facet = {Subject(NodeName("n1")), FacetName(facet)},
            .phase = "validate"};
  }
  Result<Outcome> act(const std::string& facet) {
    return wait(phase_->act(action(facet), context_));
  }
  std::string verified(const std::string& facet) {
    const auto facts = wait(phase_->verify(action(facet)));
    return facts && !facts->empty() ? facts->front().value : "";
  }
  void answerChecks(const std::string& gemm, const std::string& memory) {
    agents_.answer(TaskKind::RunChecks, results({{"host.gemm", gemm}, {"host.memory", memory}}));
  }
  static std::string results(std::vector<std::pair<std::string, std::string>> rows) {
    std::vector<wire::CheckResult> out;
    for (auto& [id, word] : rows) {
      wire::CheckResult result;
      result.id = id;
      for (auto status :
           {wire::CheckStatus::Pass, wire::CheckStatus::Fail, wire::CheckStatus::Skipped,
            wire::CheckStatus::Error, wire::CheckStatus::Timeout, wire::CheckStatus::NoData})
        if (wire::toString(status) == word) result.status = status;
      out.push_back(result);
    }
    return wire::toJson(out);
  }

  static std::string pairResult(const std::string& word, std::map<std::string, double> values) {
    auto all = wire::parseCheckResults(results({{"rdma.pair", word}})).value();
    all.front().values = std::move(values);
    return wire::toJson(all);
  }

  inventory::Cluster cluster_;
  FakeClock clock_;
  std::unique_ptr<Store> store_;
  test::TempFolder folder_;
  std::unique_ptr<CertificateStore> certificates_;
  test::FakeAgentGateway agents_;
  std::unique_ptr<Phase> phase_;
  FakeContext context_;
  FactSet pool_now_;
  int pool_state_reads_ = 0;
  std::string server_;
};

}  // namespace muster::validate
