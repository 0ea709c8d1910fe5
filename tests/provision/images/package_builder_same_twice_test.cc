// SPDX-License-Identifier: Apache-2.0
// The real thing twice, without anything kept in between: equal inputs are an equal image.
#include "base/io/files.h"
#include "inventory/model/images.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <iostream>

namespace muster::provision {
namespace {

class SameTwice : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "building images needs root";
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent", "#!/bin/sh\n", 0755));
  }
  /// In a cache of its own.
  std::string digestOf(const inventory::Image& image, const std::string& cache) {
    const auto store = openImageStore({folder_ / cache, folder_ / "agent", key_});
    const auto built =
        store->build(image, [](std::string_view text) { std::cout << text << std::endl; });
    EXPECT_TRUE(built) << built.error().str();
    return built ? built->digest : "none: " + cache;
  }
  test::TempFolder folder_;
  io::SigningKey key_ = *io::SigningKey::generate();
};

TEST_F(SameTwice, anImageOfPackages) {
  const inventory::Image image{
      "node",
      inventory::ImageBuild{
          "bookworm", {"linux-image-amd64", "mdadm", "lvm2", "cryptsetup-initramfs"}, ""},
      {}};
  EXPECT_EQ(digestOf(image, "first"), digestOf(image, "second"));
}

TEST_F(SameTwice, aLiveImageOfPackages) {
  const inventory::Image image{"live",
                               inventory::ImageBuild{"bookworm", {"linux-image-amd64"}, ""},
                               {},
                               inventory::ImageKind::Live};
  EXPECT_EQ(digestOf(image, "first"), digestOf(image, "second"));
}

}  // namespace
}  // namespace muster::provision
