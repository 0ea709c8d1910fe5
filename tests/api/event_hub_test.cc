// SPDX-License-Identifier: Apache-2.0
// text/event-stream, read by clients in Python.
#include "api/event_hub.h"

#include "tests/api/api_site.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace muster::api {
namespace {

using lifecycle::Subject;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// sse_clients.py, and what it prints, line by line.
class Clients {
 public:
  Clients(const std::filesystem::path& socket, int count, const std::string& query = "",
          const std::string& last = "") {
    int in[2], out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) std::abort();
    const auto script = (test::sourceFolder() / "tests/api/sse_clients.py").string();
    const auto number = std::to_string(count);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      ::execlp("python3", "python3", script.c_str(), socket.c_str(), number.c_str(), query.c_str(),
               last.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = ::fdopen(out[0], "r");
  }
  ~Clients() {
    ::close(input_);
    std::fclose(output_);
    int status = 0;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  std::string line() {
    char text[512] = {};
    if (!std::fgets(text, sizeof text, output_)) return "(ended)";
    std::string out(text);
    if (out.ends_with('\n')) out.pop_back();
    return out;
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
};

class ApiEvents : public ApiSite {
 protected:
  std::int64_t say(const std::string& text, const char* node = "gpu001") {
    if (!store_) store_ = site_.store();
    const auto sequence = store_->addEvent(
        {0, SystemClock().now(), lifecycle::EventKind::Note, Subject(NodeName(node)), "", text});
    EXPECT_TRUE(sequence);
    return sequence.value_or(0);
  }
  std::filesystem::path socket() const { return site_ / "api.sock"; }
  std::unique_ptr<lifecycle::Store> store_;
};

TEST_F(ApiEvents, comeAsTheyHappen) {
  say("before");
  start();
  Clients clients(socket(), 3);
  ASSERT_EQ(clients.line(), "connected");
  // A client that names no place begins with what happens next; its place is taken at once or with
  // the next look at the store, so the first event may come too early for it.
  ASSERT_EQ(get("/me").status, 200);
  std::string line;
  const auto first = say("one");
  line = clients.line();
  EXPECT_THAT(line, StartsWith(fmt::format("event {} ", first)));
  const auto second = say("two\nlines, and \"quotes\"");
  EXPECT_THAT(clients.line(), StartsWith(fmt::format("event {} ", second)));
}

TEST_F(ApiEvents, goOnBehindTheLastThatAClientHad) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < 300; ++i) all.push_back(say("early"));  // more than one page of the store
  start();
  Clients clients(socket(), 2, "", std::to_string(all[9]));
  EXPECT_EQ(clients.line(), "connected");
  for (std::size_t i = 10; i < all.size(); ++i)
    ASSERT_THAT(clients.line(), StartsWith(fmt::format("event {} ", all[i])));
  const auto late = say("late");
  EXPECT_THAT(clients.line(), StartsWith(fmt::format("event {} ", late)));
}

TEST_F(ApiEvents, aPlaceThatIsNoNumberIsNotTheBeginning) {
  say("early");
  start();
  Clients clients(socket(), 2, "", "99999999999999999999");
  EXPECT_EQ(clients.line(), "connected");
  ASSERT_EQ(get("/me").status, 200);
  const auto late = say("late");
  EXPECT_THAT(clients.line(), StartsWith(fmt::format("event {} ", late)));
}

/// Of a store that was restored from a backup the client has seen more than there is.
TEST_F(ApiEvents, aPlaceThatTheLogHasNotReachedIsOneOfAnotherLog) {
  const auto last = say("early");
  start();
  Clients clients(socket(), 2, "", std::to_string(last + 1'000));
  EXPECT_EQ(clients.line(), "connected");
  ASSERT_EQ(get("/me").status, 200);
  const auto late = say("late");
  EXPECT_THAT(clients.line(), StartsWith(fmt::format("event {} ", late)));
  Clients asking(socket(), 2, "?after=4000000");
  EXPECT_EQ(asking.line(), "connected");
  ASSERT_EQ(get("/me").status, 200);
  const auto later = say("later");
  EXPECT_THAT(asking.line(), StartsWith(fmt::format("event {} ", later)));
}

TEST_F(ApiEvents, ofOneSubjectWhereThatIsAskedFor) {
  const auto before = say("x");
  say("other", "gpu002");
  const auto mine = say("mine");
  start();
  Clients clients(socket(), 1, fmt::format("?subject=gpu001&after={}", before));
  EXPECT_EQ(clients.line(), "connected");
  EXPECT_THAT(clients.line(), StartsWith(fmt::format("event {} ", mine)));
}

TEST_F(ApiEvents, refuseWhatTheTableDoesNotHave) {
  start();
  EXPECT_EQ(get("/events/stream?after=-1").status, 400);
  EXPECT_EQ(get("/events/stream?form=xml").status, 400);
  say("a");
  const auto page = get("/events?after=0&limit=1");
  EXPECT_EQ(page.items().size(), 1u);
  EXPECT_EQ(page.json["last"], page.items()[0]["sequence"]);
}

/// A client that stops reading does not stop the others.
TEST_F(ApiEvents, aClientThatDoesNotReadHoldsNobodyUp) {
  start();
  const int lazy = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket().c_str());
  ASSERT_EQ(::connect(lazy, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string head = "GET /api/v1/events/stream?after=0 HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(::send(lazy, head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
  Clients clients(socket(), 1, "?after=0");
  ASSERT_EQ(clients.line(), "connected");
  for (int i = 0; i < 40; ++i) {
    const auto sequence = say(std::string(30'000, 'x'));
    ASSERT_THAT(clients.line(), StartsWith(fmt::format("event {} ", sequence)));
  }
  EXPECT_EQ(get("/me").status, 200);
  ::close(lazy);
}

/// Counted as CPU of the whole process: what a thousand clients cost while nothing happens, and for
/// each event.
TEST_F(ApiEvents, aThousandClients) {
  const auto cpuMs = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
  };
  constexpr int kClients = 1'000, kEvents = 20;
  if (io::raiseDescriptorLimit(4'096) < 4'096)
    GTEST_SKIP() << "the process may not open 4,096 files";
  start();
  const auto before = say("before");
  Clients clients(socket(), kClients, fmt::format("?after={}", before));
  ASSERT_EQ(clients.line(), "connected");
  const auto began = cpuMs();
  double most_ms = 0;
  for (int i = 0; i < kEvents; ++i) {
    const auto sequence = say("tick");
    const auto line = clients.line();
    ASSERT_THAT(line, StartsWith(fmt::format("event {} ", sequence)));
    most_ms = std::max(most_ms, std::stod(line.substr(line.rfind(' '))));
  }
  const auto each = (cpuMs() - began) / kEvents;
  std::cout << fmt::format(
      "{:.1f} ms of CPU for one event to {} clients; the last had it after at most {} ms\n", each,
      kClients, most_ms);
  EXPECT_LT(each, 400) << "ms of CPU, without optimization";
  EXPECT_EQ(ask({.target = "/metrics"}).status, 200);
  EXPECT_THAT(ask({.target = "/metrics"}).body, HasSubstr("muster_api_event_streams 1000\n"));
}

}  // namespace
}  // namespace muster::api
