// SPDX-License-Identifier: Apache-2.0
// The door of `muster ui` in front of an HTTP server on a Unix socket; curl knocks.
#include "api/page_proxy.h"

#include "base/async/start.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <gmock/gmock.h>

#include <future>
#include <mutex>
#include <thread>

namespace muster::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PageProxyTest : public ::testing::Test {
 protected:
  PageProxyTest() {
    io::ServerOptions options;
    options.unix_socket = io::UnixSocketOptions{folder_ / "api.sock", 0600, std::nullopt};
    auto server = io::startHttpServer(io_.get_executor(), std::move(options));
    EXPECT_TRUE(server) << server.error().str();
    server_ = std::move(*server);
    server_->addRoutes({{"*", "/", [this](io::ServerRequest request) { return answer(request); }}});
    thread_ = std::thread([this] { io_.run(); });
  }
  ~PageProxyTest() override {
    std::promise<void> gone;
    asio::post(io_, [&] {
      proxy_.reset();
      server_.reset();
      gone.set_value();
    });
    gone.get_future().wait();
    io_.stop();
    thread_.join();
  }

  void start() {
    std::promise<Result<void>> started;
    std::optional<Result<std::unique_ptr<PageProxy>>> proxy;
    asio::post(io_, [&] {
      async::start(io_, async::answerInto(proxy, PageProxy::start(folder_ / "api.sock", 0)),
                   [&](const std::exception_ptr&) { started.set_value({}); });
    });
    ASSERT_TRUE(started.get_future().get());
    ASSERT_TRUE(*proxy) << proxy->error().str();
    proxy_ = std::move(**proxy);
    url_ = proxy_->url();
  }
  std::string host() const { return url_.substr(7, url_.find('/', 7) - 7); }
  std::string target() const { return url_.substr(url_.find('/', 7)); }

  std::string curl(const std::string& target, std::vector<std::string> more = {},
                   std::string host = {}) {
    std::vector<std::string> words{"-sS", "-i", "--max-time",
                                   "20",  "-H", "Host: " + (host.empty() ? this->host() : host)};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(fmt::format("http://127.0.0.1:{}{}", proxy_->port(), target));
    const auto ended = io::runBlocking({"curl", words});
    return ended ? ended->out : ended.error().str();
  }
  /// The cookie that the ticket is good for.
  std::vector<std::string> entered(std::vector<std::string> more = {}) {
    if (cookie_.empty()) {
      const auto said = curl(target());
      const auto at = said.find("muster-ui=");
      if (at == std::string::npos) {
        ADD_FAILURE() << said;
        return {};
      }
      cookie_ = said.substr(at, said.find(';', at) - at);
    }
    more.insert(more.end(), {"-H", "Cookie: " + cookie_});
    return more;
  }
  std::string seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

  Task<io::ServerResponse> answer(io::ServerRequest request) {
    {
      const std::lock_guard lock(mutex_);
      seen_ = request.method + " " + request.target + "\n";
      for (const auto& [name, value] : request.headers) seen_ += name + ": " + value + "\n";
      seen_ += "\n" + request.body;
    }
    if (request.path() == "/stream") {
      auto left = std::make_shared<int>(3);
      co_return io::ServerResponse::stream(
          {"text/event-stream", [left]() -> Task<std::optional<std::string>> {
             if (--*left < 0) co_return std::nullopt;
             co_return std::string("data: {}\n\n");
           }});
    }
    if (request.path() == "/none") co_return io::ServerResponse::text(204, "");
    auto out = io::ServerResponse::text(request.path() == "/missing" ? 404 : 200, "said\n");
    out.headers["ETag"] = "\"x\"";
    co_return out;
  }

  test::TempFolder folder_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::unique_ptr<io::HttpServer> server_;
  std::unique_ptr<PageProxy> proxy_;
  std::thread thread_;
  std::mutex mutex_;
  std::string seen_, url_, cookie_;
};

TEST_F(PageProxyTest, theTicketOpensOnceAndTheCookieGoesOn) {
  start();
  EXPECT_THAT(curl("/"), HasSubstr(" 403 "));
  EXPECT_THAT(curl("/?ticket=00"), HasSubstr(" 403 "));
  const auto first = curl(target());
  EXPECT_THAT(first, HasSubstr(" 303 "));
  EXPECT_THAT(first, HasSubstr("HttpOnly; SameSite=Strict"));
  EXPECT_THAT(curl(target()), HasSubstr(" 403 "));
  EXPECT_THAT(curl("/?ticket="), HasSubstr(" 403 "));
  EXPECT_EQ(seen(), "");  // nobody got through to the server
}

TEST_F(PageProxyTest, passesOnWhatTheServerSays) {
  start();
  const auto said = curl("/api/v1/me?x=1", entered());
  EXPECT_THAT(said, HasSubstr(" 200 "));
  EXPECT_THAT(said, HasSubstr("ETag: \"x\""));
  EXPECT_THAT(said, HasSubstr("said\n"));
  EXPECT_THAT(seen(), HasSubstr("GET /api/v1/me?x=1\n"));
  EXPECT_THAT(curl("/missing", entered()), HasSubstr(" 404 "));
  EXPECT_THAT(curl("/none", entered()), HasSubstr(" 204 "));
  EXPECT_THAT(curl("/stream", entered()), HasSubstr("data: {}\n\ndata: {}\n\ndata: {}\n\n"));
}

TEST_F(PageProxyTest, whatABrowserSendsSaysNothingOfWhoAsks) {
  start();
  curl("/", entered({"-H", "Authorization: Bearer muster_x", "-H", "X-Forwarded-For: 1.2.3.4"}));
  EXPECT_THAT(seen(), Not(HasSubstr("Authorization")));
  EXPECT_THAT(seen(), Not(HasSubstr("muster-ui")));
  EXPECT_THAT(seen(), Not(HasSubstr("X-Forwarded-For")));
}

TEST_F(PageProxyTest, noOtherNameLeadsHere) {
  start();
  const auto with = entered();
  for (const auto& name :
       std::vector<std::string>{"127.0.0.1", "localhost", "evil.example", "x." + host()})
    EXPECT_THAT(curl("/", with, name), HasSubstr(" 421 ")) << name;
}

TEST_F(PageProxyTest, anOrderMustComeFromThePage) {
  start();
  const std::vector<std::string> body{"-X", "POST", "--data",
                                      "{}", "-H",   "Content-Type: application/json"};
  const auto post = [&](std::vector<std::string> more) {
    more.insert(more.end(), body.begin(), body.end());
    return curl("/api/v1/quarantine", entered(std::move(more)));
  };
  EXPECT_THAT(post({}), HasSubstr(" 403 "));
  EXPECT_THAT(post({"-H", "Origin: http://evil.example"}), HasSubstr(" 403 "));
  EXPECT_THAT(post({"-H", "Origin: http://" + host(), "-H", "Sec-Fetch-Site: cross-site"}),
              HasSubstr(" 403 "));
  EXPECT_EQ(seen(), "");
  EXPECT_THAT(post({"-H", "Origin: http://" + host(), "-H", "Sec-Fetch-Site: same-origin"}),
              HasSubstr(" 200 "));
  EXPECT_THAT(seen(), HasSubstr("\n\n{}"));
}

TEST_F(PageProxyTest, saysThatTheServerIsGone) {
  start();
  const auto with = entered();
  std::promise<void> gone;
  asio::post(io_, [&] {
    server_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  EXPECT_THAT(curl("/", with), HasSubstr(" 502 "));
}

TEST_F(PageProxyTest, startsOnlyInFrontOfAServer) {
  asio::io_context io;
  const auto started = test::runAsync(io, PageProxy::start(folder_ / "nobody.sock", 0));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::Unavailable);
}

}  // namespace
}  // namespace muster::api
