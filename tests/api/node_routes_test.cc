// SPDX-License-Identifier: Apache-2.0
// Which nodes are listed, and in what pages.
#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::ElementsAre;

class ApiNodes : public ApiSite {};

TEST_F(ApiNodes, filtersAndPagesOfNodes) {
  fill();
  start();
  const auto namesOf = [](const Said& said) {
    std::vector<std::string> out;
    for (const auto& each : said.items()) out.push_back(each["node"]);
    return out;
  };
  EXPECT_THAT(namesOf(get("/nodes?rack=r2")), ElementsAre("gpu003", "login1"));
  EXPECT_THAT(namesOf(get("/nodes?nodes=gpu%5B001-002%5D&rack=r1")),
              ElementsAre("gpu001", "gpu002"));
  EXPECT_THAT(namesOf(get("/nodes?pool=debug")), ElementsAre("login1"));
  EXPECT_THAT(namesOf(get("/nodes?findings=true")), ElementsAre("gpu002"));
  const auto first = get("/nodes?limit=3");
  EXPECT_THAT(namesOf(first), ElementsAre("gpu001", "gpu002", "gpu003"));
  EXPECT_EQ(first.json["total"], 4);
  const auto second = get("/nodes?limit=3&cursor=" + first.json["next"].get<std::string>());
  EXPECT_THAT(namesOf(second), ElementsAre("login1"));
  EXPECT_FALSE(second.json.contains("next"));
  EXPECT_EQ(get("/certificates?limit=3").json["next"], "3");
  EXPECT_EQ(get("/nodes?state=in-pool").status, 400) << "a mistyped word is not an empty fleet";
  EXPECT_EQ(get("/nodes?state=imaging").status, 200);
  EXPECT_EQ(get("/findings?severity=bogus").status, 400);
  EXPECT_EQ(get("/findings?severity=error").status, 200);
}

TEST_F(ApiNodes, anErasureThatNeverWasIsSaidSo) {
  fill();
  start();
  const auto said = get("/nodes/gpu001/erasure");
  EXPECT_EQ(said.status, 404);
  EXPECT_EQ(said.json["detail"], "gpu001 was never erased: there is no report");
  EXPECT_EQ(get("/nodes/gpu999/erasure").status, 404);
}

}  // namespace
}  // namespace muster::api
