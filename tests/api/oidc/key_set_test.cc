// SPDX-License-Identifier: Apache-2.0
// Tokens that another library has made: python3-jwt (tests/api/oidc/make_tokens.py).
#include "api/oidc/key_set.h"
#include "api/oidc/id_token.h"

#include "base/io/process.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::api {
namespace {

using ::testing::HasSubstr;

/// Debian's, which has python3-jwt.
constexpr const char* kPython = "/usr/bin/python3";

class ProviderTokens : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto has = io::runBlocking({kPython, {"-c", "import jwt, cryptography"}});
    if (!has || has->code != 0)
      GTEST_SKIP() << "python3-jwt is not installed (apt-get install python3-jwt "
                      "python3-cryptography)";
    const auto made = io::runBlocking(
        {kPython, {(test::sourceFolder() / "tests/api/oidc/make_tokens.py").string()}});
    ASSERT_TRUE(made && made->code == 0) << (made ? made->err : made.error().str());
    corpus_ = jsonOrNone(made->out, kToolJson);
    ASSERT_TRUE(corpus_.is_object());
  }
  Result<IdToken> read(const KeySet& keys, const std::string& token) const {
    TRY(payload, keys.verify(token));
    return readIdToken(payload, {corpus_["issuer"], corpus_["client_id"], corpus_["nonce"]},
                       SystemClock().now());
  }

  nlohmann::json corpus_;
};

TEST_F(ProviderTokens, areTakenWhereAllIsRightAndNowhereElse) {
  const auto keys = KeySet::parse(jsonText(corpus_["keys"]));
  ASSERT_TRUE(keys) << keys.error().str();
  EXPECT_EQ(keys->size(), 5u) << "without what is short, broken, shared, or for encryption";
  std::size_t good = 0, bad = 0;
  for (const auto& each : corpus_["tokens"]) {
    const auto name = each["name"].get<std::string>();
    const auto said = read(*keys, each["token"].get<std::string>());
    EXPECT_EQ(said.has_value(), each["good"].get<bool>())
        << name << (said ? "" : ": " + said.error().str());
    if (said) EXPECT_EQ(said->subject, "248289761001") << name;
    if (!said) EXPECT_LT(said.error().str().size(), 400u) << name;
    ++(each["good"].get<bool>() ? good : bad);
  }
  EXPECT_GE(good, 18u);
  EXPECT_GE(bad, 70u);
}

TEST_F(ProviderTokens, aSetThatHoldsNoKeyIsNone) {
  for (const auto* text :
       {"", "null", "[]", "{}", R"({"keys": {}})", R"({"keys": []})", R"({"keys": [1, "x", null]})",
        R"({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]})",
        R"({"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]})",
        R"({"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]})",
        R"({"keys": [{"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}]})"}) {
    const auto set = KeySet::parse(text);
    EXPECT_FALSE(set) << text;
  }
}

TEST(Base64Url, hasOneFormAlone) {
  EXPECT_EQ(*fromBase64Url("_-8"), "\xff\xef");
  EXPECT_EQ(*fromBase64Url(""), "");
  for (const auto* bad : {"a", "ab=", "ab==", "+/8", "a b", "abcde", "ab\n"})
    EXPECT_FALSE(fromBase64Url(bad)) << bad;
}

nlohmann::json claims() {
  return {
      {"preferred_username", "anna"}, {"groups", {"hpc", "ops"}}, {"email", "anna@example.org"}};
}

TEST(ProviderClaims, sayWhoItIs) {
  OidcSettings settings;
  settings.name_claim = "preferred_username";
  const auto anna = accountIn(claims(), settings, "s1");
  ASSERT_TRUE(anna && *anna);
  EXPECT_EQ((*anna)->name, "anna");
  EXPECT_TRUE((*anna)->groups.contains("ops"));
  settings.name_claim = "upn";
  EXPECT_FALSE(*accountIn(claims(), settings, "s1")) << "to be asked for elsewhere";
  settings.name_claim = "groups";
  EXPECT_FALSE(accountIn(claims(), settings, "s1")) << "no text";

  settings.name_claim = "email";
  const auto unverified = accountIn(claims(), settings, "s1");
  ASSERT_FALSE(unverified);
  EXPECT_THAT(unverified.error().str(), HasSubstr("not verified"));
  auto verified = claims();
  verified["email_verified"] = true;
  EXPECT_TRUE(accountIn(verified, settings, "s1"));

  settings.name_claim = "preferred_username";
  settings.group_claim = "realm_access.roles";
  auto within = claims();
  EXPECT_FALSE(saysGroups(within, settings));
  within["realm_access"] = {{"roles", {"admins"}}};
  EXPECT_TRUE(saysGroups(within, settings));
  EXPECT_TRUE((*accountIn(within, settings, "s1"))->groups.contains("admins"));
  within["realm_access"]["roles"] = "one";
  EXPECT_TRUE((*accountIn(within, settings, "s1"))->groups.contains("one"));
  within["realm_access"]["roles"] = nlohmann::json::array({1});
  EXPECT_FALSE(accountIn(within, settings, "s1"));
}

}  // namespace
}  // namespace muster::api
