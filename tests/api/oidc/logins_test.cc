// SPDX-License-Identifier: Apache-2.0
// Logging in by a real provider (npm's oidc-provider, with a person at a browser), and what logins
// are without one.
#include "api/oidc/logins.h"

#include "api/oidc/login_client.h"
#include "api/page_session.h"
#include "api/site_choice.h"
#include "lifecycle/runs/run.h"
#include "tests/api/oidc/login_site.h"

#include <sys/stat.h>

#include <future>

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// ---- a real provider

class RealProvider : public LoginSite {
 protected:
  void SetUp() override {
    LoginSite::SetUp();
    const auto has_node = io::runBlocking(
        {"node", {"-e", "process.exit(process.versions.node.split('.')[0] >= 20 ? 0 : 1)"}});
    if (!has_node || has_node->code != 0)
      GTEST_SKIP() << "node 20 or newer is not installed (apt-get install nodejs npm)";
    modules_ = test::binFolder().parent_path() / "oidc-tests";
    const auto installed = io::runBlocking(
        {"bash",
         {"-c",
          "set -e; mkdir -p \"$1\"; exec 9>\"$1/lock\"; flock 9; cd \"$1\"; cmp -s "
          "\"$0/package-lock.json\" installed.json && exit 0; cp \"$0/package.json\" "
          "\"$0/package-lock.json\" .; npm ci --no-audit --no-fund >npm.log 2>&1; cp "
          "package-lock.json installed.json",
          oidcScripts().string(), modules_.string()}});
    if (!installed || installed->code != 0)
      GTEST_SKIP() << "npm ci did not work; see " << (modules_ / "npm.log").string();
    start("127.0.0.1:0");
  }
  nlohmann::json begin(nlohmann::json settings) {
    settings["redirect"] = url() + "/login/callback";
    return startProvider(
        {"node",
         {(oidcScripts() / "provider.mjs").string(), modules_.string(), (pki_ / "sso.crt").string(),
          (pki_ / "sso.key").string(), jsonText(settings)}});
  }
  void provide(nlohmann::json settings = nlohmann::json::object(), const std::string& more = {}) {
    const auto said = begin(std::move(settings));
    ASSERT_TRUE(said.is_object());
    issuer_ = said["issuer"];
    useIssuer(issuer_, more);
    pki_.run("cat ca.crt '" + (site_.options().state / "ca/ca.crt").string() + "' > both.crt");
  }
  /// At a browser, which begins with no cookies.
  nlohmann::json person(const std::string& name, const std::string& at,
                        std::vector<std::string> then = {}) {
    std::vector<std::string> words{(oidcScripts() / "person.py").string(),
                                   (pki_ / "both.crt").string(), name, at};
    words.insert(words.end(), then.begin(), then.end());
    const auto ended = io::runBlocking({kDebiansPython, std::move(words)});
    if (!ended || ended->code != 0) {
      ADD_FAILURE() << (ended ? ended->err : ended.error().str());
      return {};
    }
    return jsonOrNone(ended->out, kToolJson);
  }
  nlohmann::json login(const std::string& name, std::vector<std::string> then = {}) {
    return person(name, url() + "/login?to=%23%2Fnodes%2Fgpu001%3Ftab%3Dfacts", std::move(then));
  }
  app::Options options() const {
    auto out = site_.options();
    out.server = url();
    out.server_given = true;
    out.server_ca = site_.options().state / "ca/ca.crt";
    return out;
  }

  std::filesystem::path modules_;
  std::string issuer_;
};

TEST_F(RealProvider, letsAPersonIntoThePageAndBackToWhereTheyWere) {
  provide({{"groups_in", "id_token"}});
  const auto anna = login("anna", {url() + "/api/v1/me"});
  ASSERT_EQ(anna["status"], 200) << jsonText(anna, 2);
  EXPECT_EQ(anna["chain"].back(), url() + "/#/nodes/gpu001?tab=facts");
  const auto me = jsonOrNone(anna["then"][0]["body"].get<std::string>(), kServerJson);
  ASSERT_TRUE(me.is_object()) << jsonText(anna, 2);
  EXPECT_EQ(me["principal"], "oidc:anna");
  EXPECT_EQ(me["way"], "oidc");
  EXPECT_EQ(me["role"], "operator");
  EXPECT_EQ(me["person"], "anna");
  EXPECT_EQ(me["scope"]["pools"], nlohmann::json::array({"batch"}));
  const auto cookie = fmt::format("{}={}", kSessionCookie,
                                  anna["cookies"][std::string(kSessionCookie)].get<std::string>());
  EXPECT_EQ(withCookie(cookie, "/api/v1/nodes/login1").status, 404) << "outside of her pools";
  // She is in the list of tokens, and out of it when she logs out.
  EXPECT_EQ(get("/tokens").items()[0]["login"], true);
  EXPECT_EQ(withCookie(cookie, "/api/v1/session", "DELETE").status, 204);
  EXPECT_EQ(withCookie(cookie, "/api/v1/me").status, 401) << "for whoever has her cookie";
  EXPECT_EQ(get("/tokens").items().size(), 0u);

  const auto carla = login("carla");
  EXPECT_EQ(carla["status"], 403);
  EXPECT_THAT(carla["body"].get<std::string>(),
              AllOf(HasSubstr("carla"), HasSubstr("may do nothing here"), HasSubstr("What to do:"),
                    HasSubstr(url())));
}

/// Groups that are not in the ID token are asked for; and the client has a secret here.
TEST_F(RealProvider, isAskedWhoItIsWhereTheTokenDoesNotSay) {
  site_.write("secret", "s3cret+/= of muster\n");
  std::filesystem::permissions(
      site_ / "secret", std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  provide({{"secret", "s3cret+/= of muster"}}, "secret-file=" + (site_ / "secret").string());
  const auto ben = login("ben", {url() + "/api/v1/me"});
  const auto me = jsonOrNone(ben["then"][0]["body"].get<std::string>(), kServerJson);
  ASSERT_TRUE(me.is_object()) << jsonText(ben, 2);
  EXPECT_EQ(me["principal"], "oidc:ben");
  EXPECT_EQ(me["role"], "approver") << "the first row that fits";
}

TEST_F(RealProvider, thatChangesItsKeysIsGoneOnWith) {
  provide({{"groups_in", "id_token"}});
  ASSERT_EQ(login("anna")["status"], 200);
  const auto port = io::Url::parse(issuer_)->port;
  provider_->terminate(std::chrono::seconds(5));
  const auto down = over("/login");
  // Its endpoints are known for an hour: the browser goes there and finds nobody.
  EXPECT_EQ(down.status, 302);
  EXPECT_EQ(
      ask({.method = "POST", .target = "/api/v1/login/device", .over_https = true, .record = false})
          .status,
      503);
  EXPECT_EQ(get("/me").status, 200) << "other ways go on";
  ASSERT_EQ(begin({{"groups_in", "id_token"}, {"port", port}})["issuer"], issuer_);
  EXPECT_EQ(login("anna")["status"], 200) << "signed with a key that was not there before";
}

TEST_F(RealProvider, endsASessionWithItsToken) {
  provide({{"groups_in", "id_token"}, {"life_s", 3}});
  const auto anna = login("anna");
  const auto cookie = fmt::format("{}={}", kSessionCookie,
                                  anna["cookies"][std::string(kSessionCookie)].get<std::string>());
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (withCookie(cookie, "/api/v1/me").status == 200 &&
         std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_EQ(withCookie(cookie, "/api/v1/me").status, 401);
}

TEST_F(RealProvider, letsACommandLineInByACode) {
  provide({{"groups_in", "id_token"}});
  const LoginFile file(site_ / "home/muster/logins.json");
  std::future<nlohmann::json> browser;
  const auto done = logIn(options(), file, [&](const LoginPrompt& prompt) {
    EXPECT_THAT(prompt.verification_uri, StartsWith(issuer_));
    browser = std::async(std::launch::async, [this, at = prompt.verification_uri_complete] {
      return person("ben", at);
    });
  });
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_THAT(browser.get()["body"].get<std::string>(), HasSubstr("Sign-in Success"));
  EXPECT_EQ(done->principal, "oidc:ben");
  struct stat kept{};
  ASSERT_EQ(::stat(file.path().c_str(), &kept), 0);
  EXPECT_EQ(kept.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(file.path().parent_path().c_str(), &kept), 0);
  EXPECT_EQ(kept.st_mode & 0777U, 0700U);

  // Other commands use it.
  ::setenv("XDG_CONFIG_HOME", (site_ / "home").c_str(), 1);
  const auto site = chooseSite(options(), [](const std::string&) {});
  ASSERT_TRUE(site) << site.error().str();
  EXPECT_EQ(*(*site)->principal(), "oidc:ben");
  // Others may not have read it.
  ASSERT_EQ(::chmod(file.path().c_str(), 0644), 0);
  const auto open = chooseSite(options(), [](const std::string&) {});
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().str(), HasSubstr("chmod 600"));
  ASSERT_EQ(::chmod(file.path().c_str(), 0600), 0);
  const auto token = file.read()->begin()->second.token;
  const auto out = logOut(options(), file);
  ASSERT_TRUE(out && *out);
  EXPECT_FALSE(*logOut(options(), file)) << "nobody is logged in";
  EXPECT_EQ(ask({.target = "/api/v1/me", .token = token, .over_https = true}).status, 401);
  EXPECT_FALSE(chooseSite(options(), [](const std::string&) {}));
  ::unsetenv("XDG_CONFIG_HOME");
}

// ---- without a provider

TEST(LoginTargets, arePartsOfThePage) {
  EXPECT_EQ(*checkedTarget(""), "");
  EXPECT_EQ(*checkedTarget("#/nodes/gpu001?tab=facts&x=%20"), "#/nodes/gpu001?tab=facts&x=%20");
  EXPECT_FALSE(checkedTarget("#"));
  EXPECT_FALSE(checkedTarget("/#/nodes"));
}

class NoProvider : public LoginSite {};

TEST_F(NoProvider, isSaid) {
  start("127.0.0.1:0");
  EXPECT_TRUE(over("/api/v1/login").json["oidc"].is_null());
  const auto said = over("/login");
  EXPECT_EQ(said.status, 404);
  EXPECT_THAT(said.body, HasSubstr("a row oidc"));
  auto options = site_.options();
  options.server = url();
  options.server_ca = site_.options().state / "ca/ca.crt";
  const auto refused = logIn(options, LoginFile(site_ / "logins.json"), [](const LoginPrompt&) {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), AllOf(HasSubstr("no provider"), HasSubstr("muster token")));
  options.server = "/run/muster/api.sock";
  EXPECT_FALSE(logIn(options, LoginFile(site_ / "logins.json"), [](const LoginPrompt&) {}));
}

/// One account is one person, whatever it is called and however it came.
TEST_F(NoProvider, loginsAreOfPersons) {
  const auto store = site_.store();
  Tokens tokens(*store);
  const auto now = SystemClock().now();
  const auto table = AccessTable::parse(
      "client-ca /ca\ncertificate cn=anna approver\noidc issuer=https://sso client-id=m name=n\n"
      "oidc-group g operator\nperson anna oidc:anna@example.org\n",
      "access.conf");
  ASSERT_TRUE(table.problems().empty());
  const auto actor = [&](const std::string& subject, const std::string& name) {
    auto who = *table.identify(OidcAccount{"https://sso", subject, name, {"g"}});
    who.expires_at = now + std::chrono::hours(1);
    const auto made = tokens.logIn({who, "test"}, now);
    EXPECT_TRUE(made);
    const auto kept = identityOf(tokens.list()->back());
    return lifecycle::RunActor{kept.principal, "oidc", "", kept.person, kept.issuers, kept.account};
  };
  const auto anna = actor("s1", "anna");
  EXPECT_EQ(anna.principal, "oidc:anna");
  EXPECT_TRUE(mayBeOnePerson(anna, actor("s1", "zoe"))) << "renamed at the provider";
  EXPECT_FALSE(mayBeOnePerson(anna, actor("s2", "ben")));
  EXPECT_TRUE(mayBeOnePerson(anna, actor("s3", "anna@example.org"))) << "a row says so";
  EXPECT_TRUE(mayBeOnePerson(anna, {"anna", "unix", "ctl1"})) << "on the socket";
  io::CertificateNames certificate;
  certificate.common_name = "anna";
  certificate.key_id = "k";
  const auto shown = *table.identify(certificate);
  EXPECT_TRUE(mayBeOnePerson(anna, {shown.principal, "certificate", "", shown.person}));
  // A token that the account has made has been seen by it, whatever it is called later.
  const auto token = tokens.create({.name = "t", .role = Role::Approver, .owner = "carl"},
                                   {"oidc:anna", "anna", {anna.account}}, now);
  const auto carl = identityOf(token->token);
  EXPECT_TRUE(mayBeOnePerson(actor("s1", "zoe2"),
                             {carl.principal, "token", "", carl.person, carl.issuers}));
}

TEST_F(NoProvider, loginsAreBoundedAndGoWhenTheyAreOver) {
  const auto store = site_.store();
  Tokens tokens(*store);
  const auto now = SystemClock().now();
  Identity who{"oidc:anna", Way::Oidc, Role::Viewer, {}, now + std::chrono::hours(48), "anna"};
  who.account = "oidc:1";
  for (std::size_t i = 0; i < kMaxLoginsOfOne + 3; ++i) {
    const auto made = tokens.logIn({who, "test"}, now);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->token.expires_at, now + kLongestLogin) << "at most a day";
  }
  EXPECT_EQ(tokens.list()->size(), kMaxLoginsOfOne);
  who.account = "oidc:2";
  ASSERT_TRUE(tokens.logIn({who, "test"}, now + kLongestLogin));
  EXPECT_EQ(tokens.list()->size(), 1u) << "the others are over";
  who.expires_at = now;
  EXPECT_FALSE(tokens.logIn({who, "test"}, now));
}

}  // namespace
}  // namespace muster::api
