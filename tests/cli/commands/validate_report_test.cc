// SPDX-License-Identifier: Apache-2.0
// validate report and cert as the real program does them, on a store that holds facts and
// measurements.
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/store.h"
#include "tests/cli/muster_folder.h"
#include "tests/validate/fleet_history.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>

#include <fstream>

#include <pwd.h>
#include <unistd.h>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ValidateCommands : public ::testing::Test {
 protected:
  ValidateCommands() {
    EXPECT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "x"}).code, kOk);  // makes the store
    url_ = "sqlite:" + (folder_ / "state" / "muster.db").string();
  }
  void see(const std::string& facet, const std::string& value) {
    auto store = *lifecycle::openStore(url_);
    ASSERT_TRUE(store->putFacts({{lifecycle::Subject(NodeName("gpu001")), FacetName(facet), value,
                                  SystemClock().now(), "test", ""}}));
  }
  void allowMe() { allow(me()); }
  void allow(const std::string& user) {
    folder_.write("cluster.yaml", std::string(MusterFolder::kInventory) +
                                      "certificates: {may_override: [" + user + "]}\n");
  }
  /// The login user where the kernel knows one, otherwise the process's.
  static std::string me() {
    std::ifstream in("/proc/self/loginuid");
    unsigned long login = 4'294'967'295;
    in >> login;
    return ::getpwuid(login == 4'294'967'295 ? ::getuid() : static_cast<uid_t>(login))->pw_name;
  }
  std::string read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  MusterFolder folder_;
  std::string url_;
};

TEST_F(ValidateCommands, aReportSaysWhatDiffersAndWritesItsFiles) {
  EXPECT_THAT(folder_.muster({"validate", "report"}).out,
              HasSubstr("nothing has been measured yet"));
  FleetHistory fleet;
  fleet.nodes = 64;
  fleet.from = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) -
               std::chrono::hours(24 * 50);
  fleet.fault = [](int node, int metric, int) { return node == 7 && metric == 2 ? 0.8 : 1.0; };
  ASSERT_TRUE((*lifecycle::openMeasurements(url_))->add(fleet.make(3)));
  const auto html = (folder_ / "report.html").string(), junit = (folder_ / "report.xml").string();
  const auto reported = folder_.muster({"validate", "report", "--html", html, "--junit", junit});
  EXPECT_EQ(reported.code, kFailed) << reported.err;  // something differs
  EXPECT_THAT(reported.out, AllOf(HasSubstr("gpu00007 is "), HasSubstr("% below what is typical")));
  EXPECT_THAT(read(html), HasSubstr("Validation of small"));
  EXPECT_THAT(read(junit), HasSubstr("<testsuite"));
  const auto as_json = folder_.muster({"validate", "report", "--json"});
  EXPECT_EQ(json::parse(as_json.out)["alarms"][0]["subject"], "gpu00007");
  EXPECT_EQ(folder_.muster({"validate", "report", "--days", "1"}).code,
            kOk);  // too young for anything of it
  const auto baseline = folder_.muster({"validate", "baseline", "--json"});
  EXPECT_EQ(json::parse(baseline.out).size(), 10u);
}

TEST_F(ValidateCommands, onlyWhomTheInventoryNamesMayOverride) {
  see("hw.serial", "S-1");
  const auto denied = folder_.muster({"cert", "override", "gpu001", "--reason", "spare"});
  EXPECT_EQ(denied.code, kFailed);
  EXPECT_THAT(denied.err, HasSubstr("may_override"));
  allowMe();
  EXPECT_NE(
      folder_.muster({"cert", "override", "gpu001", "--reason", "spare", "--hours", "73"}).code,
      kOk);
  EXPECT_NE(folder_.muster({"cert", "override", "gpu009", "--reason", "spare"}).code, kOk);
  EXPECT_NE(folder_.muster({"cert", "override", "gpu002", "--reason", "never seen"}).code, kOk)
      << "nothing to bind it to";
  const auto done = folder_.muster(
      {"cert", "override", "gpu001", "--reason", "spare until Friday", "--hours", "10"});
  ASSERT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(folder_.muster({"events", "gpu001"}).out, HasSubstr("spare until Friday"));
  EXPECT_EQ(folder_.muster({"cert", "verify", "gpu001"}).code, kOk);
  see("hw.serial", "S-2");
  EXPECT_THAT(folder_.muster({"cert", "verify", "gpu001"}).out, HasSubstr("VOID"));
}

TEST_F(ValidateCommands, aCertificateIsVerifiedFarAwayByTheKeyAndTheList) {
  see("hw.serial", "S-1");
  allowMe();
  ASSERT_EQ(folder_.muster({"cert", "override", "gpu001", "--reason", "spare"}).code, kOk);
  std::ofstream(folder_ / "site.pub") << folder_.muster({"key", "show", "certificates"}).out;
  const auto file = (folder_ / "state" / "certificates" / "gpu001.json").string(),
             key = (folder_ / "site.pub").string();
  const auto list = (folder_ / "state" / "certificates" / "revocations.json.signed").string();
  const auto unknown = folder_.muster({"cert", "verify", "--file", file, "--key", key});
  EXPECT_EQ(unknown.code, kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("whether it was revoked is unknown"));
  EXPECT_NE(folder_
                .muster({"cert", "verify", "--file", file, "--key", key, "--without-revocations",
                         "--least-number", "1"})
                .code,
            kOk)
      << "a number of no list";
  const auto good =
      folder_.muster({"cert", "verify", "--file", file, "--key", key, "--without-revocations"});
  EXPECT_EQ(good.code, kOk) << good.err;
  EXPECT_THAT(good.out, AllOf(HasSubstr("OVERRIDE by"), HasSubstr("hw.serial"),
                              HasSubstr("was not checked")));
  EXPECT_NE(folder_.muster({"cert", "verify", "--file", file}).code, kOk) << "without a key";
  EXPECT_EQ(folder_.muster({"cert", "verify", "gpu002", "--file", file, "--key", key}).code,
            kFailed)
      << "another node's";
  const auto before = folder_ / "before";  // nothing was ever revoked: an empty list says so
  ASSERT_EQ(folder_.muster({"cert", "export", "--to", before.string()}).code, kOk);
  const auto empty = (before / "revocations.json.signed").string();
  EXPECT_EQ(folder_
                .muster({"cert", "verify", "--file", file, "--key", key, "--revocations", empty,
                         "--max-list-age", "1"})
                .code,
            kOk);
  const auto older = folder_.muster({"cert", "verify", "--file", file, "--key", key,
                                     "--revocations", empty, "--least-number", "1"});
  EXPECT_EQ(older.code, kFailed);
  EXPECT_THAT(older.err, HasSubstr("list 0"));
  std::filesystem::remove(before / "revocations-as-of.json.signed");
  const auto ageless = folder_.muster({"cert", "verify", "--file", file, "--key", key,
                                       "--revocations", empty, "--max-list-age", "1"});
  EXPECT_EQ(ageless.code, kFailed);
  EXPECT_THAT(ageless.err, HasSubstr("how old"));
  ASSERT_EQ(folder_.muster({"cert", "revoke", "gpu001", "--reason", "GPU 3 was replaced"}).code,
            kOk);
  EXPECT_EQ(folder_.muster({"cert", "verify", "gpu001"}).code, kFailed);
  const auto revoked =
      folder_.muster({"cert", "verify", "--file", file, "--key", key, "--revocations", list});
  EXPECT_EQ(revoked.code, kFailed);
  EXPECT_THAT(revoked.err, HasSubstr("GPU 3 was replaced"));
  const auto to = folder_ / "carried";
  const auto exported = folder_.muster({"cert", "export", "--to", to.string()});
  ASSERT_EQ(exported.code, kOk) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("1 certificates, revocations 1"));
  EXPECT_EQ(folder_
                .muster({"cert", "verify", "--file", (to / "gpu001.json").string(), "--key", key,
                         "--revocations", (to / "revocations.json.signed").string()})
                .code,
            kFailed);
}

TEST_F(ValidateCommands, theKeyOfAFarVerifierIsReadAsAPersonBringsIt) {
  see("hw.serial", "S-1");
  allowMe();
  ASSERT_EQ(folder_.muster({"cert", "override", "gpu001", "--reason", "spare"}).code, kOk);
  const auto file = (folder_ / "state" / "certificates" / "gpu001.json").string();
  const auto with = [&](const std::string& key) {
    std::ofstream(folder_ / "site.pub") << key;
    return folder_.muster({"cert", "verify", "--file", file, "--key",
                           (folder_ / "site.pub").string(), "--without-revocations"});
  };
  const auto key = folder_.muster({"key", "show", "certificates"}).out;
  std::string windows;
  for (const char c : key) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(with(windows).code, kOk) << with(windows).err;
  EXPECT_EQ(with(key.substr(0, key.size() - 1)).code, kOk) << "no last line end";
  EXPECT_EQ(with("Our key:\n" + key).code, kOk);
  EXPECT_THAT(with("{}").err, HasSubstr("holds no public key in PEM"));
  EXPECT_THAT(with(read(folder_ / "state/keys/signing.pem")).err, HasSubstr("is a private key"));
}

/// Nobody has to be validated again for a certificate that counts for nothing.
TEST_F(ValidateCommands, aRevokedCertificateDoesNotHoldUpTheRotationOfTheKey) {
  see("hw.serial", "S-1");
  allowMe();
  ASSERT_EQ(folder_.muster({"cert", "override", "gpu001", "--reason", "spare"}).code, kOk);
  ASSERT_EQ(folder_.muster({"key", "rotate", "certificates"}).code, kOk);
  const auto waits = folder_.muster({"key", "rotate", "certificates", "--finish"});
  EXPECT_EQ(waits.code, kFailed);
  EXPECT_THAT(waits.err, HasSubstr("1 nodes still have a certificate of the key before (gpu001)"));
  ASSERT_EQ(folder_.muster({"cert", "revoke", "gpu001", "--reason", "replaced"}).code, kOk);
  const auto done = folder_.muster({"key", "rotate", "certificates", "--finish"});
  EXPECT_EQ(done.code, kOk) << done.err;
}

TEST_F(ValidateCommands, filesOfAMusterFromBeforeAreTakenOverOrNamed) {
  see("hw.serial", "S-1");
  allowMe();
  ASSERT_EQ(folder_.muster({"cert", "override", "gpu001", "--reason", "spare"}).code, kOk);
  const auto file = folder_ / "state" / "certificates" / "gpu001.json";
  const auto text = read(file);
  for (const auto* gone : {"muster.db", "muster.db-wal", "muster.db-shm", "controller-id"})
    std::filesystem::remove(folder_ / "state" / gone);
  see("hw.serial", "S-1");
  std::ofstream(file) << text.substr(0, text.size() / 2);
  const auto refused = folder_.muster({"cert", "verify", "gpu001"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(file.string()), HasSubstr("move them away")));
  std::ofstream(file) << text;
  EXPECT_EQ(folder_.muster({"cert", "verify", "gpu001"}).code, kOk);
}

TEST_F(ValidateCommands, liftingAQuarantineRevokesWhatWasProvenBefore) {
  see("hw.serial", "S-1");
  allowMe();
  ASSERT_EQ(folder_.muster({"cert", "override", "gpu001", "--reason", "spare"}).code, kOk);
  ASSERT_EQ(folder_.muster({"quarantine", "add", "gpu001", "--reason", "smells burnt"}).code, kOk);
  ASSERT_EQ(folder_.muster({"cert", "verify", "gpu001"}).code,
            kOk);  // the certificate itself; its gate refuses the node
  ASSERT_EQ(folder_.muster({"quarantine", "remove", "gpu001", "--reason", "board replaced"}).code,
            kOk);
  EXPECT_THAT(folder_.muster({"cert", "verify", "gpu001"}).out, HasSubstr("board replaced"));
}

TEST_F(ValidateCommands, theCatalogueIsPrintedWithoutAnything) {
  const auto shown = folder_.muster({"validate", "checks"});
  EXPECT_EQ(shown.code, kOk) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("system.pcie"), HasSubstr("gdr.pair"),
                               HasSubstr("needs fio"), HasSubstr("skus.json by the GPU's model")));
  const auto listed =
      json::parse(folder_.muster({"--json", "validate", "checks"}).out, nullptr, false);
  ASSERT_TRUE(listed.is_array());
  for (const auto& row : listed)
    EXPECT_FALSE(row.at("what_to_do").get<std::string>().empty()) << row;
}

TEST_F(ValidateCommands, runAsksForNodesThatHaveGates) {
  EXPECT_NE(folder_.muster({"validate", "run"}).code, kOk);
  EXPECT_NE(folder_.muster({"validate"}).code, kOk);
}

TEST_F(ValidateCommands, namesInTheEnvironmentGiveNoRights) {
  see("hw.serial", "S-1");
  allow("anna");
  auto forged = folder_.command({"cert", "override", "gpu001", "--reason", "spare"});
  for (const auto* name : {"SUDO_USER", "USER", "LOGNAME", "LNAME", "USERNAME"})
    forged.env[name] = "anna";
  const auto denied = io::runBlocking(forged);
  ASSERT_TRUE(denied) << denied.error().str();
  EXPECT_EQ(denied->code, kFailed) << denied->out;
  EXPECT_THAT(denied->err, AllOf(HasSubstr("may_override"), HasSubstr("does not name " + me())));
  EXPECT_NE(folder_.muster({"cert", "show", "gpu001"}).code, kOk) << "no certificate was made";
}

TEST_F(ValidateCommands, whatSudoClaimsIsWrittenBesideWhoItWas) {
  see("hw.serial", "S-1");
  allowMe();
  auto claimed = folder_.command({"cert", "override", "gpu001", "--reason", "spare"});
  claimed.env["SUDO_USER"] = "anna";
  const auto done = io::runBlocking(claimed);
  ASSERT_TRUE(done && done->code == kOk) << (done ? done->err : done.error().str());
  const auto log = folder_.muster({"events", "gpu001"}).out;
  EXPECT_THAT(log, AllOf(HasSubstr(me() + "@"), HasSubstr("(claims sudo user anna)")));
  EXPECT_THAT(log, Not(HasSubstr("anna@")));
}

}  // namespace
}  // namespace muster::test
