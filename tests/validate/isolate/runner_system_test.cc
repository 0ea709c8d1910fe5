// SPDX-License-Identifier: Apache-2.0
// `muster validate isolate` as the real program does it, with real agents. One node's cable is four
// times slower than the others'.
#include "tests/validate/real_agents.h"

#include <csignal>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kNodes = 6, kPerRack = 3, kSlow = 4;
constexpr const char *kGoodRate = "100mbit", *kSlowRate = "25mbit";

class IsolateSystem : public RealAgents {
 protected:
  void SetUp() override {
    RealAgents::SetUp();
    if (IsSkipped()) return;
    start(kNodes, kPerRack,
          "images:\n  bookworm: {build: {suite: bookworm, packages: "
          "[linux-image-amd64]}}\nprofiles:\n  node: {image: bookworm}\n",
          kGoodRate);
    rate(kSlow, "replace", kSlowRate);
  }
  static const std::vector<std::string>& isolate() {
    static const std::vector<std::string> typed{
        "validate", "isolate", "--engine", "tcp", "--nodes", fmt::format("n[1-{}]", kNodes),
        "--seed",   "7",       "--json"};
    return typed;
  }
  /// What is kept of the round in the run's own folder; empty: it has not ended.
  std::string round(int number) const {
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_ / "state" / "validation", none))
      if (auto kept = io::readFile(entry.path() / fmt::format("round-{:03}.json", number)))
        return std::move(*kept);
    return {};
  }
  json evidence() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "state" / "validation"))
      if (entry.path().extension() == ".json")
        return json::parse(io::readFile(entry.path()).value_or(""), nullptr, false);
    return {};
  }
};

TEST_F(IsolateSystem, theSlowNodeIsNamedAlsoWhenTheControllerIsKilledOnTheWay) {
  auto first = processes_->start(folder_.command(isolate()), folder_ / "first.log");
  ASSERT_TRUE(first) << first.error().str();
  ASSERT_TRUE(eventually([&] { return !round(2).empty() || !(*first)->running(); }));
  ASSERT_FALSE(round(2).empty()) << io::readFile(folder_ / "first.log").value_or("");
  (*first)->signal(SIGKILL);
  (*first)->terminate(5s);
  const auto before = round(1);

  const auto done = muster(isolate());
  EXPECT_EQ(done.code, kFailed) << done.err;  // something is bad
  EXPECT_THAT(done.err, AllOf(StartsWith("goes on with the isolation of"),
                              Not(HasSubstr("round 1:")), Not(HasSubstr("round 2:"))))
      << "rounds that had ended ran again";
  const auto verdict = json::parse(done.out, nullptr, false);
  ASSERT_TRUE(verdict.is_object()) << done.out << done.err;
  ASSERT_EQ(verdict.at("culprits").size(), 1u) << verdict.dump(1);
  const auto& culprit = verdict["culprits"][0];
  EXPECT_EQ(culprit.at("subject"), name(kSlow)) << culprit.dump(1);
  EXPECT_EQ(culprit.at("kind"), "node");
  EXPECT_NEAR(culprit.at("reached").get<double>(), 0.25, 0.1);
  EXPECT_GE(culprit.at("confidence").get<double>(), 0.99);
  EXPECT_EQ(verdict.at("cleared"), json::array()) << "a run with a culprit clears nobody";
  // Where other programs take the processors, links that are well have slow moments (0425).
  EXPECT_EQ(verdict.at("good").size() + verdict.at("unclear").size(),
            static_cast<std::size_t>(kNodes) - 1);
  EXPECT_THAT(verdict.at("good"), Not(IsEmpty())) << verdict.dump(1);
  for (const auto& node : verdict.at("unclear"))
    EXPECT_THAT(node.at("why").get<std::string>(), HasSubstr("in some rounds, which nothing"))
        << node.dump();

  // Every test is kept, those of the killed controller among them, and the run's own folder is
  // gone.
  EXPECT_EQ(round(1), "");
  const auto kept = evidence();
  ASSERT_TRUE(kept.is_object() && kept.contains("rounds_run"));
  EXPECT_EQ(kept["rounds_run"][0], json::parse(before).at("evidence"));
  EXPECT_EQ(kept["engine"], "tcp");
  EXPECT_THAT(muster({"why", name(kSlow)}).out,
              AllOf(HasSubstr("of its peers"), HasSubstr("next step")));
  EXPECT_THAT(muster({"why", "n1"}).out, Not(HasSubstr("of its peers")));

  // Repaired, the same command clears it.
  rate(kSlow, "replace", kGoodRate);
  const auto again = muster(isolate());
  EXPECT_EQ(again.code, kOk) << again.out << again.err;
  EXPECT_THAT(muster({"why", name(kSlow)}).out, Not(HasSubstr("of its peers")));
}

}  // namespace
}  // namespace muster::test
