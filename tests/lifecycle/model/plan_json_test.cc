// SPDX-License-Identifier: Apache-2.0
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/plan.h"
#include "tests/lifecycle/rack.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::lifecycle {
namespace {

using test::factOf;
using test::Rack;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Plan rollout(Rack& rack, FactSet& facts) {
  facts = factsAtTheEnd(rack);
  facts.put(factOf("gpu003/pool", "out"));
  facts.forget(Subject(NodeName("gpu003")), FacetName("enrolled"));
  rack.driver = "575";
  rack.image = "noble@2";
  auto plan = makePlan(rack.cluster, facts, {{}, {NodeName("gpu001")}}, rack.phases());
  if (!plan) ADD_FAILURE() << plan.error().str();
  return plan ? *plan : Plan();
}

TEST(PlanJson, isTheGoldenFile) {
  Rack rack({"gpu001", "gpu002", "gpu003"});
  FactSet facts;
  const auto text = rollout(rack, facts).toJson();
  const std::filesystem::path golden =
      test::sourceFolder() / "tests/lifecycle/golden/rollout.plan.json";
  if (std::getenv("UPDATE_GOLDEN")) {
    ASSERT_TRUE(io::writeFileAtomic(golden, text));
  }
  auto kept = io::readFile(golden);
  ASSERT_TRUE(kept) << kept.error().str();
  EXPECT_EQ(text, *kept) << "if the change is meant: UPDATE_GOLDEN=1 lifecycle_test "
                            "--gtest_filter=PlanJson.isTheGoldenFile";
}

TEST(PlanJson, comesBackAsItWas) {
  Rack rack({"gpu001", "gpu002", "gpu003"});
  FactSet facts;
  const auto plan = rollout(rack, facts);
  auto back = Plan::fromJson(plan.toJson());
  ASSERT_TRUE(back) << back.error().str();
  EXPECT_EQ(back->actions, plan.actions);
  EXPECT_EQ(back->facts_used, plan.facts_used);
  EXPECT_EQ(back->policy.wipe_allowed, plan.policy.wipe_allowed);
  EXPECT_EQ(back->hash(), plan.hash());
  EXPECT_EQ(back->toJson(), plan.toJson());
}

TEST(PlanJson, aChangedFileIsRefused) {
  Rack rack({"gpu001", "gpu002", "gpu003"});
  FactSet facts;
  auto text = rollout(rack, facts).toJson();
  const auto at = text.find("\"disruption\": \"wipe\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 20, "\"disruption\": \"none\"");
  auto plan = Plan::fromJson(text);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(plan.error().str(), HasSubstr("does not fit its hash"));
}

TEST(PlanJson, whateverIsNotAPlanIsRefusedWithWords) {
  Rack rack({"gpu001"});
  const auto good = nlohmann::json::parse(makePlan(rack.cluster, {}, {}, rack.phases())->toJson());
  for (const std::string text :
       {"", "{", "[]", "null", "{}", "{\"format\":\"muster-plan/2\"}", "{\"format\":7}"}) {
    auto plan = Plan::fromJson(text);
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(plan.error().str(), HasSubstr("muster plan"));
  }
  // Every member missing or of another type, at the top and in an action.
  for (const auto& item : good.items())
    for (const auto& wrong : {nlohmann::json(), nlohmann::json(3), nlohmann::json::array({1}),
                              nlohmann::json("text")}) {
      auto bad = good;
      bad[item.key()] = wrong;
      if (bad == good) continue;
      auto plan = Plan::fromJson(bad.dump());
      ASSERT_FALSE(plan) << item.key() << " = " << wrong;
      EXPECT_EQ(plan.error().code(), ErrorCode::Corrupt);
    }
  for (const auto& item : good["actions"][0].items()) {
    auto bad = good;
    bad["actions"][0][item.key()] = -1;
    EXPECT_FALSE(Plan::fromJson(bad.dump())) << item.key();
    bad["actions"][0].erase(item.key());
    EXPECT_FALSE(Plan::fromJson(bad.dump())) << item.key();
  }
}

TEST(PlanJson, textThatIsNotUtf8DoesNotThrow) {
  Plan plan;
  plan.facts_used[test::FakeWorld::ref("n1/x")] = "\xff\xfe";
  EXPECT_FALSE(plan.toJson().empty());
  EXPECT_TRUE(Plan::fromJson(plan.toJson()));
}

TEST(PlanStale, saysWhatChanged) {
  Rack rack({"gpu001", "gpu002", "gpu003"});
  FactSet facts;
  const auto plan = rollout(rack, facts);
  EXPECT_THAT(staleReasons(plan, rack.cluster, facts), IsEmpty());
  facts.put(factOf("gpu001/hw.serial", "another"));
  facts.put(factOf("gpu002/hw.gpu.0", "new"));
  facts.put(factOf("gpu003/enrolled", "yes"));
  facts.forget(Subject(NodeName("gpu002")), FacetName("os"));
  EXPECT_THAT(staleReasons(plan, rack.cluster, facts),
              ElementsAre("gpu001/hw.serial was 'serial-of-gpu001', is 'another'",
                          "gpu002/os was 'running', is not known any more",
                          "gpu003/enrolled was not known, is 'yes'",
                          "gpu002/hw.gpu.0 was not known, is 'new'"));
  rack.cluster.digest = "inventory-2";
  EXPECT_EQ(staleReasons(plan, rack.cluster, facts).front(),
            "the inventory has changed since the plan was made");
}

TEST(PlanStale, factsOfOthersDoNotMatter) {
  Rack rack({"gpu001", "gpu002"});
  auto facts = factsAtTheEnd(rack);
  facts.forget(Subject(NodeName("gpu001")), FacetName("fabric.ports"));
  auto plan = makePlan(rack.cluster, facts, {}, rack.phases());
  ASSERT_TRUE(plan);
  facts.put(factOf("gpu002/hw.serial", "another"));
  EXPECT_THAT(staleReasons(*plan, rack.cluster, facts), IsEmpty());
  facts.put(factOf("@cluster/fabric.sm", "gone"));  // gpu001's action needs it
  EXPECT_EQ(staleReasons(*plan, rack.cluster, facts).size(), 1u);
}

}  // namespace
}  // namespace muster::lifecycle
