// SPDX-License-Identifier: Apache-2.0
// What a client over HTTP makes of a server that refuses, is of another version, answers nonsense
// or not at all, and of roles, scopes and BMCs behind it.
#include "api/remote_tokens.h"
#include "app/fabric/fabric_look.h"
#include "app/firmware/firmware_baselines.h"
#include "app/images.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/bmc_power.h"
#include "app/nodes/console.h"
#include "app/nodes/discovery.h"
#include "app/nodes/erase.h"
#include "app/nodes/measurements.h"
#include "app/nodes/wipe.h"
#include "app/records/records.h"
#include "app/site/site_records.h"
#include "app/validation/certificates.h"
#include "bmc/console/boot_log.h"
#include "discovery/machine_registry.h"
#include "lifecycle/audit/head.h"
#include "monitor/breakers.h"
#include "tests/api/connect.h"
#include "tests/api/records_site.h"
#include "tests/api/scripted_server.h"
#include "tests/cli/emulated_bmc.h"

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class RemoteRecords : public RecordsSite {
 protected:
  Result<std::unique_ptr<RemoteSite>> connect(std::string token = {}) {
    return connectTo(site_ / "api.sock", std::move(token));
  }
  /// A server of another version that answers `answer` to all but the question who it is.
  ScriptedServer scripted(std::function<std::string(const std::string&)> answer) {
    return {site_ / "api.sock", ScriptedServer::ofVersion("0.0.9", std::move(answer))};
  }
};

TEST_F(RemoteRecords, aRoleThatIsTooSmallIsToldWhichWouldDo) {
  start();
  const auto viewer = connect(tokenOf("vera", Role::Viewer));
  ASSERT_TRUE(viewer) << viewer.error().str();
  auto& site = (*viewer)->records();
  EXPECT_TRUE(site.history("", 10));
  EXPECT_TRUE(site.firmwareUpgrades(""));
  EXPECT_TRUE(site.images());
  EXPECT_TRUE(site.fabric(""));
  EXPECT_TRUE(site.verifyCertificates(""));
  EXPECT_TRUE(site.discovered());
  EXPECT_TRUE(site.auditHead());
  const auto refused = [](const auto& result, const char* role) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::Denied) << result.error().str();
    EXPECT_THAT(result.error().str(), AllOf(HasSubstr("token:vera (viewer)"), HasSubstr(role)));
  };
  const auto quiet = [](const std::string&) {};
  refused(site.revokeCertificate("gpu001", "x"), "admin");
  refused(site.resetBmcTrust("gpu001"), "admin");
  refused(site.grantWipe({"gpu001", "x", false}), "admin");
  refused(site.acknowledgeBreakers("x"), "operator");
  refused(site.power({.node = NodeName("gpu001")}, quiet), "operator");
  refused(site.locate(NodeName("gpu001"), true), "operator");
  refused(site.recordedBoots(NodeName("gpu001")), "operator");
  RemoteTokens tokens((*viewer)->connection());
  refused(tokens.list(), "admin");
  refused(tokens.create({.name = "mine", .role = Role::Admin}), "admin");
}

TEST_F(RemoteRecords, aScopeShowsItsNodesAndNothingOfTheWholeSite) {
  start();
  const auto scoped = connect(tokenOf("ida", Role::Operator, {{}, {"r2"}, ""}));
  ASSERT_TRUE(scoped) << scoped.error().str();
  auto& site = (*scoped)->records();
  const auto paths = site.firmwareUpgrades("");
  ASSERT_TRUE(paths) << paths.error().str();
  ASSERT_THAT(*paths, SizeIs(1));
  EXPECT_EQ(paths->front().node.str(), "gpu003");
  EXPECT_EQ(site.firmwareUpgrades("gpu001").error().code(), ErrorCode::NotFound);
  const auto verdicts = site.verifyCertificates("");
  ASSERT_TRUE(verdicts) << verdicts.error().str();
  EXPECT_THAT(*verdicts, SizeIs(2));
  EXPECT_EQ(site.certificate("gpu001").error().code(), ErrorCode::NotFound);
  for (const auto& code : {site.history("", 10).error().code(), site.images().error().code(),
                           site.fabric("").error().code(), site.discovered().error().code(),
                           site.auditHead().error().code()})
    EXPECT_EQ(code, ErrorCode::Denied);
}

TEST_F(RemoteRecords, tokensAreMadeListedAndRevokedByAnAdminElsewhere) {
  start();
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  RemoteTokens admin((*site)->connection());
  const auto made = admin.create({.name = "ci",
                                  .role = Role::Robot,
                                  .scope = {{"batch"}, {"r1"}, "login1"},
                                  .hours = 5,
                                  .owner = "anna"});
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_TRUE(made->secret.starts_with(kTokenPrefix));
  const auto kept = Tokens(*site_.store()).list();
  ASSERT_TRUE(kept && kept->size() == 1u);
  const auto listed = admin.list();
  ASSERT_TRUE(listed) << listed.error().str();
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_EQ(toJson(listed->front()), toJson(kept->front()));
  EXPECT_THAT(listed->front().sha256, IsEmpty()) << "what it is stays there";
  EXPECT_EQ(admin.create({.name = "ci"}).error().code(), ErrorCode::Conflict);
  const auto revoked = admin.revoke("ci");
  EXPECT_TRUE(revoked) << revoked.error().str();
  EXPECT_TRUE(admin.list()->front().revoked);
  EXPECT_EQ(admin.revoke("nobody").error().code(), ErrorCode::NotFound);
}

TEST_F(RemoteRecords, aServerWithoutTheRouteIsNamedWithItsVersion) {
  const auto server = scripted([](const std::string&) {
    return ScriptedServer::json(
        404, R"({"code":"unknown-resource","detail":"there is no such resource","status":404})");
  });
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  const auto check = [](const auto& result, const std::string& resource) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::Unavailable);
    EXPECT_FALSE(result.error().canRetry());
    EXPECT_THAT(result.error().str(),
                AllOf(HasSubstr("muster 0.0.9"), HasSubstr("does not know " + resource),
                      HasSubstr("upgrade the server")));
  };
  check((*site)->records().firmwareUpgrades("gpu001"), "/firmware/plan");
  check((*site)->records().history("", 5), "/history");
  check((*site)->records().discovered(), "/discoveries");
  check((*site)->records().auditHead(), "/audit/head/signed");
  check((*site)->records().revokeCertificate("gpu001", "x"), "/nodes/gpu001/certificate/revoke");
}

TEST_F(RemoteRecords, anAnswerThatIsNoneIsNotTakenForEmpty) {
  for (const auto* body :
       {R"({"items":7})", R"([])", R"({"items":[{"node":"gpu001"}]})", R"({"items":[null]})",
        R"({"requests":[{}],"actions":[]})", R"({"line":"muster-audit-head/1 nothing"})", "{}"}) {
    const auto server =
        scripted([body](const std::string&) { return ScriptedServer::json(200, body); });
    const auto site = connect();
    ASSERT_TRUE(site) << site.error().str();
    EXPECT_EQ((*site)->records().firmwareUpgrades("").error().code(), ErrorCode::Corrupt) << body;
    EXPECT_EQ((*site)->records().history("", 5).error().code(), ErrorCode::Corrupt) << body;
    EXPECT_EQ((*site)->records().fabric("").error().code(), ErrorCode::Corrupt) << body;
    EXPECT_EQ((*site)->records().certificate("gpu001").error().code(), ErrorCode::Corrupt) << body;
    EXPECT_EQ((*site)->records().verifyCertificates("").error().code(), ErrorCode::Corrupt) << body;
    EXPECT_FALSE((*site)->records().auditHead()) << body;
    EXPECT_FALSE((*site)->records().locate(NodeName("gpu001"), {})) << body;
    EXPECT_FALSE((*site)->records().recordedBoot(NodeName("gpu001"), {})) << body;
  }
}

TEST_F(RemoteRecords, allPagesOfALongListAreRead) {
  const auto server = scripted([](const std::string& head) {
    const auto node = [](const std::string& name) {
      return R"({"node":")" + name + R"(","valid":true,"void_because":""})";
    };
    return ScriptedServer::json(
        200, head.find("cursor=20000") == std::string::npos
                 ? R"({"items":[)" + node("gpu1") + R"(],"next":"20000","total":2})"
                 : R"({"items":[)" + node("gpu2") + R"(],"total":2})");
  });
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  const auto verdicts = (*site)->records().verifyCertificates("");
  ASSERT_TRUE(verdicts) << verdicts.error().str();
  ASSERT_THAT(*verdicts, SizeIs(2));
  EXPECT_EQ(verdicts->back().node.str(), "gpu2");
}

TEST_F(RemoteRecords, anOrderWhoseAnswerIsLostIsNotCalledUndone) {
  const auto server = scripted([](const std::string& head) {
    return head.starts_with("POST ") ? "HTTP/1.1 200 OK\r\nContent-Le" : "";
  });
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  const auto order = (*site)->records().revokeCertificate("gpu001", "stolen");
  ASSERT_FALSE(order);
  EXPECT_THAT(order.error().str(), HasSubstr("it may have done what it was asked to"));
  const auto look = (*site)->records().history("", 5);
  ASSERT_FALSE(look);
  EXPECT_THAT(look.error().str(), AllOf(HasSubstr("did not answer"), Not(HasSubstr("may have"))));
}

class RemotePower : public RemoteRecords {
 protected:
  RemotePower() {
    site_.write("bmc-password", test::EmulatedBmc::kPassword);
    std::string site(kSite);
    const std::string bmc = "https://10.20.250.1\"";
    site.replace(site.find(bmc), bmc.size(), bmc_.url() + "\"");
    site_.write("cluster.yaml", site);
  }
  test::EmulatedBmc bmc_;
};

TEST_F(RemotePower, isOrderedAndItsOutcomeWaitedFor) {
  start();
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  const auto quiet = [](const std::string&) {};
  app::PowerRequest request{.node = NodeName("gpu001"), .command = app::PowerCommand::On};
  const auto on = (*site)->records().power(request, quiet);
  ASSERT_TRUE(on) << on.error().str();
  ASSERT_TRUE(on->after && *on->after);
  EXPECT_EQ(**on->after, bmc::PowerState::On);
  request.command = app::PowerCommand::Off;
  request.reason = "loose cable";
  const auto asked = bmc_.requests().size();
  const auto unsaid = (*site)->records().power(request, quiet);
  ASSERT_FALSE(unsaid);
  EXPECT_THAT(unsaid.error().str(),
              AllOf(HasSubstr("--confirm gpu001"), HasSubstr("Nothing was done")));
  EXPECT_EQ(bmc_.requests().size(), asked) << "no BMC was asked";
  EXPECT_TRUE(bmc_.on());
  request.confirmed = true;
  const auto in_pool = (*site)->records().power(request, quiet);
  ASSERT_FALSE(in_pool);
  EXPECT_THAT(in_pool.error().str(), HasSubstr("it may be running jobs"));
  request.force = true;
  const auto off = (*site)->records().power(request, quiet);
  ASSERT_TRUE(off) << off.error().str();
  EXPECT_EQ(off->before, bmc::PowerState::On);
  EXPECT_EQ(**off->after, bmc::PowerState::Off);
  EXPECT_FALSE(bmc_.on());
}

/// A port where nobody listens.
TEST_F(RemoteRecords, aBmcThatDoesNotAnswerIsAnErrorInItsWords) {
  std::string site(kSite);
  const std::string bmc = "https://10.20.250.1";
  site.replace(site.find(bmc), bmc.size(), "https://127.0.0.1:1");
  site_.write("cluster.yaml", site);
  start();
  const auto asked = connect();
  ASSERT_TRUE(asked) << asked.error().str();
  const auto led = (*asked)->records().locate(NodeName("gpu001"), true);
  ASSERT_FALSE(led);
  EXPECT_EQ(led.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(led.error().str(), HasSubstr("127.0.0.1"));
  const auto on =
      (*asked)->records().power({.node = NodeName("gpu001")}, [](const std::string&) {});
  ASSERT_FALSE(on);
  EXPECT_THAT(on.error().str(), HasSubstr("127.0.0.1"));
}

}  // namespace
}  // namespace muster::api
