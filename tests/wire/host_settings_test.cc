// SPDX-License-Identifier: Apache-2.0
// What a site wants of a host: as it was, or refused by its member.
#include "wire/host_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::wire {
namespace {

using testing::HasSubstr;

// Of `openssl passwd -6 -salt saltsalt x` and `mkpasswd -m yescrypt x`.
constexpr const char* kSha512 =
    "$6$saltsalt$8RWsOfwR6M6PpnoeQiEiWzNTPo1f0HjVYjDnLZhGx16aBFRkeqiHAzfXP/"
    "LgrOWMBMXqiU2pLrXsSOHNUyUm91";
constexpr const char* kYescrypt =
    "$y$j9T$cqvgzDnzJqCF4r5g9tLOF/$9mdJPO8aGRZoEzW0YqZxjoLjZ.Mak/eoun3EqvvHQH3";
constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

HostSettings everything() {
  HostSettings out;
  out.time_servers = {"10.20.0.1", "ntp.example.com", "fd00:20::1"};
  out.authorities = {{"site", kPem}};
  out.http_proxy = "http://10.20.0.3:3128";
  out.no_proxy = {"10.20.0.0/16"};
  out.users = {
      {"alice", 2001, {"ssh-ed25519 AAAA alice"}, {"video"}, "/bin/sh", SudoRight::Free, kSha512}};
  out.ssh_user_authorities = {"ssh-ed25519 AAAA ca"};
  out.crash_kernel = "512M";
  out.serial_console = "ttyS1";
  return out;
}

TEST(HostSettings, areReadAsTheyWerePrinted) {
  const auto read = parseHostSettings(toJson(everything()));
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(*read, everything());
  EXPECT_EQ(toJson(HostSettings()), "{}");
}

/// Whatever gets here ends in files that root's programs read by lines.
TEST(HostSettings, nothingMakesASecondLine) {
  const auto refused = [](auto change) {
    auto settings = everything();
    change(settings);
    const auto read = parseHostSettings(toJson(settings));
    return read ? std::string("taken") : read.error().text();
  };
  EXPECT_THAT(refused([](auto& s) { s.time_servers = {"a\nserver b"}; }), HasSubstr("no host"));
  EXPECT_THAT(refused([](auto& s) { s.time_servers = {"-x"}; }), HasSubstr("no host"));
  EXPECT_THAT(refused([](auto& s) { s.http_proxy = "http://x'; reboot; '"; }),
              HasSubstr("http_proxy"));
  EXPECT_THAT(refused([](auto& s) { s.no_proxy = {"$(reboot)"}; }), HasSubstr("no_proxy"));
  EXPECT_THAT(refused([](auto& s) { s.users[0].name = "alice ALL"; }), HasSubstr("no user name"));
  EXPECT_THAT(refused([](auto& s) { s.users[0].name = "../x"; }), HasSubstr("no user name"));
  EXPECT_THAT(refused([](auto& s) { s.users[0].keys = {"k\nsecond"}; }), HasSubstr("no key"));
  EXPECT_THAT(refused([](auto& s) { s.users[0].shell = "/bin/sh:x"; }), HasSubstr("shell"));
  EXPECT_THAT(refused([](auto& s) { s.users[0].uid = 5; }), HasSubstr("uid"));
  EXPECT_THAT(refused([](auto& s) { s.users[0].password_hash = "secret"; }), HasSubstr("hash"));
  EXPECT_THAT(refused([](auto& s) { s.ssh_user_authorities = {"k\nx"}; }), HasSubstr("no key"));
  EXPECT_THAT(refused([](auto& s) { s.authorities = {{"../../x", kPem}}; }),
              HasSubstr("no certificate"));
  EXPECT_THAT(refused([](auto& s) { s.serial_console = "ttyS1 quiet"; }), HasSubstr("plain word"));
  EXPECT_THAT(refused([](auto&) {}), HasSubstr("taken"));
}

TEST(HostSettings, passwordsAreHashesOfStrongFunctions) {
  EXPECT_TRUE(isPasswordHash(kSha512));
  EXPECT_TRUE(isPasswordHash(kYescrypt));
  for (const char* text : {"", "x", "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/", "$5$a$b", "$6$salt",
                           "$y$", "*", "$6$saltsalt$short", "$6$sa:lt$x"})
    EXPECT_FALSE(isPasswordHash(text)) << text;
}

TEST(HostSettings, aTrustStoreTakesCertificatesAlone) {
  EXPECT_TRUE(isCertificatePem(kPem));
  EXPECT_TRUE(isCertificatePem(std::string("subject=CN = x\n") + kPem + kPem));
  EXPECT_FALSE(isCertificatePem(""));
  EXPECT_FALSE(isCertificatePem("MIIB"));
  EXPECT_FALSE(isCertificatePem("-----BEGIN CERTIFICATE-----\nMIIB\n"));
  EXPECT_FALSE(
      isCertificatePem("-----BEGIN CERTIFICATE-----\nMI IB!\n-----END CERTIFICATE-----\n"));
  EXPECT_FALSE(isCertificatePem(std::string(kPem) +
                                "-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----\n"));
}

}  // namespace
}  // namespace muster::wire
