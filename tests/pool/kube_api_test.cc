// SPDX-License-Identifier: Apache-2.0
// The Kubernetes API as a client meets it on bad days: rights, conflicts, busy servers, long lists,
// renewed credentials.
#include "tests/pool/kube_fixture.h"

namespace muster::pool::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using json = nlohmann::json;
using std::chrono::milliseconds;

class KubeApi : public KubeFixture {};

TEST_F(KubeApi, readsARenewedTokenOnce) {
  EXPECT_EQ(observed(), "in");
  server_.token = "token-2";
  EXPECT_THAT(observed(), AllOf(HasSubstr("401 Unauthorized"), HasSubstr("renew it"),
                                Not(HasSubstr("token-1"))));
  EXPECT_EQ(server_.count("GET /api/v1/nodes"), 3) << "asked again with what the file holds, once";
  write("token", "token-2\n");
  EXPECT_EQ(observed(), "in");
}

TEST_F(KubeApi, readsTheTokenAgainAfterAMinute) {
  EXPECT_EQ(observed(), "in");
  write("token", "token-2");
  server_.token = "token-2";
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(observed(), "in");
  EXPECT_EQ(server_.count("GET /api/v1/nodes"), 2) << "no 401 in between";
}

TEST_F(KubeApi, saysWhichCredentialIsMissing) {
  std::filesystem::remove(folder_ / "token");
  EXPECT_THAT(observed(), AllOf(HasSubstr("credentials for Kubernetes at " + server_.url()),
                                HasSubstr("token")));
  EXPECT_TRUE(server_.requests.empty());
}

TEST_F(KubeApi, logsInWithAClientCertificate) {
  auto identity = server_.clientIdentity("muster");
  write("muster.crt", identity.certificate_pem);
  write("muster.key", identity.key_pem.reveal());
  pool().kubernetes->token = {};
  pool().kubernetes->client_certificate = folder_ / "muster.crt";
  pool().kubernetes->client_key = folder_ / "muster.key";
  restart();
  EXPECT_EQ(observed(), "in");
  certify();
  EXPECT_EQ(drive("drained"), "done");
}

TEST_F(KubeApi, trustsThePinnedCertificateAndNoOther) {
  pool().kubernetes->ca.clear();
  pool().kubernetes->pin = server_.serverFingerprint();
  restart();
  EXPECT_EQ(observed(), "in");
  pool().kubernetes->pin = std::string(64, '0');
  restart();
  EXPECT_THAT(observed(), AllOf(HasSubstr("is not trusted"), HasSubstr("is not the pinned")));
  auto other = io::CertificateAuthority::loadOrCreate(folder_ / "other", "other");
  ASSERT_TRUE(other);
  write("ca.crt", other->certificatePem());
  pool().kubernetes->pin.clear();
  pool().kubernetes->ca = folder_ / "ca.crt";
  restart();
  EXPECT_THAT(observed(), HasSubstr("is not trusted"));
  EXPECT_EQ(server_.requests.size(), 2u) << "no token reaches a server that is not trusted";
}

TEST_F(KubeApi, namesTheMissingRight) {
  server_.rights.erase("patch nodes");
  EXPECT_THAT(step("drained"),
              AllOf(StartsWith("error: "), HasSubstr("403 Forbidden"),
                    HasSubstr("cannot patch resource \"nodes\""), HasSubstr("docs/pools.md")));
  server_.rights = {"get nodes", "patch nodes", "list pods"};
  server_.addPod({.name = "web-1"});
  step("drained");
  EXPECT_THAT(step("drained"), AllOf(StartsWith("error: "), HasSubstr("evicting pod default/web-1"),
                                     HasSubstr("create resource \"pods/eviction\"")));
}

TEST_F(KubeApi, readsLongListsPageByPageAndBeginsAnewWhenOneExpires) {
  server_.page_items = 3;
  for (int i = 0; i < 10; ++i) server_.addPod({.name = "web-" + std::to_string(i)});
  EXPECT_EQ(drive("drained"), "done");
  EXPECT_EQ(server_.evicted.size(), 10u);
  for (int i = 0; i < 10; ++i) server_.addPod({.name = "late-" + std::to_string(i)});
  server_.requests.clear();
  server_.expire_lists = 2;
  EXPECT_EQ(observed(), "in");
  EXPECT_EQ(server_.count("GET /api/v1/pods"), 8) << "page, gone, page, gone, four pages";
  server_.expire_lists = 1000;
  EXPECT_THAT(observed(), HasSubstr("410 Expired"));
}

TEST_F(KubeApi, anotherWriterOfTheNodeLosesNothing) {
  for (int i = 0; i < 3; ++i) {
    server_.before_patch = [i](KubeServer& server) {
      server.patchNode(
          "gpu001", json{{"metadata", {{"labels", {{"writer", std::to_string(i)}}}}},
                         {"spec", {{"taints", {{{"key", "other"}, {"effect", "NoSchedule"}}}}}}});
    };
    EXPECT_EQ(drive("drained"), "done");
    EXPECT_FALSE(server_.taint("gpu001", "other").is_null());
    EXPECT_FALSE(server_.taint("gpu001", "muster/out").is_null());
    server_.patchNode("gpu001",
                      json{{"spec", {{"taints", nullptr}, {"unschedulable", nullptr}}},
                           {"metadata", {{"annotations", {{"muster/drain-since", nullptr}}}}}});
  }
  EXPECT_EQ(server_.node("gpu001")["metadata"]["labels"]["writer"], "2");
}

TEST_F(KubeApi, givesUpOnANodeThatNeverStopsChanging) {
  int written = 0;
  server_.before_request = [&written](KubeServer& server) {
    if (server.requests.back().starts_with("PATCH"))
      server.patchNode("gpu001",
                       json{{"metadata", {{"labels", {{"writer", std::to_string(++written)}}}}}});
  };
  EXPECT_THAT(step("drained"), AllOf(StartsWith("error: "), HasSubstr("409 Conflict"),
                                     HasSubstr("cordoning node gpu001")));
  EXPECT_LE(written, 10);
}

TEST_F(KubeApi, comesBackWhenABusyServerSays) {
  server_.faults.push_back({.match = "GET /api/v1/nodes",
                            .status = 429,
                            .reason = "TooManyRequests",
                            .message = "too many requests",
                            .retry_after_s = 2});
  server_.faults.push_back({.match = "GET /api/v1/pods",
                            .status = 503,
                            .reason = "ServiceUnavailable",
                            .message = "apiserver is shutting down",
                            .retry_after_s = 3600});
  EXPECT_EQ(observed(), "in");
  EXPECT_THAT(clock_.sleeps, ElementsAre(milliseconds(2000), milliseconds(10000)))
      << "not longer than muster wants to wait";
  for (int i = 0; i < 10; ++i)
    server_.faults.push_back({.match = "GET",
                              .status = 503,
                              .reason = "ServiceUnavailable",
                              .message = "down",
                              .retry_after_s = 1});
  server_.requests.clear();
  EXPECT_THAT(observed(), HasSubstr("503 ServiceUnavailable: down"));
  EXPECT_EQ(server_.requests.size(), 4u) << "a bounded number of times";
}

TEST_F(KubeApi, anErrorWithoutAWordAboutComingBackWaitsForTheNextLook) {
  server_.faults.push_back({.match = "GET", .status = 500});
  EXPECT_THAT(
      step("drained"),
      AllOf(StartsWith("again"), HasSubstr("500 InternalError: etcdserver: request timed out")));
  EXPECT_TRUE(clock_.sleeps.empty());
}

TEST_F(KubeApi, aPodThatIsReplacedBetweenListAndEvictionIsNotTheOneMeant) {
  server_.addPod({.name = "db-0", .controller = "StatefulSet"});
  step("drained");
  server_.before_request = [](KubeServer& server) {
    if (server.requests.back().starts_with("POST"))
      server.addPod({.name = "db-0", .node = "gpu002", .controller = "StatefulSet"});
  };
  EXPECT_THAT(step("drained"), HasSubstr("Precondition failed: UID in precondition"));
  server_.before_request = nullptr;
  EXPECT_EQ(step("drained"), "done");
  EXPECT_TRUE(server_.hasPod("db-0"));
  EXPECT_TRUE(server_.evicted.empty());
}

TEST_F(KubeApi, anUnreachableServerIsUnknownNotOut) {
  pool().kubernetes->server = "https://127.0.0.1:1";
  restart();
  EXPECT_THAT(observed(), HasSubstr("while connecting"));
  EXPECT_THAT(step("drained"), AllOf(StartsWith("again"), HasSubstr("while connecting")))
      << "for as long as the drain may take";
}

}  // namespace
}  // namespace muster::pool::test
