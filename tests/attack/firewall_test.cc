// SPDX-License-Identifier: Apache-2.0
// The firewall of SECURITY.md is one that nft takes, and it lets in what the controller serves.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/io/files.h"
#include "base/io/process.h"
#include "gateway/http_listeners.h"
#include "tests/paths.h"
#include "tests/run_async.h"

namespace muster::attack {
namespace {

std::string rules() {
  const auto page = io::readFile(test::sourceFolder() / "SECURITY.md", 1u << 20).value_or("");
  const auto begin = page.find("```nft\n"), end = page.find("```", begin + 7);
  return begin == std::string::npos ? std::string() : page.substr(begin + 7, end - begin - 7);
}

TEST(Firewall, letsInWhatIsServed) {
  EXPECT_NE(rules().find(fmt::format("tcp dport {{ {}, {} }} accept", gateway::kHttpPort,
                                     gateway::kHttpsPort)),
            std::string::npos);
  EXPECT_NE(rules().find("policy drop"), std::string::npos);
}

TEST(Firewall, isTakenByNft) {
  if (io::runBlocking({.program = "nft", .args = {"--version"}})
          .value_or(io::ProcessExit{-1, "", ""})
          .code != 0)
    GTEST_SKIP() << "nft is not installed";
  if (::geteuid() != 0) GTEST_SKIP() << "nft wants root, also to look only";
  test::TempFolder folder;
  std::ofstream(folder / "muster.nft") << rules();
  const auto checked = io::runBlocking(
      {.program = "unshare", .args = {"-n", "nft", "-c", "-f", (folder / "muster.nft").string()}});
  ASSERT_TRUE(checked) << checked.error().str();
  EXPECT_EQ(checked->code, 0) << checked->err;
}

}  // namespace
}  // namespace muster::attack
