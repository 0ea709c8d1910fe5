// SPDX-License-Identifier: Apache-2.0
// A fabric's topology_file: any file is not a topology, and another fabric's is not this one's.
#include "tests/inventory/inventory_fixture.h"

#include "inventory/model/cluster.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TopologyRulesTest : public InventoryTest {
 protected:
  std::vector<std::string> saying(std::string_view topology) {
    write("fabric.txt", topology);
    return complaints("rails: 2", "shape: explicit\n    topology_file: fabric.txt");
  }
};

// The forms are those of infiniband-diags; names and GUIDs are nobody's.
constexpr std::string_view kHead =
    "vendid=0x2c9\ndevid=0xd2f0\nswitchguid=0x100(100)\n"
    "Switch\t41 \"S-0000000000000100\"\t\t# \"leaf1\" enhanced port 0 lid 10 lmc 0\n";

TEST_F(TopologyRulesTest, takesOneOfTheseNodes) {
  EXPECT_THAT(saying(std::string(kHead) + "\ncaguid=0x200\nCa\t1 \"H-0000000000000200\"\t\t# "
                                          "\"gpu001 mlx5_0\"\n"),
              IsEmpty());
  EXPECT_THAT(saying("CA: gpu002 mlx5_1:\n"), IsEmpty()) << "iblinkinfo";
  EXPECT_THAT(saying("CA 3 1 0x200 4x NDR - SW 10 1 0x100 ( 'login1 mlx5_0' - 'leaf1' )\n"),
              IsEmpty());
}

TEST_F(TopologyRulesTest, refusesAFileThatIsNone) {
  for (const std::string_view text : {"name,rack\ngpu001,r1\n", "Switching is off\n",
                                      "\x7f"
                                      "ELF"})
    EXPECT_THAT(saying(text), ElementsAre(AllOf(HasSubstr("cluster.yaml:18:"),
                                                HasSubstr("fabric.txt is no topology"),
                                                HasSubstr("`ibnetdiscover`"))))
        << text;
}

TEST_F(TopologyRulesTest, aByteOrderMarkIsNoPartOfItOrIsNamed) {
  const std::string text = std::string(kHead).substr(kHead.find("Switch")) +
                           "\ncaguid=0x200\nCa\t1 \"H-0000000000000200\"\t\t# \"gpu001 mlx5_0\"\n";
  EXPECT_THAT(saying("\xef\xbb\xbf" + text), IsEmpty());
  EXPECT_THAT(saying("\xef\xbb\xbf"
                     "CA: gpu002 mlx5_1:\n"),
              IsEmpty());
  std::string wide = "\xff\xfe";
  for (const char c : text) (wide += c) += '\0';
  EXPECT_THAT(saying(wide), ElementsAre(AllOf(HasSubstr("cluster.yaml:18:"), HasSubstr("UTF-16"),
                                              HasSubstr("byte order mark"), HasSubstr("iconv"))));
  wide.assign("\xff\xfe\0\0", 4);
  for (const char c : text) (wide += c).append(3, '\0');
  EXPECT_THAT(saying(wide),
              ElementsAre(AllOf(HasSubstr("fabric.txt is UTF-32"), HasSubstr("iconv -f UTF-32"))));
}

TEST_F(TopologyRulesTest, warnsOfAnotherFabrics) {
  EXPECT_THAT(saying(std::string(kHead) + "Ca\t1 \"H-0000000000000200\"\t\t# \"gpu0011 mlx5_0\"\n"),
              ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("names none of the 3 nodes of the "
                                                                "fabric ib"))));
}

}  // namespace
}  // namespace muster::inventory
