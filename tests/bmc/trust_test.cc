// SPDX-License-Identifier: Apache-2.0
// Password and certificate of a BMC are changed in two phases: wherever muster dies, the next
// process finds out which of the two holds, and nobody is locked out on the way.
#include "base/io/crypto.h"
#include "bmc/bulk_operation.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/run_async.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Death {};

/// One BMC, and processes of muster that come and go.
struct Scene {
  test::VirtualLoop loop;
  test::VirtualBmc emulator;
  test::RedfishRig rig{loop, emulator.net};
  int until_death = 0;  ///< effects: writes to the store, answers of the BMC; 0: never

  explicit Scene(const char* vendor_profile) : emulator(loop, vendor_profile) {
    rig.next_password = "correct horse battery";
    rig.store.written = [this] { effect(); };
    emulator.net.handle = [this, inner = emulator.net.handle](io::HttpRequest request) {
      return answering(*this, inner, std::move(request));
    };
  }
  void effect() {
    if (until_death > 0 && --until_death == 0) throw Death();
  }
  static Async<io::HttpResponse> answering(Scene& scene, test::FakeHttp::Handler inner,
                                           io::HttpRequest request) {
    auto answer = co_await inner(std::move(request));
    scene.effect();
    co_return answer;
  }
  bool takes(const std::string& password) {
    lab::vbmc::LoginGuard guard(
        loop.clock,
        {"admin", emulator.service->state().account_salt, emulator.service->state().account_sha256},
        {});
    std::string whose;
    return !emulator.service->state().account_sha256.empty() &&
           guard.check("admin", password, whose) == lab::vbmc::LoginAnswer::Accepted;
  }
};

class PasswordRotation : public testing::TestWithParam<const char*> {};

TEST_P(PasswordRotation, isProvenByALoginAndHoldsFromThenOn) {
  Scene scene(GetParam());
  auto bmc = scene.rig.bmc();
  const auto done = scene.loop.run(bmc->rotatePassword());
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_TRUE(scene.takes("correct horse battery"));
  EXPECT_EQ(scene.emulator.service->state().failed_logins, 0u);
  auto later = scene.rig.bmc();  // another process, the inventory as it was
  EXPECT_TRUE(scene.loop.run(later->system()));
  EXPECT_TRUE(scene.loop.run(later->rotatePassword()));
  scene.rig.password = std::exchange(scene.rig.next_password, "");  // the operator has moved it
  auto moved = scene.rig.bmc();
  EXPECT_TRUE(scene.loop.run(moved->system()));
  EXPECT_EQ(scene.emulator.service->state().failed_logins, 0u);
  for (const auto& [key, value] : scene.rig.store.values)
    EXPECT_THAT(value, Not(HasSubstr("correct horse"))) << key;
}

TEST_P(PasswordRotation, survivesTheDeathOfMusterAtEveryStep) {
  for (int effect = 1; effect < 120; ++effect) {
    SCOPED_TRACE(effect);
    Scene scene(GetParam());
    scene.until_death = effect;
    bool died = false;
    try {
      auto bmc = scene.rig.bmc();
      (void)scene.loop.run(bmc->rotatePassword());
    } catch (const Death&) {
      died = true;
    }
    scene.until_death = 0;
    auto reader = scene.rig.bmc();  // somebody only reads: whichever password holds, it is found
    ASSERT_TRUE(scene.loop.run(reader->system()));
    auto bmc = scene.rig.bmc();
    const auto done = scene.loop.run(bmc->rotatePassword());
    ASSERT_TRUE(done) << done.error().str();
    EXPECT_TRUE(scene.takes("correct horse battery"));
    EXPECT_LE(scene.emulator.service->state().failed_logins, 2u);
    auto later = scene.rig.bmc();
    EXPECT_TRUE(scene.loop.run(later->system()));
    if (!died) return;
  }
  FAIL() << "a hundred and twenty effects did not suffice";
}

INSTANTIATE_TEST_SUITE_P(All, PasswordRotation, testing::Values("muster", "idrac", "dgx-h100"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(PasswordRotationRefused, theOldOneHoldsAndTheNewOneIsNeverRepeated) {
  Scene scene("muster");
  scene.rig.next_password = "short7!";
  auto bmc = scene.rig.bmc();
  const auto done = scene.loop.run(bmc->rotatePassword());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(done.error().str(),
              testing::AllOf(HasSubstr("the old one still holds"), Not(HasSubstr("short7!"))));
  auto later = scene.rig.bmc();
  EXPECT_TRUE(scene.loop.run(later->system()));
  EXPECT_EQ(scene.emulator.service->state().failed_logins, 0u);
}

TEST(PasswordRotationRefused, withoutANextPasswordItSaysWhatToDeclare) {
  Scene scene("muster");
  scene.rig.next_password.clear();
  auto bmc = scene.rig.bmc();
  const auto done = scene.loop.run(bmc->rotatePassword());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("add rotate_to:"));
}

TEST(PasswordRotationRefused, neitherPasswordIsSentTwice) {
  Scene scene("muster");
  ASSERT_TRUE(scene.loop.run(scene.rig.bmc()->system()));
  ASSERT_TRUE(TrustMemory(scene.rig.store, NodeName("gpu001"))
                  .setRotation("admin", Secret("correct horse battery"), Rotation::Interrupted));
  scene.rig.password = "wrong";
  for (int process = 0; process < 4; ++process) {
    auto bmc = scene.rig.bmc();
    const auto seen = scene.loop.run(bmc->system());
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().code(), ErrorCode::Denied);
  }
  EXPECT_EQ(scene.emulator.service->state().failed_logins, 2u);
}

class CertificateFixture {
 protected:
  CertificateSigner signer() {
    return [this](std::string request) -> Async<std::string> {
      co_return authority.signServer(request, "10.20.250.1", {"10.20.250.1", "gpu001-bmc"},
                                     std::chrono::hours(24));
    };
  }
  const CertificateSubject subject{"10.20.250.1", {"10.20.250.1", "gpu001-bmc"}};
  test::TempFolder folder;
  io::CertificateAuthority authority =
      *io::CertificateAuthority::loadOrCreate(folder.path(), "site CA");
};

class BmcCertificate : public CertificateFixture, public testing::Test {};
/// CertificateService; iLO's own resource; Certificate.Rekey.
class BmcCertificateMethods : public CertificateFixture,
                              public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, BmcCertificateMethods,
                         testing::Values("muster", "idrac", "ilo", "supermicro", "dgx-h100",
                                         "gb200"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(BmcCertificateMethods, isForTheBmcsOwnKeyAndTrustedFromThenOn) {
  Scene scene(GetParam());
  auto bmc = scene.rig.bmc();
  ASSERT_TRUE(scene.loop.run(bmc->system()));
  const auto before = scene.rig.store.values["bmc.pin.gpu001"];
  const auto done = scene.loop.run(certify(*bmc, subject, signer()));
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_NE(scene.rig.store.values["bmc.pin.gpu001"], before);
  EXPECT_EQ(scene.rig.store.values["bmc.pin.gpu001"], scene.emulator.net.fingerprint);
  EXPECT_EQ(scene.rig.store.values["bmc.pin-next.gpu001"], "");
  EXPECT_TRUE(scene.loop.run(bmc->system()));
  scene.emulator.net.fingerprint = before;  // somebody plays the old one
  auto later = scene.rig.bmc();
  EXPECT_EQ(scene.loop.run(later->system()).error().code(), ErrorCode::Denied);
}

TEST_F(BmcCertificate, oneThatShowsOnlyAfterARestartGetsIt) {
  Scene scene("idrac");
  scene.emulator.certificate_waits_for_reset = true;
  auto bmc = scene.rig.bmc();
  const auto done = scene.loop.run(certify(*bmc, subject, signer()));
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(scene.rig.store.values["bmc.pin.gpu001"], scene.emulator.next_fingerprint);
}

TEST_F(BmcCertificate, survivesTheDeathOfMusterAtEveryStep) {
  for (int effect = 1; effect < 120; ++effect) {
    SCOPED_TRACE(effect);
    Scene scene("muster");
    scene.until_death = effect;
    bool died = false;
    try {
      auto bmc = scene.rig.bmc();
      (void)scene.loop.run(certify(*bmc, subject, signer()));
    } catch (const Death&) {
      died = true;
    }
    scene.until_death = 0;
    auto reader = scene.rig.bmc();
    const auto seen = scene.loop.run(reader->system());
    ASSERT_TRUE(seen) << seen.error().str();
    auto bmc = scene.rig.bmc();
    const auto done = scene.loop.run(certify(*bmc, subject, signer()));
    ASSERT_TRUE(done) << done.error().str();
    EXPECT_EQ(scene.rig.store.values["bmc.pin.gpu001"], scene.emulator.net.fingerprint);
    if (!died) return;
  }
  FAIL() << "a hundred and twenty effects did not suffice";
}

TEST_F(BmcCertificate, replacesADeclaredOneAndHoldsUntilTheInventoryNamesIt) {
  Scene scene("muster");
  const auto declared = scene.rig.declared.pin = scene.emulator.net.fingerprint;
  scene.rig.policy = inventory::BmcTrustPolicy::Declared;
  auto bmc = scene.rig.bmc();
  ASSERT_TRUE(scene.loop.run(bmc->system()));
  const auto done = scene.loop.run(certify(*bmc, subject, signer()));
  ASSERT_TRUE(done) << done.error().str();
  const auto installed = scene.emulator.net.fingerprint;
  ASSERT_NE(installed, declared);
  auto later = scene.rig.bmc();  // another process, the inventory as it was
  EXPECT_TRUE(scene.loop.run(later->system()));
  scene.emulator.net.fingerprint = declared;  // somebody plays the old one
  auto deceived = scene.rig.bmc();
  EXPECT_EQ(scene.loop.run(deceived->system()).error().code(), ErrorCode::Denied);
  scene.emulator.net.fingerprint = installed;
  scene.rig.declared.pin = installed;  // the operator has written it
  auto moved = scene.rig.bmc();
  EXPECT_TRUE(scene.loop.run(moved->system()));
  scene.rig.declared.pin =
      std::string(64, 'e');  // what was installed stands for the pin of that time, not for any
  auto other = scene.rig.bmc();
  EXPECT_EQ(scene.loop.run(other->system()).error().code(), ErrorCode::Denied);
}

TEST_F(BmcCertificate, replacesADeclaredOneThoughMusterDiesAtAnyStep) {
  for (int effect = 1; effect < 120; ++effect) {
    SCOPED_TRACE(effect);
    Scene scene("muster");
    scene.rig.declared.pin = scene.emulator.net.fingerprint;
    scene.rig.policy = inventory::BmcTrustPolicy::Declared;
    scene.until_death = effect;
    bool died = false;
    try {
      auto bmc = scene.rig.bmc();
      (void)scene.loop.run(certify(*bmc, subject, signer()));
    } catch (const Death&) {
      died = true;
    }
    scene.until_death = 0;
    auto reader = scene.rig.bmc();
    const auto seen = scene.loop.run(reader->system());
    ASSERT_TRUE(seen) << seen.error().str();
    auto bmc = scene.rig.bmc();
    const auto done = scene.loop.run(certify(*bmc, subject, signer()));
    ASSERT_TRUE(done) << done.error().str();
    EXPECT_TRUE(scene.loop.run(scene.rig.bmc()->system()));
    if (!died) return;
  }
  FAIL() << "a hundred and twenty effects did not suffice";
}

TEST(BmcFirstContact, storesThePinBeforeThePasswordGoesOut) {
  Scene scene("muster");
  int logins = 0;
  scene.emulator.net.handle = [&, inner = scene.emulator.net.handle](io::HttpRequest request) {
    if (request.method == "POST" && request.url.target.ends_with("/Sessions")) {
      ++logins;
      EXPECT_EQ(scene.rig.store.values["bmc.pin.gpu001"], scene.emulator.net.fingerprint);
    } else if (logins == 0) {
      EXPECT_THAT(request.body, testing::IsEmpty());
    }
    return inner(std::move(request));
  };
  EXPECT_TRUE(scene.loop.run(scene.rig.bmc()->system()));
  EXPECT_EQ(logins, 1);
}

TEST(BmcDeclaredTrust, oneThatWasMetBeforeGetsNoPasswordUntilItIsDeclared) {
  Scene scene("muster");
  ASSERT_TRUE(scene.loop.run(scene.rig.bmc()->system()));
  scene.rig.policy = inventory::BmcTrustPolicy::Declared;
  const auto before = scene.emulator.logins();
  const auto refused = scene.loop.run(scene.rig.bmc()->system());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(), HasSubstr("bmc_pin: " + scene.emulator.net.fingerprint));
  EXPECT_EQ(scene.emulator.logins(), before);
  scene.rig.declared.pin = scene.emulator.net.fingerprint;
  EXPECT_TRUE(scene.loop.run(scene.rig.bmc()->system()));
}

TEST_F(BmcCertificate, whatIsNoCertificateIsNotSent) {
  Scene scene("muster");
  auto bmc = scene.rig.bmc();
  test::FakeProcessRunner processes;
  processes.answer = [](const io::Command& command) -> Result<io::ProcessExit> {
    return io::ProcessExit{0, command.stdin_text, ""};
  };  // the request comes back
  auto done = scene.loop.run(certify(*bmc, subject, signBy({"sign", "gpu001"}, processes)));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Corrupt);
  processes.answer = [](const io::Command&) -> Result<io::ProcessExit> {
    return io::ProcessExit{3, "", "nobody is in\nthe HSM is away\n"};
  };
  done = scene.loop.run(certify(*bmc, subject, signBy({"sign", "gpu001"}, processes)));
  EXPECT_THAT(done.error().str(), HasSubstr("sign did not sign: it ended with 3: the HSM is away"));
  EXPECT_EQ(processes.commands.back().args, std::vector<std::string>{"gpu001"});
  EXPECT_EQ(
      scene.emulator.net.count(
          "POST", "/redfish/v1/CertificateService/Actions/CertificateService.ReplaceCertificate"),
      0);
}

TEST(BmcBulkOperation, oneGoesFirstAndThreeFailuresStopTheRest) {
  test::VirtualLoop loop;
  std::vector<NodeName> nodes, begun;
  for (int i = 0; i < 60; ++i) nodes.emplace_back(fmt::format("gpu{:03}", i));
  auto fails_from = 1;
  auto work = [&](NodeName node) -> Async<void> {
    begun.push_back(node);
    const bool fails = static_cast<int>(begun.size()) > fails_from;
    co_await loop.clock.sleep(std::chrono::seconds(1));
    if (fails) co_return fail(ErrorCode::Unavailable, "no answer");
    co_return Result<void>();
  };
  auto report =
      *loop.run(runBulkOperation(nodes, work, [](const NodeName&, const Result<void>&) {}));
  EXPECT_EQ(report.done.size(), 1u);
  EXPECT_GE(report.failed.size(), kBulkOperationFailures);
  EXPECT_LE(begun.size(), 1 + kBulkOperationAtOnce);
  EXPECT_EQ(report.done.size() + report.failed.size() + report.not_started.size(), nodes.size());
  begun.clear();
  fails_from = 0;
  report = *loop.run(runBulkOperation(nodes, work, [](const NodeName&, const Result<void>&) {}));
  EXPECT_EQ(begun.size(), 1u);
  EXPECT_EQ(report.not_started.size(), 59u);
  begun.clear();
  fails_from = 1'000;
  report = *loop.run(runBulkOperation(nodes, work, [](const NodeName&, const Result<void>&) {}));
  EXPECT_EQ(report.done.size(), 60u);
}

/// As a run that is paused: what it works on ends with it.
TEST(BmcBulkOperation, nothingOutlivesItsCancellation) {
  using namespace boost::asio::experimental::awaitable_operators;
  test::VirtualLoop loop;
  std::vector<NodeName> nodes;
  for (int i = 0; i < 60; ++i) nodes.emplace_back(fmt::format("gpu{:03}", i));
  std::size_t begun = 0, ended = 0, under_way = 0, most = 0;
  auto work = [&](NodeName) -> Async<void> {
    ++begun;
    most = std::max(most, ++under_way);
    const std::shared_ptr<void> leaves(nullptr, [&](void*) { --under_way; });
    co_await loop.clock.sleep(std::chrono::seconds(10));
    ++ended;
    co_return Result<void>();
  };
  auto until = [&]() -> Async<void> {
    co_await loop.clock.sleep(std::chrono::seconds(15));
    co_return Result<void>();
  };
  auto both = [&]() -> Async<void> {
    auto bulk = runBulkOperation(nodes, work, [](const NodeName&, const Result<void>&) {});
    auto first = std::move(bulk) || until();
    (void)co_await std::move(first);
    EXPECT_EQ(under_way, 0u) << "when its answer is dropped";
    co_return Result<void>();
  };
  EXPECT_TRUE(loop.run(both()));
  EXPECT_EQ(ended, 1u) << "the one that goes first";
  EXPECT_EQ(begun, 1 + kBulkOperationAtOnce);
  EXPECT_EQ(most, kBulkOperationAtOnce);
  const auto then = begun;
  EXPECT_TRUE(loop.run(until()));
  EXPECT_EQ(begun, then);
  EXPECT_EQ(ended, 1u);
}

}  // namespace
}  // namespace muster::bmc
