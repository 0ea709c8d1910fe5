// SPDX-License-Identifier: Apache-2.0
// system.network over a machine that says what it is told to. Fails closed.
#include "tests/validate/fake_host.h"

#include "wire/node_network.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

class NetworkCheck : public FakeHost {
 protected:
  void SetUp() override {
    wire::NetworkLink boot;
    boot.name = "boot";
    boot.mac = "52:54:00:20:00:01";
    boot.addresses = {"10.20.1.1/16"};
    network_.links = {boot};
    network_.provisioning = {boot.mac, "boot", "10.20.1.1/16", {}, {"10.20.0.1"}};
    write("etc/muster/network.json", wire::toJson(network_));
    outputs_["ip -j"] = {
        0,
        R"([{"ifname":"boot","flags":["UP","LOWER_UP"],"mtu":1500,"address":"52:54:00:20:00:01",)"
        R"("addr_info":[{"local":"10.20.1.1","prefixlen":16,"scope":"global"}]}])",
        ""};
  }
  wire::NodeNetwork network_;
};

TEST_F(NetworkCheck, passesWhatIsAsDeclared) {
  const auto verdict = check("system.network");
  EXPECT_EQ(verdict.status, wire::CheckStatus::Pass) << verdict.text;
  EXPECT_EQ(verdict.evidence["given"], wire::digestOf(network_));
  EXPECT_EQ(ran_.size(), 3u) << "addresses, and routes of both families";
}

/// `ip` says "virtio" of a virtual machine's NIC; its place is that of the PCI device above.
TEST_F(NetworkCheck, aPlaceIsThatOfThePciDeviceAbove) {
  network_.links[0].mac.clear();
  network_.links[0].pci = "0000:00:04.0";
  write("etc/muster/network.json", wire::toJson(network_));
  EXPECT_EQ(check("system.network").status, wire::CheckStatus::Fail) << "not known is not there";
  const auto device = host_.root / "sys/devices/pci0000:00/0000:00:04.0/virtio1";
  std::filesystem::create_directories(device);
  std::filesystem::create_directories(host_.root / "sys/class/net/boot");
  std::filesystem::create_symlink(device, host_.root / "sys/class/net/boot/device");
  EXPECT_EQ(check("system.network").status, wire::CheckStatus::Pass);
}

TEST_F(NetworkCheck, failsWhatIsNot) {
  network_.links[0].mtu = 9000;
  write("etc/muster/network.json", wire::toJson(network_));
  const auto verdict = check("system.network");
  EXPECT_EQ(verdict.status, wire::CheckStatus::Fail);
  EXPECT_THAT(verdict.text, testing::HasSubstr("boot has the MTU 1500, declared is 9000"));
}

TEST_F(NetworkCheck, passesNothingThatItCannotSee) {
  outputs_["ip -j"] = {1, "", "Object \"addr\" is unknown"};
  EXPECT_EQ(check("system.network").status, wire::CheckStatus::NoData);
  outputs_["ip -j"] = {0, "[]", ""};
  EXPECT_EQ(check("system.network").status, wire::CheckStatus::NoData);
  outputs_.clear();
  EXPECT_EQ(check("system.network").status, wire::CheckStatus::NoData);
}

TEST_F(NetworkCheck, aNodeThatWasGivenNoneDoesNotPass) {
  std::filesystem::remove(host_.root / "etc/muster/network.json");
  const auto verdict = check("system.network");
  EXPECT_EQ(verdict.status, wire::CheckStatus::NoData);
  EXPECT_THAT(verdict.text, testing::HasSubstr("image it again"));
  write("etc/muster/network.json", "{}");
  EXPECT_EQ(check("system.network").status, wire::CheckStatus::Error);
}

}  // namespace
}  // namespace muster::validate
