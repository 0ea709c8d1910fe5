// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/proxy_environment.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::provision {
namespace {

using Environment = std::map<std::string, std::string>;

class ProxyEnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!io::runChecked({.program = "apt-config", .args = {"--version"}}))
      GTEST_SKIP() << "needs apt";
    for (auto& [name, value] : before_)
      if (const char* now = std::getenv(name)) value = now;
    ::unsetenv("http_proxy");
    ::unsetenv("https_proxy");
  }
  void TearDown() override {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }
  Environment with(const std::string& settings) {
    EXPECT_TRUE(io::writeFileUnsynced(folder_ / "apt.conf", "Dir \"/nowhere\";\n" + settings));
    ::setenv("APT_CONFIG", (folder_ / "apt.conf").c_str(), 1);
    return proxyEnvironment();
  }

  test::TempFolder folder_;
  std::map<const char*, std::optional<std::string>> before_{
      {"http_proxy", {}}, {"https_proxy", {}}, {"APT_CONFIG", {}}};
};

TEST_F(ProxyEnvironmentTest, isTheProxyOfThisHostsApt) {
  EXPECT_EQ(with("Acquire::http::Proxy \"http://p:1\";\n"),
            (Environment{{"http_proxy", "http://p:1"}}));
}

TEST_F(ProxyEnvironmentTest, directIsNoProxy) {
  EXPECT_EQ(with("Acquire::http::Proxy \"DIRECT\";\nAcquire::https::Proxy \"http://p:1\";\n"),
            (Environment{{"https_proxy", "http://p:1"}}));
}

}  // namespace
}  // namespace muster::provision
