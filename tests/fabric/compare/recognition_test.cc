// SPDX-License-Identifier: Apache-2.0
// Names that are not ours: correct cables give no job, one wrong cable gives one.
#include "fabric/compare/recognition.h"
#include "fabric/compare/compare.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// All devices of one kind, by a rule.
Topology withNames(const Topology& topology,
                   const std::function<std::string(const Device&)>& name) {
  Topology out;
  const auto now = [&](const std::string& old) { return name(topology.devices.at(old)); };
  for (const auto& [old, device] : topology.devices) {
    auto& one = out.devices[now(old)] = device;
    one.name = now(old);
  }
  EXPECT_EQ(out.devices.size(), topology.devices.size());
  for (const auto& link : topology.links)
    plug(out, {now(link.a.node), link.a.number}, {now(link.b.node), link.b.number},
         link.width_speed);
  return out;
}

/// As a kernel without rdma-ndd's setting and a switch out of its box answer: "gpu001 HCA-5",
/// one name for all switches, which the parser tells apart by GUID.
std::string factoryName(const Device& device) {
  static const std::hash<std::string> hash;
  if (device.is_switch)
    return fmt::format("Quantum-2 Mellanox Technologies (0x{:016x})", hash(device.name));
  const auto number = device.name.substr(device.name.find_last_not_of("0123456789") + 1);
  return fmt::format("{} HCA-{}", hostOf(device.name), std::stoi(number) + 1);
}
/// A switch with MLNX-OS and a name of its site.
std::string mlnxOsName(const Device& device) {
  static const std::hash<std::string> hash;
  return device.is_switch ? fmt::format("MF0;ib-r{:02}-{:x}:MQM9700/U1", hash(device.name) % 40,
                                        hash(device.name))
                          : device.name;
}

inventory::Cluster wholeUnit() { return test::scalableUnit(31, {"controller"}); }

std::vector<inventory::Cluster> shapes() {
  auto three = railCluster(24, 3, 8, 2, 2);
  three.fabrics["ib"].shape = inventory::FabricShape::FatTree;
  three.fabrics["ib"].leaves_per_su = 3;
  three.fabrics["ib"].cores = 4;
  auto gaps = railCluster(6, 2);
  gaps.profiles["gpu-node"].rails = {{"mlx5_0", 0, {}}, {"mlx5_3", 1, {}}};
  return {railCluster(4), railCluster(7, 2), wholeUnit(), three, gaps};
}

struct Found {
  Recognized recognized;
  Comparison compared;
};
Found comparedWith(const Topology& declared, Topology found) {
  Found out;
  out.recognized = recognize(declared, std::move(found));
  out.compared = compare(declared, out.recognized.found);
  return out;
}

TEST(Recognition, givesNoJobForCorrectCablesWhateverTheNames) {
  for (const auto& cluster : shapes()) {
    const auto wish = declared(cluster);
    for (const auto& rule : {factoryName, mlnxOsName}) {
      const auto now = comparedWith(wish, withNames(wish, rule));
      EXPECT_THAT(now.compared.deviations, IsEmpty())
          << now.compared.deviations.front().repair << "\n"
          << now.recognized.note;
      EXPECT_THAT(now.recognized.note, HasSubstr("recognized by their cables"));
      EXPECT_EQ(now.recognized.found.links, wish.links);
    }
  }
}

TEST(Recognition, readsThroughTheTextsOfTheTools) {
  const auto wish = declared(railCluster(7, 2));
  auto text = foundText(withNames(wish, [](const Device& device) {
    return device.is_switch ? device.name : factoryName(device);
  }));
  // Switches out of the box all have one name; the text tells them apart by their GUIDs.
  for (const auto& [name, device] : wish.devices)
    for (auto at = text.find("\"" + name + "\""); device.is_switch && at != std::string::npos;
         at = text.find("\"" + name + "\""))
      text.replace(at + 1, name.size(), "Quantum Mellanox Technologies");
  const auto found = parseFound(text);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_THAT(comparedWith(wish, *found).compared.deviations, IsEmpty());
}

TEST(Recognition, leavesNamesThatAreDeclaredAlone) {
  const auto wish = declared(railCluster(4));
  const auto now = recognize(wish, wish);
  EXPECT_EQ(now.note, "");
  EXPECT_THAT(now.names, IsEmpty());
  EXPECT_EQ(now.found.links, wish.links);
}

TEST(Recognition, givesOneJobForOneFault) {
  for (const auto& cluster : {railCluster(7, 2), wholeUnit()}) {
    const auto wish = declared(cluster);
    const auto old = withNames(wish, factoryName);
    auto found = old;
    const auto leaf = factoryName(wish.devices.at("leaf-su1-r1"));
    unplug(found, {leaf, cluster.fabrics.at("ib").switch_ports / 2 + 1});
    auto now = comparedWith(wish, found);
    ASSERT_THAT(now.compared.repairs, SizeIs(1));
    EXPECT_THAT(now.compared.repairs[0].text,
                HasSubstr("plug in or replace the cable between leaf-su1-r1"));

    found = old;  // a rail swap at one host
    unplug(found, {"gpu002 HCA-1", 1});
    unplug(found, {"gpu002 HCA-2", 1});
    plug(found, {"gpu002 HCA-1", 1}, {leaf, 2});
    plug(found, {"gpu002 HCA-2", 1}, {factoryName(wish.devices.at("leaf-su1-r0")), 2});
    now = comparedWith(wish, found);
    ASSERT_THAT(now.compared.repairs, SizeIs(1));
    EXPECT_EQ(now.compared.repairs[0].text,
              "swap the cables at gpu002 mlx5_0 port 1 and gpu002 mlx5_1 port 1");

    found = old;  // a dead spine
    const auto spine = factoryName(wish.devices.at("spine-001"));
    std::erase_if(found.links,
                  [&](const Link& link) { return link.a.node == spine || link.b.node == spine; });
    found.devices.erase(spine);
    now = comparedWith(wish, found);
    ASSERT_THAT(now.compared.repairs, SizeIs(1));
    EXPECT_EQ(now.compared.repairs[0].text, "check power of spine-001 and its cables");

    found = old;  // a node that is off
    for (int hca = 1; hca <= cluster.fabrics.at("ib").rails; ++hca) {
      const auto name = fmt::format("gpu003 HCA-{}", hca);
      unplug(found, {name, 1});
      found.devices.erase(name);
    }
    now = comparedWith(wish, found);
    ASSERT_THAT(now.compared.repairs, SizeIs(1));
    EXPECT_THAT(now.compared.repairs[0].text, HasSubstr("check that gpu003 is powered"));
  }
}

TEST(Recognition, learnsFromNamedSwitchesWhichLabelIsWhichRail) {
  // mlx5_1 and mlx5_2 are the storage's: what answers as HCA-4 is on rail 1.
  const auto wish = declared(railCluster(4));
  auto found = withNames(wish, [](const Device& device) {
    if (device.is_switch || hostOf(device.name) == "controller") return device.name;
    return fmt::format("{} HCA-{}", hostOf(device.name), device.name.ends_with("0") ? 7 : 4);
  });
  EXPECT_THAT(comparedWith(wish, found).compared.deviations, IsEmpty());
  unplug(found, {"gpu002 HCA-7", 1});
  unplug(found, {"gpu002 HCA-4", 1});
  plug(found, {"gpu002 HCA-7", 1}, {"leaf-su1-r1", 2});
  plug(found, {"gpu002 HCA-4", 1}, {"leaf-su1-r0", 2});
  const auto now = comparedWith(wish, found);
  ASSERT_THAT(now.compared.repairs, SizeIs(1));
  EXPECT_THAT(now.compared.repairs[0].text, HasSubstr("swap the cables at gpu002 mlx5_0"));
}

TEST(Recognition, knowsAHostByItsFullNameAndInCapitals) {
  const auto wish = declared(railCluster(4));
  const auto found = withNames(wish, [](const Device& device) {
    if (device.is_switch) return device.name;
    const auto space = device.name.find(' ');
    return "GPU" + device.name.substr(3, space - 3) + ".hall-2.example.com" +
           device.name.substr(space);
  });
  auto now = comparedWith(wish, found);
  EXPECT_THAT(now.compared.repairs, SizeIs(1)) << "the controller's, whose name was spoilt";
}

TEST(Recognition, doesNotTakeOneOfTwoThatCarryOneName) {
  const auto wish = declared(railCluster(4));
  auto found = wish;
  rename(found, "gpu001 mlx5_0", "gpu001 HCA-1 (0x0000000000000001)");
  rename(found, "gpu002 mlx5_0", "gpu001 HCA-1 (0x0000000000000002)");
  EXPECT_THAT(recognize(wish, found).names, IsEmpty());
}

TEST(Recognition, givesNoNameAwayThatADeviceCarries) {
  const auto wish = declared(railCluster(4));
  auto found = wish;  // somebody calls himself gpu001 beside the real one
  found.devices["gpu001 HCA-1"] = {"gpu001 HCA-1", false, 1, "0x9", {}};
  plug(found, {"gpu001 HCA-1", 1}, {"leaf-su1-r0", 6});
  const auto now = comparedWith(wish, found);
  EXPECT_THAT(now.recognized.names, IsEmpty());
  ASSERT_THAT(now.compared.deviations, SizeIs(1));
  EXPECT_EQ(now.compared.deviations[0].kind, DeviationKind::ExtraNode);
}

TEST(Recognition, mergesNoTwoDevicesWhereASwitchCarriesAnHcasName) {
  const auto wish = declared(railCluster(4));
  auto found = wish;
  rename(found, "gpu001 mlx5_0", "gpu001 HCA-1");
  rename(found, "spine-001", "gpu001 mlx5_0");
  const auto now = comparedWith(wish, found);
  EXPECT_EQ(now.recognized.found.devices.size(), wish.devices.size());
  EXPECT_EQ(now.recognized.found.links.size(), wish.links.size());
  EXPECT_FALSE(now.compared.deviations.empty());
}

TEST(Recognition, givesOneJobForAFleetThatNobodyNamed) {
  const auto wish = declared(wholeUnit());
  const auto found = withNames(wish, [](const Device& device) {
    const std::hash<std::string> hash;
    return device.is_switch || hostOf(device.name) == "controller"
               ? device.name
               : fmt::format("localhost{} {}", hash(std::string(hostOf(device.name))),
                             device.name.substr(device.name.find(' ') + 1));
  });
  const auto now = comparedWith(wish, found);
  EXPECT_THAT(now.compared.deviations, SizeIs(31 * 8));
  ASSERT_THAT(now.compared.repairs, SizeIs(1));
  EXPECT_THAT(now.compared.repairs[0].text,
              AllOf(HasSubstr("31 hosts answer with names that are not declared"),
                    HasSubstr("move no cable")));
}

TEST(Recognition, givesOneJobForAHostWithAnotherName) {
  const auto wish = declared(wholeUnit());
  auto found = wish;
  for (int rail = 0; rail < 8; ++rail)
    rename(found, fmt::format("gpu007 mlx5_{}", rail), fmt::format("localhost mlx5_{}", rail));
  const auto now = comparedWith(wish, found);
  ASSERT_THAT(now.compared.repairs, SizeIs(1));
  EXPECT_THAT(now.compared.repairs[0].text,
              HasSubstr("and 7 more ports answers as localhost: set its host name to gpu007"));
}

// One host whose HCA has another name than all others' is a cable in the wrong HCA, not a habit.
TEST(Recognition, believesTheMajorityAboutWhatAnHcaIsCalled) {
  const auto wish = declared(railCluster(8, 1, 9));
  for (const char* label : {"mlx5_7", "mlx4_0", "HCA-9", "bnxt_re0"}) {
    auto found = wish;
    const auto strange = fmt::format("gpu001 {}", label);
    rename(found, "gpu001 mlx5_0", strange);
    const auto now = comparedWith(wish, found);
    EXPECT_EQ(now.recognized.note, "");
    ASSERT_THAT(now.compared.deviations, SizeIs(1)) << label;
    EXPECT_EQ(now.compared.deviations[0].kind, DeviationKind::WrongDescription);
    EXPECT_EQ(
        now.compared.repairs[0].text,
        fmt::format("{0} is at leaf-su1-r0 port 1, where gpu001 mlx5_0 belongs: move the cable "
                    "from {0} to gpu001 mlx5_0; if they are one, set its node description to "
                    "gpu001 mlx5_0",
                    strange));
  }
  auto both = wish;
  rename(both, "gpu001 mlx5_0", "gpu001 mlx5_2");
  rename(both, "gpu001 mlx5_1", "gpu001 mlx5_3");
  EXPECT_THAT(comparedWith(wish, both).compared.deviations, SizeIs(2));
  auto kernels = wish;  // a host without rdma-ndd: its first device is mlx5_0
  rename(kernels, "gpu001 mlx5_0", "gpu001 HCA-1");
  EXPECT_THAT(comparedWith(wish, kernels).compared.deviations, IsEmpty());
}

/// What the kernel does when a card has died: mlx5_N is the order in which it finds them.
void dieAndNumberAnew(Topology& found, const std::string& host, int dead, int hcas) {
  const auto name = [&](int number) { return fmt::format("{} mlx5_{}", host, number); };
  unplug(found, {name(dead), 1});
  found.devices.erase(name(dead));
  for (int hca = dead + 1; hca < hcas; ++hca) rename(found, name(hca), name(hca - 1));
}

// What was wrong: three good cables were to be moved, and one plugged in.
TEST(Recognition, aDeadHcaWhoseSuccessorsAreNumberedAnewMovesNoCable) {
  const auto wish = declared(wholeUnit());
  for (const int dead : {0, 3, 6, 7}) {
    auto found = wish;
    dieAndNumberAnew(found, "gpu007", dead, 8);
    const auto now = comparedWith(wish, found);
    ASSERT_THAT(now.compared.deviations, SizeIs(1)) << dead;
    EXPECT_EQ(now.compared.deviations[0].kind, DeviationKind::MissingNode);
    EXPECT_EQ(now.compared.deviations[0].at.node, fmt::format("gpu007 mlx5_{}", dead));
    if (dead < 7)
      EXPECT_THAT(now.recognized.note, HasSubstr("gpu007 shows fewer HCAs than it has"));
  }
  auto two = wish;  // of one host both
  dieAndNumberAnew(two, "gpu007", 5, 8);
  dieAndNumberAnew(two, "gpu007", 2, 7);
  const auto now = comparedWith(wish, two);
  ASSERT_THAT(now.compared.deviations, SizeIs(2));
  EXPECT_EQ(now.compared.deviations[0].at.node, "gpu007 mlx5_2");
  EXPECT_EQ(now.compared.deviations[1].at.node, "gpu007 mlx5_5");
}

TEST(Recognition, swappedRailsOfAHostThatLacksAnHcaStaySwapped) {
  const auto wish = declared(wholeUnit());
  auto found = wish;
  unplug(found, {"gpu007 mlx5_0", 1});
  found.devices.erase("gpu007 mlx5_0");
  rename(found, "gpu007 mlx5_4", "gpu007 spare");
  rename(found, "gpu007 mlx5_5", "gpu007 mlx5_4");
  rename(found, "gpu007 spare", "gpu007 mlx5_5");
  const auto now = comparedWith(wish, found);
  EXPECT_THAT(now.compared.deviations, SizeIs(3));
  EXPECT_EQ(now.recognized.note, "");
}

TEST(Recognition, believesAnHcaThatAnotherFabricDeclares) {
  const auto cluster = twoFabrics(3);
  const auto& storage = cluster.fabrics.at("storage");
  const auto plugged = [](const Topology& wish, const char* own, const std::string& stray,
                          const Port& at) {
    auto found = wish;
    unplug(found, at);
    found.devices.erase(own);
    found.devices[stray] = {stray, false, 1, "0x9", {}};
    plug(found, {stray, 1}, at);
    return comparedWith(wish, found);
  };
  const auto wish = declared(cluster);
  for (const char* stray : {"gpu001 mlx5_8", "GPU001.hall-2.example.com mlx5_8"}) {
    const auto now = plugged(wish, "gpu001 mlx5_0", stray, {"leaf-su1-r0", 1});
    ASSERT_THAT(now.compared.repairs, SizeIs(1)) << stray;
    EXPECT_EQ(now.compared.repairs[0].text,
              "swap the cables at gpu001 mlx5_0 port 1 and gpu001 mlx5_8 port 1; gpu001 mlx5_8 "
              "belongs to fabric storage");
    ASSERT_THAT(now.compared.deviations, SizeIs(2));
    EXPECT_EQ(now.compared.deviations[0].kind, DeviationKind::MissingNode);
    EXPECT_EQ(now.compared.deviations[1].kind, DeviationKind::RailSwapped);
    EXPECT_EQ(now.compared.deviations[1].declared, "fabric storage");
  }
  const auto other = plugged(declaredTopology(cluster, storage).value(), "gpu001 mlx5_8",
                             "gpu001 mlx5_0", {"st-leaf-su1-r0", 1});
  ASSERT_THAT(other.compared.repairs, SizeIs(1));
  EXPECT_THAT(other.compared.repairs[0].text,
              HasSubstr("swap the cables at gpu001 mlx5_8 port 1 and gpu001 mlx5_0 port 1; "));
  // Another host's, and one that is in a port of nobody.
  const auto hosts = plugged(wish, "gpu001 mlx5_0", "gpu002 mlx5_8", {"leaf-su1-r0", 1});
  ASSERT_THAT(hosts.compared.repairs, SizeIs(1));
  EXPECT_THAT(
      hosts.compared.repairs[0].text,
      AllOf(HasSubstr("from gpu002 mlx5_8 port 1 to gpu001 mlx5_0 port 1"),
            HasSubstr("gpu002 mlx5_8 belongs to fabric storage, its own cable leads there")));
  auto extra = wish;
  extra.devices["gpu002 mlx5_8"] = {"gpu002 mlx5_8", false, 1, "0x9", {}};
  plug(extra, {"gpu002 mlx5_8", 1}, {"leaf-su1-r0", 16});
  const auto now = comparedWith(wish, extra);
  ASSERT_THAT(now.compared.repairs, SizeIs(1));
  EXPECT_THAT(now.compared.repairs[0].text, AllOf(HasSubstr("pull"), HasSubstr("fabric storage")));
}

TEST(Recognition, namesASwitchThatIsTheOnlyOneLeftThoughMostOfItsCablesAreWrong) {
  auto cluster = railCluster(7, 2);
  cluster.fabrics["ib"].uplinks_per_leaf_spine = 2;
  const auto wish = declared(cluster);
  const auto spine = factoryName(wish.devices.at("spine-002"));
  const auto rotated = [&](int ports) {  // that many cables, each into its neighbour's port
    auto found = withNames(wish, [](const Device& device) {
      return device.is_switch ? factoryName(device) : device.name;
    });
    for (auto& link : found.links)
      for (auto* end : {&link.a, &link.b})
        if (end->node == spine && end->number <= ports) end->number = end->number % ports + 1;
    for (auto& link : found.links)
      if (link.b < link.a) std::swap(link.a, link.b);
    std::sort(found.links.begin(), found.links.end());
    return comparedWith(wish, found);
  };
  for (const int wrong : {5, 8}) {
    const auto now = rotated(wrong);
    ASSERT_THAT(now.compared.repairs, SizeIs(1)) << wrong;
    EXPECT_THAT(now.compared.repairs[0].moves, SizeIs(wrong));
    EXPECT_THAT(now.compared.repairs[0].text,
                AllOf(HasSubstr("spine-002 port 1"), Not(HasSubstr("power"))));
  }
}

TEST(Recognition, namesTheLastSwitchByAFewOfItsCables) {
  auto cluster = railCluster(7, 2);
  cluster.fabrics["ib"].uplinks_per_leaf_spine = 2;
  const auto wish = declared(cluster);
  const auto exchanged = [&](std::initializer_list<const char*> others) {
    auto found = wish;  // a cable of spine-002 for each, from as many leaves as there are
    std::set<Port> done;
    for (const std::string other : others) {
      const auto of = [&](const std::string& spine, const std::string& leaf) {
        return std::ranges::find_if(found.links, [&](const Link& link) {
          return link.a.node.starts_with("leaf") && (leaf.empty() || link.a.node == leaf) &&
                 link.b.node == spine && !done.contains(link.b);
        });
      };
      const auto own = of("spine-002", {});
      const auto theirs = of(other, own->a.node);
      done.insert({own->b, theirs->b});
      std::swap(own->b, theirs->b);
    }
    std::sort(found.links.begin(), found.links.end());
    return comparedWith(wish, withNames(found, [](const Device& device) {
                          return device.is_switch ? factoryName(device) : device.name;
                        }));
  };
  const auto few = exchanged({"spine-001", "spine-001", "spine-003", "spine-003", "spine-004"});
  EXPECT_EQ(few.recognized.names.count("spine-002"), 1u);
  EXPECT_THAT(few.compared.repairs, SizeIs(5));
  for (const auto& repair : few.compared.repairs) EXPECT_THAT(repair.text, HasSubstr("swap"));
}

TEST(Recognition, blamesTheHostsWhereRailsOfAWholeUnitAreExchanged) {
  for (const int uplinks : {1, 2}) {
    auto cluster = railCluster(8, 2, 4, 2, 4);
    cluster.fabrics["ib"].uplinks_per_leaf_spine = uplinks;
    cluster.fabrics["ib"].switch_ports = 32;
    const auto wish = declared(cluster);
    auto found = wish;
    for (int port = 1; port <= 3; ++port) {
      const auto node = fmt::format("gpu{:03} mlx5_", port);
      unplug(found, {node + "0", 1});
      unplug(found, {node + "1", 1});
      plug(found, {node + "0", 1}, {"leaf-su1-r1", port});
      plug(found, {node + "1", 1}, {"leaf-su1-r0", port});
    }
    const auto now = comparedWith(wish, withNames(found, [](const Device& device) {
                                    return device.is_switch ? factoryName(device) : device.name;
                                  }));
    EXPECT_THAT(now.compared.repairs, SizeIs(3)) << uplinks;
    for (const auto& repair : now.compared.repairs)
      EXPECT_THAT(repair.text, HasSubstr("swap the cables at gpu"));
  }
}

TEST(CompareNames, ofTwoDevicesWithOneNameTheWrongOneIsToldItsOwn) {
  const auto wish = declared(railCluster(4));
  auto text = foundText(wish);
  const std::string_view own = "\"gpu002 mlx5_0\"", other = "\"gpu001 mlx5_0\"";
  for (auto at = text.find(own); at != std::string::npos; at = text.find(own))
    text.replace(at, own.size(), other);
  const auto now = comparedWith(wish, parseFound(text).value());
  ASSERT_THAT(now.compared.deviations, SizeIs(1));
  EXPECT_EQ(now.compared.deviations[0].at.node, "gpu002 mlx5_0");
  EXPECT_THAT(now.compared.repairs[0].text,
              AllOf(HasSubstr("the device at leaf-su1-r0 port 2 has the node description gpu001 "
                              "mlx5_0"),
                    HasSubstr("set it to gpu002 mlx5_0"), Not(HasSubstr("exchange"))));
}

TEST(CompareNames, noDescriptionIsAWrongOne) {
  const auto wish = declared(railCluster(4));
  auto found = wish;
  rename(found, "gpu001 mlx5_0", "");
  const auto now = comparedWith(wish, found);
  ASSERT_THAT(now.compared.deviations, SizeIs(1));
  EXPECT_EQ(now.compared.deviations[0].kind, DeviationKind::WrongDescription);
  EXPECT_EQ(now.compared.deviations[0].found, "no node description (at leaf-su1-r0 port 1)");
  EXPECT_THAT(now.compared.repairs[0].text,
              HasSubstr("has no node description: set it to gpu001 mlx5_0"));
}

TEST(CompareSpeeds, givesOneJobForASpeedThatTheInventoryHasWrong) {
  const auto wish = declared(wholeUnit());
  auto found = wish;
  for (auto& link : found.links) link.width_speed = "4xNDR";
  found.links.front().width_speed = "1xNDR";
  const auto compared = compare(wish, found);
  EXPECT_THAT(compared.deviations, SizeIs(wish.links.size()));
  ASSERT_THAT(compared.repairs, SizeIs(2)) << "and the cable that has one lane";
  EXPECT_THAT(compared.repairs[0].text + compared.repairs[1].text,
              AllOf(HasSubstr("no single cable is to blame"), HasSubstr("reseat")));
}

}  // namespace
}  // namespace muster::fabric::test
