// SPDX-License-Identifier: Apache-2.0
// The whole program, from a NetBox to rows that the inventory has.
#include "base/json_input.h"
#include "tests/cli/exit_codes.h"
#include "tests/cli/muster_folder.h"
#include "tests/fakes/netbox_double.h"

#include <gmock/gmock.h>

namespace muster::cli {
namespace {

using test::kFailed;
using test::kOk;
using test::NetboxDouble;

constexpr int kChanges = 2;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class InventoryNetbox : public ::testing::Test {
 protected:
  InventoryNetbox() {
    folder_.write("cluster.yaml", std::string(test::MusterFolder::kInventory) +
                                      "  - {profile: gpu-node, from: racks.csv}\n");
    folder_.write("racks.csv", kRows);
    folder_.write("token", std::string(NetboxDouble::kToken) + "\n");
    for (const int number : {1, 2, 5, 6})
      netbox_.site["devices"].push_back(NetboxDouble::device(number));
    netbox_.save();
  }
  auto import(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"inventory",
                                   "import",
                                   "netbox",
                                   "--url",
                                   netbox_.url(),
                                   "--token-file",
                                   (folder_ / "token").string()};
    words.insert(words.end(), more.begin(), more.end());
    return folder_.muster(words);
  }
  std::string racks() { return io::readFile(folder_ / "racks.csv").value_or(""); }

  static constexpr const char* kRows =
      "# by hand\nname,rack,unit,mac,address,bmc,serial\n"
      "gpu004, r2,\"7\",52:54:00:20:00:04,10.20.1.4,https://10.20.250.4,\n";
  test::MusterFolder folder_;
  NetboxDouble netbox_;
};

TEST_F(InventoryNetbox, showsThenWritesAndThenHasNothingToAdd) {
  const auto shown = import();
  ASSERT_EQ(shown.code, kOk) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("NetBox lists 4 devices"), HasSubstr("gpu005"),
                               HasSubstr("--write FILE.csv")));
  EXPECT_EQ(racks(), kRows) << "only shown";
  const auto written = import({"--write", (folder_ / "racks.csv").string()});
  ASSERT_EQ(written.code, kOk) << written.err;
  EXPECT_THAT(racks(), StartsWith(kRows)) << "what people wrote stays byte for byte";
  EXPECT_THAT(racks(), HasSubstr("gpu005,r1,18,52:54:00:20:00:05,10.20.1.5,https://10.20.250.5,"));
  EXPECT_EQ(folder_.muster({"inventory", "check"}).code, kOk);
  const auto again = import({"--write", (folder_ / "racks.csv").string(), "--json"});
  ASSERT_EQ(again.code, kOk) << again.err;
  const auto json = jsonOrNone(again.out, kServerJson);
  EXPECT_TRUE(json["rows"].empty()) << again.out;
  EXPECT_EQ(json["written"], "");
  EXPECT_EQ(json["only_in_inventory"], nlohmann::json::array({"gpu004"}));
}

TEST_F(InventoryNetbox, theExitStatusSaysWhetherBothAgree) {
  EXPECT_EQ(import({"--diff"}).code, kChanges);
  netbox_.site["devices"] = nlohmann::json::array({NetboxDouble::device(1)});
  for (auto& interface : netbox_.site["devices"][0]["interfaces"]) interface.erase("peer");
  netbox_.site["devices"][0]["serial"] = "";
  netbox_.save();
  const auto same = import({"--diff"});
  EXPECT_EQ(same.code, kOk) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("what both know agrees"));
  netbox_.site["devices"][0]["position"] = 30.0;
  netbox_.save();
  const auto moved = import({"--diff"});
  EXPECT_EQ(moved.code, kChanges);
  EXPECT_THAT(moved.out, HasSubstr("unit     inventory 10, NetBox 30"));
}

/// A row that would break the inventory is not written, nor any other.
TEST_F(InventoryNetbox, nothingIsWrittenThatTheInventoryRefuses) {
  auto& other = netbox_.site["devices"][2];  // with the address of gpu001
  other["primary"] = "10.20.1.1/16";
  other["interfaces"][0]["addresses"] = nlohmann::json::array({"10.20.1.1/16"});
  netbox_.save();
  const auto refused = import({"--write", (folder_ / "racks.csv").string()});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("racks.csv is as it was"), HasSubstr("10.20.1.1")));
  EXPECT_EQ(racks(), kRows);
}

TEST_F(InventoryNetbox, saysWhatIsMissing) {
  folder_.write("token", "\n");
  EXPECT_THAT(import().err, HasSubstr("NETBOX_TOKEN"));
  folder_.write("token", "two words\n");
  EXPECT_THAT(import().err, AllOf(HasSubstr("write it alone"), Not(HasSubstr("two words"))));
  const auto api =
      folder_.muster({"inventory", "import", "netbox", "--url", netbox_.url() + "/api/",
                      "--token-file", (folder_ / "token").string()});
  EXPECT_THAT(api.err, HasSubstr("without /api"));
  netbox_.site["devices"] = nlohmann::json::array();
  netbox_.save();
  folder_.write("token", std::string(NetboxDouble::kToken) + "\n");
  const auto none = import();
  EXPECT_EQ(none.code, kFailed) << "an empty list is no agreement";
  EXPECT_THAT(none.err, HasSubstr("lists no device"));
}

}  // namespace
}  // namespace muster::cli
