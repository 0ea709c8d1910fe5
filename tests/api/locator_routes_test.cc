// SPDX-License-Identifier: Apache-2.0
// The locate LED over the API: asked beside the reader's thread; what a BMC does not answer is said
// in its words.
#include "tests/api/api_site.h"

#include <thread>

namespace muster::api {
namespace {

class ApiLocator : public ApiSite {};

TEST_F(ApiLocator, aBmcThatDoesNotAnswerIsSaidAndHoldsUpNobody) {
  std::string site(kSite);
  // A port where nobody listens: refused at once.
  const std::string bmc = "https://10.20.250.1";
  site.replace(site.find(bmc), bmc.size(), "https://127.0.0.1:1");
  site_.write("cluster.yaml", site);
  start();
  EXPECT_EQ(get("/nodes/gpu001/locator").json["state"], "unknown");
  EXPECT_EQ(post("/nodes/gpu001/locator", {{"led", "blink"}}).status, 400);
  EXPECT_EQ(post("/nodes/nothere/locator", {{"led", "on"}}).status, 404);
  const auto asked = post("/nodes/gpu001/locator", {{"led", "on"}});
  ASSERT_EQ(asked.status, 202) << asked.body;
  EXPECT_EQ(asked.json["state"], "asking");
  EXPECT_EQ(get("/site").status, 200) << "others are answered meanwhile";
  Said said;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    said = get("/nodes/gpu001/locator");
  } while (said.json["state"] == "asking" && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(said.json["state"], "failed") << said.body;
  EXPECT_NE(said.json["text"], "");
  EXPECT_EQ(get("/nodes/gpu002/locator").json["state"], "unknown");
}

}  // namespace
}  // namespace muster::api
