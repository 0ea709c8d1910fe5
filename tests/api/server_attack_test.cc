// SPDX-License-Identifier: Apache-2.0
// Hundreds of clients that send or take nothing, a full disk, and a store that is taken away
// beneath the server.
#include "tests/api/api_site.h"
#include "tests/lifecycle/failing_disk.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace muster::api {
namespace {

using ::testing::HasSubstr;
using Steady = std::chrono::steady_clock;

constexpr int kSlowClients = 400;

/// What happens is waited for so long, on a slow machine too.
Steady::time_point inAWhile() { return Steady::now() + std::chrono::seconds(120); }

class ApiAttack : public ApiSite {
 protected:
  /// Sends `text` and nothing more.
  io::Fd client(const std::string& text) {
    io::Fd line(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (site_ / "api.sock").c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(line.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    EXPECT_EQ(::send(line.get(), text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
    return line;
  }
  /// How many of them the server has let go, without taking what it sent them.
  static int closed(const std::vector<io::Fd>& clients) {
    int out = 0;
    for (const auto& each : clients) {
      pollfd state{each.get(), POLLRDHUP, 0};
      out += ::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    }
    return out;
  }
  int streams() {
    const auto said = ask({.target = "/metrics", .record = false});
    const auto at = said.body.find("\nmuster_api_event_streams ");
    return at == std::string::npos ? -1 : std::atoi(said.body.c_str() + at + 26);
  }
};

TEST_F(ApiAttack, hundredsOfSlowHeadsCostOthersNothingAndAreLetGo) {
  fill();
  start();
  std::vector<io::Fd> slow;
  for (int i = 0; i < kSlowClients; ++i)
    slow.push_back(client("GET /api/v1/nodes HTTP/1.1\r\nHost: x\r\nX-Slow: "));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get("/nodes").status, 200);
  EXPECT_LT(closed(slow), kSlowClients) << "others are answered while they are there";
  int gone = 0;
  for (const auto limit = inAWhile(); gone < kSlowClients && Steady::now() < limit;) {
    EXPECT_EQ(get("/me").status, 200);
    gone = closed(slow);
  }
  EXPECT_EQ(gone, kSlowClients);
}

TEST_F(ApiAttack, hundredsOfStreamsThatNobodyReadsAreDroppedAndCostNoMemory) {
  fill();
  start();
  std::vector<io::Fd> slow;
  for (int i = 0; i < kSlowClients; ++i)
    slow.push_back(client("GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n"));
  for (const auto limit = inAWhile(); streams() < kSlowClients && Steady::now() < limit;) {
  }
  ASSERT_EQ(streams(), kSlowClients);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto store = site_.store();
  const lifecycle::Subject node(NodeName("gpu001"));
  store->together({[&] {
    for (int i = 0; i < 6'000; ++i)
      if (!store->addEvent({0, SystemClock().now(), lifecycle::EventKind::ActionProgress, node, "a",
                            std::string(500, 'x'), 0.5}))
        return false;
    return true;
  }});
  EXPECT_EQ(get("/nodes").status, 200);
  for (const auto limit = inAWhile(); streams() > 0 && Steady::now() < limit;) {
  }
  EXPECT_EQ(streams(), 0) << "who takes nothing is let go";
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200 << 10)
      << "KiB: 400 clients with 4 MB each would be 1.6 GB";
  EXPECT_EQ(get("/events?limit=1").json["items"][0]["kind"], "action-progress");
}

TEST_F(ApiAttack, onAFullDiskItAnswersAndRefusesOrdersInWords) {
  test::FailingDisk disk;
  fill();
  start();
  EXPECT_EQ(get("/nodes").status, 200);
  disk.fallSickAt(0, SQLITE_FULL);
  for (const auto* resource : {"/nodes", "/nodes/gpu002", "/nodes/gpu002/why", "/findings",
                               "/events", "/site", "/quarantine", "/me"})
    EXPECT_EQ(get(resource).status, 200) << resource;
  const auto refused = post("/quarantine", {{"nodes", "gpu001"}, {"reason", "PSU"}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.json["detail"].get<std::string>(), HasSubstr("no room"));
  EXPECT_EQ(refused.json["retryable"], false);
  EXPECT_GT(disk.refused, 0);
  disk.mend();
  EXPECT_EQ(get("/quarantine").items().size(), 0u) << "nothing was done by halves";
  EXPECT_EQ(post("/quarantine", {{"nodes", "gpu001"}, {"reason", "PSU"}}).status, 200);
  EXPECT_EQ(get("/quarantine").items().size(), 1u);
  TearDown();
  server_.reset();  // before the disk that its files are on
}

/// What it has in memory is of a store that is not the site's any more.
TEST_F(ApiAttack, aStoreThatWasReplacedIsNotAnsweredFrom) {
  fill();
  start();
  EXPECT_EQ(get("/nodes").status, 200);
  const auto db = site_.options().state / "muster.db";
  std::filesystem::rename(db, site_ / "taken.db");
  int status = 200;
  for (const auto limit = inAWhile(); status == 200 && Steady::now() < limit;)
    status = get("/nodes").status;
  EXPECT_EQ(status, 503);
  EXPECT_EQ(get("/findings").status, 503);
  EXPECT_EQ(get("/site").status, 503);
  EXPECT_EQ(ask({.target = "/readyz"}).status, 503);
  EXPECT_EQ(ask({.target = "/healthz"}).status, 200);
  EXPECT_EQ(post("/quarantine", {{"nodes", "gpu001"}, {"reason", "PSU"}}).status, 503);
  std::filesystem::copy_file(site_ / "taken.db", db);  // a restored one is another file
  EXPECT_EQ(get("/nodes").status, 503) << "its journal is not this one's: the process must end";
}

}  // namespace
}  // namespace muster::api
