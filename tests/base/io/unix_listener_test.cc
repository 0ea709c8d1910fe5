// SPDX-License-Identifier: Apache-2.0
// HTTP over a Unix socket: who connects, who may, and what a killed server leaves.
#include "base/io/unix_listener.h"

#include "base/io/http.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace muster::io {
namespace {

using namespace std::chrono_literals;

Task<ServerResponse> who(ServerRequest request) {
  const auto& peer = request.peer;
  co_return ServerResponse::text(
      200, peer ? fmt::format("{} {} {} {} at {}", peer->uid, peer->gid, peer->pid,
                              peer->groups.size(), request.remote_address)
                : "nobody");
}

unsigned modeOf(const std::filesystem::path& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0 ? found.st_mode & 0777 : 0;
}

class UnixHttp : public ::testing::Test {
 protected:
  Result<std::unique_ptr<HttpServer>> start() {
    ServerOptions options;
    options.unix_socket = UnixSocketOptions{path, 0660, std::nullopt};
    auto server = startHttpServer(io.get_executor(), options);
    if (server) (*server)->addRoutes({{"GET", "/who", who}});
    return server;
  }
  /// An outside client; it runs beside the loop.
  ProcessExit curl(const std::string& target) {
    ProcessExit out{-1, "", ""};
    std::thread client([&] {
      auto ended = runBlocking({"curl",
                                {"-sS", "--max-time", "10", "--unix-socket", path.string(),
                                 "http://localhost" + target}});
      if (ended) out = *ended;
      asio::post(io, [this] { io.stop(); });
    });
    io.restart();
    io.run_for(15s);
    client.join();
    return out;
  }

  asio::io_context io;
  test::TempFolder folder;
  std::filesystem::path path = folder / "run/api.sock";
};

TEST_F(UnixHttp, saysWhoConnectedAsTheKernelKnowsIt) {
  auto server = start();
  ASSERT_TRUE(server) << server.error().str();
  EXPECT_EQ(modeOf(path), 0660u);
  const auto answer = curl("/who");
  EXPECT_THAT(answer.out, ::testing::StartsWith(fmt::format("{} {} ", ::getuid(), ::getgid())));
  EXPECT_THAT(answer.out, ::testing::EndsWith(fmt::format("at unix uid {}", ::getuid())));
  EXPECT_EQ((*server)->port(), 0);
  (*server)->stop();
  EXPECT_FALSE(std::filesystem::exists(path)) << "the file goes with the server";
}

TEST_F(UnixHttp, aSecondServerIsToldWhoAnswers) {
  auto first = start();
  ASSERT_TRUE(first) << first.error().str();
  const auto second = start();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(second.error().str(), ::testing::HasSubstr(path.string()));
  EXPECT_THAT(curl("/who").out, ::testing::HasSubstr("unix uid")) << "the first one goes on";
}

/// kill -9 leaves the file; nobody answers it.
TEST_F(UnixHttp, takesThePlaceOfAKilledServer) {
  const auto child = ::fork();
  if (child == 0) {
    auto left = UnixListener::open({path, 0600, std::nullopt});
    ::_exit(left ? (::raise(SIGKILL), 0) : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(std::filesystem::is_socket(path));
  auto server = start();
  ASSERT_TRUE(server) << server.error().str();
  EXPECT_THAT(curl("/who").out, ::testing::HasSubstr("unix uid"));
}

TEST_F(UnixHttp, removesNothingThatIsNoSocket) {
  ASSERT_TRUE(makeDirs(path.parent_path()));
  ASSERT_TRUE(writeFileAtomic(path, "precious"));
  const auto refused = start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_EQ(readFile(path).value_or(""), "precious");
}

TEST_F(UnixHttp, refusesAPathThatTheKernelCannotHold) {
  path = folder / std::string(120, 'x');
  const auto refused = start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(refused.error().str(), ::testing::HasSubstr("107"));
}

}  // namespace
}  // namespace muster::io
