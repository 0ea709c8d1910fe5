// SPDX-License-Identifier: Apache-2.0
// bmc_pin, bmc_ca, bmc_ssh_key and bmc_credential of nodes and profiles; bmc_trust of the cluster.
#include "inventory/model/bmc_trust.h"
#include "base/io/crypto.h"
#include "inventory/model/bmc_identity.h"
#include "inventory/model/cluster.h"
#include "inventory/model/node.h"
#include "inventory/schema/json.h"
#include "tests/inventory/inventory_fixture.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class BmcTrustTest : public InventoryTest {
 protected:
  std::vector<std::string> ofProfile(const std::string& keys) {
    return complaints("image: noble", "image: noble, " + keys);
  }
  /// The CSV with one more column.
  void column(const std::string& name, const std::string& first, const std::string& second) {
    write("racks.csv", "name,rack,unit,mac,address,bmc,serial," + name +
                           "\n"
                           "gpu001,r1,10,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1,SN1," +
                           first +
                           "\n"
                           "gpu002,r1,12,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,," +
                           second + "\n");
  }
  static std::string caPem() { return io::selfSigned("site CA", {"ca"})->certificate_pem; }
  const std::string pin_ = std::string(62, 'a') + "b1", other_ = std::string(64, 'c');
};

TEST_F(BmcTrustTest, theNodesOwnWordGoesBeforeItsProfiles) {
  column("bmc_pin", pin_, "");
  auto loaded = loadYaml(with("image: noble", "image: noble, bmc_pin: " + other_));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  EXPECT_EQ(bmcTrustOf(*loaded.cluster, *loaded.cluster->findNode(NodeName("gpu001"))).pin, pin_);
  EXPECT_EQ(bmcTrustOf(*loaded.cluster, *loaded.cluster->findNode(NodeName("gpu002"))).pin, other_);
}

TEST_F(BmcTrustTest, whatIdentifiesAMachineIsNamedInTheMappingOrInItsColumn) {
  column("bmc_accept", "chassis-serial=C1", "");
  auto loaded = loadYaml(with(
      "bmc: \"libvirt:login1\"",
      "bmc: {url: \"libvirt:login1\", accept: \"system-uuid=u1 manager-uuid=u2\", system: S1}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& first = *loaded.cluster->findNode(NodeName("gpu001"));
  EXPECT_THAT(first.bmc.accept.list(),
              ElementsAre(AcceptedIdentity{AcceptedIdentity::Kind::ChassisSerial, "C1"}));
  const auto& login = *loaded.cluster->findNode(NodeName("login1"));
  EXPECT_EQ(login.bmc.url, "libvirt:login1");
  EXPECT_EQ(str(login.bmc.accept), "system-uuid=u1 manager-uuid=u2");
  EXPECT_EQ(login.bmc.system, "S1");
}

TEST_F(BmcTrustTest, whatIsNoIdentityIsRefused) {
  for (const auto& [accept, wrong] :
       {std::pair{"C1", "write KIND=VALUE"}, std::pair{"serial=C1", "write KIND=VALUE"},
        std::pair{"chassis-serial=", "write the value"},
        std::pair{"chassis-serial=1 chassis-serial=2", "is given twice"}}) {
    column("bmc_accept", accept, "");
    const auto loaded = loadYaml(std::string(kSmall));
    EXPECT_FALSE(loaded.cluster) << accept;
    EXPECT_THAT(checkText(loaded), HasSubstr(wrong));
  }
}

TEST_F(BmcTrustTest, aNodesPinReplacesItsProfilesCa) {
  write("ca.pem", caPem());
  column("bmc_pin", pin_, "");
  auto loaded = loadYaml(with("image: noble", "image: noble, bmc_ca: ca.pem"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto first = bmcTrustOf(*loaded.cluster, *loaded.cluster->findNode(NodeName("gpu001")));
  EXPECT_EQ(first.pin, pin_);
  EXPECT_EQ(first.ca_pem, "");
  EXPECT_EQ(bmcTrustOf(*loaded.cluster, *loaded.cluster->findNode(NodeName("gpu002"))).ca_pem,
            read(folder_ / "ca.pem"));
}

TEST_F(BmcTrustTest, fingerprintsMayBeWrittenAsOpensslPrintsThem) {
  std::string pairs;
  for (int i = 0; i < 32; ++i) pairs += i == 0 ? "AB" : ":AB";
  column("bmc_pin", pairs, "");
  auto loaded = loadYaml(kSmall);
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  std::string wanted;
  for (int i = 0; i < 32; ++i) wanted += "ab";
  EXPECT_EQ(loaded.cluster->findNode(NodeName("gpu001"))->bmc.trust->pin, wanted);
}

TEST_F(BmcTrustTest, badFingerprintsAreRefusedWithTheirPlace) {
  EXPECT_THAT(
      ofProfile("bmc_pin: abc"),
      ElementsAre(AllOf(HasSubstr("is not the SHA-256 fingerprint"), HasSubstr("3 hex digits"))));
  EXPECT_THAT(ofProfile("bmc_pin: " + std::string(63, 'a') + "g"),
              ElementsAre(HasSubstr("only hex digits")));
  EXPECT_THAT(ofProfile("bmc_pinn: " + pin_), ElementsAre(HasSubstr("did you mean \"bmc_pin\"?")));
  column("bmc_pin", "zz", "");
  EXPECT_THAT(lines(loadYaml(kSmall)),
              ElementsAre(AllOf(HasSubstr("racks.csv:2:"), HasSubstr("fingerprint"))));
  column("bmc_pim", pin_, "");
  EXPECT_THAT(lines(loadYaml(kSmall)), ElementsAre(AllOf(HasSubstr("unknown column \"bmc_pim\""),
                                                         HasSubstr("did you mean \"bmc_pin\"?"))));
}

TEST_F(BmcTrustTest, pinAndCaTogetherAreRefused) {
  write("ca.pem", caPem());
  EXPECT_THAT(ofProfile("bmc_ca: ca.pem, bmc_pin: " + pin_),
              ElementsAre(HasSubstr("both bmc_pin and bmc_ca")));
  write("racks.csv",
        "name,mac,address,bmc,bmc_pin,bmc_ca\n"
        "gpu001,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1," +
            pin_ +
            ",ca.pem\n"
            "gpu002,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,,\n");
  EXPECT_THAT(lines(loadYaml(kSmall)),
              ElementsAre(AllOf(HasSubstr("racks.csv:2:"), HasSubstr("both bmc_pin and bmc_ca"))));
}

TEST_F(BmcTrustTest, caFilesAreReadWhenTheInventoryIs) {
  EXPECT_THAT(ofProfile("bmc_ca: nowhere.pem"),
              ElementsAre(AllOf(HasSubstr("nowhere.pem"), HasSubstr("cannot be read"))));
  write("ca.pem", "secret words that are no certificate");
  EXPECT_THAT(ofProfile("bmc_ca: ca.pem"), ElementsAre(AllOf(HasSubstr("no certificate in PEM"),
                                                             Not(HasSubstr("secret words")))));
}

TEST_F(BmcTrustTest, theContentOfTheCaCountsForTheDigest) {
  write("ca.pem", caPem());
  const auto text = with("image: noble", "image: noble, bmc_ca: ca.pem");
  const auto before = loadYaml(text).cluster->digest;
  write("ca.pem", caPem());
  EXPECT_NE(loadYaml(text).cluster->digest, before);
  EXPECT_NE(
      loadYaml(with("{name: small}", "{name: small, bmc_trust: first-contact}")).cluster->digest,
      before);
  EXPECT_EQ(
      loadYaml(with("{name: small}", "{name: small, bmc_trust: first-contact}")).cluster->digest,
      loadYaml(kSmall).cluster->digest)
      << "that is what holds anyway";
}

TEST_F(BmcTrustTest, credentialsOfANodeGoBeforeItsProfiles) {
  write("secrets/other", "hobbes\n");
  ::chmod((folder_ / "secrets/other").c_str(), 0600);
  column("bmc_credential", "", "second");
  auto loaded = loadYaml(with("password: {file: secrets/bmc}}",
                              "password: {file: secrets/bmc}}\n  second: {username: root, "
                              "password: {file: secrets/other}}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  EXPECT_EQ(bmcCredentialOf(*loaded.cluster, *loaded.cluster->findNode(NodeName("gpu001"))), "bmc");
  EXPECT_EQ(bmcCredentialOf(*loaded.cluster, *loaded.cluster->findNode(NodeName("gpu002"))),
            "second");
  column("bmc_credential", "", "sekond");
  loaded = loadYaml(with("password: {file: secrets/bmc}}",
                         "password: {file: secrets/bmc}}\n  second: {username: root, password: "
                         "{file: secrets/other}}"));
  EXPECT_THAT(lines(loaded),
              ElementsAre(AllOf(HasSubstr("racks.csv:3:"),
                                HasSubstr("\"sekond\" is not declared under credentials"),
                                HasSubstr("did you mean \"second\"?"))));
}

TEST_F(BmcTrustTest, noDefaultCredentialIsAskedForWhereEveryNodeNamesItsOwn) {
  column("bmc_credential", "ipmi", "ipmi");
  EXPECT_THAT(complaints("bmc: {username", "ipmi: {username"), IsEmpty());
}

TEST_F(BmcTrustTest, declaredTrustNamesTheBmcsOfWhichNothingIsDeclared) {
  EXPECT_THAT(complaints("{name: small}", "{name: small, bmc_trust: blind}"),
              ElementsAre(AllOf(HasSubstr("blind"), HasSubstr("declared"))));
  column("bmc_pin", pin_, "");
  EXPECT_THAT(complaints("{name: small}", "{name: small, bmc_trust: declared}"),
              ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("1 BMC,"), HasSubstr("gpu002"),
                                Not(HasSubstr("login1")))));
  column("bmc_pin", pin_, other_);
  auto loaded = loadYaml(with("{name: small}", "{name: small, bmc_trust: declared}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  EXPECT_EQ(loaded.cluster->bmc_trust, BmcTrustPolicy::Declared);
  EXPECT_EQ(loadYaml(kSmall).cluster->bmc_trust, BmcTrustPolicy::FirstContact);
}

TEST_F(BmcTrustTest, sshHostKeysLoseTheirComment) {
  column("bmc_ssh_key",
         "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bmc of "
         "gpu001",
         "");
  auto loaded = loadYaml(kSmall);
  EXPECT_THAT(lines(loaded), IsEmpty());
  EXPECT_EQ(loaded.cluster->findNode(NodeName("gpu001"))->bmc.trust->ssh_key,
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl");
  column("bmc_ssh_key", "AAAAC3NzaC1lZDI1NTE5", "");
  EXPECT_THAT(lines(loadYaml(kSmall)), ElementsAre(HasSubstr("host key")));
}

}  // namespace
}  // namespace muster::inventory
