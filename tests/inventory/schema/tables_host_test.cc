// SPDX-License-Identifier: Apache-2.0
// `host` of a driver: what is read, and what is refused with its place and what to do.
#include "tests/inventory/inventory_fixture.h"

#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJkYX2YlV1cXl2OcZ8v1R2X8rTq0Yt0m5mJbJ2m9y1aB alice";
constexpr std::string_view kPem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

class HostTest : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    write("ca.pem", kPem);
  }
  static std::string yaml(std::string_view host) {
    return with("drivers: [rdma]", "drivers: [rdma, site]",
                with("drivers:\n", "drivers:\n  site: {host: {" + std::string(host) + "}}\n"));
  }
  std::vector<std::string> saying(std::string_view host) { return lines(loadYaml(yaml(host))); }
};

TEST_F(HostTest, isReadWhole) {
  const auto loaded = loadYaml(yaml(
      "time_servers: [10.20.0.1, \"fd00::1\"], authorities: {site: ca.pem}, http_proxy: "
      "\"http://10.20.0.3:3128\", no_proxy: [.example.com], users: {alice: {uid: 2001, keys: [" +
      std::string(kKey) + "], groups: [video], sudo: free}}, ssh_user_authorities: [" +
      std::string(kKey) + "], serial_console: ttyS1, serial_baud: 57600"));
  ASSERT_TRUE(loaded.cluster) << ::testing::PrintToString(lines(loaded));
  EXPECT_THAT(lines(loaded), IsEmpty());
  const auto& host = *loaded.cluster->drivers.at("site").host;
  EXPECT_EQ(host.authorities.at("site"), kPem);
  ASSERT_THAT(host.users, SizeIs(1));
  EXPECT_EQ(host.users[0].name, "alice");
  EXPECT_EQ(host.users[0].sudo, wire::SudoRight::Free);
  EXPECT_EQ(host.serial_baud, 57600);
  EXPECT_TRUE(wire::parseHostSettings(wire::toJson(host)));
}

TEST_F(HostTest, aFileThatChangedIsAnotherInventory) {
  const auto before = toJson(*loadYaml(yaml("authorities: {site: ca.pem}")).cluster);
  write("ca.pem", "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n");
  EXPECT_NE(toJson(*loadYaml(yaml("authorities: {site: ca.pem}")).cluster), before);
}

TEST_F(HostTest, authoritiesAreCertificatesThatCanBeRead) {
  EXPECT_THAT(saying("authorities: {site: not-there.pem}"),
              ElementsAre(AllOf(HasSubstr("cluster.yaml:12:"), HasSubstr("cannot read"))));
  write("key.pem",
        std::string(kPem) + "-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----\n");
  EXPECT_THAT(saying("authorities: {site: key.pem}"), ElementsAre(HasSubstr("private key")));
  write("ca.der", "0\x82\x01");
  EXPECT_THAT(saying("authorities: {site: ca.der}"),
              ElementsAre(AllOf(HasSubstr("no certificate in PEM"), HasSubstr("openssl x509"))));
  EXPECT_THAT(saying("authorities: {site: .}"), ElementsAre(HasSubstr("cannot read")));
}

TEST_F(HostTest, noPasswordStandsInTheInventory) {
  EXPECT_THAT(saying("users: {alice: {password_hash: secret}}"),
              Contains(AllOf(HasSubstr("is not a hash of yescrypt or SHA-512"),
                             HasSubstr("mkpasswd -m yescrypt"))));
  EXPECT_THAT(saying("users: {alice: {password_hash: \"$1$salt$hash\"}}"),
              Contains(HasSubstr("is not a hash")));
  EXPECT_THAT(saying("http_proxy: \"http://me:secret@10.20.0.3:3128\""),
              ElementsAre(HasSubstr("without a password")));
}

TEST_F(HostTest, usersAreThoseOfPeople) {
  const std::string keys = "keys: [" + std::string(kKey) + "]";
  EXPECT_THAT(
      saying("users: {root: {" + keys + "}}"),
      ElementsAre(AllOf(HasSubstr("root is no user of a site"), HasSubstr("authorized_keys"))));
  EXPECT_THAT(saying("users: {Alice: {" + keys + "}}"),
              ElementsAre(HasSubstr("is not a user name")));
  EXPECT_THAT(saying("users: {alice: {uid: 33, " + keys + "}}"),
              ElementsAre(HasSubstr("the uid 33 is none of a person's")));
  EXPECT_THAT(saying("users: {alice: {uid: 2001, " + keys + "}, bob: {uid: 2001, " + keys + "}}"),
              ElementsAre(HasSubstr("alice and bob have the uid 2001")));
  EXPECT_THAT(saying("users: {alice: {sudo: password, " + keys + "}}"),
              ElementsAre(AllOf(HasSubstr("a password that the account does not have"),
                                HasSubstr("sudo: free"))));
  EXPECT_THAT(
      saying("users: {alice: {}}"),
      ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("nothing opens the account alice"))));
}

TEST_F(HostTest, whatMeansNothingIsAnError) {
  EXPECT_THAT(saying("no_proxy: [a]"), ElementsAre(HasSubstr("no_proxy without a proxy")));
  EXPECT_THAT(saying("serial_baud: 9600"), ElementsAre(HasSubstr("serial_baud without")));
  EXPECT_THAT(saying(""), ElementsAre(HasSubstr("host says nothing")));
  EXPECT_THAT(saying("time_servers: [\"a b\"]"), ElementsAre(HasSubstr("host name or an address")));
  EXPECT_THAT(saying("crash_kernel: much"), ElementsAre(HasSubstr("crash kernel")));
  EXPECT_THAT(saying("serial_console: tty0"), ElementsAre(HasSubstr("a serial line")));
}

TEST_F(HostTest, aCrashKernelNeedsItsPackageAndReservesOnce) {
  EXPECT_THAT(saying("crash_kernel: 512M"),
              ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("add kdump-tools"))));
  const auto with_packages =
      with("{host: {", "{packages: [kdump-tools], verify: {kernel: \"6.*\"}, host: {",
           yaml("crash_kernel: \"1G-4G:192M,4G-:512M\""));
  EXPECT_THAT(lines(loadYaml(with_packages)), IsEmpty());
  EXPECT_THAT(lines(loadYaml(with("{packages: [kdump-tools]",
                                  "{kernel_args: [crashkernel=1G], packages: [kdump-tools]",
                                  with_packages))),
              ElementsAre(HasSubstr("reserve memory twice")));
}

TEST_F(HostTest, aNodeIsOfOneSite) {
  EXPECT_THAT(
      lines(loadYaml(with("drivers: [rdma, site]", "drivers: [rdma, site, other]",
                          with("drivers:\n", "drivers:\n  other: {host: {time_servers: [a]}}\n",
                               yaml("time_servers: [b]"))))),
      ElementsAre(HasSubstr("the drivers site and other both set host")));
}

}  // namespace
}  // namespace muster::inventory
