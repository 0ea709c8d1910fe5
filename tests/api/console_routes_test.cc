// SPDX-License-Identifier: Apache-2.0
// Recorded consoles over the API: byte for byte, and only for who may look at consoles.
#include "api/tokens.h"
#include "bmc/console/boot_log.h"

#include "tests/api/api_site.h"

namespace muster::api {
namespace {

class ApiConsole : public ApiSite {
 protected:
  bmc::BootLogArchive archive() {
    return {bmc::keptConsoles(site_.options().state), NodeName("gpu001")};
  }
  Said output(const std::string& rest) { return get("/nodes/gpu001/boots/" + rest); }
};

TEST_F(ApiConsole, aBootIsFollowedPartByPart) {
  start();
  EXPECT_EQ(get("/nodes/gpu001/boots").items().size(), 0u);
  auto log = archive().begin(SystemClock().now(), "installation");
  ASSERT_TRUE(log);
  const std::string first = "\x1b[2J BIOS \xff\xfe\r\n";
  ASSERT_TRUE(log->append(first));
  const auto boots = get("/nodes/gpu001/boots");
  ASSERT_EQ(boots.items().size(), 1u) << boots.body;
  EXPECT_EQ(boots.items()[0]["why"], "installation");
  const auto number = std::to_string(boots.items()[0]["boot"].get<int>());
  const auto part = output(number + "/output");
  ASSERT_EQ(part.status, 200) << part.body;
  EXPECT_EQ(part.body, first) << "bytes as they came";
  EXPECT_EQ(part.header("Muster-Next"), std::to_string(first.size()));
  EXPECT_EQ(part.header("Cache-Control"), "no-store") << "consoles show passwords";
  ASSERT_TRUE(log->append("Linux\r\n"));
  const auto next = output(number + "/output?after=" + part.header("Muster-Next"));
  EXPECT_EQ(next.header("Muster-From"), part.header("Muster-Next"));
  EXPECT_EQ(next.body, "Linux\r\n");
}

TEST_F(ApiConsole, bootsThatAreNotThereAreNotFound) {
  start();
  ASSERT_TRUE(archive().begin(SystemClock().now(), "test"));
  for (const auto* boot : {"7", "x", "-1", "4294967297", "99999999999999999999"})
    EXPECT_EQ(output(std::string(boot) + "/output").status, 404) << boot;
  EXPECT_EQ(output("1/output?after=-1").status, 400);
  EXPECT_EQ(get("/nodes/nothere/boots").status, 404);
}

/// Consoles show passwords.
TEST_F(ApiConsole, onlyWhoMayLookAtConsolesIsAnswered) {
  std::map<Role, std::string> tokens;
  {
    const auto store = site_.store();
    for (const auto role : {Role::Viewer, Role::Approver, Role::Robot, Role::Operator}) {
      const auto made = Tokens(*store).create({std::string(toString(role)), role, {}, 1},
                                              {"test", "test"}, SystemClock().now());
      ASSERT_TRUE(made) << made.error().str();
      tokens[role] = made->secret;
    }
  }
  start("127.0.0.1:0");
  const auto statusFor = [&](Role role, const std::string& target) {
    Said said;  // the server has seen the tokens within a second
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(90);
    do said = ask({.target = "/api/v1" + target, .token = tokens[role], .over_https = true});
    while (said.status == 401 && std::chrono::steady_clock::now() < limit);
    return said.status;
  };
  for (const auto role : {Role::Viewer, Role::Approver, Role::Robot}) {
    EXPECT_EQ(statusFor(role, "/nodes/gpu001/boots"), 403) << toString(role);
    EXPECT_EQ(statusFor(role, "/nodes/gpu001/boots/1/output"), 403) << toString(role);
  }
  EXPECT_EQ(statusFor(Role::Operator, "/nodes/gpu001/boots"), 200);
}

}  // namespace
}  // namespace muster::api
