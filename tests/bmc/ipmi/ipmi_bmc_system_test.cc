// SPDX-License-Identifier: Apache-2.0
// A real ipmitool against OpenIPMI's simulated BMC on loopback: power, boot device, event log, and
// a wrong password that is sent once.
#include "base/io/files.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "tests/bmc/console/sol_rig.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <set>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

/// The simulator asks this script what the chassis is like, and tells it what becomes of it.
constexpr const char* kChassis = R"SH(#!/bin/sh
cd "$(dirname "$0")"
echo "$@" >> calls
op=$1; shift
case "$op" in
  get) for what; do
         case $what in
           power) echo "power:$(cat power 2>/dev/null || echo 1)";;
           boot) echo "boot:$(cat boot 2>/dev/null || echo none)";;
         esac
       done;;
  set) while [ $# -gt 1 ]; do
         case $1 in
           shutdown) echo 0 > power;;
           *) echo "$2" > "$1";;
         esac
         shift 2
       done;;
esac
)SH";

class RealIpmi : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"/usr/bin/ipmi_sim", "/usr/bin/ipmitool"})
      if (!std::filesystem::exists(program)) GTEST_SKIP() << program << " is not installed";
    ASSERT_TRUE(sim.running());
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const char* file : {"calls", "sim.log"})
      std::cout << file << ":\n" << io::readFile(sim.folder() / file).value_or("(none)") << "\n";
  }
  IpmiOptions options() {
    IpmiOptions out;
    out.host = "127.0.0.1";
    out.port = sim.port();
    out.cipher_suite = 3;  // the simulator has no SHA-256
    out.username = "admin";
    out.password = [this]() -> Result<Secret> { return Secret(password); };
    out.may_try = [this](const Secret& secret) -> Result<void> {
      return refused.contains(secret.reveal())
                 ? Result<void>(fail(ErrorCode::Denied, "refused before"))
                 : Result<void>();
    };
    out.refused = [this](const Secret& secret) { refused.insert(secret.reveal()); };
    out.poll = 200ms;
    return out;
  }
  template <class T>
  Result<T> run(Async<T> work) {
    return test::runAsync(std::move(work));
  }

  test::SolRig sim{kChassis};
  std::unique_ptr<io::ProcessRunner> processes = io::makeProcessRunner();
  SystemClock clock;
  std::string password = "secret";
  std::set<std::string> refused;
  std::unique_ptr<Bmc> bmc = makeIpmiBmc(options(), *processes, clock);
};

TEST_F(RealIpmi, powerIsSwitchedAndBelievedByItsState) {
  EXPECT_EQ(run(bmc->system())->power, PowerState::On);
  const auto off = run(bmc->power(PowerAction::ForceOff));
  ASSERT_TRUE(off) << off.error().str();
  EXPECT_EQ(run(bmc->system())->power, PowerState::Off);
  ASSERT_TRUE(run(bmc->power(PowerAction::On)));
  ASSERT_TRUE(run(bmc->power(PowerAction::GracefulShutdown)));
  EXPECT_EQ(run(bmc->system())->power, PowerState::Off);
  const auto calls = *io::readFile(sim.folder() / "calls");
  EXPECT_THAT(calls, testing::AllOf(HasSubstr("set power 0"), HasSubstr("set power 1"),
                                    HasSubstr("set shutdown 1")));
}

TEST_F(RealIpmi, theBootDeviceIsReadAgainAndOneThatIsNotKeptIsAnError) {
  const auto once = run(bmc->boot({BootTarget::Pxe, false, {}}));
  ASSERT_TRUE(once) << once.error().str();
  EXPECT_EQ(*io::readFile(sim.folder() / "boot"), "pxe\n");
  // ipmitool ends with 0, and the simulator forgets that it was meant for all boots.
  const auto lasting = run(bmc->boot({BootTarget::Pxe, true, {}}));
  ASSERT_FALSE(lasting);
  EXPECT_THAT(lasting.error().str(),
              testing::AllOf(HasSubstr("for all boots but shows"), HasSubstr("Force PXE")));
  EXPECT_EQ(run(bmc->boot({BootTarget::UefiHttp, false, {}})).error().code(), ErrorCode::NotFound);
}

TEST_F(RealIpmi, whatTheBmcDoesNotOfferIsSaidSo) {
  const auto sent = run(bmc->sendNmi());  // this simulator knows no diagnostic interrupt
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), ErrorCode::NotFound) << sent.error().str();
}

TEST_F(RealIpmi, theEventLogIsReadInItsOrder) {
  const auto log = run(bmc->eventLog(10));
  ASSERT_TRUE(log) << log.error().str();
  ASSERT_EQ(log->entries.size(), 2u);
  EXPECT_THAT(log->entries[0].message,
              testing::AllOf(HasSubstr("Temperature"), HasSubstr("Upper Critical going high")));
  EXPECT_EQ(log->entries[0].severity, "Critical");
  EXPECT_THAT(log->entries[1].message, HasSubstr("Button"));
  EXPECT_EQ(run(bmc->eventLog(1))->entries.size(), 1u);
}

TEST_F(RealIpmi, sensorsAreOnlyListedWhereThereAreAny) {
  const auto seen = run(bmc->sensors());  // this simulator's repository is empty: ipmitool would
                                          // rebuild it, and erase it first
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code(), ErrorCode::NotFound);
}

TEST_F(RealIpmi, aWrongPasswordIsSentOnceAndNeverShown) {
  password = "hunter2-wrong";
  for (int i = 0; i < 3; ++i) {
    const auto seen = run(bmc->system());
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().code(), ErrorCode::Denied) << seen.error().str();
    EXPECT_THAT(seen.error().str(), Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(refused.size(), 1u);
}

TEST_F(RealIpmi, anotherCipherSuiteIsNamedAsTheReason) {
  auto other = options();
  other.cipher_suite = 17;
  const auto seen = run(makeIpmiBmc(other, *processes, clock)->system());
  ASSERT_FALSE(seen);
  EXPECT_THAT(seen.error().str(), HasSubstr("cipher_suite"));
}

TEST_F(RealIpmi, theBmcComesBackFromItsRestart) {
  const auto done = run(bmc->resetBmc());
  EXPECT_TRUE(done) << done.error().str();
}

}  // namespace
}  // namespace muster::bmc
