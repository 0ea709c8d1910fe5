// SPDX-License-Identifier: Apache-2.0
#include "kept_images.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "provision/images/image_cache.h"
#include "provision/images/ramos.h"

namespace muster::provision {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ImageLibraryTest : public KeptImagesTest {
 protected:
  inventory::Cluster cluster(const std::vector<inventory::Image>& images) {
    inventory::Cluster cluster;
    for (const auto& image : images) {
      cluster.images[image.name] = image;
      inventory::Profile profile;
      profile.name = "gpu-" + image.name;
      profile.image = image.name;
      cluster.profiles[profile.name] = profile;
    }
    return cluster;
  }
};

TEST_F(ImageLibraryTest, listsWhatIsKeptAndWhoUsesIt) {
  const auto mine = build(declared("mine"), sampleBytes());
  build(declared("old"), std::string(2 * kMib, 'o'));
  const auto kept = keptImages(cache(), cluster({declared("mine")}));
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].name, "mine");
  EXPECT_EQ(kept[0].digest, mine.digest);
  EXPECT_EQ(kept[0].size_bytes, 3 * kMib);
  EXPECT_TRUE(kept[0].declared);
  EXPECT_THAT(kept[0].profiles, ElementsAre("gpu-mine"));
  EXPECT_THAT(kept[0].signers, ElementsAre(key_.id()));
  EXPECT_EQ(kept[1].name, "old");
  EXPECT_FALSE(kept[1].declared);
  EXPECT_THAT(kept[1].profiles, IsEmpty());
}

TEST_F(ImageLibraryTest, findsByNameAndByTheBeginningOfADigest) {
  const auto mine = build(declared("mine"), sampleBytes());
  build(declared("mine", "trixie"), std::string(2 * kMib, 'o'));
  const auto kept = keptImages(cache(), cluster({declared("mine")}));
  EXPECT_EQ(findKept(kept, "mine")->digest, mine.digest) << "the declared one";
  EXPECT_EQ(findKept(kept, mine.digest.substr(0, 8))->digest, mine.digest);
  EXPECT_EQ(findKept(kept, "mine@" + mine.digest.substr(0, 8))->digest, mine.digest);
  EXPECT_EQ(findKept(kept, "other@" + mine.digest.substr(0, 8)).error().code(),
            ErrorCode::NotFound);
  EXPECT_EQ(findKept(kept, mine.digest.substr(0, 3)).error().code(), ErrorCode::NotFound)
      << "too short to mean anything";
  const auto undeclared = keptImages(cache(), cluster({}));
  EXPECT_EQ(findKept(undeclared, "mine").error().code(), ErrorCode::Conflict);
  EXPECT_THAT(findKept(undeclared, "nothing").error().text(), HasSubstr("mine@"));
  const auto twice = build(declared("twice"), sampleBytes());
  ASSERT_EQ(build(declared("twice", "trixie"), sampleBytes()).digest, twice.digest);
  EXPECT_EQ(findKept(keptImages(cache(), cluster({})), "twice")->digest, twice.digest)
      << "no word could say which of two that are the same";
}

TEST_F(ImageLibraryTest, findsEveryFaultOfADamagedImage) {
  const auto image = declared("mine");
  const auto built = build(image, sampleBytes());
  EXPECT_THAT(faultsOf(entryOf(image), key_, 2), IsEmpty());
  flip(built.pack, 10);
  EXPECT_THAT(faultsOf(entryOf(image), key_, 2), ElementsAre(HasSubstr("chunk 0")));
  flip(built.pack, 10);
  ASSERT_TRUE(io::writeFileAtomic(built.pack, *io::readFile(built.pack) + "tail"));
  EXPECT_THAT(faultsOf(entryOf(image), key_, 2), ElementsAre(HasSubstr("bytes instead of")));
  std::filesystem::resize_file(built.pack, 5);
  EXPECT_THAT(
      faultsOf(entryOf(image), key_, 1),
      ElementsAre(HasSubstr("bytes instead of"), HasSubstr("chunk 0"), HasSubstr("chunk 2")));
}

TEST_F(ImageLibraryTest, findsASignatureThatIsNotOfItsKey) {
  const auto image = declared("mine");
  const auto built = build(image, sampleBytes());
  const auto index = contentOf(entryOf(image));
  ASSERT_TRUE(index);
  ASSERT_TRUE(
      io::writeFileAtomic(built.index, *wire::signedJson(*index, *io::SigningKey::generate())));
  EXPECT_THAT(faultsOf(entryOf(image), key_, 1), ElementsAre(HasSubstr(key_.id())));
  const auto again = signAgain(entryOf(image), key_);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->digest, built.digest);
  EXPECT_THAT(faultsOf(entryOf(image), key_, 1), IsEmpty());
}

TEST_F(ImageLibraryTest, anImageWithoutASignatureIsNotCalledRight) {
  const auto image = declared("mine");
  const auto built = build(image, sampleBytes());
  std::filesystem::remove(built.index);
  EXPECT_THAT(faultsOf(entryOf(image), key_, 1), ElementsAre(HasSubstr("nobody has signed it")));
}

TEST_F(ImageLibraryTest, signsNoDamagedPack) {
  const auto image = declared("mine");
  const auto built = build(image, sampleBytes());
  flip(built.pack, 10);
  EXPECT_EQ(signAgain(entryOf(image), key_).error().code(), ErrorCode::Corrupt);
  EXPECT_TRUE(std::filesystem::exists(built.index)) << "what was there stays";
}

TEST_F(ImageLibraryTest, clearsOnlyWhatNobodyNames) {
  build(declared("mine"), sampleBytes());
  const auto running = build(declared("running"), std::string(2 * kMib, 'r'));
  const auto under_way = build(declared("underway"), std::string(2 * kMib, 'u'));
  build(declared("old"), std::string(2 * kMib, 'o'));
  Needs needs;
  addNeeds("running@" + running.digest, "node gpu001 has it", needs);
  addNeeds("{\"to\":\"underway@" + under_way.digest + "\",\"why\":\"mail@example\"}",
           "work that is under way names it", needs);
  auto plan = planClearing(keptImages(cache(), cluster({declared("mine")})), needs);
  ASSERT_EQ(plan.remove.size(), 1u);
  EXPECT_EQ(plan.remove[0].name, "old");
  EXPECT_EQ(plan.keep.size(), 3u);
  EXPECT_GT(plan.bytes, 0u);
  ASSERT_TRUE(clear(plan));
  EXPECT_EQ(cached(cache()),
            (std::set<std::string>{imageKey(declared("mine")), imageKey(declared("running")),
                                   imageKey(declared("underway"))}));
}

TEST_F(ImageLibraryTest, clearsWhatAKilledComparisonLeft) {
  const auto killed = cache() / "diff-aBcDeF", going_on = cache() / "diff-gHiJkL";
  ASSERT_TRUE(io::makeDirs(killed));
  ASSERT_TRUE(io::makeDirs(going_on));
  const auto other = BuildLock::take(cache() / "diff-gHiJkL.lock", [] {});
  ASSERT_TRUE(other);
  Clearing plan;
  plan.leftovers = leftovers(cache());
  EXPECT_THAT(plan.leftovers, ElementsAre(killed));
  ASSERT_TRUE(clear(plan));
  EXPECT_FALSE(std::filesystem::exists(killed));
  EXPECT_TRUE(std::filesystem::exists(going_on));
}

TEST_F(ImageLibraryTest, clearsWhatAKilledBuildLeftButNotOneThatGoesOn) {
  const auto killed = cache() / "images" / (std::string(64, 'a') + ".partial"),
             going_on = cache() / "images" / (std::string(64, 'b') + ".partial");
  ASSERT_TRUE(io::makeDirs(killed));
  ASSERT_TRUE(io::makeDirs(going_on));
  const auto builder =
      BuildLock::take(cache() / "images" / (std::string(64, 'b') + ".lock"), [] {});
  ASSERT_TRUE(builder);
  Clearing plan;
  plan.leftovers = leftovers(cache());
  EXPECT_THAT(plan.leftovers, ElementsAre(killed));
  ASSERT_TRUE(clear(plan));
  EXPECT_FALSE(std::filesystem::exists(killed));
  EXPECT_TRUE(std::filesystem::exists(going_on));
}

/// A cache with the RAM OS of this muster and another one's.
class RamOsSetsTest : public ImageLibraryTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(io::writeFileAtomic(options_.agent_binary, "#!/bin/sh\n", 0755));
    ASSERT_TRUE(store()->buildRamOs(Architecture::Amd64, [](std::string_view) {}));
    for (const auto& set : {system_, agent_}) {
      ASSERT_TRUE(io::makeDirs(set));
      ASSERT_TRUE(io::writeFileAtomic(set / "file", std::string(kMib, 'x')));
    }
  }
  std::unique_ptr<ImageStore> store() {
    return openImageStore(options_, std::make_unique<test::FakeSystemBuilder>());
  }
  std::vector<RamOsSet> kept() {
    return keptRamOs(cache(), {*presentRamOs(options_, Architecture::Amd64)});
  }
  std::map<std::filesystem::path, std::string> reasons() {
    std::map<std::filesystem::path, std::string> reasons;
    for (const auto& set : kept()) reasons[set.folder] = set.why;
    return reasons;
  }
  ImageStoreOptions options_{cache(), folder_ / "agent", key_};
  const std::filesystem::path system_ = cache() / "ramos" / std::string(64, 'a'),
                              agent_ = cache() / "ramos" / ("agent-" + std::string(64, 'b'));
};

TEST_F(RamOsSetsTest, thoseOfOtherVersionsGoAndOursStays) {
  ASSERT_TRUE(io::makeDirs(cache() / "ramos" / "mine"));  // not muster's
  const auto sets = kept();
  ASSERT_EQ(sets.size(), 4u);
  Clearing plan;
  plan.ramos = sets;
  for (const auto& set : sets) EXPECT_TRUE(!set.why.empty() || set.bytes == kMib) << set.folder;
  ASSERT_TRUE(clear(plan));
  EXPECT_FALSE(std::filesystem::exists(system_));
  EXPECT_FALSE(std::filesystem::exists(agent_));
  EXPECT_TRUE(std::filesystem::exists(cache() / "ramos/mine"));
  const auto ours = store()->findRamOs(Architecture::Amd64);
  ASSERT_TRUE(ours);
  EXPECT_TRUE(*ours) << "the RAM OS that nodes start was removed";
}

TEST_F(RamOsSetsTest, whatAnotherMusterStartsMachinesFromStays) {
  {
    const auto use = RamOsUse::hold(system_);
    ASSERT_TRUE(use);
    EXPECT_THAT(reasons()[system_], HasSubstr("boots machines"));
    EXPECT_EQ(reasons()[agent_], "");
    EXPECT_EQ(removeRamOs({system_, 0, ""}).error().code(), ErrorCode::Conflict)
        << "it began after the look";
  }
  EXPECT_EQ(reasons()[system_], "");
  const auto running = store();
  ASSERT_TRUE(running->findRamOs(Architecture::Amd64));
  options_.agent_binary = folder_ / "newer-agent";  // this muster is another version
  ASSERT_TRUE(io::writeFileAtomic(options_.agent_binary, "#!/bin/sh\n:\n", 0755));
  std::size_t others = 0;
  for (const auto& [folder, why] : reasons())
    others += why.find("boots machines from " + folder.string()) != std::string::npos ? 1 : 0;
  EXPECT_EQ(others, 1u) << "the agent of the one that runs";
}

TEST_F(RamOsSetsTest, whatIsBeingBuiltStays) {
  const auto builder = BuildLock::take(system_.string() + ".lock", [] {});
  ASSERT_TRUE(builder);
  EXPECT_THAT(reasons()[system_], HasSubstr("being built"));
  const auto killed = cache() / "ramos" / (std::string(64, 'c') + ".partial");
  ASSERT_TRUE(io::makeDirs(killed));
  EXPECT_THAT(leftovers(cache()), ElementsAre(killed));
}

}  // namespace
}  // namespace muster::provision
