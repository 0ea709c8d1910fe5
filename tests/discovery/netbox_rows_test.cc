// SPDX-License-Identifier: Apache-2.0
#include "discovery/netbox_rows.h"

#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace muster::discovery {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

NetboxDevice device(int number) {
  NetboxDevice out;
  out.id = number;
  out.name = fmt::format("gpu{:03}", number);
  out.serial = fmt::format("SN{}", number);
  out.rack = "r1";
  out.position = 8 + 2 * number;
  out.primary_ip4 = fmt::format("10.20.1.{}/16", number);
  out.oob_ip = fmt::format("10.20.250.{}/16", number);
  out.interfaces = {{10 * number, number, "eno1", fmt::format("52-54-00-20-00-{:02X}", number),
                     false, "leaf1", fmt::format("swp{}", number)},
                    {10 * number + 1, number, "bmc", "52:54:00:30:00:01", true, "", ""}};
  out.addresses = {{number, 10 * number, fmt::format("10.20.1.{}/16", number)},
                   {number, 10 * number + 1, fmt::format("10.30.250.{}/16", number)}};
  return out;
}

class NetboxRowsTest : public ::testing::Test {
 protected:
  NetboxRowsTest() {
    cluster_.networks.push_back({.name = "provisioning", .cidr = *Cidr::parse("10.20.0.0/16")});
    cluster_.profiles["gpu"].name = "gpu";
  }
  inventory::Node& node(int number) {
    inventory::Node out;
    out.name = NodeName(fmt::format("gpu{:03}", number));
    out.profile = "gpu";
    out.rack = "r1";
    out.unit = 8 + 2 * number;
    out.mac = *Mac::parse(fmt::format("52:54:00:20:00:{:02x}", number));
    out.address = *Ipv4::parse(fmt::format("10.20.1.{}", number));
    out.bmc.url = fmt::format("https://10.20.250.{}", number);
    out.serial = fmt::format("SN{}", number);
    out.switch_name = "leaf1";
    out.switch_port = fmt::format("swp{}", number);
    return cluster_.nodes.emplace_back(std::move(out));
  }
  NetboxComparison compare(std::vector<NetboxDevice> devices) {
    return compareWithNetbox(devices, cluster_);
  }

  inventory::Cluster cluster_;
};

TEST_F(NetboxRowsTest, aNewDeviceIsARow) {
  const auto found = compare({device(2), device(1)});
  ASSERT_THAT(found.rows, SizeIs(2));
  EXPECT_EQ(found.rows[0], (CsvFields{{"name", "gpu001"},
                                      {"rack", "r1"},
                                      {"unit", "10"},
                                      {"mac", "52:54:00:20:00:01"},
                                      {"address", "10.20.1.1"},
                                      {"bmc", "https://10.20.250.1"},
                                      {"serial", "SN1"},
                                      {"switch", "leaf1"},
                                      {"port", "swp1"}}));
  EXPECT_THAT(found.left_out, IsEmpty());
  EXPECT_THAT(found.remarks, IsEmpty());
  EXPECT_FALSE(found.isSame());
}

TEST_F(NetboxRowsTest, whatAgreesIsTheSame) {
  node(1);
  node(2);
  const auto found = compare({device(1), device(2)});
  EXPECT_TRUE(found.isSame());
  EXPECT_THAT(found.differences, IsEmpty());
  EXPECT_THAT(found.only_here, IsEmpty());
}

TEST_F(NetboxRowsTest, differencesAreNamedAndNothingIsProposed) {
  auto& one = node(1);
  one.unit = 12;
  one.serial.clear();
  node(7);
  const auto found = compare({device(1)});
  EXPECT_THAT(found.rows, IsEmpty());
  EXPECT_THAT(found.differences, ElementsAre(NetboxDifference{"gpu001", "serial", "", "SN1"},
                                             NetboxDifference{"gpu001", "unit", "12", "10"}));
  EXPECT_THAT(found.only_here, ElementsAre("gpu007"));
}

TEST_F(NetboxRowsTest, aDeviceWithoutARackIsARowAndSaysSo) {
  auto one = device(1);
  one.rack.clear();
  one.position.reset();
  auto two = device(2);
  two.position.reset();
  auto three = device(3);
  three.position = 10.5;
  const auto found = compare({one, two, three});
  EXPECT_THAT(found.rows, SizeIs(3));
  EXPECT_THAT(found.remarks,
              ElementsAre("gpu001: it is in no rack", "gpu002: it has no position in rack r1",
                          HasSubstr("gpu003: its position 10.5 is no whole height unit")));
}

TEST_F(NetboxRowsTest, twoDevicesInOneUnitAreNone) {
  auto two = device(2);
  two.position = 10;
  const auto found = compare({device(1), two, device(3)});
  ASSERT_THAT(found.rows, SizeIs(1));
  EXPECT_EQ(found.rows[0].at("name"), "gpu003");
  EXPECT_THAT(found.left_out,
              ElementsAre(HasSubstr("gpu001 and gpu002 are all in unit 10 of rack r1"),
                          HasSubstr("gpu002: ")));
}

TEST_F(NetboxRowsTest, whatARowNeedsIsNamedWhereItIsMissing) {
  auto no_bmc = device(1);
  no_bmc.oob_ip.clear();
  no_bmc.interfaces[1].mgmt_only = false;
  auto no_mac = device(2);
  no_mac.interfaces[0].mac.clear();
  auto elsewhere = device(3);
  elsewhere.addresses[0].address = "192.168.7.3/24";
  auto two_addresses = device(4);
  two_addresses.addresses.push_back({4, 40, "10.20.9.4/16"});
  two_addresses.primary_ip4 = "10.99.0.1/8";
  auto no_name = device(5);
  no_name.name.clear();
  auto bad_name = device(6);
  bad_name.name = "GPU 6 (old)";
  const auto found = compare({no_bmc, no_mac, elsewhere, two_addresses, no_name, bad_name});
  EXPECT_THAT(found.rows, IsEmpty());
  for (const auto* words :
       {"gpu001: its BMC's address is not known", "gpu002: its interface eno1 has no MAC",
        "gpu003: none of its interfaces has an address in provisioning",
        "gpu004: it has 2 addresses in provisioning", "device 5: it has no name in NetBox",
        "GPU 6 (old): its name is no host name"})
    EXPECT_THAT(found.left_out, Contains(HasSubstr(words)));
}

TEST_F(NetboxRowsTest, ofSeveralAddressesThePrimaryOneCounts) {
  auto one = device(1);
  one.addresses.insert(one.addresses.begin(), {1, 11, "10.20.9.1/16"});
  ASSERT_THAT(compare({one}).rows, SizeIs(1));
  EXPECT_EQ(compare({one}).rows[0].at("address"), "10.20.1.1");
}

TEST_F(NetboxRowsTest, theBmcMayBeAnInterfaceForManagement) {
  auto one = device(1);
  one.oob_ip.clear();
  ASSERT_THAT(compare({one}).rows, SizeIs(1));
  EXPECT_EQ(compare({one}).rows[0].at("bmc"), "https://10.30.250.1");
}

TEST_F(NetboxRowsTest, aRenamedMachineIsNotTwoNodes) {
  node(1);
  auto renamed = device(1);
  renamed.name = "GPU101";
  const auto found = compare({renamed});
  EXPECT_THAT(found.rows, IsEmpty());
  EXPECT_THAT(found.left_out, ElementsAre(HasSubstr("is node gpu001 of the inventory")));
}

TEST_F(NetboxRowsTest, aNameThatTwoDevicesHaveIsNobodys) {
  auto again = device(2);
  again.name = "GPU001";
  const auto found = compare({device(1), again});
  EXPECT_THAT(found.rows, IsEmpty());
  EXPECT_THAT(found.left_out, SizeIs(2));
  EXPECT_THAT(found.left_out, Contains(HasSubstr("2 devices of NetBox have this name")));
}

}  // namespace
}  // namespace muster::discovery
