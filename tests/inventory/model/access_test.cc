// SPDX-License-Identifier: Apache-2.0
// console, ipmi, pdu, bmc_certificate and tpm of a profile: declared completely or refused.
#include "inventory/model/access.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "tests/inventory/inventory_fixture.h"

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AccessTest : public InventoryTest {
 protected:
  std::vector<std::string> declaring(const std::string& keys) {
    return complaints("image: noble", "image: noble, " + keys);
  }
  const std::string value_ = std::string(64, 'a');
};

TEST_F(AccessTest, readsAConsole) {
  auto loaded = loadYaml(
      with("image: noble", "image: noble, console: {via: sol, port: 1623, credential: bmc}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& console = loaded.cluster->profiles.begin()->second.console;
  ASSERT_TRUE(console);
  EXPECT_EQ(console->via, ConsoleVia::Sol);
  EXPECT_EQ(console->port, 1623);
  EXPECT_EQ(console->credential, "bmc");
}

TEST_F(AccessTest, refusesConsolesThatCannotBe) {
  EXPECT_THAT(declaring("console: {via: none}"), IsEmpty());
  EXPECT_THAT(declaring("console: {via: socket, path: '/run/{node}.sock'}"), IsEmpty());
  EXPECT_THAT(declaring("console: {via: socket}"), ElementsAre(HasSubstr("needs its path")));
  EXPECT_THAT(declaring("console: {via: sol, path: /run/x}"),
              ElementsAre(HasSubstr("via: socket only")));
  EXPECT_THAT(declaring("console: {via: libvirt, port: 623}"),
              ElementsAre(HasSubstr("via: sol and via: redfish only")));
  EXPECT_THAT(declaring("console: {via: redfish}"), IsEmpty());
  EXPECT_THAT(declaring("console: {via: redfish, port: 2200, command: vsp}"), IsEmpty());
  EXPECT_THAT(declaring("console: {via: sol, command: vsp}"),
              ElementsAre(HasSubstr("via: redfish only")));
  EXPECT_THAT(declaring("console: {via: redfish, command: Ä}"),
              ElementsAre(HasSubstr("command line")));
  EXPECT_THAT(declaring("console: {via: telnet}"), ElementsAre(HasSubstr("telnet")));
  EXPECT_THAT(declaring("console: {via: sol, credential: nobody}"),
              ElementsAre(HasSubstr("nobody")));
  EXPECT_THAT(declaring("console: {via: socket, path: run/x}"),
              ElementsAre(HasSubstr("absolute path")));
}

TEST_F(AccessTest, readsWhatATpmMustProve) {
  write("roots.pem", "-----BEGIN CERTIFICATE-----\n");
  auto loaded = loadYaml(with(
      "image: noble", "image: noble, tpm: {pcrs: {7: [" + value_ + "]}, ek_roots: roots.pem}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& tpm = loaded.cluster->profiles.begin()->second.tpm;
  ASSERT_TRUE(tpm);
  EXPECT_THAT(tpm->pcrs.at("7"), ElementsAre(value_));
  EXPECT_THAT(tpm->ek_roots_pem, HasSubstr("BEGIN CERTIFICATE"));
}

TEST_F(AccessTest, refusesProofsThatProveNothing) {
  EXPECT_THAT(declaring("tpm: {}"), ElementsAre(HasSubstr("pcrs")));
  EXPECT_THAT(declaring("tpm: {pcrs: {}}"), ElementsAre(HasSubstr("proves nothing")));
  EXPECT_THAT(declaring("tpm: {pcrs: {7: []}}"), ElementsAre(HasSubstr("at least 1")));
  EXPECT_THAT(declaring("tpm: {pcrs: {7: [abc]}}"), ElementsAre(HasSubstr("SHA-256")));
  EXPECT_THAT(declaring("tpm: {pcrs: {24: [" + value_ + "]}}"), ElementsAre(HasSubstr("0 to 23")));
  EXPECT_THAT(declaring("tpm: {pcrs: {7: [" + value_ + "]}, ek_roots: nothing.pem}"),
              ElementsAre(HasSubstr("no certificate in PEM")));
}

TEST_F(AccessTest, readsIpmiAndWhoSwitchesTheOutlets) {
  auto loaded = loadYaml(
      with("image: noble",
           "image: noble, ipmi: {cipher_suite: 3}, pdu: {off: [pdu, '{rack}', '{unit}', off], on: "
           "[pdu, '{rack}', '{unit}', on]}, bmc_certificate: {sign: [sign-csr]}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& profile = loaded.cluster->profiles.begin()->second;
  ASSERT_TRUE(profile.ipmi && profile.pdu && profile.bmc_certificate);
  EXPECT_EQ(profile.ipmi->port, 623);
  EXPECT_EQ(profile.ipmi->cipher_suite, 3);
  EXPECT_THAT(profile.pdu->off, ElementsAre("pdu", "{rack}", "{unit}", "off"));
  EXPECT_EQ(profile.pdu->seconds_off, 330);
  EXPECT_THAT(profile.bmc_certificate->sign, ElementsAre("sign-csr"));
}

TEST_F(AccessTest, refusesCommandsThatWouldSwitchTheWrongMachine) {
  EXPECT_THAT(declaring("pdu: {off: [pdu, off, '{node}']}"), ElementsAre(HasSubstr("on")));
  EXPECT_THAT(declaring("pdu: {off: [pdu, '{node}'], on: [pdu, '{node}']}"),
              ElementsAre(HasSubstr("the same command")));
  EXPECT_THAT(declaring("pdu: {off: [pdu, off], on: [pdu, on, '{node}']}"),
              ElementsAre(HasSubstr("names no machine")));
  EXPECT_THAT(declaring("pdu: {off: [pdu, off, '{host}'], on: [pdu, on, '{node}']}"),
              ElementsAre(HasSubstr("{host} stands for nothing")));
  EXPECT_THAT(declaring("pdu: {off: [], on: [pdu, '{node}']}"),
              ElementsAre(HasSubstr("at least 1")));
  EXPECT_THAT(
      declaring("pdu: {off: [pdu, off, '{node}'], on: [pdu, on, '{node}'], seconds_off: 0}"),
      ElementsAre(HasSubstr("1 to 3600")));
  EXPECT_THAT(declaring("ipmi: {port: 0}"), ElementsAre(HasSubstr("65535")));
  EXPECT_THAT(declaring("ipmi: {cipher_suite: 18}"), ElementsAre(HasSubstr("17")));
  EXPECT_THAT(declaring("bmc_certificate: {}"), ElementsAre(HasSubstr("sign")));
}

}  // namespace
}  // namespace muster::inventory
