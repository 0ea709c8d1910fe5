// SPDX-License-Identifier: Apache-2.0
#include "app/site/key_rotation.h"

#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> idsOf(const Options& options, KeyPurpose purpose) {
  const auto states = siteKeyStates(options);
  if (!states) return {};
  for (const auto& state : *states)
    if (state.purpose == purpose) return state.ids;
  return {};
}

TEST(KeyRotation, bothKeysVerifyUntilItIsFinished) {
  SiteFolder site;
  ASSERT_TRUE(Keys::loadOrCreate(site.options().state));
  const auto before = idsOf(site.options(), KeyPurpose::Audit);
  const auto started = startKeyRotation(site.options(), KeyPurpose::Audit);
  ASSERT_TRUE(started) << started.error().str();
  EXPECT_THAT(before, ElementsAre(started->previous_id));
  EXPECT_THAT(idsOf(site.options(), KeyPurpose::Audit),
              ElementsAre(started->new_id, started->previous_id));
  const auto finished = finishKeyRotation(site.options(), KeyPurpose::Audit, false);
  ASSERT_TRUE(finished) << finished.error().str();
  EXPECT_TRUE(std::filesystem::exists(*finished)) << "the old public half is kept";
  EXPECT_THAT(idsOf(site.options(), KeyPurpose::Audit), ElementsAre(started->new_id));
}

TEST(KeyRotation, nothingToFinishIsAnError) {
  SiteFolder site;
  ASSERT_TRUE(Keys::loadOrCreate(site.options().state));
  const auto refused = finishKeyRotation(site.options(), KeyPurpose::Images, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
}

TEST(KeyRotation, aWrongStateFolderGetsNoKeys) {
  SiteFolder site;
  const auto refused = publicKey(site.options(), KeyPurpose::Certificates);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(refused.error().str(), ::testing::HasSubstr("--state"));
  EXPECT_FALSE(std::filesystem::exists(site.options().state)) << "nothing is made";
  ASSERT_TRUE(Keys::loadOrCreate(site.options().state));
  EXPECT_TRUE(publicKey(site.options(), KeyPurpose::Certificates));
}

}  // namespace
}  // namespace muster::app
