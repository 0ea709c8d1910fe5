// SPDX-License-Identifier: Apache-2.0
// Whose key is listened to over every death of a controller, and between two of them.
#include "base/io/key_id.h"
#include "gateway/enrollment.h"
#include "tests/fakes/memory_store.h"
#include "tests/gateway/one_node.h"
#include "tests/lifecycle/crash_store.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using namespace test;

/// A node that goes through two lives, and a controller that dies once. Each step is tried again at
/// the next controller, as agents do.
class Lives {
 public:
  Lives(int crash_at, bool lost) : crashing_(inner_, crash_at, lost) {
    ca_.emplace(*io::CertificateAuthority::loadOrCreate(folder_ / "ca", "test root"));
    network_.show("127.0.0.1", kMac1);
    start(inner_);
    live("before");  // nobody dies in the first life
    old_ram_ = ram_, old_disk_ = disk_;
    enrollment_ = *controller_->openEnrollment(kNode, cluster_.nodes[0].mac);
    start(crashing_);
  }

  bool crashed() const { return crashing_.crashed; }

  void secondLife() {
    const auto csr = io::makeKeyAndRequest("r")->csr_pem;
    ram_ = step("enrol", [&] { return enrolled(csr); });
    expectRefused("enrolled", old_ram_, wire::Mode::Ram);
    step("call in the RAM OS", [&] { return admitPoll(ram_, wire::Mode::Ram); });
    step("order", [&] { return retired(); });
    expectRefused("ordered to write", old_disk_, wire::Mode::Disk);
    disk_ = step("certificate", [&] { return certified(ram_); });
    expectRefused("certified", old_disk_, wire::Mode::Disk);
    step("call from the disk", [&] { return admitPoll(disk_, wire::Mode::Disk); });
    expectRefused("the installed system has called", ram_, wire::Mode::Ram);
    const auto first = disk_;
    disk_ = step("renewal", [&] { return certified(first); });
    step("call with the next", [&] { return admitPoll(disk_, wire::Mode::Disk); });
    expectRefused("the next key has called", first, wire::Mode::Disk);
    expectRefused("at the end", old_disk_, wire::Mode::Disk);
    expectRefused("at the end", old_ram_, wire::Mode::Ram);
    step("goes on", [&] { return admitPoll(disk_, wire::Mode::Disk); });
  }

 private:
  void start(lifecycle::Store& store) {
    controller_ = std::make_unique<gateway::Enrollment>(cluster_, *ca_, store, clock_, network_);
  }
  void live(const std::string& name) {
    enrollment_ = *controller_->openEnrollment(kNode, cluster_.nodes[0].mac);
    ram_ = *enrolled(io::makeKeyAndRequest(name)->csr_pem);
    disk_ = *certified(ram_);
    ASSERT_TRUE(admitPoll(disk_, wire::Mode::Disk));
  }
  Result<std::string> enrolled(const std::string& csr) {
    return keyIn(runAsync(controller_->enroll({enrollment_, csr, kMac1}, "127.0.0.1")));
  }
  Result<std::string> certified(const std::string& key) {
    return keyIn(runAsync(controller_->certify(kNode, key, io::makeKeyAndRequest("d")->csr_pem)));
  }
  Result<std::string> admitPoll(const std::string& key, wire::Mode mode) {
    return key_(runAsync(controller_->admit(kNode, key, mode, false)), key);
  }
  Result<std::string> retired() {
    return key_(runAsync(controller_->endInstalled(kNode, "order")), "");
  }
  static Result<std::string> keyIn(Result<wire::EnrollResponse> answer) {
    if (!answer) return std::unexpected(answer.error());
    return io::keyIdOf(answer->certificate_pem);
  }
  static Result<std::string> key_(Result<void> answer, const std::string& key) {
    if (!answer) return std::unexpected(answer.error());
    return key;
  }
  template <class Work>
  std::string step(const char* what, Work work) {
    try {
      auto done = work();
      EXPECT_TRUE(done) << what << ": " << done.error().str();
      return done.value_or("");
    } catch (const Crash&) {
      start(inner_);
      auto done = work();
      EXPECT_TRUE(done) << what << ", of the next controller: " << done.error().str();
      return done.value_or("");
    }
  }
  void expectRefused(const char* when, const std::string& key, wire::Mode mode) {
    gateway::Enrollment other(cluster_, *ca_, inner_, clock_,
                              network_);  // whatever controller is asked
    const auto answer = runAsync(other.admit(kNode, key, mode, false));
    ASSERT_FALSE(answer) << when << ": a key of an earlier life is listened to";
    EXPECT_EQ(answer.error().code(), ErrorCode::Denied) << when;
  }

  TempFolder folder_;
  FakeClock clock_;
  inventory::Cluster cluster_ = clusterOfOne();
  FakeNetworkEvidence network_;
  std::optional<io::CertificateAuthority> ca_;
  MemoryStore inner_;
  CrashStore crashing_;
  std::unique_ptr<gateway::Enrollment> controller_;
  std::string enrollment_, ram_, disk_, old_ram_, old_disk_;
};

TEST(KeysOverDeaths, noDeathOfAControllerLocksTheNodeOutOrLetsAnEarlierLifeIn) {
  int boundaries = 0;
  for (bool lost : {true, false}) {
    for (int at = 0; at < 100; ++at) {
      SCOPED_TRACE(fmt::format("dies at write {}, which is {}", at, lost ? "lost" : "stored"));
      Lives lives(at, lost);
      lives.secondLife();
      if (!lives.crashed()) break;
      ++boundaries;
    }
  }
  EXPECT_GE(boundaries, 14) << "arming, two keys of the RAM OS, order, certificate, its first "
                               "call, renewal, its first call";
}

TEST(KeysOverDeaths, aRefusalThatIsToldAgainGivesTheKeyBackOnce) {
  for (bool lost : {true, false}) {
    MemoryStore inner;
    CrashStore crashing(inner, 0, lost);
    TempFolder folder;
    FakeClock clock;
    const auto cluster = clusterOfOne();
    auto ca = *io::CertificateAuthority::loadOrCreate(folder / "ca", "test root");
    gateway::Enrollment one(cluster, ca, inner, clock, kNetwork),
        dying(cluster, ca, crashing, clock, kNetwork), next(cluster, ca, inner, clock, kNetwork);
    ASSERT_TRUE(runAsync(one.admit(kNode, "disk", wire::Mode::Disk, false)));
    ASSERT_TRUE(runAsync(one.endInstalled(kNode, "order")));
    EXPECT_THROW((void)runAsync(dying.restoreInstalled(kNode, {"older", "order"})), Crash);
    ASSERT_TRUE(runAsync(next.restoreInstalled(kNode, {"older", "order"})));
    EXPECT_TRUE(runAsync(next.admit(kNode, "disk", wire::Mode::Disk, false)));
    ASSERT_TRUE(runAsync(next.endInstalled(kNode, "another")));
    ASSERT_TRUE(runAsync(next.restoreInstalled(kNode, {"older", "order"})));
    EXPECT_FALSE(runAsync(next.admit(kNode, "disk", wire::Mode::Disk, false)));
  }
}

TEST(KeysOfTwoControllers, agreeWhateverTheOneHasHeardBefore) {
  auto data = std::make_shared<MemoryStore::Data>();
  MemoryStore here(data), there(data);
  TempFolder folder;
  FakeClock clock;
  const auto cluster = clusterOfOne();
  auto ca = *io::CertificateAuthority::loadOrCreate(folder / "ca", "test root");
  gateway::Enrollment one(cluster, ca, here, clock, kNetwork),
      two(cluster, ca, there, clock, kNetwork);
  const auto admitted = [](gateway::Enrollment& by, const std::string& key) {
    return runAsync(by.admit(kNode, key, wire::Mode::Disk, false)).has_value();
  };
  ASSERT_TRUE(admitted(one, "first"));
  ASSERT_TRUE(admitted(two, "first")) << "and it remembers that";
  const auto next = io::keyIdOf(
      runAsync(one.certify(kNode, "first", io::makeKeyAndRequest("d")->csr_pem))->certificate_pem);
  EXPECT_TRUE(admitted(two, "first"));
  EXPECT_TRUE(admitted(two, *next));
  EXPECT_FALSE(admitted(one, "first"));
  EXPECT_FALSE(admitted(two, "first"));
}
}  // namespace
}  // namespace muster::agent
