// SPDX-License-Identifier: Apache-2.0
// Images in a cache of their own: of bytes, by the fake builder, or of a real small file system.
#pragma once

#include "base/io/files.h"
#include "inventory/model/images.h"
#include "provision/images/image_library.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "tests/fakes/fake_system_builder.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::provision {

inline constexpr std::uint64_t kMib = 1u << 20;

/// Builds what a test hands it; the rest of the fake is not needed.
class FileBuilder final : public SystemBuilder {
 public:
  explicit FileBuilder(std::function<Result<void>(const std::filesystem::path&)> make)
      : make_(std::move(make)) {}
  Result<void> buildRootFs(const inventory::Image&, const std::filesystem::path&,
                           const std::filesystem::path& file, const Say&) override {
    return make_(file);
  }
  Result<void> buildRamOs(const inventory::RamOsSpec&, Architecture, const std::filesystem::path&,
                          const std::filesystem::path&, const Say&) override {
    return {};
  }

 private:
  std::function<Result<void>(const std::filesystem::path&)> make_;
};

class KeptImagesTest : public testing::Test {
 protected:
  std::filesystem::path cache() const { return folder_ / "cache"; }
  static inventory::Image declared(const std::string& name, const std::string& suite = "bookworm") {
    return {name, inventory::ImageBuild{suite, {"linux-image-amd64"}, ""}, {}};
  }

  PackedImage build(const inventory::Image& image, const std::string& bytes) {
    return buildBy(image, [bytes](const std::filesystem::path& file) {
      return io::writeFileAtomic(file, bytes);
    });
  }
  PackedImage buildBy(const inventory::Image& image,
                      std::function<Result<void>(const std::filesystem::path&)> make) {
    auto store = openImageStore({cache(), folder_ / "agent", key_},
                                std::make_unique<FileBuilder>(std::move(make)));
    auto built = store->build(image, [](std::string_view) {});
    EXPECT_TRUE(built) << built.error().str();
    return *built;
  }
  std::filesystem::path entryOf(const inventory::Image& image) const {
    return cache() / "images" / imageKey(image);
  }

  /// Names of what lies in the cache, without lock files.
  std::set<std::string> cached(const std::filesystem::path& cache) const {
    std::set<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(cache / "images", ignored))
      if (entry.path().extension() != ".lock") names.insert(entry.path().filename());
    return names;
  }

  static std::string sampleBytes() {
    return std::string(kMib, 'a') + std::string(kMib, '\0') + std::string(kMib, 'c');
  }
  static void flip(const std::filesystem::path& file, std::size_t at) {
    std::string bytes = *io::readFile(file);
    ASSERT_LT(at, bytes.size());
    bytes[at] ^= 1;
    ASSERT_TRUE(io::writeFileAtomic(file, bytes));
  }

  test::TempFolder folder_;
  io::SigningKey key_ = *io::SigningKey::generate();
};

}  // namespace muster::provision
