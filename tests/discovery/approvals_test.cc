// SPDX-License-Identifier: Apache-2.0
#include "discovery/approvals.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kOne(64, 'a'), kTwo(64, 'b');

TEST(ApprovedCertificates, whatAScanPrintsIsAListForTheNext) {
  const std::vector<Contact> met = {{"https://10.20.250.7", "muster", "box", kOne},
                                    {"https://10.20.250.8:8443", "", "", kTwo}};
  const auto list =
      ApprovedCertificates::parse("# compared by alice\n\n" + contactsText(met), "list");
  ASSERT_TRUE(list) << list.error().str();
  EXPECT_TRUE(list->covers(met[0]));
  EXPECT_TRUE(list->covers(met[1]));
  EXPECT_FALSE(list->covers({"https://10.20.250.8:8443", "", "", kOne}))
      << "it was said of another address";
  EXPECT_FALSE(list->covers({"https://10.20.250.7", "muster", "box", kTwo}));
  EXPECT_FALSE(list->covers({"https://10.20.250.7", "muster", "box", ""}));
}

TEST(ApprovedCertificates, aFingerprintAloneCountsForAnyAddress) {
  auto list = *ApprovedCertificates::parse(kOne + "\n", "list");
  std::string pairs = "BB";
  for (int i = 1; i < 32; ++i) pairs += ":BB";
  ASSERT_TRUE(list.add(pairs));
  EXPECT_TRUE(list.covers({"https://10.20.250.7", "", "", kOne}));
  EXPECT_TRUE(list.covers({"https://10.20.250.9", "", "", kTwo}));
}

TEST(ApprovedCertificates, everyBadLineIsNamed) {
  const auto list = ApprovedCertificates::parse(
      "10.20.250.7 abc\n" + kOne + "\n10.20.250.8 gpu1 " + kTwo + "\n\x1b[31m\n", "list");
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().text(),
              AllOf(HasSubstr("list:1:"), Not(HasSubstr("list:2:")), HasSubstr("list:3:"),
                    HasSubstr("list:4:"), Not(HasSubstr("\x1b")), Not(HasSubstr("abc"))))
      << "the file may be another's: nothing of it is shown";
  EXPECT_FALSE(ApprovedCertificates().add(std::string(64, 'g')));
}

}  // namespace
}  // namespace muster::discovery
