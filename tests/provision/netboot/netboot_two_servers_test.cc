// SPDX-License-Identifier: Apache-2.0
// What dnsmasq really does when the site changes hands: host B answers in the place of host A, with
// the same addresses and its own URLs; and what machines would hear if both answered.
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "tests/provision/dhcp_site.h"

namespace muster::provision {
namespace {

constexpr const char *kA = "10.20.0.1", *kB = "10.20.0.2", *kNode = "52:54:00:00:00:01",
                     *kUnknownMac = "52:54:00:ff:ff:ff";

class TwoServersTest : public DhcpTest {
 protected:
  void declare() override {
    auto& network = cluster_.networks[0];
    network.controllers = {*Ipv4::parse(kA), *Ipv4::parse(kB)};
    on_b_ = cluster_;
    ASSERT_TRUE(inventory::putOnHost(on_b_.networks[0], {*Ipv4::parse(kB)}));
  }
  void surround() override {
    b_ = &makeSpace();
    joinLan(*b_, "eth0");
    in(*b_, [&] { ip("addr add 10.20.0.2/16 dev eth0"); });
  }
  void startB() {
    in(*b_, [&] {
      netboot_b_ = makeNetboot(on_b_, images_, gateway_, *processes_, io_.get_executor(),
                               {folder_ / "run-b", 8080, 8443, std::string(64, 'c'),
                                folder_ / "hosts-b", folder_ / "tftp-b"});
      const auto started = netboot_b_->start();
      ASSERT_TRUE(started) << started.error().str();
    });
  }
  void TearDown() override {
    if (netboot_b_) netboot_b_->stop();
    DhcpTest::TearDown();
    if (HasFailure()) std::cerr << io::readFile(folder_ / "run-b/dnsmasq.log").value_or("") << "\n";
  }
  static sockaddr_in everybody() { return {AF_INET, htons(67), {INADDR_BROADCAST}, {}}; }
  /// What `of` answers to a machine that takes this offer.
  std::optional<Offer> take(const std::string& mac, const Offer& offer, const std::string& of) {
    const auto request = requestFor(discover(*Mac::parse(mac), std::nullopt, false), offer);
    return ask(dhcp_, request, everybody(), [&](std::string_view answer) {
      auto parsed = parseOffer(answer, request);
      return parsed && parsed->dhcp_server == of ? parsed : std::nullopt;
    });
  }
  /// A machine that has an address asks whether it may keep it: whoever is there. Nobody is named.
  std::optional<Offer> keep(const std::string& mac, const std::string& address) {
    auto request = discover(*Mac::parse(mac), std::nullopt, false);
    request[242] = 3;
    in_addr four_bytes{};
    ::inet_pton(AF_INET, address.c_str(), &four_bytes);
    request.replace(12, 4, reinterpret_cast<const char*>(&four_bytes), 4);
    return ask(dhcp_, request, everybody(),
               [&request](std::string_view answer) { return parseOffer(answer, request); });
  }

  inventory::Cluster on_b_;
  Netns* b_ = nullptr;
  std::unique_ptr<Netboot> netboot_b_;
};

TEST_F(TwoServersTest, theOtherHostGivesTheSameAddressesAndNamesItself) {
  const auto node = offerTo(kNode, 7, true);
  ASSERT_TRUE(node) << "no DHCP offer";
  EXPECT_EQ(node->file, "http://10.20.0.1:8080/boot/ipxe?mac=${netX/mac}");
  const auto unknown = offerTo(kUnknownMac, std::nullopt, false);
  ASSERT_TRUE(unknown);
  const auto taken = take(kUnknownMac, *unknown, kA);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->kind, 5);
  EXPECT_EQ(taken->dhcp_server, kA);

  netboot_->stop();
  startB();
  const auto after = offerTo(kNode, 7, true);
  ASSERT_TRUE(after) << "no DHCP offer";
  EXPECT_EQ(after->address, node->address) << "it is in the inventory";
  EXPECT_EQ(after->dhcp_server, kB);
  EXPECT_EQ(after->tftp_server, kB);
  EXPECT_EQ(after->file, "http://10.20.0.2:8080/boot/ipxe?mac=${netX/mac}");
  EXPECT_EQ(offerTo(kNode, kHttpArch, false)->file, "http://10.20.0.2:8080/boot/ipxe.efi");

  // An address of the range, which only A knew to be leased: B is told so by who has it.
  in(client_, [&] { ip("addr add " + taken->address + "/16 dev client"); });
  const auto kept = keep(kUnknownMac, taken->address);
  ASSERT_TRUE(kept) << "B is silent";
  EXPECT_EQ(kept->kind, 5) << "it keeps its address";
  EXPECT_EQ(kept->address, taken->address);
}

/// Why only one host serves: a machine takes whichever answer comes first, with the URLs of that
/// host, and the other one refuses it.
TEST_F(TwoServersTest, bothAtOnceWouldSendMachinesToBoth) {
  startB();
  const auto of_a = offerTo(kNode, 7, true, dhcp_, kA), of_b = offerTo(kNode, 7, true, dhcp_, kB);
  ASSERT_TRUE(of_a && of_b) << "both answer";
  EXPECT_EQ(of_a->address, of_b->address) << "an installed node would not notice";
  EXPECT_NE(of_a->file, of_b->file) << "one that boots would";
  const auto given = take(kNode, *of_b, kB);
  ASSERT_TRUE(given) << "B is silent";
  EXPECT_EQ(given->kind, 5);
  const auto refused = take(kNode, *of_b, kA);
  ASSERT_TRUE(refused) << "A is silent";
  EXPECT_EQ(refused->kind, 6) << "A is authoritative, and the machine has named another server";
}

}  // namespace
}  // namespace muster::provision
