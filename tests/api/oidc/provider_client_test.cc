// SPDX-License-Identifier: Apache-2.0
// A provider that misbehaves: forged tokens, answers that are none, replayed and mixed-up ones.
#include "api/oidc/provider_client.h"

#include "api/page_session.h"
#include "tests/api/oidc/login_site.h"

#include <future>

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BadProvider : public LoginSite {
 protected:
  void SetUp() override {
    LoginSite::SetUp();
    const auto has = io::runBlocking({kDebiansPython, {"-c", "import jwt, cryptography"}});
    if (!has || has->code != 0)
      GTEST_SKIP() << "python3-jwt is not installed (apt-get install python3-jwt "
                      "python3-cryptography)";
    start("127.0.0.1:0");
    const auto said = startProvider({kDebiansPython,
                                     {(oidcScripts() / "bad_provider.py").string(),
                                      (pki_ / "sso.crt").string(), (pki_ / "sso.key").string()}});
    ASSERT_TRUE(said.is_object());
    base_ = fmt::format("https://localhost:{}", said["port"].get<int>());
  }
  void use(const std::string& how) {
    issuer_ = base_ + "/" + how;
    useIssuer(issuer_);
    // The file is looked at once a second: until it is this one that is asked.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < limit) {
      (void)over("/login");
      const auto log = io::runBlocking(
          {"curl", {"-sS", "--cacert", (pki_ / "ca.crt").string(), base_ + "/log"}});
      if (log && log->out.find("\"/" + how + "/.well-known") != std::string::npos) return;
    }
    FAIL() << how << " was never asked";
  }

  struct Begun {
    std::string cookie, state, nonce, challenge;
  };
  Begun begin(const std::string& target = "/login") {
    const auto said = over(target);
    EXPECT_EQ(said.status, 302) << said.body;
    const auto query = io::queryOf(said.header("Location"));
    EXPECT_THAT(said.header("Location"), StartsWith(issuer_ + "/auth?"));
    EXPECT_THAT(said.header("Set-Cookie"), AllOf(HasSubstr("; Secure"), HasSubstr("; HttpOnly"),
                                                 HasSubstr("SameSite=Lax"), HasSubstr("Path=/;")));
    return {cookieIn(said), query.at("state"), query.at("nonce"), query.at("code_challenge")};
  }
  /// Claims of a token that is good, for the login that was begun.
  nlohmann::json claims(const Begun& begun) const {
    const auto now =
        std::chrono::duration_cast<std::chrono::seconds>(SystemClock().now().time_since_epoch())
            .count();
    return {{"iss", issuer_},
            {"aud", "muster"},
            {"sub", "s-anna"},
            {"iat", now},
            {"exp", now + 300},
            {"nonce", begun.nonce},
            {"preferred_username", "anna"},
            {"groups", {"hpc"}}};
  }
  static std::string back(const std::string& state, const nlohmann::json& claims) {
    return fmt::format("/login/callback?state={}&code={}", io::percentEncode(state),
                       base64Url(jsonText(claims)));
  }
  Said comeBack(const Begun& begun, const std::string& target) {
    return over(target, {"Cookie: " + begun.cookie});
  }

  std::string base_, issuer_;
};

TEST_F(BadProvider, isTakenAtItsWordWhereItIsRight) {
  use("fine");
  const auto begun = begin("/login?to=%23%2Fracks");
  const auto said = comeBack(begun, back(begun.state, claims(begun)));
  ASSERT_EQ(said.status, 302) << said.body;
  EXPECT_EQ(said.header("Location"), url() + "/#/racks");
  EXPECT_THAT(said.header("Set-Cookie"), AllOf(StartsWith(kSessionCookie), HasSubstr("HttpOnly"),
                                               HasSubstr("SameSite=Strict")));
  EXPECT_EQ(withCookie(cookieIn(said), "/api/v1/me").json["principal"], "oidc:anna");
  // PKCE: what is shown at the end is what was promised at the beginning.
  const auto log =
      io::runBlocking({"curl", {"-sS", "--cacert", (pki_ / "ca.crt").string(), base_ + "/log"}});
  const auto asked = jsonOrNone(log->out, kToolJson);
  const auto token =
      std::ranges::find_if(asked, [](const auto& each) { return each["path"] == "/fine/token"; });
  ASSERT_NE(token, asked.end());
  const auto verifier = (*token)["form"]["code_verifier"].get<std::string>();
  EXPECT_EQ(base64Url(io::sha256(verifier)), begun.challenge);
  EXPECT_EQ((*token)["form"]["redirect_uri"], url() + "/login/callback");
}

TEST_F(BadProvider, anAnswerCountsOnceAndForItsBrowserAlone) {
  use("fine");
  const auto mine = begin(), other = begin();
  const auto link = back(mine.state, claims(mine));
  EXPECT_EQ(over(link).status, 403) << "a link without the cookie of who began";
  EXPECT_EQ(comeBack(other, link).status, 403) << "another browser's";
  EXPECT_EQ(comeBack(mine, back("guess", claims(mine))).status, 403);
  EXPECT_EQ(comeBack(mine, link + "&state=guess").status, 403) << "twice the state";
  EXPECT_EQ(comeBack(mine, link + "&iss=https%3A%2F%2Fevil.example").status, 403)
      << "of another provider (RFC 9207)";
  // That was an answer: this login is over, whoever knows its code.
  EXPECT_EQ(comeBack(mine, link).status, 403);
  const auto again = begin();
  const auto good = back(again.state, claims(again));
  EXPECT_EQ(comeBack(again, good).status, 302);
  const auto replayed = comeBack(again, good);
  EXPECT_EQ(replayed.status, 403);
  EXPECT_THAT(replayed.body, HasSubstr("no login that this browser has begun"));
  const auto third = begin();
  const auto refused = comeBack(
      third, fmt::format("/login/callback?state={}&error=access_denied&error_description=%1B%5B2J"
                         "no%3Cscript%3E",
                         io::percentEncode(third.state)));
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.header("Content-Type"), StartsWith("text/plain"));
  EXPECT_THAT(refused.body, AllOf(HasSubstr("access_denied"), Not(HasSubstr("\x1b"))));
}

TEST_F(BadProvider, theWayBackLeadsNowhereElse) {
  use("fine");
  for (const auto* to : {"https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil",
                         "/nodes", "#nodes", "javascript:alert(1)", "#/a%0d%0aSet-Cookie: x=y",
                         "#/\"><script>", "@evil.example", ".evil.example"}) {
    const auto said = over("/login?to=" + io::percentEncode(to));
    EXPECT_EQ(said.status, 400) << to;
    EXPECT_EQ(said.header("Location"), "") << to;
  }
  EXPECT_EQ(over("/login?to=" + io::percentEncode("#/" + std::string(600, 'a'))).status, 400);
  // Nor does a host that the client makes up.
  const auto said = over("/login", {"Host: evil.example", "X-Forwarded-Host: evil.example"});
  EXPECT_EQ(io::queryOf(said.header("Location")).at("redirect_uri"), url() + "/login/callback");
}

TEST_F(BadProvider, tokensThatAreNotForThisLoginAreRefused) {
  use("fine");
  const auto expect = [&](const char* what, const nlohmann::json& change, const char* words,
                          int status = 403) {
    const auto begun = begin();
    auto token = claims(begun);
    token.update(change);
    const auto said = comeBack(begun, back(begun.state, token));
    EXPECT_EQ(said.status, status) << what << said.body;
    EXPECT_THAT(said.body, AllOf(HasSubstr(words), HasSubstr("What to do:"))) << what;
    EXPECT_EQ(said.header("Set-Cookie"), "") << what;
  };
  expect("nonce", {{"nonce", "of another login"}}, "nonce");
  expect("issuer", {{"iss", base_ + "/html"}}, "issuer=");
  expect("audience", {{"aud", "other"}}, "client-id");
  expect("end", {{"exp", 1'000'000}, {"iat", 1}}, "clocks");
  expect("algorithm", {{"_alg", "none"}}, "none");
  expect("refused", {{"_status", 400}}, "no such code");
  expect("name", {{"preferred_username", "root\n"}}, "may do nothing here");
  expect("name that looks like another way", {{"preferred_username", "token:ci"}},
         "may do nothing here");
  expect("groups", {{"groups", {1, 2}}}, "groups", 503);
  expect("no group that counts", {{"groups", {"HPC", "hpc "}}}, "may do nothing here");
}

TEST_F(BadProvider, answersThatAreNoneAreSaidAndHoldUpNobody) {
  const auto expect = [&](const char* how, const char* words) {
    use(how);
    const auto said = over("/login");
    EXPECT_THAT(said.status, ::testing::AnyOf(503, 403)) << how << said.body;
    EXPECT_THAT(said.body,
                AllOf(HasSubstr(words), HasSubstr("What to do:"), Not(HasSubstr("\x1b"))))
        << how;
    EXPECT_EQ(get("/me").status, 200) << how;
  };
  expect("html", "text/html");
  expect("large", "provider");
  expect("deep", "levels");
  expect("elsewhere", "not followed");
  expect("other-issuer", "https://evil.example");
  expect("plain-http", "token_endpoint");
  expect("refuses", "maintenance");
  use("keys-html");
  const auto begun = begin();
  const auto said = comeBack(begun, back(begun.state, claims(begun)));
  EXPECT_EQ(said.status, 503);
  EXPECT_THAT(said.body, HasSubstr("text/html"));
}

TEST_F(BadProvider, thatIsSilentHoldsUpNobody) {
  issuer_ = base_ + "/slow";
  useIssuer(issuer_);
  auto waiting = std::async(std::launch::async, [this] { return over("/login"); });
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get("/me").status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(9));
  const auto said = waiting.get();
  EXPECT_EQ(said.status, 503) << said.body;
}

TEST_F(BadProvider, linksOfADeviceAreNotShown) {
  use("fine");
  const auto said = ask(
      {.method = "POST", .target = "/api/v1/login/device", .over_https = true, .record = false});
  EXPECT_EQ(said.status, 503) << said.body;
  EXPECT_THAT(said.json["detail"].get<std::string>(), HasSubstr("no https:// address"));
}

/// A page elsewhere makes a browser begin one after the other: who wants in still gets in.
TEST_F(BadProvider, whoBeginsWithoutEndIsBounded) {
  use("fine");
  const auto first = begin();
  for (std::size_t i = 0; i < kMaxPendingOfAddress; ++i) EXPECT_EQ(over("/login").status, 302);
  EXPECT_EQ(comeBack(first, back(first.state, claims(first))).status, 403) << "the oldest goes";
  const auto last = begin();
  EXPECT_EQ(comeBack(last, back(last.state, claims(last))).status, 302);
  EXPECT_EQ(over("/login", {"Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}).status, 400);
  EXPECT_EQ(over("/login", {"Sec-Fetch-Mode: navigate"}).status, 302);
}

}  // namespace
}  // namespace muster::api
