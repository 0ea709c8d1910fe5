// SPDX-License-Identifier: Apache-2.0
// Names of the access file and of tokens that this host or the inventory has not.
#include "api/unknown_names.h"

#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"

#include <gmock/gmock.h>

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

inventory::Cluster site() {
  inventory::Cluster out;
  out.pools["batch"].name = "batch";
  for (const char* name : {"gpu001", "gpu002"}) {
    inventory::Node node;
    node.name = NodeName(name);
    node.rack = "r1";
    out.nodes.push_back(std::move(node));
  }
  return out;
}

TEST(UnknownNames, ofAScope) {
  const auto cluster = site();
  EXPECT_THAT(unknownInScope({}, cluster), IsEmpty());
  EXPECT_THAT(unknownInScope({{"batch"}, {"r1"}, "gpu[001-002]"}, cluster), IsEmpty());
  EXPECT_THAT(unknownInScope({{"batsh", "night"}, {"r1"}, "gpu[002-003]"}, cluster),
              ElementsAre("pool batsh (did you mean batch?)", "pool night",
                          StartsWith("node gpu003 (did you mean gpu00")));
  EXPECT_THAT(unknownInScope({{}, {}, "x[1-9]"}, cluster).back(), "4 more nodes");
}

TEST(UnknownNames, ofTheAccessFileWithTheirPlace) {
  const auto table = AccessTable::parse(R"(user root admin
user nobody-of-this-host operator
user 4711 operator pools=batch
group root viewer racks=r9
group no-such-group viewer
user veiwer
client-ca /etc/muster/ca.pem
certificate cn=ci robot pools=batsh
oidc issuer=https://sso.example.org client-id=muster name=preferred_username
oidc-user anna-who-is-no-local-user operator
oidc-group hpc operator nodes=gpu009
)",
                                        "access.conf");
  EXPECT_THAT(unknownInAccess(table, nullptr),
              ElementsAre(HasSubstr("access.conf:2:1"), HasSubstr("access.conf:5:1")))
      << "without an inventory of names of this host only";
  ASSERT_EQ(table.problems().size(), 1u) << "a row that is wrong is told already";
  const auto cluster = site();
  EXPECT_THAT(
      unknownInAccess(table, &cluster),
      ElementsAre(
          AllOf(StartsWith("access.conf:2:1: this host knows no user nobody-of-this-host"),
                HasSubstr("getent passwd")),
          "access.conf:4:1: its scope names what the inventory has not: rack r9 (did you mean r1?)",
          HasSubstr("access.conf:5:1: this host knows no group no-such-group"),
          "access.conf:8:1: its scope names what the inventory has not: pool batsh (did you mean "
          "batch?)",
          HasSubstr("access.conf:11:1: its scope names what the inventory has not: node gpu009")));
}

TEST(UnknownNames, ofTokensThatCount) {
  const auto now = SystemClock().now();
  Token token;
  token.name = "ci";
  token.scope = {{"night"}, {}, ""};
  token.expires_at = now + std::chrono::hours(1);
  auto over = token, revoked = token, fine = token;
  over.expires_at = now;
  revoked.revoked = true;
  fine.scope = {{"batch"}, {}, ""};
  EXPECT_THAT(unknownInTokens({over, token, revoked, fine}, site(), now),
              ElementsAre("token ci: its scope names what the inventory has not: pool night"));
}

}  // namespace
}  // namespace muster::api
