// SPDX-License-Identifier: Apache-2.0
// What stands beside Redfish: IPMI where Redfish does not offer or answer, and a PDU that is
// believed by the BMC's silence.
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/ipmi/pdu.h"
#include "inventory/model/node.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using test::FakeBmc;
using testing::ElementsAre;
using testing::HasSubstr;

struct Lent {
  std::unique_ptr<FakeBmc> owned = std::make_unique<FakeBmc>();
  FakeBmc* fake = owned.get();
};

class IpmiPduFallback : public testing::Test {
 protected:
  test::VirtualLoop loop;
  Lent redfish;
  FakeBmc ipmi{"ipmi://bmc.fake"};
  FakeBmc& first = *redfish.fake;
  std::unique_ptr<Bmc> bmc = withIpmi(std::move(redfish.owned), ipmi);
  const Error silent{ErrorCode::Unavailable, "no answer"};
};

TEST_F(IpmiPduFallback, aMachineIsSwitchedOnByIpmiWhenRedfishIsSilent) {
  first.failNext("power", silent);
  EXPECT_TRUE(loop.run(bmc->power(PowerAction::On)));
  EXPECT_EQ(ipmi.count("power On"), 1);
}

TEST_F(IpmiPduFallback, nothingIsSwitchedOffByItself) {
  for (const auto action :
       {PowerAction::ForceOff, PowerAction::GracefulShutdown, PowerAction::ForceRestart}) {
    first.failNext("power", silent);
    EXPECT_FALSE(loop.run(bmc->power(action)));
  }
  first.failNext("resetBmc", silent);
  EXPECT_FALSE(loop.run(bmc->resetBmc()));
  EXPECT_THAT(ipmi.calls, testing::IsEmpty());
}

TEST_F(IpmiPduFallback, theBootDeviceGoesByIpmiToo) {
  first.failNext("bootOnce", silent);
  EXPECT_TRUE(loop.run(bmc->bootOnce(BootTarget::Pxe)));
  EXPECT_EQ(ipmi.info.boot_override, BootTarget::Pxe);
}

TEST_F(IpmiPduFallback, aRefusedPasswordIsNotTriedTheOtherWay) {
  first.failNext("power", Error(ErrorCode::Denied, "refused"));
  EXPECT_FALSE(loop.run(bmc->power(PowerAction::On)));
  EXPECT_THAT(ipmi.calls, testing::IsEmpty());
}

TEST_F(IpmiPduFallback, bothErrorsAreTold) {
  first.failNext("power", silent);
  ipmi.failNext("power", Error(ErrorCode::Unavailable, "no session"));
  const auto done = loop.run(bmc->power(PowerAction::On));
  EXPECT_THAT(done.error().str(),
              testing::AllOf(HasSubstr("no answer"), HasSubstr("by IPMI: no session")));
}

/// A PDU whose outlets feed the fake BMC.
class WithPdu : public testing::Test {
 protected:
  WithPdu() {
    processes.answer = [this](const io::Command& command) -> Result<io::ProcessExit> {
      said.push_back(command.program + " " + command.args.back());
      if (refuses > 0 && refuses-- > 0) return io::ProcessExit{1, "", "outlet busy\n"};
      if (works && command.args.back() == "off")
        fake.failNext("system", Error(ErrorCode::Unavailable, "no route"), 1'000'000);
      if (works_late && command.args.back() == "off")
        return fail(ErrorCode::Timeout, "pdu did not end within 120 s");
      if (command.args.back() == "off") off_at = loop.clock.now();
      if (command.args.back() == "on") {
        fake.clearFailures("system");
        on_at = loop.clock.now();
      }
      return io::ProcessExit{};
    };
  }
  test::VirtualLoop loop;
  test::FakeProcessRunner processes;
  Lent lent;
  FakeBmc& fake = *lent.fake;
  bool works = true, works_late = false;
  int refuses = 0;
  std::vector<std::string> said;
  WallTime off_at{}, on_at{};
  std::unique_ptr<Bmc> bmc =
      withPdu(std::move(lent.owned), {{"pdu", "off"}, {"pdu", "on"}, 330s}, processes, loop.clock);
};

TEST_F(WithPdu, thePowerIsAwayAsLongAsItShould) {
  const auto done = loop.run(bmc->acCycle());
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_THAT(said, ElementsAre("pdu off", "pdu on"));
  EXPECT_GE(on_at - off_at, 330s);
}

TEST_F(WithPdu, theBmcsOwnWayComesFirst) {
  fake.offers_ac_cycle = true;
  ASSERT_TRUE(loop.run(bmc->acCycle()));
  EXPECT_THAT(said, testing::IsEmpty());
}

TEST_F(WithPdu, outletsOfAnotherMachineAreNoticedAndSwitchedOnAgain) {
  works = false;
  const auto done = loop.run(bmc->acCycle());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("still answers"));
  EXPECT_THAT(said, ElementsAre("pdu off", "pdu on"));
  EXPECT_LT(on_at - off_at, 120s);
}

TEST_F(WithPdu, aCommandThatFailsSaysWhy) {
  refuses = 1;
  const auto done = loop.run(bmc->acCycle());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("`pdu off` ended with 1: outlet busy"));
  EXPECT_THAT(said, ElementsAre("pdu off", "pdu on"));
}

TEST_F(WithPdu, anOffThatNobodyWaitedForToTheEndIsFollowedByOn) {
  works_late = true;
  const auto done = loop.run(bmc->acCycle());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(),
              testing::AllOf(HasSubstr("120 s"), HasSubstr("switched on again")));
  EXPECT_THAT(said, ElementsAre("pdu off", "pdu on"));
  EXPECT_TRUE(loop.run(fake.system())) << "it has its power";
}

TEST_F(WithPdu, powerIsGivenBackByWhoeverComesAfterADeadProcess) {
  const auto cut_at = loop.clock.now();
  fake.failNext("system", Error(ErrorCode::Unavailable, "no route"), 1'000'000);
  loop.clock.advance(100s);
  ASSERT_TRUE(loop.run(bmc->restorePower(cut_at)));
  EXPECT_THAT(said, ElementsAre("pdu on"));
  EXPECT_GE(on_at - cut_at, 330s);
  ASSERT_TRUE(loop.run(bmc->restorePower(cut_at)));
  EXPECT_EQ(said.size(), 1u);  // once is enough
}

TEST_F(WithPdu, theWordsOfTheCommandNameTheMachine) {
  inventory::Node node;
  node.name = NodeName("gpu001");
  node.rack = "r07";
  node.unit = 21;
  EXPECT_THAT(argumentsFor(node, {"snmpset", "pdu-{rack}", "outlet.{unit}", "{node}/{node}"}),
              ElementsAre("snmpset", "pdu-r07", "outlet.21", "gpu001/gpu001"));
}

}  // namespace
}  // namespace muster::bmc
