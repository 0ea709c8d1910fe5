// SPDX-License-Identifier: Apache-2.0
#include "bmc/firmware_images.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

TEST(FirmwareImages, isInMemoryOnceForAsLongAsSomebodySendsIt) {
  test::TempFolder folder;
  const auto file = folder / "bmc-1.fw";
  ASSERT_TRUE(io::writeFileAtomic(file, "payload"));
  Workers workers(1);
  FirmwareImages images(workers);
  const FirmwareUpdate update{"BMC", file, io::sha256Hex("payload")};
  auto first = test::runAsync(images.get(update)), second = test::runAsync(images.get(update));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  ASSERT_TRUE(io::writeFileAtomic(file, "changed"));
  EXPECT_TRUE(test::runAsync(images.get(update)));  // what is being sent is still what was declared
  *first = *second = nullptr;
  EXPECT_EQ(test::runAsync(images.get(update)).error().code(), ErrorCode::Corrupt);
}

}  // namespace
}  // namespace muster::bmc
