// SPDX-License-Identifier: Apache-2.0
// The client's end of a Unix socket, to a program that is not muster's.
#include "base/io/unix_client.h"

#include "base/io/process.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

namespace muster::io {
namespace {

using ::testing::HasSubstr;

/// An HTTP server of Python's standard library: what it is asked, it answers.
constexpr std::string_view kEcho = R"(
import http.server, socketserver, sys
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        size = int(self.headers.get("Content-Length", 0))
        said = f"{self.command} {self.path} {self.headers['Host']} {self.rfile.read(size).decode()}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    do_GET = do_POST = answer
    def log_message(self, *words): pass
    def address_string(self): return "unix"
class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
with Server(sys.argv[1], Echo) as server:
    server.serve_forever()
)";

class UnixClient : public ::testing::Test {
 protected:
  void startEcho() {
    ASSERT_TRUE(writeFileAtomic(folder / "echo.py", kEcho));
    auto started = processes->start({"python3", {(folder / "echo.py").string(), path.string()}},
                                    folder / "echo.out");
    ASSERT_TRUE(started) << started.error().str();
    echo = std::move(*started);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!dialUnixSocket(path) && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // another process's work
  }
  Result<HttpResponse> send(HttpClient& client, HttpRequest request) {
    request.url = {"http", "localhost", 80, request.url.target.empty() ? "/" : request.url.target};
    return test::runAsync(context, client.send(std::move(request)));
  }

  asio::io_context context;
  test::TempFolder folder;
  std::filesystem::path path = folder / "echo.sock";
  std::unique_ptr<ProcessRunner> processes = makeProcessRunner();
  std::unique_ptr<Child> echo;
};

TEST_F(UnixClient, whyNobodyAnswersIsKnown) {
  const auto none = dialUnixSocket(path);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(none.error().has(DialFailure::NobodyListens));
  ASSERT_TRUE(writeFileAtomic(path, "no socket"));
  const auto file = dialUnixSocket(path);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::Unavailable) << file.error().str();
  const auto length = dialUnixSocket(std::string(200, 'x'));
  ASSERT_FALSE(length);
  EXPECT_EQ(length.error().code(), ErrorCode::InvalidInput);
}

TEST_F(UnixClient, asksAnyHttpServer) {
  startEcho();
  const auto client = makeUnixHttpClient({path, {::geteuid()}});
  for (int i = 0; i < 3; ++i) {
    HttpRequest get;
    get.url.target = "/a?b=c";
    const auto answer = send(*client, get);
    ASSERT_TRUE(answer) << answer.error().str();
    EXPECT_EQ(answer->body, "GET /a?b=c localhost ");
  }
  HttpRequest post;
  post.method = "POST";
  post.body = "hello";
  EXPECT_EQ(send(*client, post)->body, "POST / localhost hello");
}

TEST_F(UnixClient, aProgramOfSomebodyElseIsNotAsked) {
  startEcho();
  const auto client = makeUnixHttpClient({path, {4'711, 4'712}});
  const auto answer = send(*client, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Denied);
  EXPECT_TRUE(answer.error().has(DialFailure::NotBelieved));
  EXPECT_THAT(answer.error().str(), HasSubstr("not believed"));
}

TEST_F(UnixClient, aServerThatEndsIsUnavailableAndOneThatComesBackIsAskedAgain) {
  startEcho();
  const auto client = makeUnixHttpClient({path, {}});
  ASSERT_TRUE(send(*client, {}));
  echo.reset();
  const auto gone = send(*client, {});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(gone.error().has(DialFailure::NobodyListens)) << gone.error().str();
  std::filesystem::remove(path);
  startEcho();
  EXPECT_TRUE(send(*client, {}));
}

}  // namespace
}  // namespace muster::io
