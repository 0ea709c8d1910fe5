// SPDX-License-Identifier: Apache-2.0
// From a real subnet manager's tables to an accused cable: routes as ibtracert walks them, and an
// isolation that knows them.
#include "app/validation/isolation_paths.h"
#include "fabric/discovery/tools.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/simulated_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <regex>

namespace muster::validate::isolate {
namespace {

using muster::test::runAsync;
using ::testing::HasSubstr;

class SiteRoutesSystem : public ::testing::Test {
 protected:
  static constexpr int kNodes = 12, kRails = 2;

  void SetUp() override {
    for (int n = 0; n < kNodes; ++n) {
      site_.nodes.push_back(
          {cluster_.nodes[static_cast<std::size_t>(n)].name, "", {"mlx5_0", "mlx5_1"}, 0});
      site_.layout.leaf.push_back(n / 4);
      site_.layout.pod.push_back(0);
    }
    site_.layout.rails = kRails;
    site_.leaf_names = {"leaf-su1", "leaf-su2", "leaf-su3"};
    std::filesystem::create_directories(options_.run_folder);
    auto sm = tools_.command("opensm", {"-o", "-f", (options_.run_folder / "opensm.log").string()});
    sm.env["OSM_CACHE_DIR"] = sm.env["OSM_TMP_DIR"] = options_.run_folder.string();
    ASSERT_TRUE(runAsync(fabric_.processes().run(std::move(sm)), std::chrono::seconds(30)));
    auto found = runAsync(tools_.discover());
    ASSERT_TRUE(found) << found.error().str();
    found_ = std::move(*found);
    auto tables = runAsync(tools_.forwardingTables());
    ASSERT_TRUE(tables) << tables.error().str();
    tables_ = std::move(*tables);
  }

  std::string hca(int node, int rail) const {
    return fmt::format("{} mlx5_{}", site_.nodes[static_cast<std::size_t>(node)].name.str(), rail);
  }
  /// Cables between switches from one HCA to another, as ibtracert asks the switches for them.
  std::set<std::string> traced(int from, int to, int rail) {
    const auto lid = [&](int node) {
      return std::to_string(found_.devices.at(hca(node, rail)).addresses.at(1).lid);
    };
    auto ran = runAsync(fabric_.processes().run(tools_.command("ibtracert", {lid(from), lid(to)})),
                        std::chrono::seconds(20));
    EXPECT_TRUE(ran);
    static const std::regex kHop(
        R"re(^\[(\d+)\] -> (switch|ca) port \{0x[0-9a-f]+\}\[(\d+)\] lid \S+ "([^"]+)")re");
    std::set<std::string> out;
    std::istringstream lines(ran ? ran->out : "");
    std::string at;
    for (std::string line; std::getline(lines, line);) {
      std::smatch hop;
      if (!std::regex_search(line, hop, kHop)) continue;
      if (!at.empty() && hop[2] == "switch") {
        fabric::Link cable{{at, std::stoi(hop[1])}, {hop[4], std::stoi(hop[3])}, ""};
        if (cable.b < cable.a) std::swap(cable.a, cable.b);
        out.insert(toString(cable));
      }
      at = hop[4];
    }
    return out;
  }
  std::set<std::string> known(int a, int b, int rail) const {
    std::set<std::string> out;
    for (const int cable : site_.layout.cables(a, b, rail))
      out.insert(site_.routes->cables[static_cast<std::size_t>(cable)]);
    return out;
  }

  inventory::Cluster cluster_ = fabric::test::railCluster(kNodes, 3, 4, kRails, 2);
  fabric::test::SimulatedFabric fabric_{fabric::test::declared(cluster_)};
  fabric::FabricOptions options_ = fabric_.options();
  fabric::Tools tools_{fabric_.processes(), options_};
  Site site_;
  fabric::Topology found_;
  fabric::ForwardingTables tables_;
};

TEST_F(SiteRoutesSystem, areThoseOfIbtracertAndComeBackFromTheLog) {
  auto routes = app::siteRoutes(site_, fabric::Routes(found_, tables_));
  ASSERT_TRUE(routes) << routes.error().str();
  useRoutes(site_, std::move(*routes));
  for (const auto& [a, b, rail] :
       {std::tuple(0, 5, 0), std::tuple(0, 11, 1), std::tuple(7, 8, 1), std::tuple(2, 9, 0)}) {
    auto both = traced(a, b, rail);
    EXPECT_GE(both.size(), 2u);
    both.merge(traced(b, a, rail));
    EXPECT_EQ(known(a, b, rail), both) << a << " with " << b;
  }
  EXPECT_TRUE(known(0, 3, 0).empty()) << "on one leaf";
  const auto again = siteFromJson(siteToJson(site_));
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->layout.cables(0, 5, 1), site_.layout.cables(0, 5, 1));
  auto cut = siteToJson(site_);
  cut["routes"]["rails"][0]["entry"][3] = 99;
  EXPECT_FALSE(siteFromJson(cut));
}

TEST_F(SiteRoutesSystem, aSlowCableIsNamedByItsSwitchPorts) {
  auto routes = app::siteRoutes(site_, fabric::Routes(found_, tables_));
  ASSERT_TRUE(routes) << routes.error().str();
  useRoutes(site_, std::move(*routes));
  const int slow = site_.layout.cables(0, 5, 1).front();
  int tests = 0;
  Isolation isolation(site_.layout, {.groups = false, .seed = 7});
  while (const auto round = isolation.next()) {
    RoundResult result;
    for (const auto& group : round->groups) {
      GroupResult one;
      for (int rail = 0; rail < kRails; ++rail) {
        const auto used = site_.layout.cables(group.members[0], group.members[1], rail);
        const bool hit = std::find(used.begin(), used.end(), slow) != used.end();
        one.rail_gbits.push_back((hit ? 190 : 390) + 0.3 * (++tests % 7));
      }
      result.push_back(std::move(one));
    }
    isolation.learn(result);
  }
  const auto verdict = isolation.verdict();
  ASSERT_EQ(verdict.culprits.size(), 1u) << toText(site_, verdict);
  EXPECT_EQ(verdict.culprits[0].kind, CulpritKind::Cable);
  EXPECT_EQ(toJson(site_, verdict)["culprits"][0]["cable"],
            site_.routes->cables[static_cast<std::size_t>(slow)]);
  EXPECT_THAT(toText(site_, verdict), HasSubstr(" port "));
}

TEST_F(SiteRoutesSystem, aNodeThatIsNotOnTheFabricIsNamed) {
  site_.nodes[3].devices[1] = "mlx5_9";
  const auto routes = app::siteRoutes(site_, fabric::Routes(found_, tables_));
  ASSERT_FALSE(routes);
  EXPECT_THAT(routes.error().str(), HasSubstr("gpu004 mlx5_9"));
  site_.nodes[3].devices[1] = "mlx5_1";
  for (auto& [guid, table] : tables_) table.assign(table.size(), fabric::kNoRoute);
  EXPECT_FALSE(app::siteRoutes(site_, fabric::Routes(found_, tables_)));
}

}  // namespace
}  // namespace muster::validate::isolate
