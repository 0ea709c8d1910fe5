// SPDX-License-Identifier: Apache-2.0
// Windows and users over the API, as the inventory and the access file have them.
#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::HasSubstr;

class ApiSettings : public ApiSite {
 protected:
  void maintain(const std::string& windows) {
    std::string site(kSite);
    const std::string pool = "debug: {slurm: {partition: debug}}";
    site.replace(site.find(pool), pool.size(),
                 "debug: {slurm: {partition: debug}, maintenance: [" + windows + "]}");
    site_.write("cluster.yaml", site);
  }
};

TEST_F(ApiSettings, poolsWithWindowsSayWhenTheyAreOpen) {
  maintain(R"({from: "00:00", minutes: 1440})");
  start();
  const auto said = get("/windows");
  ASSERT_EQ(said.status, 200) << said.body;
  ASSERT_EQ(said.items().size(), 1u) << "a pool without windows is not listed";
  const auto& pool = said.items()[0];
  EXPECT_EQ(pool["pool"], "debug");
  EXPECT_EQ(pool["is_open"], true);
  EXPECT_EQ(pool["windows"][0]["from"], "00:00");
  EXPECT_EQ(pool["windows"][0]["minutes"], 24 * 60);
  EXPECT_EQ(pool["spans"].size(), 1u) << "day after day, without a gap";
}

TEST_F(ApiSettings, aWindowOfOneDayOpensOnThatDayInItsZone) {
  maintain(R"({days: [tue], from: "22:30", minutes: 120, time_zone: Asia/Tokyo})");
  start();
  const auto pool = get("/windows").items()[0];
  EXPECT_EQ(pool["windows"][0]["days"], nlohmann::json::array({"tue"}));
  ASSERT_GE(pool["spans"].size(), 2u) << "of 15 days, two Tuesdays at least";
  for (const auto& span : pool["spans"])  // Tokyo is nine hours ahead, all year
    EXPECT_THAT(span["opens"].get<std::string>(), HasSubstr("T13:30:00"));
}

TEST_F(ApiSettings, usersAreTheRowsOfTheAccessFileForAdminsAlone) {
  site_.write("access.conf",
              "user root admin\ngroup hpc operator pools=batch\nuser nobody king\n"
              "certificate cn=ci robot\n");
  start("127.0.0.1:0");
  const auto said = get("/users");
  ASSERT_EQ(said.status, 200) << said.body;
  ASSERT_EQ(said.items().size(), 4u) << said.body;
  EXPECT_EQ(said.items()[0]["role"], "admin");
  EXPECT_EQ(said.items()[1]["kind"], "group");
  EXPECT_EQ(said.items()[1]["scope"]["pools"], nlohmann::json::array({"batch"}));
  EXPECT_THAT(said.items()[2]["wrong"].get<std::string>(), HasSubstr("king"));
  EXPECT_EQ(said.items()[3]["who"], "cn=ci");
  const auto token = post("/tokens", {{"name", "op"}, {"role", "operator"}, {"owner", "otto"}});
  const auto refused = ask({.target = "/api/v1/users",
                            .token = token.json["token"].get<std::string>(),
                            .over_https = true});
  EXPECT_EQ(refused.status, 403) << refused.body;
}

TEST_F(ApiSettings, aRackSaysItsPowerAgainstWhatItsNodesDraw) {
  site_.write("cluster.yaml",
              "racks: {r1: {power_watts: 20000, cooling_watts: 18000}}\n" + std::string(kSite));
  start();
  const auto racks = get("/racks").items();
  ASSERT_EQ(racks.size(), 2u);
  EXPECT_EQ(racks[0]["power"]["limit_watts"], 18000) << "what can be cooled away";
  EXPECT_EQ(racks[0]["power"]["estimated_nodes"], 2);
  EXPECT_GT(racks[0]["power"]["full_load_watts"], 16 * 700) << "two nodes of eight GPUs";
  EXPECT_EQ(racks[0]["power"]["read_nodes"], 0) << "nobody has read a BMC";
  EXPECT_FALSE(racks[1].contains("power")) << "r2 is not declared";
}

TEST_F(ApiSettings, aRackSaysWhatItsMachinesDrawAndOfWhichNobodyKnows) {
  site_.write("cluster.yaml", "racks: {r1: {power_watts: 20000}}\n" + std::string(kSite));
  start();
  const auto nodes = get("/nodes?rack=r1").items();
  ASSERT_EQ(nodes.size(), 2u);
  const std::string one = nodes[0]["node"], other = nodes[1]["node"];
  auto power = get("/racks/r1/power");
  ASSERT_EQ(power.status, 200) << power.body;
  EXPECT_EQ(power.json["drawn_watts"], 0);
  EXPECT_EQ(power.json["unread"].size(), 2u) << "unknown, and not nothing";
  EXPECT_FALSE(power.json.contains("oldest_at"));
  const auto now = SystemClock().now();
  const auto read = [](const std::string& node, WallTime at, const char* evidence) {
    return lifecycle::Fact{
        lifecycle::Subject(NodeName(node)), FacetName("health.bmc"), "ok", at, "redfish", evidence};
  };
  ASSERT_TRUE(site_.store()->putFacts(
      {read(one, now, R"({"power": {"watts": 7250.5, "of": "4 power supplies"}})"),
       read(other, now - std::chrono::hours(1), R"({"power": {"watts": 100, "of": "PSU1"}})")}));
  power = get("/racks/r1/power");
  EXPECT_EQ(power.json["drawn_watts"], 7250.5);
  ASSERT_EQ(power.json["readings"].size(), 1u);
  EXPECT_EQ(power.json["readings"][0]["node"], one);
  EXPECT_EQ(power.json["readings"][0]["of"], "4 power supplies");
  EXPECT_EQ(power.json["unread"], nlohmann::json::array({other})) << "an hour is too old";
  EXPECT_EQ(power.json["limit_watts"], 20000);
  EXPECT_FALSE(get("/racks/r2/power").json.contains("limit_watts"));
  EXPECT_EQ(get("/racks/r99/power").status, 404);
}

TEST_F(ApiSettings, allRacksSayWhatTheyDraw) {
  site_.write("cluster.yaml", "racks: {r1: {power_watts: 20000}}\n" + std::string(kSite));
  const auto now = SystemClock().now();
  const auto read = [&](const char* node, double watts) {
    return lifecycle::Fact{lifecycle::Subject(NodeName(node)),
                           FacetName("health.bmc"),
                           "ok",
                           now,
                           "redfish",
                           fmt::format(R"({{"power": {{"watts": {}, "of": "PSU1"}}}})", watts)};
  };
  ASSERT_TRUE(site_.store()->putFacts({read("gpu001", 7250.5), read("gpu003", 610)}));
  start();
  const auto racks = get("/racks").items();
  ASSERT_EQ(racks.size(), 2u);
  EXPECT_EQ(racks[0]["power"]["drawn_watts"], 7250.5);
  EXPECT_EQ(racks[0]["power"]["read_nodes"], 1) << "of two";
  EXPECT_EQ(racks[0]["power"]["limit_watts"], 20000);
  EXPECT_EQ(racks[0]["power"]["oldest_at"], muster::toString(now));
  EXPECT_EQ(racks[1]["power"]["drawn_watts"], 610);
  EXPECT_FALSE(racks[1]["power"].contains("limit_watts")) << "read, and not declared";
}

TEST_F(ApiSettings, aSerialNumberFindsItsNode) {
  std::string site(kSite);
  const std::string before = "rack: r1, unit: 12}";
  site.replace(site.find(before), before.size(), "rack: r1, unit: 12, serial: SN-4711}");
  site_.write("cluster.yaml", site);
  start();
  const auto found = get("/nodes?serial=SN-4711").items();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["node"], "gpu002");
  EXPECT_EQ(get("/nodes?serial=SN-471").items().size(), 0u);
}

}  // namespace
}  // namespace muster::api
