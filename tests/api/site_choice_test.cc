// SPDX-License-Identifier: Apache-2.0
// Who answers a command.
#include "api/site_choice.h"

#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SiteChoice : public ApiSite {
 protected:
  SiteChoice() { ::setenv("MUSTER_API_SOCKET", (site_ / "api.sock").c_str(), 1); }
  ~SiteChoice() override { ::unsetenv("MUSTER_API_SOCKET"); }

  Result<std::unique_ptr<app::SiteClient>> choose(const app::Options& options) {
    return chooseSite(options, [this](const std::string& text) { notices_.push_back(text); });
  }
  std::vector<std::string> notices_;
};

TEST_F(SiteChoice, aServerIsAskedWhereOneAnswersAndNoneIsNeeded) {
  fill();
  const auto before = choose(site_.options());
  ASSERT_TRUE(before) << before.error().str();
  EXPECT_TRUE((*before)->isEmbedded());
  start();
  const auto during = choose(site_.options());
  ASSERT_TRUE(during) << during.error().str();
  EXPECT_FALSE((*during)->isEmbedded());
  auto direct = site_.options();
  direct.direct = true;
  EXPECT_TRUE((*choose(direct))->isEmbedded());
  server_->stop();
  const auto after = choose(site_.options());
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_TRUE((*after)->isEmbedded());
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(SiteChoice, anotherInventoryThanTheServersIsReadByThisProcess) {
  start();
  auto options = site_.options();
  site_.write("other.yaml", kSite);
  options.inventory = site_ / "other.yaml";
  const auto other = choose(options);
  ASSERT_TRUE(other) << other.error().str();
  EXPECT_TRUE((*other)->isEmbedded());
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("other.yaml")));
  options.inventory = "cluster.yaml-that-is-not-there";
  EXPECT_FALSE((*choose(options))->isEmbedded()) << "who has no inventory asks the server";
}

TEST_F(SiteChoice, aNamedServerMustAnswer) {
  auto options = site_.options();
  const auto codeOf = [&](const std::string& server) {
    options.server = server;
    const auto chosen = choose(options);
    EXPECT_FALSE(chosen) << server;
    return chosen ? ErrorCode::Internal : chosen.error().code();
  };
  EXPECT_EQ(codeOf((site_ / "api.sock").string()), ErrorCode::Unavailable);
  EXPECT_EQ(codeOf("ctl1:9443"), ErrorCode::InvalidInput);
  EXPECT_EQ(codeOf("http://ctl1:9443"), ErrorCode::InvalidInput) << "a token in plain text";
  EXPECT_EQ(codeOf("https://ctl1:9443"), ErrorCode::InvalidInput) << "no authority is named";
  options.token_file = site_ / "no-token";
  EXPECT_EQ(codeOf((site_ / "api.sock").string()), ErrorCode::NotFound);
  site_.write("empty", "\n");
  options.token_file = site_ / "empty";
  EXPECT_EQ(codeOf((site_ / "api.sock").string()), ErrorCode::InvalidInput);
  options.token_file.clear();
  options.direct = options.server_given = true;
  EXPECT_EQ(codeOf((site_ / "api.sock").string()), ErrorCode::InvalidInput);
}

TEST_F(SiteChoice, aRelativePathOfASocketIsNone) {
  for (const auto* server : {"run/api.sock", "./api.sock", "api.sock", "unix:api.sock"}) {
    auto options = site_.options();
    options.server = server;
    const auto chosen = choose(options);
    ASSERT_FALSE(chosen) << server;
    EXPECT_EQ(chosen.error().code(), ErrorCode::InvalidInput);
    EXPECT_THAT(chosen.error().text(), HasSubstr("relative path")) << server;
    EXPECT_THAT(chosen.error().text(), HasSubstr((std::filesystem::current_path() / "").string()));
  }
  auto options = site_.options();
  options.server = "http://10.20.0.1:8443";
  EXPECT_THAT(choose(options).error().text(), HasSubstr("write https://10.20.0.1:8443"));
  options.server = "ctl1:9443";
  EXPECT_THAT(choose(options).error().text(), HasSubstr("https://HOST:PORT"));
}

TEST_F(SiteChoice, aFolderIsNoSocketAndTheOneInItIsNamed) {
  auto options = site_.options();
  const auto folder = options.inventory.parent_path();
  options.server = folder.string();
  const auto chosen = choose(options);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(chosen.error().text(),
              HasSubstr("is a folder; name the socket in it: " + (folder / "api.sock").string()));
}

TEST_F(SiteChoice, aTokensFileSaysWhoAsks) {
  fill();
  start();
  const std::string token = post("/tokens", {{"name", "ci"}, {"role", "viewer"}}).json["token"];
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < limit &&
         ask({.target = "/api/v1/me", .token = token, .record = false}).status != 200) {
  }
  site_.write("token", token + "\n");
  auto options = site_.options();
  options.server = "unix:" + (site_ / "api.sock").string();
  options.token_file = site_ / "token";
  const auto chosen = choose(options);
  ASSERT_TRUE(chosen) << chosen.error().str();
  EXPECT_EQ(*(*chosen)->principal(), "token:ci");
}

TEST(UsualSockets, areThoseOfAServerThatRootOrTheUserRuns) {
  ::unsetenv("MUSTER_API_SOCKET");
  app::Options options;
  options.state = "/var/lib/muster";
  EXPECT_EQ(usualSockets(options).front(), "/run/muster/api.sock")
      << "for users who are not root, too";
  options.state = "/srv/lab";
  EXPECT_THAT(usualSockets(options),
              ElementsAre(options.runFolder("api") / "api.sock", "/srv/lab/api.sock"));
}

}  // namespace
}  // namespace muster::api
