// SPDX-License-Identifier: Apache-2.0
// Who gets a password, as an operator meets it: `muster discover` and `muster bmc` by the real
// program, against BMCs over real HTTPS that keep all they are sent (docs/adr/0181).
#include "tests/cli/emulated_bmc.h"
#include "tests/cli/muster_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DiscoverTrust : public ::testing::Test {
 protected:
  DiscoverTrust() {
    folder_.write("bmc-password", std::string(EmulatedBmc::kPassword) + "\n");
    std::filesystem::permissions(folder_ / "bmc-password", std::filesystem::perms::owner_read |
                                                               std::filesystem::perms::owner_write);
    declare("declared");
  }
  /// `bmc` of gpu001; empty: it has none, and the emulated one is an unknown sender.
  void declare(const std::string& trust, const std::string& of_node = "",
               const std::string& credentials = "[bmc]") {
    std::string text(MusterFolder::kInventory);
    const auto replace = [&text](const std::string& what, const std::string& by) {
      text.replace(text.find(what), what.size(), by);
    };
    replace("{name: small}", "{name: small, bmc_trust: " + trust + "}");
    if (!of_node.empty()) replace("bmc: \"https://10.20.250.1\"", of_node);
    folder_.write("cluster.yaml", text + "discovery: {credentials: " + credentials + "}\n");
  }
  io::ProcessExit scan(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"discover", "scan", "127.0.0.1", "--port",
                                   std::to_string(bmc_.port())};
    words.insert(words.end(), more.begin(), more.end());
    return folder_.muster(std::move(words));
  }
  void expectNothingSecretReceived() {
    EXPECT_EQ(bmc_.secretsReceived(), 0u);
    EXPECT_FALSE(bmc_.requests().empty()) << "it was asked, without a login";
  }
  std::string another() const {
    return std::string(64, bmc_.fingerprint().front() == 'a' ? 'b' : 'a');
  }

  EmulatedBmc bmc_;
  MusterFolder folder_;
};

TEST_F(DiscoverTrust, fingerprintsAreShownBeforeAnyPasswordIsSent) {
  const auto shown = scan();
  EXPECT_EQ(shown.code, kWorkLeft) << shown.err;
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr(bmc_.url()), HasSubstr(bmc_.fingerprint()),
                    HasSubstr("these BMCs get no password"), HasSubstr("--fingerprints FILE")));
  EXPECT_THAT(shown.out + shown.err, Not(HasSubstr(EmulatedBmc::kPassword)));
  expectNothingSecretReceived();
}

TEST_F(DiscoverTrust, aLineOfTheShownListApproves) {
  const auto shown = scan();
  const auto line =
      shown.out.find("127.0.0.1:" + std::to_string(bmc_.port()) + " " + bmc_.fingerprint());
  ASSERT_NE(line, std::string::npos) << shown.out;
  ASSERT_TRUE(line == 0 || shown.out[line - 1] == '\n') << "a line of its own";
  folder_.write("compared", shown.out.substr(line, shown.out.find('\n', line) - line + 1));
  const auto approved = scan({"--fingerprints", (folder_ / "compared").string()});
  ASSERT_EQ(approved.code, kOk) << approved.out << approved.err;
  const auto listed = json::parse(folder_.muster({"discover", "--json"}).out);
  ASSERT_EQ(listed["machines"].size(), 1u);
  EXPECT_EQ(listed["machines"][0]["serial"], "SN-1") << "it was surveyed after a login";
  EXPECT_GT(bmc_.secretsReceived(), 0u);
  for (const auto& request : bmc_.requests()) {
    if (request.method == "POST") break;
    EXPECT_FALSE(request.headers.contains("Authorization")) << request.target;
  }
}

/// The default: what is shown is pinned, and only then the password goes out.
TEST_F(DiscoverTrust, firstContactShowsTheFingerprintAndThenLogsIn) {
  declare("first-contact");
  const auto scanned = scan();
  EXPECT_EQ(scanned.code, kOk) << scanned.err;
  EXPECT_THAT(scanned.out,
              AllOf(HasSubstr(bmc_.fingerprint()), HasSubstr("these BMCs get passwords now")));
  EXPECT_GT(bmc_.secretsReceived(), 0u);
}

/// Nothing is sent that is not declared, and nothing is said to be.
TEST_F(DiscoverTrust, withoutACredentialNoPasswordIsSpokenOf) {
  for (const char* trust : {"first-contact", "declared"}) {
    declare(trust, "", "[]");
    const auto scanned = scan();
    EXPECT_THAT(scanned.out, AllOf(HasSubstr("discovery.credentials names no account"),
                                   Not(HasSubstr("get passwords now"))))
        << trust;
    expectNothingSecretReceived();
  }
}

/// The lines are for a file that approves: an unknown sender must not write one of them.
TEST_F(DiscoverTrust, whatAUnknownSenderSaysAddsNoLineToTheList) {
  const auto forged = "127.0.0.9 " + another();
  bmc_.rewrite([forged](const std::string& path, io::ServerResponse& answer) {
    if (path != "/redfish/v1" && path != "/redfish/v1/") return;
    answer.body = json{{"RedfishVersion", "1.9.0"},
                       {"@odata.type", "#ServiceRoot.v1_5_0.ServiceRoot"},
                       {"Vendor", "\n" + forged + "\r" + forged},
                       {"Product", "\xe2\x80\xa8" + forged + "\x1b[2K\n" + forged + "\n"}}
                      .dump();
  });
  const auto shown = scan();
  EXPECT_EQ(shown.code, kWorkLeft) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr(bmc_.fingerprint()));
  EXPECT_THAT("\n" + shown.out, Not(HasSubstr("\n" + forged)));
  EXPECT_EQ(shown.out.find_first_of("\r\x1b\v\f"), std::string::npos);
  expectNothingSecretReceived();
}

TEST_F(DiscoverTrust, anApprovalOfAnotherCertificateSendsNothing) {
  folder_.write("met", bmc_.url() + " " + another() + "\n");
  for (const auto& words : {std::vector<std::string>{"--fingerprints", (folder_ / "met").string()},
                            {"--trust", another()}}) {
    const auto scanned = scan(words);
    EXPECT_EQ(scanned.code, kWorkLeft) << words[0];
    EXPECT_THAT(scanned.out,
                AllOf(HasSubstr(bmc_.fingerprint()), HasSubstr("these BMCs get no password")))
        << words[0];
    expectNothingSecretReceived();
  }
}

TEST_F(DiscoverTrust, anApprovalOfAnotherAddressSendsNothing) {
  folder_.write(
      "met", "https://127.0.0.2:" + std::to_string(bmc_.port()) + " " + bmc_.fingerprint() + "\n");
  const auto scanned = scan({"--fingerprints", (folder_ / "met").string()});
  EXPECT_EQ(scanned.code, kWorkLeft) << scanned.out;
  expectNothingSecretReceived();
}

TEST_F(DiscoverTrust, aListThatIsNoneIsRefusedBeforeAnybodyIsAsked) {
  folder_.write("met", bmc_.url() + " not-a-fingerprint\n");
  const auto scanned = scan({"--fingerprints", (folder_ / "met").string()});
  EXPECT_EQ(scanned.code, kFailed);
  EXPECT_THAT(scanned.err, HasSubstr("met:1"));
  EXPECT_TRUE(bmc_.requests().empty());
  const auto trusted = scan({"--trust", "zz"});
  EXPECT_NE(trusted.code, kOk);
  EXPECT_TRUE(bmc_.requests().empty());
}

TEST_F(DiscoverTrust, jsonOutputStaysJsonWhileFingerprintsAreShown) {
  const auto shown = scan({"--json"});
  EXPECT_EQ(shown.code, kWorkLeft);
  EXPECT_NO_THROW((void)json::parse(shown.out)) << shown.out;
  EXPECT_THAT(shown.err, HasSubstr(bmc_.fingerprint()));
  expectNothingSecretReceived();
}

TEST_F(DiscoverTrust, aWrongPinIsRefusedWithBothFingerprintsAndGetsNothing) {
  for (const char* trust : {"declared", "first-contact"}) {
    declare(trust, "bmc: \"" + bmc_.url() + "\", bmc_pin: \"" + another() + "\"");
    const auto refused = folder_.muster({"bmc", "power", "gpu001", "on"});
    EXPECT_EQ(refused.code, kFailed) << trust;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("gpu001"), HasSubstr(bmc_.fingerprint()))) << trust;
    EXPECT_THAT(refused.err, HasSubstr(another())) << trust;
    EXPECT_EQ(bmc_.secretsReceived(), 0u) << trust;
    EXPECT_FALSE(bmc_.on());
  }
}

TEST_F(DiscoverTrust, aNodeWithoutAPinGetsItsFingerprintSaidAndNoPassword) {
  declare("declared", "bmc: \"" + bmc_.url() + "\"");
  const auto refused = folder_.muster({"bmc", "power", "gpu001", "on"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(bmc_.fingerprint()), HasSubstr("bmc_pin")));
  expectNothingSecretReceived();
  declare("declared", "bmc: \"" + bmc_.url() + "\", bmc_pin: \"" + bmc_.fingerprint() + "\"");
  const auto done = folder_.muster({"bmc", "power", "gpu001", "on"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_TRUE(bmc_.on());
}

}  // namespace
}  // namespace muster::test
