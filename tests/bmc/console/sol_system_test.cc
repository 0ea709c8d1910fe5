// SPDX-License-Identifier: Apache-2.0
// Serial over LAN for real: Debian's ipmitool over RMCP+ to OpenIPMI's simulated BMC.
#include "base/io/files.h"
#include "bmc/console/source.h"
#include "tests/bmc/console/sol_rig.h"

#include <gmock/gmock.h>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class SolTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rig.running()) << "ipmi_sim (Debian: openipmi) does not run";
  }

  std::unique_ptr<ConsoleSource> source(std::string password = "secret",
                                        std::vector<std::string> more = {"-C", "3"}) {
    SolOptions options;
    options.host = "127.0.0.1";
    options.port = rig.port();
    options.account.username = "admin";
    options.account.password = [password] { return Result<Secret>(Secret(password)); };
    options.account.may_try = [this](const Secret&) -> Result<void> {
      ++tries;
      return refusals > 0 ? fail(ErrorCode::Denied, "this password was refused before")
                          : Result<void>();
    };
    options.account.refused = [this](const Secret&) { ++refusals; };
    options.more_args = std::move(more);
    return makeSolConsole(std::move(options), clock);
  }
  /// The simulator needs a moment until it answers.
  std::unique_ptr<io::Dialogue> open() {
    auto at = source();
    for (int tries_left = 5; tries_left > 0; --tries_left) {
      auto line = test::runAsync(io, at->open(), 60s);
      if (line) return std::move(*line);
      last_error = line.error().str();
    }
    ADD_FAILURE() << last_error;
    return nullptr;
  }
  std::string readUntil(io::Dialogue& line, const std::string& what) {
    std::string heard;
    while (heard.find(what) == std::string::npos) {
      auto piece = test::runAsync(io, line.read(), 20s);
      if (!piece || piece->empty()) return heard + " and then the line ended";
      heard += *piece;
    }
    return heard;
  }

  test::SolRig rig;
  asio::io_context io;
  SystemClock clock;
  int tries = 0, refusals = 0;
  std::string last_error;
};

TEST_F(SolTest, bytesGoBothWays) {
  auto line = open();
  ASSERT_TRUE(line);
  rig.machineSays("login: ");
  EXPECT_THAT(readUntil(*line, "login: "), HasSubstr("login: "));
  ASSERT_TRUE(test::runAsync(io, line->write("root\r")));
  EXPECT_EQ(test::runAsync(io, rig.machineHears(5)).value_or("nothing"), "root\r");
  // What ends a session at a keyboard is typed to the machine like all else.
  ASSERT_TRUE(test::runAsync(io, line->write("~.\x1e.~?")));
  EXPECT_EQ(test::runAsync(io, rig.machineHears(5)).value_or("nothing"), "~..~?");
}

TEST_F(SolTest, aSecondSessionIsRefusedAndTheFirstGoesOn) {
  auto line = open();
  ASSERT_TRUE(line);
  auto second = source();
  const auto refused = test::runAsync(io, second->open(), 60s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict) << refused.error().str();
  EXPECT_THAT(refused.error().str(), HasSubstr("another session"));
  rig.machineSays("still here");
  EXPECT_THAT(readUntil(*line, "still here"), HasSubstr("still here"));
}

TEST_F(SolTest, whoHangsUpGivesTheSessionBack) {
  auto line = open();
  ASSERT_TRUE(line);
  line->hangUp();
  while (true) {
    auto piece = test::runAsync(io, line->read(), 20s);
    ASSERT_TRUE(piece) << piece.error().str();
    if (piece->empty()) break;
  }
  line.reset();
  auto again = source();
  const auto opened = test::runAsync(io, again->open(), 60s);
  EXPECT_TRUE(opened) << opened.error().str();
}

TEST_F(SolTest, anOperatorMayEndTheOthersSession) {
  auto line = open();
  ASSERT_TRUE(line);
  auto other = source();
  ASSERT_TRUE(test::runAsync(io, other->evict(), 60s));
  const auto opened = test::runAsync(io, other->open(), 60s);
  EXPECT_TRUE(opened) << opened.error().str();
}

TEST_F(SolTest, aWrongPasswordIsDeniedOnceAndNotTriedAgain) {
  ASSERT_TRUE(open());  // it answers; the session ends with the line
  auto wrong = source("wrong", {"-N", "2", "-R", "1"});
  const auto denied = test::runAsync(io, wrong->open(), 60s);
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code(), ErrorCode::Denied) << denied.error().str();
  EXPECT_EQ(refusals, 1);
  EXPECT_FALSE(test::runAsync(io, wrong->open(), 60s));
  EXPECT_EQ(refusals, 1) << "nothing was sent the second time";
}

TEST_F(SolTest, thePasswordIsInNoCommandLine) {
  auto line = open();
  ASSERT_TRUE(line);
  int tools = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto words = io::readFile(entry.path() / "cmdline", 1u << 16);
    if (!words || words->find("ipmitool") == std::string::npos ||
        words->find(std::to_string(rig.port())) == std::string::npos)
      continue;
    ++tools;
    EXPECT_THAT(*words, Not(HasSubstr("secret")));
  }
  EXPECT_GE(tools, 1);
}

}  // namespace
}  // namespace muster::bmc
