// SPDX-License-Identifier: Apache-2.0
#include "provision/images/predecessor.h"

#include "base/io/process.h"
#include "inventory/model/images.h"
#include "kept_images.h"
#include "provision/images/ext4_succession.h"
#include "provision/images/image_diff.h"
#include "provision/images/pack_reader.h"

#include <fstream>
#include <random>

namespace muster::provision {
namespace {

using testing::HasSubstr;

class PredecessorTest : public KeptImagesTest {
 protected:
  void SetUp() override {
    std::mt19937 random(7);
    for (int i = 0; i < 200; ++i) {
      std::string content(20'000 + random() % 60'000, '\0');
      for (auto& byte : content) byte = static_cast<char>(random());
      put(fmt::format("usr/lib/d{}/file{}", i % 9, i), content);
    }
  }
  void put(const std::string& path, const std::string& content) {
    ASSERT_TRUE(io::makeDirs((tree() / path).parent_path()));
    std::ofstream(tree() / path, std::ios::binary) << content;  // not synced: there are many
  }
  std::filesystem::path tree() const { return folder_ / "tree"; }

  /// The tree as the image of this name that another declaration asks for.
  PackedImage buildTree(const std::string& suite, const std::string& over = "",
                        const std::string& name = "node") {
    const auto built = tryBuild(suite, over, name);
    EXPECT_TRUE(built) << built.error().str();
    return built.value_or(PackedImage{});
  }
  Result<PackedImage> tryBuild(const std::string& suite, const std::string& over,
                               const std::string& name = "node") {
    said_.clear();
    const auto store =
        openImageStore({cache(), folder_ / "agent", key_},
                       std::make_unique<FileBuilder>([this](const std::filesystem::path& file) {
                         return makeExt4(tree(), file, 0);
                       }));
    return store->build(
        declared(name, suite), [this](std::string_view text) { said_ += std::string(text) + "\n"; },
        over);
  }
  wire::PackIndex indexOf(const std::string& suite) {
    return contentOf(entryOf(declared("node", suite))).value_or(wire::PackIndex{});
  }
  void makeOlder(const std::string& suite) {
    setMadeAt(entryOf(declared("node", suite)), made_at_++);
  }
  std::string said_;
  std::int64_t made_at_ = 1000;
};

TEST_F(PredecessorTest, aNewImageIsLaidOutOverTheNewestOfItsName) {
  const auto first = buildTree("one");
  EXPECT_EQ(indexOf("one").predecessor, "");
  makeOlder("one");
  put("usr/lib/d3/added", std::string(60'000, 'n'));
  const auto second = buildTree("two");
  EXPECT_EQ(indexOf("two").predecessor, first.digest);
  EXPECT_THAT(said_, HasSubstr("laid out over node@" + first.digest.substr(0, 12)));
  makeOlder("two");
  buildTree("other", "", "unrelated");
  put("usr/lib/d3/added", std::string(70'000, 'm'));
  buildTree("three");
  EXPECT_EQ(indexOf("three").predecessor, second.digest);
}

TEST_F(PredecessorTest, theDiffOfASuccessorIsSmallAndNamesWhatChanged) {
  buildTree("one");
  put("usr/lib/d3/added", std::string(60'000, 'n'));
  put("usr/lib/d5/file5", "short now");
  buildTree("two");
  ASSERT_TRUE(io::makeDirs(folder_ / "work"));
  const auto diff = diffImages(entryOf(declared("node", "one")), entryOf(declared("node", "two")),
                               folder_ / "work");
  ASSERT_TRUE(diff) << diff.error().str();
  EXPECT_THAT(diff->added, testing::ElementsAre("usr/lib/d3/added"));
  EXPECT_THAT(diff->changed, testing::ElementsAre("usr/lib/d5/file5"));
  EXPECT_LE(diff->changed_chunks, 6u);
  EXPECT_EQ(said_.find("laid out anew"), std::string::npos) << said_;
  EXPECT_THAT(said_,
              HasSubstr(fmt::format("{} of {} chunks differ", diff->changed_chunks, diff->chunks)));
}

TEST_F(PredecessorTest, theSameContentIsTheSameImage) {
  const auto first = buildTree("one"), again = buildTree("two");
  EXPECT_EQ(again.digest, first.digest);
  put("usr/lib/d3/added", "x");
  const auto third = buildTree("three"), once_more = buildTree("four");
  EXPECT_NE(third.digest, first.digest);
  EXPECT_EQ(once_more.digest, third.digest);
}

TEST_F(PredecessorTest, aDamagedImageComesOutAsItWas) {
  buildTree("one");
  put("usr/lib/d3/added", "x");
  const auto second = buildTree("two");
  makeOlder("one");
  put("usr/lib/d3/more", "y");
  buildTree("three");  // the newest now
  std::filesystem::remove(tree() / "usr/lib/d3/more");
  flip(second.pack, 4000);
  EXPECT_EQ(buildTree("two").digest, second.digest);
  EXPECT_THAT(said_, HasSubstr("building it again"));
}

TEST_F(PredecessorTest, isTheOneThatWasNamed) {
  const auto first = buildTree("one");
  put("usr/lib/d3/added", "x");
  buildTree("two");
  put("usr/lib/d3/more", "y");
  buildTree("three", first.digest.substr(0, 12));
  EXPECT_EQ(indexOf("three").predecessor, first.digest);
  buildTree("four", "none");
  EXPECT_EQ(indexOf("four").predecessor, "");
  EXPECT_EQ(said_.find("laid out over"), std::string::npos) << said_;
  const auto unknown = tryBuild("five", "0123456789");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::NotFound);
  EXPECT_EQ(tryBuild("five", "0").error().code(), ErrorCode::InvalidInput);
}

TEST_F(PredecessorTest, oneThatCannotServeIsLeftAlone) {
  build(declared("node", "bytes"), sampleBytes());
  makeOlder("bytes");
  const auto built = buildTree("one");
  EXPECT_EQ(indexOf("one").predecessor, "");
  EXPECT_THAT(said_, HasSubstr("laid out anew, not over node@"));
  EXPECT_TRUE(faultsOf(entryOf(declared("node", "one")), key_, 1).empty());

  flip(built.pack, 4000);
  put("usr/lib/d3/added", "x");
  buildTree("two");
  EXPECT_EQ(indexOf("two").predecessor, "");
  EXPECT_THAT(said_, HasSubstr("damaged"));
}

TEST_F(PredecessorTest, aFileSystemThatWasMountedIsLeftAlone) {
  const auto made = makeExt4(tree(), folder_ / "first");
  ASSERT_TRUE(made && makeExt4(tree(), folder_ / "second"));
  ASSERT_TRUE(io::runChecked(
      {.program = "debugfs",
       .args = {"-w", "-R", "set_super_value mtime 20250101", (folder_ / "first").string()}}));
  const auto over = layOutOver(folder_ / "first", folder_ / "second", wire::kPackChunkBytes);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(over.error().text(), HasSubstr("mounted"));
}

}  // namespace
}  // namespace muster::provision
