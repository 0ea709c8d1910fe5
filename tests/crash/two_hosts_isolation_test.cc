// SPDX-License-Identifier: Apache-2.0
// An isolation whose host is killed in the middle goes on at the other host: two real processes on
// one PostgreSQL, with a state folder each, and real agents that test the cables between them.
#include "lifecycle/runs/run_words.h"
#include "lifecycle/store/leader_lease.h"
#include "lifecycle/store/runs.h"
#include "lifecycle/store/store.h"
#include "tests/lifecycle/postgres_server.h"
#include "tests/validate/real_agents.h"

#include <csignal>
#include <map>

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kNodes = 4, kPerRack = 2, kSlow = 4;
constexpr const char *kGoodRate = "100mbit", *kSlowRate = "25mbit";
constexpr auto kTakenOverWithin = 90s;

class TwoHostsIsolation : public RealAgents {
 protected:
  void SetUp() override {
    RealAgents::SetUp();
    if (IsSkipped()) return;
    if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
    url_ = postgresServer().createDatabase();
    store_ = std::move(*lifecycle::openStore(url_));
    runs_ = std::move(*lifecycle::openRuns(url_));
    start(kNodes, kPerRack,
          "images:\n  bookworm: {build: {suite: bookworm, packages: "
          "[linux-image-amd64]}}\nprofiles:\n  node: {image: bookworm}\n",
          kGoodRate);
    ip({"addr", "add", "10.20.0.2/16", "dev", "br0"});
    rate(kSlow, "replace", kSlowRate);
  }
  void TearDown() override {
    for (auto* host : {&a_, &b_, &asked_}) host->reset();
    if (HasFailure())
      for (const char* log : {"a.log", "b.log", "asked.log"})
        std::cerr << "---- " << log << "\n" << said(log) << "\n";
    RealAgents::TearDown();
  }
  std::string head() const override {
    auto out = std::string(kInventory);
    const std::string one =
        "{cidr: 10.20.0.0/16, dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}}";
    return out.replace(
        out.find(one), one.size(),
        "{cidr: 10.20.0.0/16, controllers: [10.20.0.1, 10.20.0.2], dhcp: {mode: none}}");
  }
  /// `state`: its folder; the first host's is where the agents' authority is.
  std::unique_ptr<io::Child> host(const char* state, const char* address,
                                  std::vector<std::string> words, const char* log) {
    auto command = folder_.command(std::move(words));
    command.env["MUSTER_STATE"] = (folder_ / state).string();
    command.env["MUSTER_STORE"] = url_;
    command.env["MUSTER_ADDRESS"] = address;
    auto child = processes_->start(std::move(command), folder_ / log);
    EXPECT_TRUE(child) << child.error().str();
    return child ? std::move(*child) : nullptr;
  }
  std::string said(const char* log) const { return io::readFile(folder_ / log).value_or(""); }
  bool hasSaid(const char* log, const char* words) {
    return eventually([&] { return said(log).find(words) != std::string::npos; });
  }
  void serveOnBoth() {
    a_ = host("state", "10.20.0.1", {"monitor"}, "a.log");
    ASSERT_TRUE(hasSaid("a.log", "muster monitor: 4 nodes")) << said("a.log");
    fs::create_directories(folder_ / "b");
    for (const char* what : {"ca", "keys"})
      fs::copy(folder_ / "state" / what, folder_ / "b" / what, fs::copy_options::recursive);
    b_ = host("b", "10.20.0.2", {"monitor"}, "b.log");
    ASSERT_TRUE(hasSaid("b.log", "stands by;")) << said("b.log");
  }
  lifecycle::Run run() { return **runs_->read(runs_->list({})->front().id); }
  /// Of the first host's log of this run; empty: it has not ended.
  std::string round(int number) const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / "state" / "validation", none))
      if (auto kept = io::readFile(entry.path() / fmt::format("round-{:03}.json", number)))
        return std::move(*kept);
    return {};
  }
  /// How often each round was begun, by what the run has told.
  std::map<int, int> roundsBegun() const {
    std::map<int, int> out;
    for (const auto& event : *store_->lastEvents(10'000, nullptr))
      if (int number = 0; std::sscanf(event.text.c_str(), "round %d: ", &number) == 1)
        ++out[number];
    return out;
  }
  std::vector<json> documentsOf(const char* state) const {
    std::vector<json> out;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / state / "validation", none))
      if (entry.path().extension() == ".json")
        out.push_back(json::parse(io::readFile(entry.path()).value_or(""), nullptr, false));
    return out;
  }

  std::string url_;
  std::unique_ptr<lifecycle::Store> store_;
  std::unique_ptr<lifecycle::RunStore> runs_;
  std::unique_ptr<io::Child> a_, b_, asked_;
};

TEST_F(TwoHostsIsolation, goesOnWithTheRoundThatWasCutOff) {
  serveOnBoth();
  if (HasFatalFailure()) return;
  asked_ = host("state", "10.20.0.1",
                {"validate", "isolate", "--engine", "tcp", "--nodes", "n[1-4]", "--seed", "7"},
                "asked.log");
  ASSERT_TRUE(eventually([&] { return !round(2).empty() || !asked_->running(); }));
  ASSERT_FALSE(round(2).empty()) << said("asked.log");
  const auto worker = run().worked_on_by;
  a_->signal(SIGKILL);
  a_->terminate(5s);
  const auto killed = std::chrono::steady_clock::now();
  const auto first = json::parse(round(1), nullptr, false);
  const auto begun = roundsBegun();
  ASSERT_TRUE(eventually([&] { return run().worked_on_by != worker; }));
  const auto waited = std::chrono::steady_clock::now() - killed;
  EXPECT_LT(waited, kTakenOverWithin);
  std::cout << "taken over after "
            << std::chrono::duration_cast<std::chrono::milliseconds>(waited).count() << " ms, in "
            << "round " << begun.rbegin()->first << "\n";
  const auto holder = lifecycle::currentLeader(*store_);
  ASSERT_TRUE(holder && *holder);
  EXPECT_EQ((*holder)->address, "10.20.0.2");

  for (int looks = 0; looks < 3 && !isEnd(run().state); ++looks)
    (void)eventually([&] { return isEnd(run().state); });
  EXPECT_EQ(toString(run().state), toString(lifecycle::RunState::Failed)) << run().text;
  EXPECT_EQ(run().reason, lifecycle::RunReason::FaultsFound) << run().text;
  ASSERT_FALSE(run().problems.empty()) << run().text;
  EXPECT_THAT(run().problems[0], ::testing::StartsWith(std::string(name(kSlow)) + ":"));
  EXPECT_THAT(run().text, HasSubstr(": 1 bad")) << "and nobody else";
  // Rounds that had ended did not run again; the one that was cut off was begun twice at most.
  for (const auto& [number, times] : roundsBegun())
    EXPECT_LE(times, number == begun.rbegin()->first ? 2 : 1) << "round " << number;
  const auto documents = documentsOf("b");
  ASSERT_THAT(documents, SizeIs(1)) << "by the host that ended it";
  ASSERT_TRUE(documents[0].contains("rounds_run"));
  EXPECT_EQ(documents[0]["rounds_run"][0], first.at("evidence")) << "a test of the killed host";
  EXPECT_THAT(documentsOf("state"), IsEmpty());
  const auto left = store_->getValue("isolation-log.begun.json");
  ASSERT_TRUE(left && *left);
  EXPECT_EQ(**left, "") << "its log is over";
}

}  // namespace
}  // namespace muster::test
