// SPDX-License-Identifier: Apache-2.0
#include "app/site/revoked_tokens.h"

#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

lifecycle::RunActor by(const std::string& name, const std::string& id) {
  return {.principal = "token:" + name,
          .way = "token",
          .address = "10.0.0.9",
          .person = "anna",
          .token = id};
}

TEST(RevokedTokens, whoCameWithoutOneAlwaysCounts) {
  test::MemoryStore store;
  const auto none = RevokedTokens::read(store);
  ASSERT_TRUE(none) << none.error().str();
  EXPECT_THAT(none->whyVoid({"anna", "local", "ctl1"}), IsEmpty());
  EXPECT_THAT(none->whyVoid(by("ci", "t1")), HasSubstr("is known no more"));
}

/// The id decides; a name may have been given again. An older muster has written no id down.
TEST(RevokedTokens, areKnownByTheirIdAndOfOldByTheirName) {
  test::MemoryStore store;
  ASSERT_TRUE(store.putValue(kTokensKey, R"([{"id": "t1", "name": "ci", "revoked": true},
      {"id": "t2", "name": "ci", "revoked": false}, {"id": "t3", "name": "ui", "revoked": false}])"));
  const auto tokens = RevokedTokens::read(store);
  ASSERT_TRUE(tokens) << tokens.error().str();
  EXPECT_EQ(tokens->whyVoid(by("ci", "t1")), "token:ci of anna was revoked");
  EXPECT_THAT(tokens->whyVoid(by("ci", "t2")), IsEmpty());
  EXPECT_THAT(tokens->whyVoid(by("ci", "")), HasSubstr("was revoked"));
  EXPECT_THAT(tokens->whyVoid(by("ui", "")), IsEmpty());
  EXPECT_THAT(tokens->whyVoid(by("xx", "t9")), HasSubstr("is known no more"));
}

/// A login ends by itself and by its owner, and is forgotten then; only revoking takes words back.
TEST(RevokedTokens, ofALoginOnlyARevokedOneTakesItsWordBack) {
  test::MemoryStore store;
  ASSERT_TRUE(store.putValue(kTokensKey, R"([{"id": "t1", "name": "login-t1", "revoked": true},
      {"id": "t2", "name": "login-t2", "revoked": false}])"));
  const auto tokens = RevokedTokens::read(store);
  ASSERT_TRUE(tokens) << tokens.error().str();
  const auto anna = [](const std::string& id) {
    return lifecycle::RunActor{.principal = "oidc:anna",
                               .way = "oidc",
                               .address = "10.0.0.9",
                               .person = "anna",
                               .token = id};
  };
  EXPECT_EQ(tokens->whyVoid(anna("t1")), "oidc:anna of anna was revoked");
  EXPECT_THAT(tokens->whyVoid(anna("t2")), IsEmpty());
  EXPECT_THAT(tokens->whyVoid(anna("t9")), IsEmpty()) << "it is over";
  EXPECT_THAT(tokens->whyVoid(anna("")), IsEmpty()) << "of an older muster";
}

TEST(RevokedTokens, whatWasSaidOfAnotherPlanIsNotStruckOutAgain) {
  test::MemoryStore store;
  ASSERT_TRUE(store.putValue(kTokensKey, R"([{"id": "t1", "name": "ci", "revoked": true}])"));
  const auto tokens = RevokedTokens::read(store);
  ASSERT_TRUE(tokens);
  lifecycle::Run run;
  run.plan_hash = "new";
  run.approvals = {{by("ci", "t1"), {}, "old"}, {by("ci", "t1"), {}, "new"}};
  EXPECT_EQ(tokens->strikeOut(run).size(), 1u);
  EXPECT_EQ(run.approvals[0].void_because, "");
  EXPECT_EQ(run.approvals[1].void_because, "token:ci of anna was revoked");
  EXPECT_THAT(tokens->strikeOut(run), IsEmpty()) << "once";
}

TEST(RevokedTokens, whatCannotBeReadLetsNothingPass) {
  for (const auto* text : {"{", "[{}]", R"([{"id": 7, "revoked": false, "name": "a"}])", "[7]"}) {
    test::MemoryStore store;
    ASSERT_TRUE(store.putValue(kTokensKey, text));
    EXPECT_FALSE(RevokedTokens::read(store)) << text;
  }
}

}  // namespace
}  // namespace muster::app
