// SPDX-License-Identifier: Apache-2.0
#include "provision/images/image_bundle.h"
#include "inventory/model/images.h"

#include "kept_images.h"

namespace muster::provision {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Two sites, each with a key and a cache.
class ImageBundleTest : public KeptImagesTest {
 protected:
  void SetUp() override {
    built_ = build(image_, sampleBytes());
    const auto exported = exportBundle(entryOf(image_), key_, bundle_);
    ASSERT_TRUE(exported) << exported.error().str();
  }
  Result<Imported> import(bool trusting = true, bool older = false) {
    BundleImport options{there_, {}, older};
    if (trusting) options.trusted = {key_.public_pem};
    return importBundle(bundle_, options, their_key_);
  }

  const inventory::Image image_ = declared("mine");
  PackedImage built_;
  std::filesystem::path bundle_ = folder_ / "mine.image", there_ = folder_ / "there";
  io::SigningKey their_key_ = *io::SigningKey::generate();
};

TEST_F(ImageBundleTest, isFoundByTheSameDeclarationElsewhere) {
  const auto imported = import();
  ASSERT_TRUE(imported) << imported.error().str();
  EXPECT_EQ(imported->image.digest, built_.digest);
  EXPECT_EQ(imported->signer, key_.id());
  EXPECT_FALSE(imported->was_here);
  const auto store = openImageStore({there_, folder_ / "agent", their_key_},
                                    std::make_unique<test::FakeSystemBuilder>());
  const auto found = store->find(image_);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->digest, built_.digest);
  EXPECT_TRUE(wire::openIndex(*io::readFile((*found)->index), built_.digest, their_key_.public_pem))
      << "signed for the nodes of the other site";
  EXPECT_THAT(faultsOf(there_ / "images" / imageKey(image_), their_key_, 2), IsEmpty());
  EXPECT_TRUE(
      std::filesystem::exists(signedIndexOf(there_ / "images" / imageKey(image_), key_.id())))
      << "the first signature travels along";
  const auto again = import();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->was_here);
}

TEST_F(ImageBundleTest, isTheSameFileWheneverItIsExported) {
  ASSERT_TRUE(exportBundle(entryOf(image_), key_, folder_ / "again"));
  EXPECT_EQ(*io::sha256File(folder_ / "again"), *io::sha256File(bundle_));
  EXPECT_EQ(exportBundle(entryOf(image_), key_, bundle_).error().code(), ErrorCode::Conflict)
      << "nothing is overwritten";
}

TEST_F(ImageBundleTest, ofAnUnknownSiteIsRefused) {
  const auto refused = import(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(), HasSubstr(key_.id()));
  EXPECT_THAT(cached(there_), IsEmpty());
}

TEST_F(ImageBundleTest, thatWasCutShortLeavesNothing) {
  const std::string whole = *io::readFile(bundle_);
  const std::size_t pack = whole.find(*io::readFile(built_.pack));
  ASSERT_NE(pack, std::string::npos);
  for (const std::size_t bytes :
       {std::size_t{100}, std::size_t{700}, pack - 1000, pack - 600, pack, pack + 5}) {
    ASSERT_TRUE(io::writeFileAtomic(bundle_, whole.substr(0, bytes)));
    const auto refused = import();
    ASSERT_FALSE(refused) << bytes;
    EXPECT_NE(refused.error().code(), ErrorCode::Internal) << refused.error().str();
    EXPECT_THAT(cached(there_), IsEmpty()) << bytes;
  }
}

TEST_F(ImageBundleTest, withAChangedBitAnywhereIsRefused) {
  const std::string bytes = *io::readFile(bundle_);
  const auto at = [&bytes](const std::string& text) { return bytes.find(text); };
  const std::size_t in_pack = at(*io::readFile(built_.pack)) + 20;
  for (const std::size_t place : {at("\"name\":\"mine\"") + 9, at(image_.name + "\",\"pack_bytes"),
                                  at("made_at\":") + 10, in_pack}) {
    ASSERT_LT(place, bytes.size());
    std::string changed = bytes;
    changed[place] ^= 1;
    ASSERT_TRUE(io::writeFileAtomic(bundle_, changed));
    const auto refused = import();
    ASSERT_FALSE(refused) << place;
    EXPECT_EQ(refused.error().code(), ErrorCode::Corrupt) << refused.error().str();
    EXPECT_THAT(cached(there_), IsEmpty());
  }
}

TEST_F(ImageBundleTest, ofANewerNameIsNotReplacedByAnOlderOne) {
  // The other site already has a newer image of that name, made for other inputs.
  const auto newer = declared("mine", "trixie");
  const auto store = openImageStore({there_, folder_ / "agent", their_key_},
                                    std::make_unique<test::FakeSystemBuilder>());
  ASSERT_TRUE(store->build(newer, [](std::string_view) {}));
  const auto content = there_ / "images" / imageKey(newer) / kContentFile;
  std::filesystem::last_write_time(
      content, std::filesystem::last_write_time(content) + std::chrono::hours(1));
  const auto refused = import();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(), HasSubstr("older"));
  EXPECT_EQ(cached(there_).size(), 1u);
  EXPECT_TRUE(import(true, true)) << "unless it is asked for";
  EXPECT_EQ(cached(there_).size(), 2u);
}

TEST_F(ImageBundleTest, exportsNoDamagedImage) {
  flip(built_.pack, 10);
  EXPECT_EQ(exportBundle(entryOf(image_), key_, folder_ / "damaged").error().code(),
            ErrorCode::Corrupt);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "damaged"));
}

TEST_F(ImageBundleTest, canBeDeclaredAsImport) {
  inventory::Image image{"carried", inventory::ImageImport{bundle_, *io::sha256File(bundle_)}, {}};
  const auto store = openImageStore({there_, folder_ / "agent", their_key_},
                                    std::make_unique<test::FakeSystemBuilder>());
  const auto built = store->build(image, [](std::string_view) {});
  ASSERT_TRUE(built) << built.error().str();
  EXPECT_EQ(built->digest, built_.digest);
  std::get<inventory::ImageImport>(image.source).sha256 = std::string(64, '0');
  EXPECT_EQ(store->build(image, [](std::string_view) {}).error().code(), ErrorCode::Corrupt);
}

}  // namespace
}  // namespace muster::provision
