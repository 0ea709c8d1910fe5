// SPDX-License-Identifier: Apache-2.0
// What root is told of files that the services' user cannot read: the truth only.
#include "cli/tree/shut_word.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

namespace muster::cli {
namespace {

/// Of a host where /shut is shut, /etc may be read, and /tmp written; nothing else is there.
int accessOf(const std::filesystem::path& path, int) {
  const std::map<std::string, int> known{{"/shut/ca.crt", EACCES},
                                         {"/shut/out", EACCES},
                                         {"/etc/ca.crt", 0},
                                         {"/etc", EACCES},
                                         {"/tmp", 0},
                                         {"/shut", EACCES},
                                         {".", EACCES},
                                         {"rma", EACCES},
                                         {"site.pem", EACCES},
                                         {"https://ctl2:9443", EACCES}};
  const auto found = known.find(path.string());
  return found == known.end() ? ENOENT : found->second;
}

std::string shut(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  const char* found = shutWord(pointers, accessOf);
  return found ? found : "";
}

TEST(ShutWord, isAFileThatThereIsAndThatMayNotBeRead) {
  EXPECT_EQ(shut({"status", "--server-ca", "/shut/ca.crt"}), "/shut/ca.crt");
  EXPECT_EQ(shut({"status", "--server-ca=/shut/ca.crt"}), "--server-ca=/shut/ca.crt");
  EXPECT_EQ(shut({"status", "--server-ca", "/etc/ca.crt"}), "");
  EXPECT_EQ(shut({"image", "import", "/shut/ca.crt"}), "/shut/ca.crt");
}

TEST(ShutWord, isAFileThatMayNotBeMade) {
  EXPECT_EQ(shut({"fabric", "plan", "--out", "/etc/sheet.csv"}), "/etc/sheet.csv");
  EXPECT_EQ(shut({"fabric", "plan", "--out", "/tmp/sheet.csv"}), "");
  EXPECT_EQ(shut({"rma", "gpu001", "--out", "gpu001.tar.zst"}), "gpu001.tar.zst");
  EXPECT_EQ(shut({"rma", "gpu001", "--out=gpu001.tar.zst"}), "--out=gpu001.tar.zst");
  EXPECT_EQ(shut({"rma", "gpu001"}), "");
  EXPECT_EQ(shut({"image", "import", "site.pem"}), "site.pem");
}

// What was wrong: the second line said that a typo was shut to the services' user.
TEST(ShutWord, isNoFileThatIsReadAndDoesNotExist) {
  for (const char* option : {"--server-ca", "--token-file", "--client-cert", "--client-key",
                             "--inventory", "--access", "--found"}) {
    EXPECT_EQ(shut({"status", option, "/etc/nosuch.crt"}), "") << option;
    EXPECT_EQ(shut({"status", std::string(option) + "=/etc/nosuch.crt"}), "") << option;
  }
  EXPECT_EQ(shut({"status", "--server", "https://ctl1:9443", "--json"}), "");
  // Typed in a folder that is shut, where every name answers so.
  EXPECT_EQ(shut({"--server", "https://ctl2:9443", "bmc", "power", "gpu001", "on"}), "");
  EXPECT_EQ(shut({}), "");
}

}  // namespace
}  // namespace muster::cli
