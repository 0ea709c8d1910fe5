// SPDX-License-Identifier: Apache-2.0
// Editors see a pattern, the reader runs a function: what the reader takes, the pattern must take,
// and both refuse what is listed.
#include "inventory/schema/formats.h"

#include "base/ids.h"
#include "base/ip_address.h"
#include "inventory/parse/hostlist.h"

#include <gtest/gtest.h>

#include <regex>

namespace muster::inventory {
namespace {

bool matches(const TextFormat& format, const std::string& text) {
  return std::regex_search(text, std::regex(std::string(format.pattern)));
}

struct Corpus {
  const TextFormat* format;
  bool (*accepts)(std::string_view);
  std::vector<std::string> good, bad;
};

template <class T>
bool parses(std::string_view text) {
  return T::parse(text).has_value();
}
template <Result<void> (*check)(std::string_view)>
bool checks(std::string_view text) {
  return check(text).has_value();
}

TEST(Formats, patternAndFunctionAgree) {
  const std::string digest(64, 'a');
  const std::vector<Corpus> corpora{
      {&kMac,
       parses<Mac>,
       {"52:54:00:20:00:01", "52-54-00-AA-bb-01", "5254.0020.0001", "525400200001"},
       {"", "52:54:00:20:00", "52:54:00:20:00:0g", "5254:0020:0001"}},
      {&kIpv4,
       parses<Ipv4>,
       {"10.20.0.1", "0.0.0.0", "255.255.255.255"},
       {"", "10.20.0", "10.20.0.1.2", "a.b.c.d", "10.20.0.1/16"}},
      {&kCidr,
       parses<Cidr>,
       {"10.20.0.0/16", "0.0.0.0/0", "10.0.0.1/32"},
       {"", "10.20.0.0", "10.20.0.0/", "10.20.0.0/abc"}},
      {&kHostName,
       checks<checkHostName>,
       {"gpu001", "a", "a-b", std::string(63, 'a')},
       {"", "-a", "a-", "A", "a_b", "a.b", std::string(64, 'a'), "gpu\xc3\xbc"}},
      {&kSha256,
       checks<checkSha256>,
       {digest, std::string(64, '0')},
       {"", "abc", digest + "a", std::string(64, 'A'), std::string(64, 'g'),
        "sha256:" + digest.substr(7)}},
      {&kDisk,
       checks<checkDisk>,
       {"smallest", "serial:X1", "wwn:0x5000c500a1b2c3d4", "size:3TB-", "size:400GB-1.92TB",
        "size:1GiB-2TiB"},
       {"", "/dev/sda", "serial:", "serial:a b", "largest", "size:", "size:3TB", "size:3-4",
        "size:-3TB", "size:3PB-"}},
      {&kKernelArgument, checks<checkKernelArgument>, {"iommu=pt", "quiet"}, {"", "a b"}},
      {&kSshKey,
       checks<checkSshKey>,
       {"ssh-ed25519 AAAA me", "ecdsa-sha2-nistp256 AAAA", "sk-ssh-ed25519@openssh.com AAAA"},
       {"", "AAAA"}},
      {&kBmcUrl,
       checks<checkBmcUrl>,
       {"https://10.0.0.1", "https://bmc1.example:8443/", "https://ops@bmc1", "libvirt:gpu001",
        "https://10.0.0.1:443"},
       {"", "10.0.0.1", "http://10.0.0.1", "https://", "https://a/b", "https://a:b@c",
        "https://a:", "libvirt:", "https://a b", "ftp://a", "https://a:123456"}},
      {&kServerUrl,
       checks<checkServerUrl>,
       {"https://10.0.0.1:6443", "https://api.example", "https://rancher.example/k8s/clusters/c-1"},
       {"", "10.0.0.1:6443", "http://10.0.0.1:6443", "https://me@10.0.0.1", "https://a?b=c",
        "https://a/x?y", "https://a/ b"}},
      {&kTaint,
       checks<checkTaint>,
       {"muster/out:NoSchedule", "out:NoSchedule", "example.com/out=why:NoSchedule",
        "out=:NoSchedule"},
       {"", "muster/out", "muster/out:NoExecute", "muster/out:PreferNoSchedule", "/out:NoSchedule",
        "a/b/c:NoSchedule", "-a:NoSchedule", "Example.com/out:NoSchedule", ":NoSchedule",
        "a=b=c:NoSchedule"}},
      {&kHostlist,
       [](std::string_view text) { return expandHostlist(text).has_value(); },
       {"gpu[001-128,200],login1", "a.b_c-d[1]"},
       {"", "a/b", "g\xc3\xbc"}},
  };
  for (const Corpus& corpus : corpora) {
    for (const std::string& text : corpus.good) {
      EXPECT_TRUE(corpus.accepts(text)) << corpus.format->title << ": " << text;
      EXPECT_TRUE(matches(*corpus.format, text)) << corpus.format->title << ": " << text;
    }
    for (const std::string& text : corpus.bad) {
      EXPECT_FALSE(corpus.accepts(text)) << corpus.format->title << ": " << text;
      EXPECT_FALSE(matches(*corpus.format, text)) << corpus.format->title << ": " << text;
    }
  }
}

TEST(Formats, examplesFitTheirPatterns) {
  for (const TextFormat* format :
       {&kEntryName, &kClusterName, &kHostName, &kHostlist, &kMac,           &kIpv4,
        &kCidr,      &kIpv4Range,   &kBmcUrl,   &kLink,     &kRouting,       &kPackage,
        &kSuite,     &kMirror,      &kModule,   &kProbe,    &kGlob,          &kWord,
        &kUserName,  &kEnvName,     &kSshKey,   &kDisk,     &kKernelArgument})
    EXPECT_TRUE(matches(*format, std::string(format->example)))
        << format->title << ": " << format->example;
}

}  // namespace
}  // namespace muster::inventory
