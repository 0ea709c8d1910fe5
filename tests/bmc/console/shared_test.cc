// SPDX-License-Identifier: Apache-2.0
// One reader of the line, all others served: over real Unix sockets.
#include "bmc/console/shared.h"
#include "tests/bmc/console/node.h"
#include "tests/fakes/fake_console.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <sys/stat.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

class SharedConsoleTest : public testing::Test {
 protected:
  using Line = std::unique_ptr<io::Dialogue>;
  std::unique_ptr<ConsoleSource> source() {
    return shareConsole(std::make_unique<test::FakeConsole>(serial), folder / "run", kNode);
  }
  Line open() {
    auto at = source();
    auto opened = test::runAsync(io, at->open());
    EXPECT_TRUE(opened) << opened.error().str();
    return opened ? std::move(*opened) : nullptr;
  }
  /// Has been let in, which takes a turn of the loop.
  Line openAttached() {
    auto line = open();
    const auto mark = fmt::format("<{}>", ++marks);
    EXPECT_TRUE(test::runAsync(io, line->write(mark)));
    EXPECT_TRUE(test::runAsync(io, untilTyped(mark)));
    return line;
  }
  std::string read(const Line& line) {
    return test::runAsync(io, line->read()).value_or("an error");
  }
  /// What is expected, however it is cut into pieces.
  std::string readBytes(const Line& line, std::size_t count) {
    std::string out;
    while (out.size() < count) {
      const auto piece = read(line);
      if (piece.empty()) break;
      out += piece;
    }
    return out;
  }
  /// Until the machine has got it.
  Async<void> untilTyped(std::string what) {
    while (serial->typed.find(what) == std::string::npos) {
      asio::steady_timer turn(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
      co_await turn.async_wait(asio::use_awaitable);
    }
    co_return Result<void>();
  }

  test::TempFolder folder;
  int marks = 0;
  asio::io_context io;
  std::shared_ptr<test::FakeSerial> serial = std::make_shared<test::FakeSerial>();
};

TEST_F(SharedConsoleTest, theSecondReaderIsServedByTheFirst) {
  auto first = open();
  serial->say("SeaBIOS\r\n");
  EXPECT_EQ(read(first), "SeaBIOS\r\n");
  auto second = openAttached();
  EXPECT_EQ(serial->opened, 1) << "one session at the BMC";
  serial->say("login: ");
  EXPECT_EQ(read(first), "login: ");
  EXPECT_EQ(readBytes(second, 7), "login: ") << "from when it came on";
}

TEST_F(SharedConsoleTest, bothMayType) {
  auto first = open(), second = open();
  ASSERT_TRUE(test::runAsync(io, first->write("root\r")));
  ASSERT_TRUE(test::runAsync(io, untilTyped("root\r")));
  ASSERT_TRUE(test::runAsync(io, second->write("secret\r")));
  ASSERT_TRUE(test::runAsync(io, untilTyped("secret\r")));
}

TEST_F(SharedConsoleTest, aSlowReaderLosesBytesAndIsToldAndTheFirstGoesOn) {
  auto first = open(), second = open();
  std::size_t said = 0;
  const std::string piece(4096, 'x');
  for (std::size_t i = 0; i < 4 * kWatcherBytes / piece.size(); ++i) {
    serial->say(piece);
    ASSERT_EQ(read(first).size(), piece.size());
    said += piece.size();
  }
  std::string heard;
  serial->say("THE END");
  ASSERT_EQ(read(first), "THE END");
  while (heard.find("THE END") == std::string::npos) heard += read(second);
  EXPECT_LT(heard.size(), said);
  EXPECT_THAT(heard, HasSubstr("bytes are left out: this reader is slow"));
}

TEST_F(SharedConsoleTest, whenTheFirstGoesTheSecondSeesTheEndAndMayTakeOver) {
  auto first = open(), second = openAttached();
  first.reset();
  EXPECT_EQ(read(second), "");
  auto third = open();
  EXPECT_EQ(serial->opened, 2);
  serial->say("again");
  EXPECT_EQ(read(third), "again");
}

TEST_F(SharedConsoleTest, aLineThatIsRefusedLeavesTheLockFree) {
  serial->refuse = Error(ErrorCode::Unavailable, "the BMC is silent");
  auto at = source();
  EXPECT_FALSE(test::runAsync(io, at->open()));
  serial->refuse.reset();
  EXPECT_TRUE(open());
}

TEST_F(SharedConsoleTest, theSocketIsForMustersUserOnly) {
  auto first = open();
  struct stat folder_is{}, socket_is{};
  ASSERT_EQ(::stat((folder.path() / "run").c_str(), &folder_is), 0);
  ASSERT_EQ(::stat((folder.path() / "run" / "gpu001.sock").c_str(), &socket_is), 0);
  EXPECT_EQ(folder_is.st_mode & 077, 0u);
  EXPECT_EQ(socket_is.st_mode & 077, 0u);
}

TEST_F(SharedConsoleTest, crowdsAreTurnedAway) {
  auto first = open();
  std::vector<Line> crowd;
  for (std::size_t i = 0; i < kMaxWatchers + 4; ++i) {
    auto line = io::dialDialogue(io.get_executor(), folder.path() / "run" / "gpu001.sock");
    if (line) crowd.push_back(std::move(*line));
  }
  serial->say("hello");
  EXPECT_EQ(read(first), "hello") << "the first goes on";
}

}  // namespace
}  // namespace muster::bmc
