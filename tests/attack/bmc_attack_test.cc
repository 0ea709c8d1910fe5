// SPDX-License-Identifier: Apache-2.0
// A BMC that means harm, as muster's own HTTP client meets it: every answer has a bound in size and
// time.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <thread>

#include "base/io/crypto.h"
#include "base/io/http.h"
#include "tests/run_async.h"

namespace muster::attack {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kBodyBound = 1u << 20, kMemoryBound = 64u << 20;
constexpr auto kAnswerLimit = 2s, kEndedWithin = 8s;

/// Answers one connection after the other by a function, until it is destroyed.
class HostileServer {
 public:
  using Answer = std::function<void(int socket, const std::atomic<bool>& over)>;
  explicit HostileServer(Answer answer) : answer_(std::move(answer)) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(listening_, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        ::listen(listening_, 8) != 0)
      std::abort();
    ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { work(); });
  }
  HostileServer(const HostileServer&) = delete;
  ~HostileServer() {
    over_ = true;
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    ::close(listening_);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/redfish/v1", port_); }
  int asked() const { return asked_; }

 private:
  void work() {
    while (!over_) {
      const int socket = ::accept(listening_, nullptr, nullptr);
      if (socket < 0) return;
      const timeval limit{1, 0};
      (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      char request[4096];
      if (::recv(socket, request, sizeof request, 0) > 0) {
        ++asked_;
        answer_(socket, over_);
      }
      ::close(socket);
    }
  }

  Answer answer_;
  int listening_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> over_ = false;
  std::atomic<int> asked_ = 0;
  std::thread thread_;
};

bool sendAll(int socket, std::string_view text) {
  while (!text.empty()) {
    const auto some = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (some <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(some));
  }
  return true;
}

/// Says the beginning, then the same again and again.
HostileServer::Answer endless(std::string beginning, std::string again,
                              std::chrono::milliseconds pause = 0ms) {
  return [=](int socket, const std::atomic<bool>& over) {
    if (!sendAll(socket, beginning)) return;
    while (!over && sendAll(socket, again)) std::this_thread::sleep_for(pause);
  };
}
HostileServer::Answer once(std::string text) {
  return [=](int socket, const std::atomic<bool>&) { sendAll(socket, text); };
}

std::size_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

Result<io::HttpResponse> ask(const std::string& url) {
  auto client = io::makeHttpClient();
  io::HttpRequest request;
  request.url = *io::Url::parse(url);
  request.timeout = kAnswerLimit;
  request.max_body_bytes = kBodyBound;
  return test::runAsync(client->send(std::move(request)), 30s);
}

TEST(AttackBmc, answersWithoutEndAreCutOffInTimeAndMemory) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::vector<std::pair<const char*, HostileServer::Answer>> all = {
      {"a body without end", endless(ok + "\r\n", std::string(65'536, 'x'))},
      {"chunks without end", endless(ok + "Transfer-Encoding: chunked\r\n\r\n",
                                     "4000\r\n" + std::string(0x4000, 'x') + "\r\n")},
      {"a field without end", endless(ok + "X: ", std::string(65'536, 'x'))},
      {"fields without end", endless(ok, "X: y\r\n")},
      {"a length beyond all bounds",
       endless(ok + "Content-Length: 1000000000000\r\n\r\n", std::string(65'536, 'x'))},
      {"answers before the answer", endless("", "HTTP/1.1 100 Continue\r\n\r\n")},
      {"a byte now and then", endless(ok + "Content-Length: 100000\r\n\r\n", "x", 50ms)},
      {"nothing",
       [](int, const std::atomic<bool>& over) {
         while (!over) std::this_thread::sleep_for(20ms);
       }},
  };
  for (const auto& [name, answer] : all) {
    SCOPED_TRACE(name);
    const auto before = residentBytes();
    const auto begun = Steady::now();
    {
      HostileServer server(answer);
      const auto heard = ask(server.url());
      EXPECT_FALSE(heard);
      EXPECT_LT(Steady::now() - begun, kEndedWithin);
    }
    EXPECT_LT(residentBytes(), before + kMemoryBound);
  }
}

TEST(AttackBmc, malformedAnswersAreErrors) {
  for (const auto* const text :
       {"", "\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 99999 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "SSH-2.0-OpenSSH\r\n", "\x15\x03\x01"}) {
    HostileServer server(once(text));
    EXPECT_FALSE(ask(server.url())) << text;
  }
}

TEST(AttackBmc, aRedirectLeadsNobodyElsewhere) {
  HostileServer elsewhere(once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"));
  HostileServer server(once(
      fmt::format("HTTP/1.1 307 Temporary Redirect\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
                  elsewhere.url())));
  const auto heard = ask(server.url());
  ASSERT_TRUE(heard) << heard.error().str();
  EXPECT_EQ(heard->status, 307);
  EXPECT_EQ(elsewhere.asked(), 0) << "a password would have gone with it";
}

}  // namespace
}  // namespace muster::attack
