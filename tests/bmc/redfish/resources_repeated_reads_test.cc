// SPDX-License-Identifier: Apache-2.0
// Which reads stand for another one, and which are always made anew (docs/adr/0430).
#include "tests/bmc/redfish/answers.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSessionService = "/redfish/v1/SessionService";
constexpr const char* kSessions = "/redfish/v1/SessionService/Sessions";
constexpr const char* kRoot = "/redfish/v1/";
constexpr const char* kHost = "/redfish/v1/Systems/system";

class RepeatedReads : public testing::Test {
 protected:
  int inventoryReads() const { return net.count("GET", kInventory); }
  FirmwareUpdate update() {
    const auto file = virtual_bmc.firmwareFile("BIOS", "1.5.0");
    return {"BIOS", file, io::sha256Hex(*io::readFile(file))};
  }

  test::VirtualLoop loop;
  test::VirtualBmc virtual_bmc{loop};
  test::FakeHttp& net = virtual_bmc.net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishBmc> bmc = rig.bmc();
};

TEST_F(RepeatedReads, findingTheSystemIsAReadOfIt) {
  const auto seen = loop.run(bmc->system());
  ASSERT_TRUE(seen) << seen.error().str();
  EXPECT_EQ(seen->serial, "SN-1");
  EXPECT_EQ(net.count("GET", kHost), 1);
  loop.clock.advance(1s);
  ASSERT_TRUE(loop.run(bmc->system()));
  EXPECT_EQ(net.count("GET", kHost), 2) << "it is old now";
}

/// The override is written with the ETag of that read.
TEST_F(RepeatedReads, whatFoundTheSystemHasItsETag) {
  ASSERT_TRUE(loop.run(bmc->bootOnce(BootTarget::Pxe)));
  const auto patch = std::ranges::find(net.requests, "PATCH", &io::HttpRequest::method);
  ASSERT_NE(patch, net.requests.end());
  EXPECT_TRUE(patch->headers.contains("If-Match"));
}

TEST_F(RepeatedReads, anInventoryRightAfterAnotherIsThatOne) {
  const auto first = loop.run(bmc->firmware());
  ASSERT_TRUE(first) << first.error().str();
  const auto reads = inventoryReads();
  const auto second = loop.run(bmc->firmware());
  ASSERT_TRUE(second);
  EXPECT_EQ(inventoryReads(), reads);
  ASSERT_EQ(second->size(), first->size());
  EXPECT_EQ(second->front().version, first->front().version);
  loop.clock.advance(300ms);  // the shortest interval at which an installation looks
  ASSERT_TRUE(loop.run(bmc->firmware()));
  EXPECT_EQ(inventoryReads(), reads + 1);
}

TEST_F(RepeatedReads, afterAWriteTheInventoryIsReadAnew) {
  ASSERT_TRUE(loop.run(bmc->firmware()));
  const auto reads = inventoryReads();
  ASSERT_TRUE(loop.run(bmc->bootOnce(BootTarget::Pxe)));
  ASSERT_TRUE(loop.run(bmc->firmware()));
  EXPECT_EQ(inventoryReads(), reads + 1);
}

/// What a task has written shows in no inventory that was read before its end was.
TEST_F(RepeatedReads, afterALookAtATaskTheInventoryIsReadAnew) {
  const auto task = loop.run(bmc->startUpdate(update()));
  ASSERT_TRUE(task) << task.error().str();
  ASSERT_TRUE(loop.run(bmc->firmware()));
  const auto reads = inventoryReads();
  ASSERT_TRUE(loop.run(bmc->task(*task)));
  ASSERT_TRUE(loop.run(bmc->firmware()));
  EXPECT_EQ(inventoryReads(), reads + 1);
}

TEST_F(RepeatedReads, afterAResetTheInventoryIsReadAnew) {
  ASSERT_TRUE(loop.run(bmc->firmware()));
  ASSERT_TRUE(loop.run(bmc->resetBmc()));
  const auto reads = inventoryReads();
  ASSERT_TRUE(loop.run(bmc->firmware()));
  EXPECT_EQ(inventoryReads(), reads + 1);
}

TEST_F(RepeatedReads, afterAResetAllIsReadThreeTimes) {
  ASSERT_TRUE(loop.run(bmc->system()));
  net.requests.clear();
  ASSERT_TRUE(loop.run(bmc->resetBmc()));
  EXPECT_EQ(net.count("GET", kHost), 3) << "that which finds the system is the first";
}

TEST_F(RepeatedReads, theLoginIsProvenBeforeAnUploadOnlyWhereNothingHasJustProvenIt) {
  ASSERT_TRUE(loop.run(bmc->startUpdate(update())));
  EXPECT_EQ(net.count("GET", kSessionService), 0) << "tasks were listed right before it";
}

TEST_F(RepeatedReads, whereSessionsAreMadeIsAskedOnce) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get(kHost)));
  const auto roots = net.count("GET", kRoot);
  loop.clock.advance(2h);  // the session has expired
  ASSERT_TRUE(loop.run(session->get(kHost)));
  EXPECT_EQ(virtual_bmc.logins(), 2);
  EXPECT_EQ(net.count("GET", kRoot), roots);
}

/// What ten thousand BMCs answered last is not kept: the newest answers of all are.
TEST(RecentReads, letsTheOldestGo) {
  RecentReads recent;
  const auto first = std::make_shared<const int>(0), second = std::make_shared<const int>(1);
  recent.keep(first);
  recent.keep(second);
  for (std::size_t i = 2; i < RecentReads::kKept; ++i) recent.keep(std::make_shared<const int>(2));
  EXPECT_EQ(first.use_count(), 2) << "there is a place for each so far";
  recent.keep(std::make_shared<const int>(3));
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_EQ(second.use_count(), 2);
}

/// As many others answer in between as are kept.
TEST_F(RepeatedReads, anAnswerThatWasLetGoOfIsReadAnew) {
  RecentReads recent;
  rig.recent = &recent;
  bmc = rig.bmc();
  ASSERT_TRUE(loop.run(bmc->system()));
  ASSERT_TRUE(loop.run(bmc->firmware()));
  const auto reads = inventoryReads(), systems = net.count("GET", kHost);
  ASSERT_TRUE(loop.run(bmc->system()));
  ASSERT_TRUE(loop.run(bmc->firmware()));
  EXPECT_EQ(inventoryReads(), reads);
  EXPECT_EQ(net.count("GET", kHost), systems);
  for (std::size_t i = 0; i < RecentReads::kKept; ++i) recent.keep(std::make_shared<const int>(0));
  ASSERT_TRUE(loop.run(bmc->system()));
  ASSERT_TRUE(loop.run(bmc->firmware()));
  EXPECT_EQ(inventoryReads(), reads + 1);
  EXPECT_EQ(net.count("GET", kHost), systems + 1);
}

using RepeatedAnswers = Answers;

TEST_F(RepeatedAnswers, anInventoryWithAMemberThatCannotBeReadStandsForNoOther) {
  resources[kInventory] = {
      {"Members", {link(std::string(kInventory) + "/A"), link(std::string(kInventory) + "/B")}}};
  texts[std::string(kInventory) + "/B"] = "<html>later</html>";
  const auto bmc = rig.bmc();
  const auto first = loop.run(bmc->firmware());
  ASSERT_TRUE(first) << first.error().str();
  ASSERT_FALSE(first->back().unreadable.empty());
  texts.clear();
  const auto second = loop.run(bmc->firmware());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->back().version, "2.0");
}

class LoginProof : public testing::Test {
 protected:
  LoginProof() {
    net.handle = [this](io::HttpRequest request) { return serve(std::move(request)); };
  }
  Async<io::HttpResponse> serve(io::HttpRequest request) {
    if (request.method == "POST" && request.url.target == sessions) {
      co_return test::FakeHttp::json(201, "{}",
                                     {{"X-Auth-Token", "t"}, {"Location", sessions + "/1"}});
    }
    if (request.method == "POST" && request.url.target.starts_with(kSessionService))
      co_return test::FakeHttp::json(404, "{}");
    if (request.url.target == kRoot)
      co_return test::FakeHttp::json(
          200, Json{{"Links", {{"Sessions", {{"@odata.id", sessions}}}}}}.dump());
    if (refuses) co_return test::FakeHttp::json(401, "{}");
    co_return test::FakeHttp::json(200, "{}");
  }
  Result<RedfishReply> upload(RedfishSession& session) {
    return loop.run(session.upload(
        "/redfish/v1/up",
        {"multipart/form-data; boundary=b", "b", std::make_shared<const std::string>("od"), "y"},
        10s));
  }

  std::string sessions = kSessions;
  bool refuses = false;
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
};

TEST_F(LoginProof, isAskedForBeforeAnUploadAfterAWhile) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/Tasks")));
  ASSERT_TRUE(upload(*session));
  EXPECT_EQ(net.count("GET", kSessionService), 0);
  loop.clock.advance(6s);
  ASSERT_TRUE(upload(*session));
  EXPECT_EQ(net.count("GET", kSessionService), 1);
}

/// The service root and the registries are read by anybody.
TEST_F(LoginProof, isNoAnswerThatEverybodyGets) {
  auto session = rig.session();
  for (const char* open : {"/redfish/v1/", "/redfish/v1/Registries/Base.1.0"}) {
    ASSERT_TRUE(loop.run(session->get(open)));
    loop.clock.advance(6s);
    ASSERT_TRUE(loop.run(session->get(open)));
    net.requests.clear();
    ASSERT_TRUE(upload(*session));
    EXPECT_EQ(net.count("GET", kSessionService), 1) << open;
    loop.clock.advance(6s);
  }
}

TEST_F(LoginProof, sessionsThatMoveAreFoundAgain) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/Tasks")));
  session->forgetLogin();
  sessions = "/redfish/v1/SessionService/Elsewhere";
  const auto roots = net.count("GET", kRoot);
  EXPECT_TRUE(loop.run(session->get("/redfish/v1/Tasks")));
  EXPECT_EQ(net.count("GET", kRoot), roots + 1);
}

}  // namespace
}  // namespace muster::bmc
