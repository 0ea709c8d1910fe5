// SPDX-License-Identifier: Apache-2.0
#include "api/page_session.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

io::ServerRequest request(std::string method, io::Headers headers) {
  io::ServerRequest out;
  out.method = std::move(method);
  out.target = "/api/v1/quarantine";
  out.headers = std::move(headers);
  return out;
}

const std::string kCookie = "theme=dark; __Host-muster=muster_abc; x=1";

TEST(PageSession, findsItsCookieAmongOthers) {
  EXPECT_EQ(cookieOf(kCookie, kSessionCookie), "muster_abc");
  EXPECT_EQ(cookieOf("__Host-muster=a=b", kSessionCookie), "a=b");
  EXPECT_EQ(cookieOf("x__Host-muster=a; __Host-muster2=b", kSessionCookie), "");
  EXPECT_EQ(cookieOf("; ;;", kSessionCookie), "");
  EXPECT_EQ(cookieOf("", kSessionCookie), "");
}

TEST(PageSession, authorizationCountsBeforeTheCookie) {
  EXPECT_EQ(shownToken(request("GET", {{"Cookie", kCookie}})), "muster_abc");
  EXPECT_EQ(shownToken(request("GET", {{"Cookie", kCookie}, {"Authorization", "Bearer muster_x"}})),
            "muster_x");
  EXPECT_EQ(shownToken(request("GET", {})), "");
}

TEST(PageSession, theSchemeIsWrittenAsClientsLike) {
  const auto shown = [](const std::string& text) {
    auto asked = request("GET", {{"Authorization", text}});
    asked.peer = io::PeerCredentials{};
    return std::string(shownToken(asked));
  };
  EXPECT_EQ(shown("bearer muster_x"), "muster_x");
  EXPECT_EQ(shown("BEARER   muster_x "), "muster_x");
  EXPECT_EQ(shown("Bearer"), "Bearer") << "something was shown: it is not the peer who asks";
  EXPECT_EQ(shown("Bearer   "), "Bearer");
  EXPECT_NE(shown(""), "") << "an empty header is a token that does not count, too";
  EXPECT_EQ(shown("Basic YTpi"), "Basic YTpi");
  EXPECT_EQ(shown("BearerX muster_x"), "BearerX muster_x");
}

TEST(PageSession, theUnixSocketTakesNoCookie) {
  auto asked = request("GET", {{"Cookie", kCookie}});
  asked.peer = io::PeerCredentials{};
  EXPECT_EQ(shownToken(asked), "");
}

TEST(PageSession, anOrderByCookieMustComeFromThePage) {
  const auto with = [](io::Headers more) {
    more["Cookie"] = kCookie;
    more["Host"] = "ctl1:8443";
    return refusedOrder(request("POST", std::move(more)));
  };
  EXPECT_FALSE(with({{"Sec-Fetch-Site", "same-origin"}, {"Origin", "https://ctl1:8443"}}));
  EXPECT_FALSE(with({{"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(with({{"Origin", "https://ctl1:8443"}}));
  EXPECT_TRUE(with({}));
  EXPECT_TRUE(with({{"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_TRUE(with({{"Sec-Fetch-Site", "same-site"}, {"Origin", "https://ctl1:9000"}}));
  EXPECT_TRUE(with({{"Sec-Fetch-Site", "none"}}));
  EXPECT_TRUE(with({{"Sec-Fetch-Site", "same-origin"}, {"Origin", "https://evil"}}));
  EXPECT_TRUE(with({{"Origin", "null"}}));
  EXPECT_TRUE(with({{"Origin", "http://ctl1:8443"}}));
  EXPECT_TRUE(with({{"Origin", "https://ctl1:8443.evil"}}));
}

TEST(PageSession, tokensAndLooksNeedNoOrigin) {
  EXPECT_FALSE(refusedOrder(request("POST", {{"Authorization", "Bearer muster_x"}})));
  EXPECT_FALSE(refusedOrder(request("GET", {{"Cookie", kCookie}})));
  EXPECT_FALSE(refusedOrder(request("POST", {})));  // it has no identity: 401 says so
}

TEST(PageSession, theCookieIsHiddenFromScriptsAndOtherSites) {
  const WallTime now = std::chrono::sys_days{std::chrono::year{2026} / 11 / 25};
  const auto begun = sessionBegun("muster_abc", now + std::chrono::hours(2), now);
  EXPECT_EQ(begun.status, 204);
  EXPECT_EQ(begun.headers.at("Set-Cookie"),
            "__Host-muster=muster_abc; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=7200");
  EXPECT_EQ(begun.headers.at("Cache-Control"), "no-store");
  EXPECT_EQ(sessionBegun("t", now - std::chrono::hours(1), now).headers.at("Set-Cookie"),
            "__Host-muster=t; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
  EXPECT_EQ(sessionEnded().headers.at("Set-Cookie"),
            "__Host-muster=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
}

}  // namespace
}  // namespace muster::api
