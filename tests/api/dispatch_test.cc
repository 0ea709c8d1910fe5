// SPDX-License-Identifier: Apache-2.0
// Who asks, as the kernel says it; and requests that are not what they should be.
#include "api/dispatch.h"

#include "tests/api/api_site.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kAnna = 60'001, kBoard = 60'100, kNobody = 60'009;

class ApiPeers : public ApiSite {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root becomes other users";
    site_.write("access.conf", "user 60001 operator racks=r1\ngroup 60100 approver\n");
    start();
    // The file's mode is the first gate; here it is open, so that the second can be seen.
    ASSERT_EQ(::chmod((site_ / "api.sock").c_str(), 0666), 0);
    ASSERT_EQ(::chmod((site_ / "").c_str(), 0711), 0);
  }
  /// curl as another user of this host.
  Said as(int uid, const std::vector<std::string>& groups, Ask what) {
    auto command = curlFor(what);
    std::vector<std::string> words{fmt::format("--reuid={}", uid), fmt::format("--regid={}", uid)};
    if (groups.empty())
      words.emplace_back("--clear-groups");
    else
      words.push_back(fmt::format("--groups={}", groups.front()));
    words.emplace_back("curl");
    words.insert(words.end(), command.args.begin(), command.args.end());
    command.program = "setpriv";
    command.args = std::move(words);
    const auto ended = io::runBlocking(command);
    if (!ended || ended->code != 0) {
      ADD_FAILURE() << (ended ? ended->err : ended.error().str());
      return {};
    }
    return parseAnswer(ended->out);
  }
};

TEST_F(ApiPeers, areWhoTheKernelSaysTheyAre) {
  const auto anna = as(kAnna, {}, {.target = "/api/v1/me"});
  EXPECT_EQ(anna.json["role"], "operator") << anna.body;
  EXPECT_EQ(anna.json["scope"]["racks"][0], "r1");
  const auto board = as(kNobody, {std::to_string(kBoard)}, {.target = "/api/v1/me"});
  EXPECT_EQ(board.json["role"], "approver") << "by a further group of its process: " << board.body;
  const auto nobody = as(kNobody, {}, {.target = "/api/v1/me"});
  EXPECT_EQ(nobody.status, 401);
  EXPECT_THAT(nobody.body, HasSubstr("uid 60009"));
  EXPECT_THAT(nobody.body, HasSubstr("is neither in " + (site_ / "access.conf").string()))
      << "the file that this server was given";
  EXPECT_EQ(as(kNobody, {}, {.target = "/healthz"}).status, 200);
  // What a client says of itself counts for nothing.
  const auto claims = as(kNobody, {},
                         {.target = "/api/v1/me",
                          .headers = {"X-Remote-User: root", "X-Forwarded-User: root",
                                      "Authorization: Basic cm9vdDpyb290"}});
  EXPECT_EQ(claims.status, 401);
}

TEST_F(ApiPeers, aScopeHoldsOnTheSocketToo) {
  EXPECT_EQ(as(kAnna, {}, {.target = "/api/v1/nodes"}).json["total"], 2);
  const auto order = [&](const char* node) {
    return as(kAnna, {},
              {.method = "POST",
               .target = "/api/v1/quarantine",
               .headers = {"Content-Type: application/json"},
               .body = fmt::format(R"({{"nodes": "{}", "reason": "x"}})", node)});
  };
  EXPECT_EQ(order("gpu003").status, 404);
  EXPECT_EQ(order("gpu001").status, 200);
  EXPECT_THAT(get("/quarantine").items()[0]["by"].get<std::string>(), HasSubstr("uid 60001@"));
  EXPECT_EQ(as(kAnna, {}, {.target = "/api/v1/tokens"}).status, 403);
}

/// The file is read again; a broken one lets nobody in but root.
TEST_F(ApiPeers, aBrokenAccessFileIsNoOpenDoor) {
  site_.write("access.conf", "user 60001 king\n");
  const auto anna = as(kAnna, {}, {.target = "/api/v1/me"});
  EXPECT_EQ(anna.status, 503) << anna.body;
  EXPECT_THAT(anna.body, HasSubstr("access.conf:1:1"));
  EXPECT_EQ(get("/me").json["role"], "admin");
}

class ApiRequests : public ApiSite {
 protected:
  int connect() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", (site_ / "api.sock").c_str());
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  std::string answerTo(const std::string& bytes) const {
    const int fd = connect();
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    ::shutdown(fd, SHUT_WR);
    std::string out;
    char piece[4096];
    for (ssize_t size = 0; (size = ::recv(fd, piece, sizeof piece, 0)) > 0;)
      out.append(piece, static_cast<std::size_t>(size));
    ::close(fd);
    return out;
  }
};

TEST_F(ApiRequests, halfOnesHoldNobodyUp) {
  start();
  std::vector<int> open;
  for (int i = 0; i < 200; ++i) {
    open.push_back(connect());
    const std::string half = i % 2 ? "GET /api/v1/nodes HTTP/1.1\r\nHo"
                                   : "POST /api/v1/quarantine HTTP/1.1\r\nHost: x\r\nContent-Type: "
                                     "application/json\r\nContent-Length: 5000\r\n\r\n{\"nodes\"";
    ::send(open.back(), half.data(), half.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(get("/me").status, 200);
  for (const int fd : open) ::close(fd);
  EXPECT_EQ(get("/quarantine").items().size(), 0u);
}

TEST_F(ApiRequests, malformedOnesAreProblemsToo) {
  start();
  for (const auto* bad :
       {"GET /api/v1/me HTTP/1.1\nHost: x\n\n", "GET /a b HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n", "GET /api/v1/../me HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    const auto said = answerTo(bad);
    EXPECT_THAT(said, HasSubstr("application/problem+json")) << bad << said;
    EXPECT_THAT(said, HasSubstr("\"code\":\"invalid-input\"")) << bad;
  }
}

TEST_F(ApiRequests, aRequestIdIsCleanOrNew) {
  start();
  const auto said = [&](const std::string& id) {
    return ask({.target = "/api/v1/me", .headers = {"X-Request-Id: " + id}}).header("X-Request-Id");
  };
  EXPECT_EQ(said("a.b_c-9"), "a.b_c-9");
  EXPECT_NE(said("a b"), "a b");
  EXPECT_NE(said(std::string(65, 'a')), std::string(65, 'a'));
  EXPECT_THAT(said("\"><script>"), Not(HasSubstr("<")));
}

}  // namespace
}  // namespace muster::api
