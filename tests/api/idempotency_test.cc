// SPDX-License-Identifier: Apache-2.0
// Orders under an Idempotency-Key, and a server that is killed between the order and its answer: a
// process of its own is killed by SIGKILL, and another one is asked the same again.
#include "api/idempotency.h"

#include "api/dispatch.h"
#include "app/runs/runs.h"
#include "tests/app/site_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace muster::api {
namespace {

using ::testing::HasSubstr;

enum class Dies { BeforeTheOrder, AfterTheOrder, Never };

class IdempotentOrdersTest : public ::testing::Test {
 protected:
  static io::ServerRequest request(const std::string& key, std::string body) {
    io::ServerRequest out;
    out.method = "POST";
    out.target = "/api/v1/things";
    out.headers = {{"Content-Type", "application/json"}, {"Idempotency-Key", key}};
    out.body = std::move(body);
    return out;
  }
  static Caller anna() {
    return {Identity{"token:anna", Way::Token, Role::Admin, {}, std::nullopt}};
  }
  std::unique_ptr<SiteReader> reader() {
    auto opened = SiteReader::open(site_.options(), site_ / "access.conf");
    EXPECT_TRUE(opened) << opened.error().str();
    return std::move(*opened);
  }
  /// Its effect is an entry of the log, which a test can count.
  ApiRoute thing(Dies dies = Dies::Never) const {
    ApiRoute out{"POST", "/things", Verb::Admin, Reach::Site, "Do a thing"};
    out.body = {{"what", Kind::Text, "", true}};
    out.act = [dies](SiteReader& reader, const Call& call) -> Reply {
      if (dies == Dies::BeforeTheOrder) ::raise(SIGKILL);
      TRY(sequence,
          reader.store().addEvent({0, reader.now(), lifecycle::EventKind::Note, {}, "", kEffect}));
      (void)sequence;
      if (dies == Dies::AfterTheOrder) ::raise(SIGKILL);
      return Answer{200, {{"what", call.text("what")}}};
    };
    return out;
  }
  int effects() {
    const auto store = site_.store();
    const auto events = store->lastEvents(100, nullptr);
    return static_cast<int>(std::ranges::count(*events, kEffect, &lifecycle::Event::text));
  }
  io::ServerResponse ask(const ApiRoute& route, const io::ServerRequest& asked) {
    return dispatch(route, *reader(), asked, anna());
  }
  /// In a process of its own, which must be killed by it.
  void askAndDie(const ApiRoute& route, const io::ServerRequest& asked) {
    (void)site_.store();  // it is there before
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      (void)ask(route, asked);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  ApiRoute runs() const {
    for (auto& route : apiRoutes())
      if (route.method == "POST" && route.path == "/runs") return route;
    ADD_FAILURE() << "there is no such route";
    return {};
  }

  static std::string textOf(const io::ServerResponse& response) {
    return std::get<std::string>(response.body);
  }

  static constexpr const char* kEffect = "the thing is done";
  app::SiteFolder site_;
};

TEST_F(IdempotentOrdersTest, isDoneOnceAndAnsweredAgain) {
  const auto asked = request("k1", R"({"what": "a"})");
  EXPECT_EQ(ask(thing(), asked).status, 200);
  const auto again = ask(thing(), asked);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.headers.at("Idempotent-Replayed"), "true");
  EXPECT_THAT(textOf(again), HasSubstr(R"("what":"a")"));
  EXPECT_EQ(ask(thing(), request("k1", R"({"what": "b"})")).status, 409);
  EXPECT_EQ(effects(), 1);
}

TEST_F(IdempotentOrdersTest, isNeverDoneTwiceWhereItsServerWasKilledBeforeTheAnswer) {
  const auto asked = request("k1", R"({"what": "a"})");
  askAndDie(thing(Dies::AfterTheOrder), asked);
  ASSERT_EQ(effects(), 1);
  const auto again = ask(thing(), asked);
  EXPECT_EQ(again.status, 409) << textOf(again);
  EXPECT_THAT(textOf(again), HasSubstr("outcome-unknown"));
  EXPECT_THAT(textOf(again), HasSubstr("with a new key"));
  EXPECT_EQ(effects(), 1);
  EXPECT_EQ(ask(thing(), request("k2", R"({"what": "a"})")).status, 200) << "as it says";
}

TEST_F(IdempotentOrdersTest, saysTheSameWhereItWasKilledBeforeTheOrder) {
  const auto asked = request("k1", R"({"what": "a"})");
  askAndDie(thing(Dies::BeforeTheOrder), asked);
  EXPECT_EQ(ask(thing(), asked).status, 409);
  EXPECT_EQ(effects(), 0);
}

/// A run's row has the key itself: the order is finished by its repetition.
TEST_F(IdempotentOrdersTest, aRunIsOneWhereverItsServerWasKilled) {
  for (const auto dies : {Dies::BeforeTheOrder, Dies::AfterTheOrder}) {
    const std::string key = dies == Dies::BeforeTheOrder ? "before" : "after";
    const auto asked = request(key, R"({"kind": "apply", "nodes": "gpu001"})");
    auto deadly = runs();
    deadly.act = [act = deadly.act, dies](SiteReader& reader, const Call& call) -> Reply {
      if (dies == Dies::BeforeTheOrder) ::raise(SIGKILL);
      auto reply = act(reader, call);
      ::raise(SIGKILL);
      return reply;
    };
    askAndDie(deadly, asked);
    const auto first = ask(runs(), asked), second = ask(runs(), asked);
    EXPECT_EQ(first.status, 202) << textOf(first);
    EXPECT_EQ(second.status, 202) << textOf(second);
    EXPECT_EQ(first.headers.at("Location"), second.headers.at("Location"));
  }
  const auto store = app::openRunStore(site_.options());
  ASSERT_TRUE(store);
  EXPECT_EQ(app::listRuns(**store, {})->size(), 2u);
}

/// What was refused was not done, and may be asked again under its key.
TEST_F(IdempotentOrdersTest, isForgottenWhenItWasRefused) {
  auto refuses = thing();
  refuses.act = [](SiteReader&, const Call&) -> Reply {
    return std::unexpected(Problem(409, "conflict", "not now"));
  };
  const auto asked = request("k1", R"({"what": "a"})");
  EXPECT_THAT(textOf(ask(refuses, asked)), HasSubstr("not now"));
  EXPECT_EQ(ask(thing(), asked).status, 200);
  EXPECT_EQ(effects(), 1);
}

/// What is too long, or secret, is not kept; that it was done is.
TEST_F(IdempotentOrdersTest, isNotDoneAgainWhereItsAnswerIsNotKept) {
  for (const bool secret : {true, false}) {
    auto route = thing();
    route.act = [secret, act = route.act](SiteReader& reader, const Call& call) -> Reply {
      auto reply = act(reader, call);
      if (secret)
        reply->headers["Cache-Control"] = "no-store";
      else
        reply->body["long"] = std::string(100'000, 'x');
      return reply;
    };
    const auto asked = request(secret ? "k1" : "k2", R"({"what": "a"})");
    EXPECT_EQ(ask(route, asked).status, 200);
    const auto again = ask(route, asked);
    EXPECT_EQ(again.status, 409);
    EXPECT_THAT(textOf(again), HasSubstr("was not kept"));
  }
  EXPECT_EQ(effects(), 2);
  std::size_t kept = 0;
  for (int place = 0; place < 256; ++place)
    if (const auto value = site_.store()->getValue(fmt::format("api.orders.{:02x}", place));
        value && *value)
      kept += (*value)->size();
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 10'000u);
}

/// Whoever gives many keys makes none of anybody be forgotten: its order would be done twice.
TEST_F(IdempotentOrdersTest, noneIsForgottenBeforeItsTime) {
  const auto store = site_.store();
  IdempotentOrders orders(*store);
  const auto now = SystemClock().now();
  const IdempotentOrder first{"anna", "the first", "POST /things"};
  ASSERT_TRUE(orders.begin(first, now));
  ASSERT_TRUE(orders.remember(first, Answer{200, nlohmann::json::object()}, now));
  for (int i = 0; i < 1'200; ++i)
    ASSERT_TRUE(orders.begin({"token:op", fmt::format("key {}", i), "POST /things"}, now));
  const auto again = orders.begin(first, now + std::chrono::hours(23));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->known, IdempotentOrders::Known::Answered);
  const auto next_day = orders.begin(first, now + std::chrono::hours(25));
  ASSERT_TRUE(next_day);
  EXPECT_EQ(next_day->known, IdempotentOrders::Known::No);
}

}  // namespace
}  // namespace muster::api
