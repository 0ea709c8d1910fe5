// SPDX-License-Identifier: Apache-2.0
// The fabric as declared and as the newest look at it left it.
#include "fabric/kept_report.h"

#include "tests/api/api_site.h"

namespace muster::api {
namespace {

class ApiFabric : public ApiSite {
 protected:
  void declareFabric() {
    std::string site(kSite);
    site.insert(site.find("pools:"),
                "fabric:\n  ib: {shape: rail-optimized, sus: 1, nodes_per_su: 4, rails: 2, "
                "spines_per_su: 2, switch_ports: 16, subnet_managers: [controller]}\n");
    const std::string profile = "image: bookworm, pool: batch";
    site.replace(site.find(profile), profile.size(), profile + ", fabric: ib");
    site_.write("cluster.yaml", site);
  }
  void keep(fabric::KeptReportKind kind, const std::string& json) {
    ASSERT_TRUE(
        fabric::keepReport(site_.options().state / "run/fabric", kind, SystemClock().now(), json));
  }
};

TEST_F(ApiFabric, isNotThereWhereNoneIsDeclared) {
  start();
  EXPECT_EQ(get("/fabric").status, 404);
  EXPECT_EQ(get("/fabric/cables").status, 404);
}

TEST_F(ApiFabric, cablesAreDeclaredUntilSomebodyLooks) {
  declareFabric();
  start();
  const auto fabric = get("/fabric");
  ASSERT_EQ(fabric.status, 200) << fabric.body;
  EXPECT_FALSE(fabric.json.contains("found"));
  EXPECT_EQ(fabric.json["levels"].size(), 2u);
  const auto cables = get("/fabric/cables");
  ASSERT_EQ(cables.status, 200) << cables.body;
  EXPECT_EQ(cables.items().size(), fabric.json["cables"]);
  for (const auto& cable : cables.items()) EXPECT_EQ(cable["state"], "not-seen");
}

TEST_F(ApiFabric, whatALookHasFoundStandsAtItsCable) {
  declareFabric();
  keep(fabric::KeptReportKind::Diff,
       R"({"format": "muster-fabric-diff/2", "fabric": "ib", "devices": 9, "links": 9,
           "deviations": [{"kind": "missing-link", "device": "gpu001 mlx5_0", "port": 1,
           "declared": "leaf-su1-r0 port 1", "found": "no cable", "repair": "plug it in"}],
           "repairs": [{"text": "plug it in", "moves": []}], "excluded": []})");
  keep(fabric::KeptReportKind::Health,
       R"({"links": [{"grade": "bad", "advice": "clean it", "transceiver": "MT1", "ends": [
           {"device": "gpu002 mlx5_1", "port": 1, "complaints": [{"text": "many errors"}]}]}],
           "hints": ["look at leaf-su1-r1"], "window_seconds": {"longest": 300.5}})");
  start();
  const auto fabric = get("/fabric");
  ASSERT_EQ(fabric.status, 200) << fabric.body;
  EXPECT_EQ(fabric.json["faulty"], 2);
  EXPECT_EQ(fabric.json["found"]["deviations"], 1);
  EXPECT_EQ(fabric.json["health"]["grades"]["bad"], 1);
  const auto faulty = get("/fabric/cables?faulty=true");
  ASSERT_EQ(faulty.items().size(), 2u) << faulty.body;
  const auto of_node = get("/fabric/cables?device=gpu001&faulty=true");
  ASSERT_EQ(of_node.items().size(), 1u) << of_node.body;
  EXPECT_EQ(of_node.items()[0]["faults"][0]["repair"], "plug it in");
  EXPECT_EQ(get("/fabric/cables?device=gpu00").items().size(), 0u) << "a name, and no part of one";
  EXPECT_EQ(get("/fabric/cables?limit=2").items().size(), 2u);
}

TEST_F(ApiFabric, measuredPairsAreThoseOfTheNewestIsolation) {
  declareFabric();
  const auto folder = site_.options().state / "validation";
  ASSERT_TRUE(io::makeDirs(folder, 0700));
  const auto evidence = [](double gbits) {
    return fmt::format(R"({{"typical_gbits": 390, "rounds_run": [{{"tests": [
        {{"a": "gpu001", "b": "gpu002", "gbits": {}}}]}}]}})",
                       gbits);
  };
  ASSERT_TRUE(io::writeFileAtomic(folder / "isolate-999.json", evidence(390)));
  ASSERT_TRUE(io::writeFileAtomic(folder / "isolate-1000.json", evidence(195)));
  start();
  const auto fabric = get("/fabric");
  ASSERT_TRUE(fabric.json.contains("pairs")) << fabric.body;
  EXPECT_EQ(fabric.json["pairs"]["names"], nlohmann::json({"gpu001", "gpu002"}));
  EXPECT_NEAR(fabric.json["pairs"]["shares"][1].get<double>(), 0.5, 0.01);
}

}  // namespace
}  // namespace muster::api
