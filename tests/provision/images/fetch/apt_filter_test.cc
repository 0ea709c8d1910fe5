// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/apt_filter.h"

#include <gtest/gtest.h>

namespace muster::provision {
namespace {

std::string hostSettings() {
  return "Acquire=\nAcquire::https::CaInfo=/etc/ssl/site.pem\nAcquire::https::a.b::SslKey=/k\n";
}

bool isPassedOn(const std::string& item) {
  const AptMessage asked{601, "Configuration", {{"Config-Item", item}}};
  const auto out = filteredConfiguration(asked, hostSettings);
  EXPECT_TRUE(out.fields.empty() || out.fields == asked.fields) << item;
  return !out.fields.empty();
}

TEST(AptFilter, whatFetchingNeedsIsPassedOn) {
  for (const auto* item :
       {"Acquire::http::Proxy=http://proxy:3128", "acquire::HTTP::proxy=https://p",
        "Acquire::https::Proxy::a.b=socks5h://u:p%40@p:1", "Acquire::http::Proxy::a.b=DIRECT",
        "Acquire::http::Timeout=30", "Acquire::https::a.b::Verify-Peer=false",
        "Acquire::http::Pipeline-Depth=0", "Acquire::http::Dl-Limit=9",
        "Acquire::Send-URI-Encoded=1", "Acquire::ForceIPv4=true"})
    EXPECT_TRUE(isPassedOn(item)) << item;
}

TEST(AptFilter, whatIsNotListedIsLeftOut) {
  for (const auto* item :
       {"Acquire::http::User-Agent=x", "acquire::http::user%2dagent=x",
        "Acquire::http::Proxy-Auto-Detect=/bin/x", "Acquire::https::ProxyAutoDetect=/bin/x",
        "Dir::Etc::netrc=/etc/shadow", "Dir::Etc::netrcparts=/etc", "RootDir=/", "Dir=/",
        "Debug::Acquire::http=true", "Binary::http::Acquire::http::Timeout=1",
        "APT::Sandbox::User=root", "Acquire::ftp::Timeout=1", "Acquire::http=x",
        "Acquire::http::a::b::Timeout=1", "Acquire::http::Timeout", "=x", ""})
    EXPECT_FALSE(isPassedOn(item)) << item;
}

TEST(AptFilter, aProxyIsOfAListedScheme) {
  for (const auto* value : {"", "file:/x", "proxy:3128", "HTTP://p", "direct", "socks4://p"})
    EXPECT_FALSE(isPassedOn(std::string("Acquire::http::Proxy=") + value)) << value;
}

TEST(AptFilter, aControlCharacterIsFoundBehindItsCode) {
  for (const auto* item :
       {"Acquire::http::Proxy=http://p/%0d%0aX: y", "Acquire::http::Timeout=3%0A",
        "Acquire::http::Timeout=3\x01", "Acquire::http::a%7f::Timeout=3"})
    EXPECT_FALSE(isPassedOn(item)) << item;
}

TEST(AptFilter, aFileIsTheOneThatThisHostsAptNames) {
  EXPECT_TRUE(isPassedOn("Acquire::https::CaInfo=/etc/ssl/site.pem"));
  EXPECT_TRUE(isPassedOn("Acquire::https::a.b::SslKey=/k"));
  EXPECT_FALSE(isPassedOn("Acquire::https::CaInfo=/etc/shadow"));
  EXPECT_FALSE(isPassedOn("Acquire::https::c.d::CaInfo=/etc/ssl/site.pem"));
  EXPECT_FALSE(isPassedOn("Acquire::https::c.d::SslKey=/k"));
  EXPECT_FALSE(isPassedOn("Acquire::https::SslCert="));
}

TEST(AptFilter, aFileIsAskedForByListedFieldsOnce) {
  const AptMessage asked{600,
                         "URI Acquire X: y",
                         {{"URI", "http://a/%7ex"},
                          {"Filename", "/x"},
                          {"uri", "http://b/"},
                          {"Proxy", "file:/x"},
                          {"Expected-SHA256", "1"},
                          {"Expected-Checksum-FileSize", "3%0a"},
                          {"Maximum-Size", "4"},
                          {"Target-Site", "x"}}};
  EXPECT_EQ(toText(filteredAcquire(asked)),
            "600 URI Acquire\nURI: http://a/%7ex\nFilename: /x\nExpected-SHA256: 1\n"
            "Maximum-Size: 4\n\n");
  EXPECT_FALSE(filteredAcquire({600, "", {{"URI", "http://a/%0A"}}}).field("URI"));
}

}  // namespace
}  // namespace muster::provision
