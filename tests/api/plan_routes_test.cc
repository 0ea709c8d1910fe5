// SPDX-License-Identifier: Apache-2.0
// A look ahead, and firmware as a table.
#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::HasSubstr;

class ApiPlan : public ApiSite {};

TEST_F(ApiPlan, looksAheadByWhatWasSeen) {
  fill();
  start();
  const auto all = get("/plan");
  ASSERT_EQ(all.status, 200) << all.body;
  EXPECT_GT(all.json["impact"]["actions"], 0);
  EXPECT_EQ(all.json["groups"].size(), all.json["groups_count"]);
  std::size_t actions = 0;
  for (const auto& group : all.json["groups"]) actions += group["nodes_count"].get<std::size_t>();
  EXPECT_EQ(actions, all.json["impact"]["actions"]);
  const auto one = get("/plan?nodes=gpu003");
  ASSERT_EQ(one.status, 200) << one.body;
  EXPECT_LT(one.json["impact"]["actions"], all.json["impact"]["actions"]);
  for (const auto& group : one.json["groups"]) {
    const std::string nodes = group["nodes"];
    EXPECT_TRUE(nodes == "gpu003" || nodes == "@cluster") << nodes;
  }
}

TEST_F(ApiPlan, refusesNodesThatAreNotThere) {
  start();
  EXPECT_EQ(get("/plan?nodes=gpu9").status, 404);
  EXPECT_EQ(get("/plan?nodes=gpu%5B1-").status, 400);
  EXPECT_EQ(get("/plan?what=x").status, 400);
}

TEST_F(ApiPlan, moreNodesThanCanBeLookedAtAtOnceAreRefusedInWords) {
  std::string site(kSite);
  site += R"(  - {names: "far[0001-2100]", profile: gpu-node, from: far.csv})";
  std::string csv = "name,mac,address,bmc\n";
  for (int i = 1; i <= 2'100; ++i)
    csv += fmt::format("far{:04},52:54:01:00:{:02x}:{:02x},10.20.{}.{},https://10.21.{}.{}\n", i,
                       i / 256, i % 256, 2 + i / 250, i % 250 + 1, 2 + i / 250, i % 250 + 1);
  site_.write("far.csv", csv);
  site_.write("cluster.yaml", site + "\n");
  start();
  const auto refused = get("/plan");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_THAT(refused.json["what_to_do"].get<std::string>(), HasSubstr("ask for a run"));
  EXPECT_EQ(get("/plan?nodes=far0001").status, 200);
}

TEST_F(ApiPlan, firmwareIsATable) {
  std::string site(kSite);
  const auto place = site.find("pools:");
  site.insert(place,
              "firmware:\n  b1: {components: {BMC: {version: \"3.0\", file: bmc.bin, sha256: " +
                  io::sha256Hex("bmc") + "}}}\n");
  const std::string profile = "image: bookworm, pool: batch";
  site.replace(site.find(profile), profile.size(), profile + ", firmware: b1");
  site_.write("bmc.bin", "bmc");
  site_.write("cluster.yaml", site);
  {
    const auto store = site_.store();
    const auto now = SystemClock().now();
    for (const auto* node : {"gpu001", "gpu002"})
      ASSERT_TRUE(
          store->putFacts({{lifecycle::Subject(NodeName(node)), FacetName("firmware.BMC"),
                            node == std::string("gpu001") ? "3.0" : "1.0", now, "bmc", ""}}));
  }
  start();
  const auto said = get("/firmware");
  ASSERT_EQ(said.status, 200) << said.body;
  ASSERT_EQ(said.items().size(), 3u) << said.body;
  std::map<std::string, std::string> states;
  for (const auto& cell : said.items()) states[cell["nodes"]] = cell["state"];
  EXPECT_EQ(states["gpu001"], "as-declared");
  EXPECT_EQ(states["gpu002"], "to-update");
  EXPECT_EQ(states["gpu003"], "unknown");
  EXPECT_EQ(get("/firmware?limit=1").json["next"], "1");
}

}  // namespace
}  // namespace muster::api
