// SPDX-License-Identifier: Apache-2.0
// GPUs that no table knows: evaluated by their peers, in the gate and in the certificate.
#include "validate/peer_baseline.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "tests/validate/phase_fixture.h"

#include <cmath>

namespace muster::validate {
namespace {

/// A node whose GPUs are in no table, and what a burn measured there.
class UnknownGpus : public ValidatePhaseTest {
 protected:
  UnknownGpus() {
    cluster_.profiles["p"].gates = {"burn-in"};
    cluster_.gates["burn-in"] = {"burn-in", inventory::GateLevel::Medium, {"gpu"}};
    agents_.boot(NodeName("n1"), wire::Mode::Disk).hardware.gpus = {
        wire::Gpu{.model = "NVIDIA X9"}};
    phase_ = makeValidatePhase(cluster_, agents_, *certificates_, *store_, clock_, {}, {},
                               [this](const std::string& sku, const NodeName& but) {
                                 asked_ = sku + " but " + but.str();
                                 return peerBaselinesFrom(history_, sku, but);
                               });
  }
  void measured(double gflops) {
    agents_.answer(TaskKind::RunChecks,
                   [gflops](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                     std::vector<wire::CheckResult> out;
                     const auto asked = nlohmann::json::parse(task.params);
                     for (const auto& check : asked.at("checks")) {
                       wire::CheckResult result;
                       result.id = check.at("id"), result.status = wire::CheckStatus::Pass;
                       if (result.id == "gpu.burn")
                         result.values = {{"gpu0.gemm_bf16_gflops", gflops}, {"gpu0.products", 7}};
                       out.push_back(result);
                     }
                     return wire::toJson(out);
                   });
  }
  void others(int count, double gflops) {
    for (int i = 0; i < count; ++i)
      history_.push_back(
          {clock_.now(),
           NodeName("other" + std::to_string(i)),
           "gate.burn-in",
           "p, NVIDIA X9",
           "",
           {{"gpu.burn/gemm_bf16_gflops@gpu0", gflops + i}, {"gpu.burn/products@gpu0", 1e9}}});
  }
  std::vector<MeasuredSet> history_;
  std::string asked_;
};

TEST_F(UnknownGpus, areEvaluatedByTheirPeersAndTheCertificateSaysSo) {
  others(9, 900'000);
  measured(890'000);
  ASSERT_TRUE(act("gate.burn-in"));
  EXPECT_EQ(asked_, "p, NVIDIA X9 but n1");
  const auto facts = wait(phase_->verify(action("gate.burn-in")));
  ASSERT_TRUE(facts);
  EXPECT_NE(
      facts->front().evidence.find("no table knows NVIDIA X9: compared with 9 other nodes of its "
                                   "kind, which reached at least gpu.burn/gemm_bf16_gflops"),
      std::string::npos)
      << facts->front().evidence;
  context_.known.put(facts->front());
  const auto certified = act("certificate");
  ASSERT_TRUE(certified && std::holds_alternative<Done>(*certified));
  const auto certificate = **certificates_->find(NodeName("n1"));
  EXPECT_NE(certificate.peer_baseline.at("burn-in").find("9 other nodes"), std::string::npos);
  const auto read = Certificate::fromJson(certificate.toJson());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->peer_baseline, certificate.peer_baseline);
  EXPECT_EQ(read->id(), certificate.id());
  auto forged = *read;
  forged.peer_baseline.clear();
  EXPECT_NE(forged.id(), read->id()) << "what it rests on is signed";
}

TEST_F(UnknownGpus, whoIsFarBelowItsPeersFails) {
  others(9, 900'000);
  measured(800'000);
  const auto outcome = act("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().str().find("baseline.learnt fail"), std::string::npos)
      << outcome.error().str();
  ASSERT_EQ(context_.found.size(), 1u);
  EXPECT_FALSE(context_.found[0].what_to_do.empty());
}

/// The slow half of a fleet is no yardstick.
class HalfSlowPeers : public UnknownGpus {
 protected:
  HalfSlowPeers() {
    others(9, 900'000);
    for (int i = 0; i < 10; ++i)
      history_.push_back({clock_.now(),
                          NodeName("slow" + std::to_string(i)),
                          "gate.burn-in",
                          "p, NVIDIA X9",
                          "",
                          {{"gpu.burn/gemm_bf16_gflops@gpu0", 450'000.0 + 100 * i}}});
  }
};

TEST_F(HalfSlowPeers, areNotWhatASlowNodeIsComparedWith) {
  measured(450'000);
  EXPECT_FALSE(act("gate.burn-in"));
}

TEST_F(HalfSlowPeers, letAHealthyNodePass) {
  measured(890'000);
  EXPECT_TRUE(act("gate.burn-in"));
}

TEST_F(UnknownGpus, withFewPeersNothingEvaluatesAndThatIsSaid) {
  others(7, 900'000);
  history_.push_back(
      {clock_.now(),
       NodeName("n1"),
       "gate.burn-in",
       "p, NVIDIA X9",
       "",
       {{"gpu.burn/gemm_bf16_gflops@gpu0", 900'000}}});  // its own past is nobody's peer
  measured(100);
  ASSERT_TRUE(act("gate.burn-in"));
  EXPECT_NE(wait(phase_->verify(action("gate.burn-in")))
                ->front()
                .evidence.find("its rates were not evaluated"),
            std::string::npos);
}

TEST_F(UnknownGpus, aModelInTheTableIsTheTables) {
  agents_.boot(NodeName("n1"), wire::Mode::Disk).hardware.gpus = {
      wire::Gpu{.model = "NVIDIA H200"}};
  others(20, 900'000);
  measured(100);  // muster-burn itself was told the floor, and said pass
  ASSERT_TRUE(act("gate.burn-in"));
  EXPECT_EQ(asked_, "");
}

/// The table has floors for BF16 and for HBM of an H200, none for FP16 and for copies to itself.
TEST(PeerBaseline, ratesWithoutAFloorInTheTableAreComparedWithPeers) {
  const std::map<std::string, Baseline> baselines{
      {"gpu.burn/gemm_fp16_gflops", {9, 700'000, 1'000, 665'000}},
      {"gpu.burn/gemm_bf16_gflops", {9, 700'000, 1'000, 665'000}},
      {"gpu.burn/gemm_fp16_plain_gflops", {9, 700'000, 1'000, 665'000}},
      {"gpu.nccl-tests/busbw_gbytes_per_s", {9, 450, 1, 430}}};
  const auto seen = [&](double fp16, double rest = 1) {
    return evaluateByPeers("NVIDIA H200",
                           {{"gpu.burn/gemm_fp16_gflops@gpu3", fp16},
                            {"gpu.burn/gemm_bf16_gflops@gpu3", rest},
                            {"gpu.burn/gemm_fp16_plain_gflops@gpu3", rest},
                            {"gpu.nccl-tests/busbw_gbytes_per_s", rest}},
                           baselines);
  };
  EXPECT_EQ(seen(570'000)->status, wire::CheckStatus::Pass)
      << "good chips differ by more than the fleet's spread: " << seen(570'000)->text;
  const auto slow = seen(550'000);
  EXPECT_EQ(slow->status, wire::CheckStatus::Fail);
  EXPECT_NE(slow->text.find("the table has no floor for some rates of NVIDIA H200"),
            std::string::npos)
      << slow->text;
  EXPECT_NE(slow->text.find("gemm_fp16_gflops@gpu3 is 5.5e+05, others of its kind reach 7e+05"),
            std::string::npos)
      << slow->text;
  EXPECT_EQ(slow->text.find("bf16"), std::string::npos) << "that is the table's: " << slow->text;
  EXPECT_EQ(slow->text.find("plain"), std::string::npos) << slow->text;
  EXPECT_EQ(slow->text.find("nccl"), std::string::npos) << slow->text;
  EXPECT_EQ(seen(std::nan(""))->status, wire::CheckStatus::Fail);
  EXPECT_FALSE(evaluateByPeers("NVIDIA H200", {{"gpu.burn/gemm_fp16_gflops@gpu3", 1}}, {}))
      << "too few nodes: the burn itself names the rate as information";
  EXPECT_FALSE(evaluateByPeers("NVIDIA H200", {{"gpu.burn/gemm_bf16_gflops@gpu3", 1}}, baselines));
}

TEST(PeerBaseline, memoryThatNoTableEvaluatesIsHeldCloser) {
  const std::map<std::string, Baseline> baselines{
      {"gpu.burn/memory_copy_gbytes_per_s", {8, 5000, 10, 4750}}};
  const auto status = [&](const char* model, double rate) {
    return evaluateByPeers(model, {{"gpu.burn/memory_copy_gbytes_per_s@gpu0", rate}}, baselines)
        ->status;
  };
  EXPECT_EQ(status("AMD Instinct MI325X", 4510), wire::CheckStatus::Pass);
  EXPECT_EQ(status("AMD Instinct MI325X", 4490), wire::CheckStatus::Fail);
  EXPECT_EQ(status("NVIDIA X9", 4740), wire::CheckStatus::Fail) << "nothing else knows it";
}

TEST(PeerBaseline, aNodeCountsOnceWithItsNewestMedian) {
  const WallTime at{};
  std::vector<MeasuredSet> sets;
  for (int i = 0; i < 8; ++i) {
    const NodeName node("n" + std::to_string(i));
    sets.push_back(
        {at, node, "g", "s", "", {{"gpu.burn/x_gflops@gpu0", 1}, {"gpu.burn/x_gflops@gpu1", 1}}});
    sets.push_back({at + std::chrono::hours(1),
                    node,
                    "g",
                    "s",
                    "",
                    {{"gpu.burn/x_gflops@gpu0", 100},
                     {"gpu.burn/x_gflops@gpu1", 101},
                     {"gpu.burn/x_gflops@gpu2", 3},
                     {"host.gemm/y_gflops", 5},
                     {"gpu.burn/z_us", 5}}});
  }
  sets.push_back({at, NodeName("unknown"), "g", "other sku", "", {{"gpu.burn/x_gflops@gpu0", 7}}});
  const auto baselines = peerBaselinesFrom(sets, "s", NodeName("n9"));
  ASSERT_EQ(baselines.size(), 1u) << "rates of GPUs alone";
  EXPECT_EQ(baselines.at("gpu.burn/x_gflops").median, 100);
  EXPECT_EQ(baselines.at("gpu.burn/x_gflops").samples, 8u);
  EXPECT_TRUE(peerBaselinesFrom(sets, "s", NodeName("n0")).empty()) << "seven others are too few";
}

constexpr const char* kBits =
    "gpu.burn/bits of gemm bf16 random (n 16384, seed 1, cuBLASLt 130100)";

std::vector<MeasuredSet> nodesWithBits(int nodes, double bits) {
  std::vector<MeasuredSet> sets;
  for (int i = 0; i < nodes; ++i)
    sets.push_back({WallTime{},
                    NodeName("other" + std::to_string(i)),
                    "g",
                    "s",
                    "",
                    {{std::string(kBits) + "@gpu0", bits}, {std::string(kBits) + "@gpu1", bits}}});
  return sets;
}

TEST(PeerBits, areThoseOfMostDevicesOfEnoughNodes) {
  const std::map<std::string, double> same{{std::string(kBits) + "@gpu0", 7}},
      other{{std::string(kBits) + "@gpu0", 7}, {std::string(kBits) + "@gpu5", 8}},
      none{{"gpu.burn/gemm_bf16_gflops@gpu0", 7}};
  const auto baselines = peerBaselinesFrom(nodesWithBits(9, 7), "s", NodeName("n1"));
  EXPECT_EQ(evaluateBits(same, baselines)->status, wire::CheckStatus::Pass);
  const auto wrong = evaluateBits(other, baselines);
  EXPECT_EQ(wrong->status, wire::CheckStatus::Fail);
  EXPECT_NE(wrong->text.find("@gpu5: 000000000008, on 9 other nodes"), std::string::npos)
      << wrong->text;
  EXPECT_FALSE(evaluateBits(none, baselines));
  EXPECT_FALSE(evaluateBits(other, peerBaselinesFrom(nodesWithBits(7, 7), "s", NodeName("n1"))))
      << "seven nodes are too few";
  auto torn = nodesWithBits(8, 7);
  for (int i = 0; i < 4; ++i)
    for (auto& [name, value] : torn[static_cast<std::size_t>(i)].numbers) value = 9;
  EXPECT_FALSE(evaluateBits(other, peerBaselinesFrom(torn, "s", NodeName("n1"))))
      << "half of them against half of them";
}

/// Also of GPUs that the table knows.
TEST_F(UnknownGpus, whoComputesOtherBitsThanItsKindFails) {
  agents_.boot(NodeName("n1"), wire::Mode::Disk).hardware.gpus = {
      wire::Gpu{.model = "NVIDIA H200"}};
  history_ = nodesWithBits(9, 7);
  for (auto& set : history_) set.sku = "p, NVIDIA H200";
  agents_.answer(TaskKind::RunChecks,
                 [](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                   std::vector<wire::CheckResult> out;
                   const auto asked = nlohmann::json::parse(task.params);
                   for (const auto& check : asked.at("checks")) {
                     wire::CheckResult result;
                     result.id = check.at("id"), result.status = wire::CheckStatus::Pass;
                     if (result.id == "gpu.burn")
                       result.values = {{std::string(kBits).replace(0, 9, "gpu1."), 6}};
                     out.push_back(result);
                   }
                   return wire::toJson(out);
                 });
  const auto outcome = act("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().str().find("baseline.bits fail"), std::string::npos)
      << outcome.error().str();
  ASSERT_EQ(context_.found.size(), 1u);
  EXPECT_NE(context_.found[0].what_to_do.find("RMA"), std::string::npos);
}

}  // namespace
}  // namespace muster::validate
