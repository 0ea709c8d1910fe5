// SPDX-License-Identifier: Apache-2.0
#include "wire/device_firmware.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

TEST(FirmwareTask, isReadStrictly) {
  const FirmwareTask good{"nvme", "X", "1", "http://c/f", std::string(64, 'a')};
  ASSERT_TRUE(parseFirmwareTask(toJson(good)));
  auto bad = good;
  bad.way = "dd";
  EXPECT_FALSE(parseFirmwareTask(toJson(bad)));
  bad = good;
  bad.sha256 = "abc";
  EXPECT_FALSE(parseFirmwareTask(toJson(bad)));
  bad = good;
  bad.url = "file:///etc/passwd";
  EXPECT_FALSE(parseFirmwareTask(toJson(bad)));
  bad = good;
  bad.match = "";
  EXPECT_FALSE(parseFirmwareTask(toJson(bad)));
}

}  // namespace
}  // namespace muster::wire
