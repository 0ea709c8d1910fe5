// SPDX-License-Identifier: Apache-2.0
// iblinkinfo's text, as it was printed in ibsim, against ibnetdiscover's.
#include "fabric/compare/compare.h"
#include "fabric/fabric.h"
#include "fabric/fabric_diff.h"
#include "inventory/model/cluster.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What iblinkinfo prints of a topology; `lines`: with -l.
std::string linkInfo(Topology topology, bool lines) {
  std::map<std::string, int> first_lid;
  int next = 1;
  for (const auto& [name, device] : topology.devices)
    first_lid[name] = std::exchange(next, next + (device.is_switch ? 1 : device.ports));
  const auto lidOf = [&](const Port& port) {
    return first_lid.at(port.node) +
           (topology.devices.at(port.node).is_switch ? 0 : port.number - 1);
  };
  const auto guidOf = [&](const Port& port) {
    return 0x200000ull + static_cast<unsigned long long>(lidOf(port));
  };
  std::string out;
  for (const auto& [name, device] : topology.devices) {
    if (!lines)
      out += device.is_switch ? fmt::format("Switch: 0x{:016x} {}:\n", guidOf({name, 1}), name)
                              : fmt::format("CA: {}:\n", name);
    for (int number = 1; number <= device.ports; ++number) {
      const Port own{name, number};
      const auto* link = findLink(topology, own);
      out += lines              ? fmt::format("0x{:016x} \"{:>30}\" ", guidOf(own), name)
             : device.is_switch ? std::string("           ")
                                : fmt::format("      0x{:016x} ", guidOf(own));
      out += fmt::format("{:>6} {:>4}[  ] ==(", lidOf(own), number);
      if (!link) {
        out += "                Down/ Polling)==>             [  ] \"\" ( )\n";
        continue;
      }
      const auto& peer = link->a == own ? link->b : link->a;
      out += fmt::format(
          " 4X        53.125 Gbps Active/  LinkUp)==>  {}{:>6} {:>4}[  ] \"{}\" (Could be 12X )\n",
          lines ? fmt::format("0x{:016x} ", guidOf(peer)) : "", lidOf(peer), peer.number,
          peer.node);
    }
  }
  return out;
}

class LinkInfo : public ::testing::TestWithParam<bool> {
 protected:
  inventory::Cluster cluster_ = railCluster(3);
  Topology declared_ = declared(cluster_);
};
INSTANTIATE_TEST_SUITE_P(GroupedAndByLine, LinkInfo, ::testing::Bool());

TEST_P(LinkInfo, saysWhatIbnetdiscoverSays) {
  const auto found = parseFound(linkInfo(declared_, GetParam()));
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->links, declared_.links);
  EXPECT_EQ(found->devices.size(), declared_.devices.size());
  EXPECT_TRUE(found->devices.at("leaf-su1-r0").is_switch);
  EXPECT_FALSE(found->devices.at("gpu001 mlx5_0").is_switch);
  EXPECT_THAT(diff(cluster_, linkInfo(declared_, GetParam())).comparison.deviations, IsEmpty());
}

TEST_P(LinkInfo, namesACableAtAnotherPlace) {
  auto wrong = declared_;
  unplug(wrong, {"gpu001 mlx5_0", 1});
  plug(wrong, {"gpu001 mlx5_0", 1}, {"leaf-su1-r0", 7});
  const auto report = diff(cluster_, linkInfo(wrong, GetParam()));
  ASSERT_EQ(report.error, "");
  ASSERT_EQ(report.comparison.deviations.size(), 1u);
  EXPECT_EQ(report.comparison.deviations[0].kind, DeviationKind::Miswired);
}

TEST_P(LinkInfo, refusesATextThatWasCutOff) {
  const auto text = linkInfo(declared_, GetParam());
  const auto half = text.substr(0, text.rfind('\n', text.size() / 2) + 1);
  EXPECT_FALSE(parseFound(half)) << "cables to devices that are not in the list";
}

TEST(LinkInfoText, refusesBadLines) {
  for (const char* text :
       {"CA: n1 mlx5_0:\n      0x01  1    1[  ] ==( 4X  53.125 Gbps Active/  LinkUp\n",
        "CA: n1 mlx5_0:\n      0x01  1    1[  ] ==( 4X  60.0 Gbps Active/  LinkUp)==>  2 1[ ] "
        "\"s\" ( )\n",
        "      0x01  1    1[  ] ==( Down/ Polling)==>  [ ] \"\" ( )\n",
        "CA: n1:\n  0x01 1 999[ ] ==( Down/ Polling)==> [ ] \"\" ( )\n",
        "CA: n1:\n  0x01 1 1[ ] ==( Down/ Polling)==> [ ] \"\" ( )\n  0x01 1 1[ ] ==( Down/ "
        "Polling)==> [ ] \"\" ( )\n",
        "what is this ==( )==>\n"})
    EXPECT_FALSE(parseIblinkinfo(text)) << text;
}

TEST(LinkInfoText, withoutLidsItSaysWhatToDo) {
  const auto found = parseIblinkinfo(
      "CA: n1 mlx5_0:\n      0x01  0    1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  0 1[ ] "
      "\"s\" ( )\n");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(found.error().str(), HasSubstr("no LID yet"));
}

}  // namespace
}  // namespace muster::fabric::test
