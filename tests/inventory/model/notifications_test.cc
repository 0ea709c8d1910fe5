// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/notifications.h"

#include "inventory/model/cluster.h"
#include "tests/inventory/inventory_fixture.h"

#include <fmt/format.h>

namespace muster::inventory {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kGoodKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

class NotificationsTest : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    key(kGoodKey);
  }
  void key(std::string_view content) {
    write("secrets/oncall", std::string(content) + "\n");
    ::chmod((folder_ / "secrets/oncall").c_str(), 0600);
  }
  Loaded loadReceiver(const std::string& receiver) {
    return loadYaml(std::string(kSmall) + "notifications: {oncall: " + receiver + "}\n");
  }
  std::vector<std::string> complaintsOf(const std::string& receiver) {
    return lines(loadReceiver(receiver));
  }
  std::vector<std::string> complaintsOfUrl(const std::string& url) {
    return complaintsOf(fmt::format("{{url: \"{}\", secret: {{file: secrets/oncall}}}}", url));
  }
};

TEST_F(NotificationsTest, takesUrlsThatAMessageCanBePostedTo) {
  for (const auto* url :
       {"https://hooks.example.com/muster", "https://hooks.example.com",
        "https://hooks.example.com:8443/a/b?site=1&who=@oncall", "https://[fd00::1]:9093/",
        "https://hooks.example.com?token=1", "https://10.20.0.9/T00/B00/x%20y"})
    EXPECT_THAT(complaintsOfUrl(url), IsEmpty()) << url;
}

/// What cannot be sent to, or would be sent elsewhere than it says.
TEST_F(NotificationsTest, refusesUrlsThatAreNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"ftp://hooks.example.com/", "http or https"},
      {"hooks.example.com/muster", "https://host"},
      {"https://anna:secret@hooks.example.com/", "user"},
      {"https://anna@hooks.example.com", "user"},
      {"https://hooks.example.com/muster#frag", "fragment"},
      {"https://hooks.example.com#", "fragment"},
      {"https:///muster", "host is missing"},
      {"https://:8443/", "host is missing"},
      {"https://hooks.example.com:0/", "port"},
      {"https://hooks.example.com:99999/", "port"},
      {"https://hooks.example.com:/", "port"},
      {"https://hooks.example.com/a b", "blanks"},
      {"https://[fd00::1/", "bracket"},
      {"https://[hooks]/", "IPv6"},
      {"https://höoks.example.com/", "xn--"},
      {"mailto:oncall@example.com", "https://host"},
  };
  for (const auto& [url, words] : cases)
    EXPECT_THAT(complaintsOfUrl(url), Contains(HasSubstr(words))) << url;
}

TEST_F(NotificationsTest, refusesKeysThatSignNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {"hunter2hunter2hunter2hunter2", "begins with whsec_"},
      {"whsec_not base64!", "base64"},
      {"whsec_c2hvcnQ=", "24 to 64 bytes"},
      {"whsec_", "24 to 64 bytes"},
  };
  for (const auto& [secret, words] : cases) {
    key(secret);
    const auto complaints =
        complaintsOf("{url: \"https://hooks.example.com\", secret: {file: secrets/oncall}}");
    EXPECT_THAT(complaints, Contains(HasSubstr(words))) << secret;
    EXPECT_THAT(complaints, Not(Contains(HasSubstr("hunter2")))) << "a secret is never shown";
  }
  key("whsec_" + std::string(88, 'A'));  // 66 bytes
  EXPECT_THAT(complaintsOfUrl("https://hooks.example.com"), Contains(HasSubstr("this one 66")));
  key("any bearer token does");
  EXPECT_THAT(complaintsOf("{url: \"https://alerts.example.com\", format: alertmanager, secret: "
                           "{file: secrets/oncall}}"),
              IsEmpty());
}

/// A command is run only when the secret is needed: not by a check.
TEST_F(NotificationsTest, runsNoCommandToCheckAKey) {
  const auto loaded = loadReceiver(fmt::format(
      "{{url: \"https://hooks.example.com\", secret: {{command: \"touch {}; echo no key\"}}}}",
      (folder_ / "ran").string()));
  ASSERT_TRUE(loaded.cluster);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
  const auto asked = checkReceiverSecret(loaded.cluster->notifications.at("oncall"));
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().text(), HasSubstr("muster notify secret"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ran"));
}

}  // namespace
}  // namespace muster::inventory
