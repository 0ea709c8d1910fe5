// SPDX-License-Identifier: Apache-2.0
// Certificates away from their controller: one form only, a list that is new enough, both keys of a
// rotation, and another program that checks the signature.
#include "validate/offline_verification.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"
#include "validate/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::validate {
namespace {

using ::testing::HasSubstr;

class OfflineVerification : public testing::Test {
 protected:
  /// Signed as the store does it, by a program that is not the store: over the compact JSON with
  /// its keys in order, without the signature.
  std::string certificate(const io::SigningKey& key) const {
    nlohmann::json out{{"format", "muster-certificate/1"},
                       {"node", "gpu001"},
                       {"ba"
                        "sis",
                        "ab"},
                       {"bound", {{"hw.serial", "S-1"}, {"image", "os@aaaa"}}},
                       {"inventory_digest", "cd"},
                       {"proven_at", toString(now_)},
                       {"issued_at", toString(now_)},
                       {"expires_at", toString(now_ + std::chrono::hours(24))},
                       {"key_id", key.id()}};
    out["signature"] = *io::sign(key, out.dump());
    return out.dump(2) + "\n";
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }
  Result<void> holds(const std::string& text, const std::string& keys) const {
    TRY(read, Certificate::fromJson(text));
    return verifyOffline(read, keys, now_ + std::chrono::hours(1), {});
  }

  io::SigningKey key_ = *io::SigningKey::generate();
  WallTime now_ = FakeClock().now();
};

TEST_F(OfflineVerification, thereIsOneFormOfACertificate) {
  const auto good = certificate(key_);
  ASSERT_TRUE(holds(good, key_.public_pem)) << holds(good, key_.public_pem).error().str();
  const std::string kLine = "  \"inventory_digest\": \"cd\",\n";
  const std::pair<const char*, std::string> others[] = {
      {"a key twice", replaced(good, kLine, kLine + kLine)},
      {"a key twice, inside", replaced(good, "\"image\": \"os@aaaa\"",
                                       "\"image\": \"os@aaaa\",\n    \"image\": \"os@aaaa\"")},
      {"a field that is not signed", replaced(good, kLine, "  \"a\": \"trusted\",\n" + kLine)},
      {"other spaces", replaced(good, "\"node\": ", "\"node\":  ")},
      {"tabs", replaced(good, "  \"node\"", "\t\"node\"")},
      {"carriage returns", replaced(good, "{\n", "{\r\n")},
      {"an escape for a letter", replaced(good, "\"gpu001\"", "\"\\u0067pu001\"")},
      {"an escaped slash", replaced(good, "muster-certificate/1", "muster-certificate\\/1")},
      {"another order", replaced(replaced(good, kLine, ""), "{\n", "{\n" + kLine)},
      {"no line end", good.substr(0, good.size() - 1)},
      {"a line more", good + "\n"},
      {"a mark of byte order", "\xef\xbb\xbf" + good},
      {"compact", nlohmann::json::parse(good).dump()},
      {"a time in another form", replaced(good, "\"proven_at\": \"" + toString(now_),
                                          "\"proven_at\": \"" + toString(now_) + "0")},
  };
  for (const auto& [what, text] : others) EXPECT_FALSE(Certificate::fromJson(text)) << what;
}

/// 64 bytes leave four bits of their last base64 digit unused: sixteen texts for one signature.
TEST_F(OfflineVerification, aSignatureHasOneText) {
  const auto good = certificate(key_);
  const auto end = good.find("==\"");
  ASSERT_NE(end, std::string::npos);
  int accepted = 0;
  for (const char digit :
       std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")) {
    auto other = good;
    other[end - 1] = digit;
    accepted += holds(other, key_.public_pem).has_value() ? 1 : 0;
  }
  EXPECT_EQ(accepted, 1);
}

TEST_F(OfflineVerification, bothKeysOfARotationVerifyAndNoThird) {
  const auto next = *io::SigningKey::generate(), other = *io::SigningKey::generate();
  const auto during = next.public_pem + key_.public_pem;
  EXPECT_TRUE(holds(certificate(key_), during)) << "signed before";
  EXPECT_TRUE(holds(certificate(next), during)) << "signed after";
  EXPECT_FALSE(holds(certificate(other), during));
  EXPECT_FALSE(holds(certificate(key_), next.public_pem)) << "the rotation is finished";
  const auto renamed =
      replaced(certificate(key_), "\"" + key_.id() + "\"", "\"" + next.id() + "\"");
  EXPECT_FALSE(holds(renamed, during)) << "it names the key that it was not signed by";
  const auto list = *RevocationList{.number = 3, .issued_at = now_, .revoked = {}}.signedJson(key_);
  EXPECT_TRUE(RevocationList::fromJson(list, during));
  EXPECT_FALSE(RevocationList::fromJson(list, next.public_pem));
}

TEST_F(OfflineVerification, thereIsOneFormOfAList) {
  RevocationList list{.number = 1, .issued_at = now_, .revoked = {}};
  list.revoked.push_back({"ab", NodeName("gpu001"), now_, "ann", "GPU 3"});
  const auto good = *list.signedJson(key_);
  ASSERT_TRUE(RevocationList::fromJson(good, key_.public_pem));
  for (const auto& other :
       {replaced(good, "\"number\": 1", "\"number\": 1.0"),
        replaced(good, "\"number\": 1", "\"number\": 1e0"),
        replaced(good, "\"number\": 1", "\"number\":1"),
        replaced(good, "\"reason\": \"GPU 3\"", "\"reason\": \"GPU\\u00203\""),
        replaced(good, "\"number\": 1", "\"more\": [],\n \"number\": 1"),
        replaced(good, "\"number\": 1", "\"number\": 1,\n \"number\": 1"), good + " "})
    EXPECT_FALSE(RevocationList::fromJson(other, key_.public_pem)) << other;
}

TEST_F(OfflineVerification, aListMustBeAsNewAsIsAskedFor) {
  using std::chrono::hours;
  const RevocationList list{.number = 4, .issued_at = now_ - hours(24 * 90), .revoked = {}};
  const ListAsOf yesterday{4, now_ - hours(24)};
  const auto because = [&](const std::optional<ListAsOf>& as_of, const ListPolicy& policy) {
    const auto done = requireFresh(list, as_of, policy, now_);
    return done ? std::string("fresh") : done.error().str();
  };
  EXPECT_EQ(because({}, {}), "fresh");
  EXPECT_EQ(because(yesterday, {hours(25), 4}), "fresh") << "although nothing was revoked for long";
  EXPECT_THAT(because(yesterday, {hours(23), 0}), HasSubstr("more than 23 hours ago"));
  EXPECT_THAT(because({}, {hours(23), 0}), HasSubstr("is unknown"));
  EXPECT_THAT(because({}, {hours(0), 5}), HasSubstr("list 5 or a newer one"));
  EXPECT_THAT(because(ListAsOf{5, now_}, {}), HasSubstr("list 5 was the newest"))
      << "also without being asked";
  EXPECT_THAT(because(ListAsOf{4, now_ + hours(1)}, {hours(1), 0}), HasSubstr("in the future"));
}

TEST_F(OfflineVerification, theStatementBesideAListIsSigned) {
  const ListAsOf statement{7, now_};
  const auto good = *statement.signedJson(key_);
  const auto read = ListAsOf::fromJson(good, key_.public_pem);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(read->number, 7);
  EXPECT_EQ(read->as_of, now_);
  EXPECT_FALSE(ListAsOf::fromJson(good, io::SigningKey::generate()->public_pem));
  for (const auto& other :
       {replaced(good, "7", "8"), replaced(good, "\"number\": 7", "\"number\": 7.0"), good + "\n",
        std::string("{}"), std::string("[]"), std::string()})
    EXPECT_FALSE(ListAsOf::fromJson(other, key_.public_pem)) << other;
}

/// Another program checks what ours has signed: the public key as PEM, the message as the compact
/// JSON that any tool writes from the file.
TEST_F(OfflineVerification, opensslVerifiesTheSignature) {
  const test::TempFolder folder;
  const auto file = nlohmann::json::parse(Certificate::fromJson(certificate(key_))->toJson());
  auto message = file;
  message.erase("signature");
  ASSERT_TRUE(io::writeFileAtomic(folder / "message", message.dump()));
  ASSERT_TRUE(io::writeFileAtomic(folder / "other", message.dump() + " "));
  ASSERT_TRUE(io::writeFileAtomic(folder / "key.pub", key_.public_pem));
  ASSERT_TRUE(io::writeFileAtomic(folder / "signature.base64",
                                  file["signature"].get<std::string>() + "\n"));
  const auto openssl = [&](std::vector<std::string> args) {
    const auto done = io::runBlocking({.program = "openssl", .args = std::move(args)});
    return done ? done->code : -1;
  };
  if (openssl({"version"}) != 0) GTEST_SKIP() << "there is no openssl";
  ASSERT_EQ(openssl({"base64", "-d", "-A", "-in", (folder / "signature.base64").string(), "-out",
                     (folder / "signature").string()}),
            0);
  const auto verifies = [&](const char* text) {
    return openssl({"pkeyutl", "-verify", "-pubin", "-inkey", (folder / "key.pub").string(),
                    "-rawin", "-in", (folder / text).string(), "-sigfile",
                    (folder / "signature").string()}) == 0;
  };
  EXPECT_TRUE(verifies("message"));
  EXPECT_FALSE(verifies("other"));
}

}  // namespace
}  // namespace muster::validate
