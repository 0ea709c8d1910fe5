// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/multipart.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

TEST(Multipart, hashesTheBytesThatAreSentAndNamesTheFileWithoutItsPath) {
  test::TempFolder folder;
  const auto file = folder / "bmc-1.fw";
  ASSERT_TRUE(io::writeFileAtomic(file, "payload"));
  auto image = readFirmwareImage({"BMC", file, io::sha256Hex("payload")});
  ASSERT_TRUE(image);
  auto body = multipartUpdate(*image, "bmc-1.fw", Json{{"Targets", Json::array({"/t"})}});
  EXPECT_THAT(body.begin, HasSubstr("filename=\"bmc-1.fw\"\r\n"));
  EXPECT_THAT(body.begin + *body.image + body.end, HasSubstr("\r\n\r\npayload\r\n--"));
  EXPECT_THAT(body.begin, HasSubstr(R"({"Targets":["/t"]})"));
  EXPECT_EQ(body.bytes(), body.begin.size() + 7 + body.end.size());

  auto wrong = readFirmwareImage({"BMC", file, io::sha256Hex("other")});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(readFirmwareImage({"BMC", folder / "none", ""}).error().code(), ErrorCode::NotFound);
  ASSERT_TRUE(io::writeFileAtomic(file, ""));
  EXPECT_EQ(readFirmwareImage({"BMC", file, io::sha256Hex("")}).error().code(),
            ErrorCode::InvalidInput);
}

}  // namespace
}  // namespace muster::bmc
