// SPDX-License-Identifier: Apache-2.0
#include "base/io/files.h"
#include "inventory/model/images.h"
#include "provision/images/image_cache.h"
#include "provision/images/image_library.h"
#include "provision/images/image_store_parts.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "provision/images/served_images.h"
#include "tests/fakes/fake_system_builder.h"
#include "tests/provision/images/quiet.h"
#include "tests/run_async.h"
#include "wire/pack_index.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace muster::provision {
namespace {

using testing::HasSubstr;

inventory::Image sampleImage() {
  return {"node", inventory::ImageBuild{"bookworm", {"linux-image-amd64", "munge"}, ""}, {}};
}

class ImageStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ImageStore> open(std::function<void(test::FakeSystemBuilder&)> adjust = {}) {
    auto builder = std::make_unique<test::FakeSystemBuilder>();
    builder->builds = &builds_;
    builder->image_bytes =
        std::string(1u << 20, 'a') + std::string(1u << 20, '\0') + std::string(1u << 20, 'c');
    if (adjust) adjust(*builder);
    return openImageStore({folder_ / "cache", folder_ / "agent", key_, ram_os_},
                          std::move(builder));
  }

  void SetUp() override {
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent", "#!/bin/sh\n", 0755));
  }

  static Async<io::ServerResponse> answerOf(Task<io::ServerResponse> work) {
    co_return co_await std::move(work);
  }
  static io::ServerResponse get(const ImageStore& store, const std::string& target) {
    for (const auto& route : store.routes())
      if (target.starts_with(route.path)) {
        io::ServerRequest request;
        request.method = "GET";
        request.target = target;
        return *test::runAsync(answerOf(route.handle(std::move(request))));
      }
    return io::ServerResponse::text(404, "no route");
  }
  static std::filesystem::path fileOf(const io::ServerResponse& response) {
    const auto* file = std::get_if<io::FileBody>(&response.body);
    return file != nullptr ? file->path : std::filesystem::path();
  }

  test::TempFolder folder_;
  io::SigningKey key_ = *io::SigningKey::generate();
  std::atomic<int> builds_ = 0;
  inventory::RamOsSpec ram_os_;
};

TEST_F(ImageStoreTest, findsNothingBeforeTheBuild) {
  const auto found = open()->find(sampleImage());
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

TEST_F(ImageStoreTest, buildsOnceAndFindsItAgain) {
  const auto built = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built) << built.error().str();
  EXPECT_EQ(built->size_bytes, 3u << 20);
  const auto index = wire::openIndex(*io::readFile(built->index), built->digest, key_.public_pem);
  ASSERT_TRUE(index) << index.error().str();
  EXPECT_EQ(index->name, "node");
  const auto again = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->digest, built->digest);
  EXPECT_EQ(builds_, 1);
  const auto found = open()->find(sampleImage());
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->digest, built->digest);
}

TEST_F(ImageStoreTest, keepsOnlyWhatANodeNeeds) {
  const auto built = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(built->pack.parent_path()))
    names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"content.json", "pack", "index-" + key_.id() + ".json"}));
}

TEST_F(ImageStoreTest, keyFollowsTheInputsAndNothingElse) {
  const std::string key = imageKey(sampleImage());
  auto image = sampleImage();
  image.authorized_keys = {"ssh-ed25519 AAAA a"};
  const std::string with_ssh = imageKey(image);
  EXPECT_NE(with_ssh, key);
  image.authorized_keys = {
      "ssh-ed25519 BBBB b"};  // keys are written to the disk, they are not part of the image
  EXPECT_EQ(imageKey(image), with_ssh);
  auto& build = std::get<inventory::ImageBuild>((image = sampleImage()).source);
  build.packages = {"munge", "linux-image-amd64"};
  EXPECT_EQ(imageKey(image), key);
  build.packages.push_back("slurmd");
  EXPECT_NE(imageKey(image), key);
  (image = sampleImage()).name = "other";
  EXPECT_NE(imageKey(image), key);
  build = std::get<inventory::ImageBuild>((image = sampleImage()).source);
  std::get<inventory::ImageBuild>(image.source).suite = "trixie";
  EXPECT_NE(imageKey(image), key);
  std::get<inventory::ImageBuild>((image = sampleImage()).source).mirror =
      "http://mirror.example/debian";
  EXPECT_NE(imageKey(image), key);
  inventory::ImageBuild rocky;
  rocky.release = "9";
  rocky.archives = {{"baseos", "https://mirror/9", "", {}, "a.asc"}};
  image.source = rocky;
  const std::string nine = imageKey(image);
  rocky.archives[0].key = "elsewhere/a.asc";  // what is signed is the same
  image.source = rocky;
  EXPECT_EQ(imageKey(image), nine);
  rocky.archives[0].url = "https://mirror/9.4";
  image.source = rocky;
  EXPECT_NE(imageKey(image), nine);
  rocky.archives[0].url = "https://mirror/9";
  rocky.selinux = inventory::SelinuxMode::Enforcing;
  image.source = rocky;
  EXPECT_NE(imageKey(image), nine);
  image.source = inventory::ImageImport{"a.qcow2", std::string(64, '1')};
  const std::string imported = imageKey(image);
  image.source = inventory::ImageImport{"elsewhere/a.qcow2", std::string(64, '1')};
  EXPECT_EQ(imageKey(image), imported);
  image.source = inventory::ImageImport{"a.qcow2", std::string(64, '2')};
  EXPECT_NE(imageKey(image), imported);
}

/// The key of a declaration is remembered with it.
TEST_F(ImageStoreTest, aDeclarationThatChangesIsAnotherImageAtOnce) {
  const auto store = open();
  ASSERT_TRUE(store->build(sampleImage(), kQuiet));
  const auto isThere = [&](const inventory::Image& image) {
    const auto found = store->find(image);
    return found && *found;
  };
  EXPECT_TRUE(isThere(sampleImage()));
  auto image = sampleImage();
  std::get<inventory::ImageBuild>(image.source).packages.emplace_back("slurmd");
  EXPECT_FALSE(isThere(image));
  image = sampleImage();
  image.authorized_keys = {"ssh-ed25519 AAAA a"};
  EXPECT_FALSE(isThere(image));
  image = sampleImage();
  image.source = inventory::ImageImport{"a.qcow2", std::string(64, '1')};
  EXPECT_FALSE(isThere(image));
  EXPECT_TRUE(isThere(sampleImage()));
}

TEST_F(ImageStoreTest, eachControllerSignsForItself) {
  const auto mine = open()->build(sampleImage(), kQuiet);
  key_ = *io::SigningKey::generate();
  const auto theirs = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(mine && theirs);
  EXPECT_EQ(mine->digest, theirs->digest);
  EXPECT_NE(mine->index, theirs->index);
  EXPECT_EQ(builds_, 1);
  EXPECT_TRUE(wire::openIndex(*io::readFile(theirs->index), theirs->digest, key_.public_pem));
}

TEST_F(ImageStoreTest, refusesAnIndexThatSomebodyElseSigned) {
  const auto built = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built);
  const auto index = wire::openIndex(*io::readFile(built->index), "", key_.public_pem);
  ASSERT_TRUE(
      io::writeFileAtomic(built->index, *wire::signedJson(*index, *io::SigningKey::generate())));
  const auto found = open()->find(sampleImage());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::Denied);
  EXPECT_EQ(get(*open(), "/images/" + built->digest + "/index.json").status, 404);
}

TEST_F(ImageStoreTest, signsAWholePackAgainWhenItsSignedIndexIsDamaged) {
  const auto built = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built);
  const auto index = wire::openIndex(*io::readFile(built->index), "", key_.public_pem);
  for (const auto& damaged :
       {std::string("{\"half"), *wire::signedJson(*index, *io::SigningKey::generate())}) {
    ASSERT_TRUE(io::writeFileAtomic(built->index, damaged));
    EXPECT_FALSE(open()->find(sampleImage()));
    std::string said;
    const auto healed =
        open()->build(sampleImage(), [&said](std::string_view text) { said += text; });
    ASSERT_TRUE(healed) << healed.error().str();
    EXPECT_EQ(healed->digest, built->digest);
    EXPECT_THAT(said, HasSubstr("signed again"));
    EXPECT_TRUE(wire::openIndex(*io::readFile(healed->index), healed->digest, key_.public_pem));
  }
  EXPECT_EQ(builds_, 1);
}

TEST_F(ImageStoreTest, noticesADamagedIndex) {
  const auto built = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built);
  ASSERT_TRUE(io::writeFileAtomic(built->pack.parent_path() / "content.json", "{}"));
  EXPECT_EQ(open()->find(sampleImage()).error().code(), ErrorCode::Corrupt);
}

TEST_F(ImageStoreTest, buildsAgainWhenThePackIsDamaged) {
  const auto built = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built);
  std::string pack = *io::readFile(built->pack);
  pack[pack.size() / 2] ^= 1;
  ASSERT_TRUE(io::writeFileAtomic(built->pack, pack));
  std::string said;
  const auto again = open()->build(sampleImage(), [&said](std::string_view text) { said += text; });
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_THAT(said, HasSubstr("building it again"));
  EXPECT_EQ(builds_, 2);
  EXPECT_EQ(again->digest, built->digest);
  ASSERT_TRUE(io::writeFileAtomic(built->pack, pack.substr(1)));
  EXPECT_EQ(open()->find(sampleImage()).error().code(), ErrorCode::Corrupt);
}

TEST_F(ImageStoreTest, aFailedBuildLeavesNothingBehind) {
  const auto failed = open([](auto& builder) {
                        builder.failure =
                            Error(ErrorCode::Unavailable, "the mirror does not answer");
                      })->build(sampleImage(), kQuiet);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(failed.error().str(), HasSubstr("image node"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache/images"))
    EXPECT_EQ(entry.path().extension(), ".lock");
  EXPECT_TRUE(open()->build(sampleImage(), kQuiet));
}

TEST_F(ImageStoreTest, goesOnWhereAKilledBuildLeftItsFolder) {
  const auto partial = folder_ / "cache/images" / (imageKey(sampleImage()) + ".partial");
  ASSERT_TRUE(io::makeDirs(partial / "work"));
  ASSERT_TRUE(io::writeFileAtomic(partial / "pack", "half"));
  EXPECT_TRUE(open()->build(sampleImage(), kQuiet));
  EXPECT_FALSE(std::filesystem::exists(partial));
}

/// A process that the killed one has left behind goes on where it was.
TEST_F(ImageStoreTest, noBuildTakesTheFolderOfAnother) {
  const auto images = folder_ / "cache/images";
  const auto partials = [&images] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(images))
      if (entry.path().extension() == ".partial") names.insert(entry.path().filename());
    return names;
  };
  std::set<std::string> first, second;
  const auto killed = open([&](auto& builder) {
                        builder.during_build = [&] { first = partials(); };
                        builder.failure = Error(ErrorCode::Unavailable, "killed");
                      })->build(sampleImage(), kQuiet);
  ASSERT_FALSE(killed);
  ASSERT_EQ(first.size(), 1u);
  ASSERT_TRUE(io::makeDirs(images / *first.begin() / "left"));
  std::filesystem::path foreign = images / *first.begin() / "left/foreign";
  const auto built = open([&](auto& builder) {
                       builder.during_build = [&] {
                         EXPECT_FALSE(std::filesystem::exists(foreign.parent_path()));
                         second = partials();
                         EXPECT_TRUE(io::makeDirs(foreign.parent_path()));
                         EXPECT_TRUE(io::writeFileAtomic(foreign, "x"));
                       };
                     })->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built) << built.error().str();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(*first.begin(), *second.begin());
  EXPECT_TRUE(std::filesystem::exists(foreign)) << "beside what was built, not in it";
  EXPECT_EQ(leftovers(folder_ / "cache"), (std::vector{images / *first.begin()}));
  ASSERT_TRUE(
      publish(images / imageKey(sampleImage()), [](const auto&) { return Result<void>(); }));
  EXPECT_TRUE(leftovers(folder_ / "cache").empty());
}

TEST_F(ImageStoreTest, aSecondBuilderWaitsForTheFirst) {
  std::atomic<bool> waited = false;
  std::thread second;
  const auto start_second = [&] {
    second = std::thread([this, &waited] {
      const auto built = open()->build(sampleImage(), [&waited](std::string_view text) {
        if (text.find("waiting") != std::string_view::npos) {
          waited = true;
          waited.notify_all();
        }
      });
      EXPECT_TRUE(built) << built.error().str();
    });
    waited.wait(false);  // the first goes on only when the second has met the lock
  };
  EXPECT_TRUE(open([&start_second](auto& builder) {
                builder.during_build = start_second;
              })->build(sampleImage(), kQuiet));
  second.join();
  EXPECT_EQ(builds_, 1);
}

TEST_F(ImageStoreTest, servesWhatItHoldsAndNothingElse) {
  const auto built = open()->build(sampleImage(), kQuiet);
  ASSERT_TRUE(built);
  const auto store = open();
  const std::string base = "/images/" + built->digest;
  EXPECT_EQ(fileOf(get(*store, base + "/pack")), built->pack);
  EXPECT_EQ(fileOf(get(*store, base + "/index.json")), built->index);
  for (const std::string& target :
       {base, base + "/", base + "/content.json", base + "/../../../agent",
        "/images/" + std::string(64, 'f') + "/pack", std::string("/images/../agent"),
        std::string("/images/"), std::string("/images/%2e%2e/pack"), base + "/pack/more",
        base + "x/pack", "/images/" + imageKey(sampleImage()) + "/pack"})
    EXPECT_EQ(get(*store, target).status, 404) << target;
}

TEST_F(ImageStoreTest, ramOsComesWithTheAgentOfToday) {
  const auto before = open()->findRamOs(Architecture::Amd64);
  ASSERT_TRUE(before) << before.error().str();
  EXPECT_FALSE(*before);
  EXPECT_EQ(get(*open(), "/ramos/vmlinuz").status, 404);
  const auto built = open()->buildRamOs(Architecture::Amd64, kQuiet);
  ASSERT_TRUE(built) << built.error().str();
  EXPECT_EQ(*io::readFile(built->kernel), "kernel");
  const auto store = open();
  EXPECT_EQ(fileOf(get(*store, "/ramos/vmlinuz")), built->kernel);
  EXPECT_EQ(fileOf(get(*store, "/ramos/initrd.img")), built->initrd);
  EXPECT_EQ(fileOf(get(*store, "/ramos/agent.img")), built->agent_initrd);
  EXPECT_EQ(get(*store, "/ramos/../agent").status, 404);

  ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent", "#!/bin/sh\n# newer\n", 0755));
  EXPECT_FALSE(*open()->findRamOs(Architecture::Amd64));
  const auto newer = open()->buildRamOs(Architecture::Amd64, kQuiet);
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->kernel, built->kernel);
  EXPECT_NE(newer->agent_initrd, built->agent_initrd);
  EXPECT_EQ(builds_, 1);
}

/// A machine that an older RAM OS cannot image must not be started from it.
TEST_F(ImageStoreTest, anotherDeclarationOfTheRamOsIsAnotherRamOs) {
  const auto plain = open()->buildRamOs(Architecture::Amd64, kQuiet);
  ASSERT_TRUE(plain) << plain.error().str();
  ram_os_.packages = {"firmware-misc-nonfree", "ethtool"};
  EXPECT_FALSE(*open()->findRamOs(Architecture::Amd64)) << "it is not built yet";
  const auto declared = open()->buildRamOs(Architecture::Amd64, kQuiet);
  ASSERT_TRUE(declared) << declared.error().str();
  EXPECT_NE(declared->kernel, plain->kernel);
  EXPECT_EQ(declared->agent_initrd, plain->agent_initrd) << "it travels beside it";
  EXPECT_EQ(builds_, 2);
  ram_os_.packages = {"ethtool", "firmware-misc-nonfree", "ethtool"};
  EXPECT_EQ((*open()->findRamOs(Architecture::Amd64))->kernel, declared->kernel)
      << "the order of packages says nothing";
  ram_os_ = {};
  EXPECT_EQ((*open()->findRamOs(Architecture::Amd64))->kernel, plain->kernel);
}

TEST_F(ImageStoreTest, everyKeyOfTheRamOsIsPartOfItsName) {
  std::set<std::string> keys{ramOsKey({}, Architecture::Amd64), ramOsKey({}, Architecture::Arm64)};
  const inventory::PackageArchive archive{
      "b", "http://deb.debian.org/debian", "bookworm-backports", {"main"}, "/key"};
  auto suite = archive;
  suite.suite = "trixie-backports";
  for (const auto& spec : {inventory::RamOsSpec{"linux-image-rt-amd64", {}, {}, {}},
                           {"", {"linux-image-rt-amd64"}, {}, {}},
                           {"", {}, {"linux-image-rt-amd64"}, {}},
                           {"", {}, {}, {archive}},
                           {"", {}, {}, {suite}}})
    keys.insert(ramOsKey(spec, Architecture::Amd64));
  EXPECT_EQ(keys.size(), 7u);
}

TEST_F(ImageStoreTest, theRamOsOfAnotherProcessorHasAnAgentAndAPlaceOfItsOwn) {
  EXPECT_EQ(open()->findRamOs(Architecture::Arm64).error().code(), ErrorCode::NotFound);
  const auto refused = open()->buildRamOs(Architecture::Arm64, kQuiet);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("install the package muster-agent-arm64"));
  ASSERT_TRUE(io::makeDirs(folder_ / "arm64"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "arm64/agent", "#!/bin/sh\n# of arm64\n", 0755));
  const auto own = open()->buildRamOs(Architecture::Amd64, kQuiet),
             other = open()->buildRamOs(Architecture::Arm64, kQuiet);
  ASSERT_TRUE(own && other);
  EXPECT_NE(own->kernel, other->kernel);
  EXPECT_NE(own->agent_initrd, other->agent_initrd);
  EXPECT_EQ(*io::readFile(other->shim), "shim.efi");
  EXPECT_TRUE(own->shim.empty()) << "of this machine's packages";
  const auto store = open();
  EXPECT_EQ(fileOf(get(*store, "/ramos/vmlinuz")), own->kernel);
  EXPECT_EQ(fileOf(get(*store, "/ramos/arm64/vmlinuz")), other->kernel);
  EXPECT_EQ(fileOf(get(*store, "/ramos/arm64/agent.img")), other->agent_initrd);
  EXPECT_EQ(get(*store, "/ramos/arm64/").status, 404);
  EXPECT_EQ(get(*store, "/ramos/amd64/vmlinuz").status, 404);
  std::filesystem::remove(other->grub);
  EXPECT_FALSE(*open()->findRamOs(Architecture::Arm64)) << "half of it is none";
}

TEST_F(ImageStoreTest, aNameThatNobodyServesIsNotLookedFor) {
  const auto store = openImageStore({folder_ / "cache", folder_ / "no-agent", key_},
                                    std::make_unique<test::FakeSystemBuilder>());
  EXPECT_EQ(std::get<std::string>(get(*store, "/ramos/x").body), "no such file\n");
  EXPECT_EQ(std::get<std::string>(get(*store, "/ramos/vmlinuz").body), "the RAM OS is not built\n");
}

TEST(ServedImages, readsTheCacheOnceForAllWhoAskForNothing) {
  int reads = 0;
  ServedImages images(
      [&reads] {
        ++reads;
        return ServedImages::Images{{"known", PackedImage{}}};
      },
      nullptr);
  const auto find = [&images](std::string digest) -> Async<bool> {
    co_return (co_await images.find(std::move(digest))).has_value();
  };
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(*test::runAsync(find(std::to_string(i))));
  EXPECT_TRUE(*test::runAsync(find("known")));
  EXPECT_EQ(reads, 1);
}

/// A thousand at once wait for one reading, on a worker.
TEST(ServedImages, whoComesWhileItIsReadWaits) {
  Workers workers(1);
  std::atomic<int> reads = 0;
  ServedImages images(
      [&reads] {
        ++reads;
        return ServedImages::Images{{"known", PackedImage{}}};
      },
      &workers);
  asio::io_context io;
  int found = 0;
  for (int i = 0; i < 1000; ++i)
    asio::co_spawn(
        io, images.find("known"),
        [&found](std::exception_ptr, std::optional<PackedImage> image) { found += image ? 1 : 0; });
  io.run_for(std::chrono::seconds(20));
  EXPECT_EQ(found, 1000);
  EXPECT_EQ(reads, 1);
}

}  // namespace
}  // namespace muster::provision
