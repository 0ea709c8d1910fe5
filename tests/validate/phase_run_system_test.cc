// SPDX-License-Identifier: Apache-2.0
// `muster validate run` as the real program does it, with real agents: gates within a rack's power
// and within a time, going on, certificates.
#include "lifecycle/store/store.h"
#include "tests/provision/images/kept_bytes.h"
#include "tests/validate/real_agents.h"

#include <algorithm>
#include <csignal>
#include <sstream>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRackNodes = 2;
constexpr const char* kAll = "n[1-2]";

/// One rack, of which a node under load draws a kilowatt. Medium: minutes of work, so that a minute
/// ends in the midst of it.
std::string declared(const std::string& level, int rack_watts) {
  return fmt::format(R"(racks:
  r1: {{power_watts: {}}}
images:
  bookworm: {{build: {{suite: bookworm, packages: [linux-image-amd64]}}}}
profiles:
  node: {{power_watts: 1000, image: bookworm, gates: [burn-in]}}
gates:
  burn-in: {{level: {}, groups: [host]}}
)",
                     rack_watts, level);
}

class RunSystem : public RealAgents {
 protected:
  /// Nodes as `muster apply` leaves them, but for their gates. No BMC is here: who they are was
  /// seen earlier.
  void rack(const std::string& level, int rack_watts = 1500) {
    ASSERT_TRUE(io::makeDirs(folder_ / "state" / "keys", 0700));
    const auto key = io::SigningKey::loadOrCreate(folder_ / "state" / "keys" / "signing.pem");
    ASSERT_TRUE(key);
    const auto digest = keepImageOfBytes(folder_ / "cache", folder_ / "agent", *key);
    ASSERT_TRUE(digest) << digest.error().str();
    image_digest_ = *digest;
    start(kRackNodes, kRackNodes, declared(level, rack_watts), "1gbit");
    ASSERT_EQ(muster({"wipe", "n1", "--reason", "makes the store"}).code, kOk);
    auto store = lifecycle::openStore("sqlite:" + (folder_ / "state" / "muster.db").string());
    ASSERT_TRUE(store) << store.error().str();
    std::vector<lifecycle::Fact> known;
    for (int n = 1; n <= kRackNodes; ++n)
      for (const auto& [facet, value] : {std::pair("enrolled", "yes"), std::pair("os", "running")})
        known.push_back({lifecycle::Subject(NodeName(name(n))), FacetName(facet), value,
                         SystemClock().now(), "test", ""});
    ASSERT_TRUE((*store)->putFacts(known));
  }
  static std::vector<json> events(const std::string& out) {
    std::vector<json> events;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);)
      if (auto event = json::parse(line, nullptr, false); event.is_object())
        events.push_back(std::move(event));
    return events;
  }
};

TEST_F(RunSystem, gatesOfARackTakeTurnsAndEarnCertificates) {
  rack("quick");
  const auto done = muster({"--json", "validate", "run", "--nodes", kAll});
  ASSERT_EQ(done.code, kOk) << done.out << done.err;
  const auto seen = events(done.out);
  EXPECT_EQ(std::count_if(seen.begin(), seen.end(),
                          [](const auto& event) {
                            return event.value("kind", "") == "action-done" &&
                                   event.value("action", "").ends_with("/gate.burn-in");
                          }),
            kRackNodes)
      << done.out;
  EXPECT_THAT(done.out, HasSubstr("power of rack r1: 1.0 of 1.5 kW are in use"))
      << "one node waits for the other";
  const auto certificates = muster({"cert", "verify"});
  EXPECT_EQ(certificates.code, kOk);
  EXPECT_THAT(certificates.out, AllOf(HasSubstr("n1: valid"), HasSubstr("n2: valid")));
  EXPECT_THAT(muster({"validate", "baseline"}).out, HasSubstr("host.gemm/gemm_gflops"));
}

TEST_F(RunSystem, aRackBeginsTogetherWhereItBearsThatAndSomebodyAsks) {
  rack("quick", 2500);
  const auto done = muster({"--json", "validate", "run", "--nodes", kAll, "--synchronized-load"});
  ASSERT_EQ(done.code, kOk) << done.out << done.err;
  EXPECT_THAT(done.err,
              HasSubstr("rack r1: 2 nodes start at one moment, 2.0 of 2.5 kW in one step: n1, n2"));
  EXPECT_THAT(done.out, HasSubstr("the start of the synchronized load of rack r1"));
  EXPECT_THAT(done.out, testing::Not(HasSubstr("loads step up one by one")));
  EXPECT_THAT(muster({"cert", "verify"}).out,
              AllOf(HasSubstr("n1: valid"), HasSubstr("n2: valid")));
}

TEST_F(RunSystem, aStepThatTheRackDoesNotBearIsRefusedBeforeAnythingIsBegun) {
  rack("quick");
  const auto refused = muster({"validate", "run", "--nodes", kAll, "--synchronized-load"});
  EXPECT_NE(refused.code, kOk);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("rack r1 has 1.5 kW, 2 nodes together draw 2.0 kW"),
                                 HasSubstr("Without --synchronized-load starts are staggered")));
  EXPECT_THAT(muster({"validate", "run", "--nodes", kAll, "--dry-run"}).err,
              testing::Not(HasSubstr("goes on with the run")))
      << "nothing was begun";
}

/// A gate of minutes in a minute: what the node has begun goes on without a controller, and the
/// next run waits for that.
TEST_F(RunSystem, aTimeIsKeptAndTheNextRunTakesUpWhatTheNodeHasBegun) {
  rack("medium");
  const auto begin = std::chrono::steady_clock::now();
  const auto cut = muster({"validate", "run", "--nodes", "n1", "--minutes", "1"});
  EXPECT_EQ(cut.code, kFailed) << cut.out << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("the 1 minutes are over; nothing is lost"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 80s);
  const auto begun = [this] {
    const auto kept = json::parse(
        io::readFile(folder_ / "n1" / "state" / "tasks.json").value_or(""), nullptr, false);
    const auto kinds = kept.is_object() ? kept.value("kinds", json::array()) : json::array();
    return std::count(kinds.begin(), kinds.end(), "run-checks");
  };
  ASSERT_EQ(begun(), 1);
  auto again = processes_->start(folder_.command({"--json", "validate", "run", "--nodes", "n1"}),
                                 folder_ / "again.log");
  ASSERT_TRUE(again);
  const auto told = [this] { return io::readFile(folder_ / "again.log").value_or(""); };
  EXPECT_TRUE(eventually([&] {
    const auto seen = events(told());
    return std::any_of(seen.begin(), seen.end(),
                       [](const auto& event) {
                         return event.value("action", "") == "n1/gate.burn-in" &&
                                event.value("kind", "") == "action-progress";
                       }) ||
           !(*again)->running();
  })) << told();
  EXPECT_TRUE((*again)->running()) << told();
  (*again)->signal(SIGKILL);
  (*again)->terminate(5s);
  EXPECT_TRUE(io::PidFile{folder_ / "state/run/netboot/dnsmasq.pid"}.terminate(2s))
      << "a killed muster leaves it to the next one";
  EXPECT_THAT(told(), HasSubstr("goes on with the run of"));
  EXPECT_EQ(begun(), 1) << "its gate began a second time";
}

}  // namespace
}  // namespace muster::test
