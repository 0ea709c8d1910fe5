// SPDX-License-Identifier: Apache-2.0
// The fabric as declared and as the newest look at it left it.
#include "base/io/files.h"
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

TEST_F(ApiFabric, ofSeveralTheAskedOne) {
  declareFabric();
  auto site = io::readFile(site_.options().inventory).value();
  const std::string ib = "  ib: {shape";
  site.replace(site.find(ib), ib.size(),
               "  storage: {purpose: storage, switch_prefix: st-, controller_hca: mlx5_1, "
               "nodes_per_su: 4, switch_ports: 16, subnet_managers: [controller]}\n" +
                   ib);
  const std::string profile = "fabric: ib";
  site.replace(site.find(profile), profile.size(),
               "fabric: [ib, storage], rails: [{hca: mlx5_0, fabric: ib}, {hca: mlx5_1, fabric: "
               "storage}]");
  site_.write("cluster.yaml", site);
  ASSERT_TRUE(fabric::keepReport(
      site_.options().state / "run/fabrics/storage", fabric::KeptReportKind::Diff,
      SystemClock().now(),
      R"({"format": "muster-fabric-diff/2", "fabric": "storage", "devices": 3, "links": 2,
          "deviations": [], "repairs": [], "excluded": []})"));
  start();
  const auto main = get("/fabric");
  ASSERT_EQ(main.status, 200) << main.body;
  EXPECT_EQ(main.json["name"], "ib");
  EXPECT_EQ(main.json["fabrics"], (nlohmann::json{"ib", "storage"}));
  EXPECT_FALSE(main.json.contains("found")) << "the other one was looked at";
  const auto storage = get("/fabric?fabric=storage");
  ASSERT_EQ(storage.status, 200) << storage.body;
  EXPECT_EQ(storage.json["name"], "storage");
  EXPECT_EQ(storage.json["found"]["devices"], 3);
  for (const auto& cable : get("/fabric/cables?fabric=storage").items())
    EXPECT_TRUE(cable["b"].get<std::string>().starts_with("st-") ||
                cable["a"].get<std::string>().starts_with("st-"))
        << cable;
  EXPECT_EQ(get("/fabric?fabric=stroage").status, 404);
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

TEST_F(ApiFabric, aLookAtAnotherFabricSaysNothingOfThisOne) {
  declareFabric();
  keep(fabric::KeptReportKind::Diff,
       R"({"fabric": "old", "devices": 9, "links": 9, "deviations": [], "excluded": []})");
  start();
  EXPECT_FALSE(get("/fabric").json.contains("found"));
  const auto cables = get("/fabric/cables");
  for (const auto& cable : cables.items()) EXPECT_EQ(cable["state"], "not-seen");
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
