// SPDX-License-Identifier: Apache-2.0
// `muster image …` as the real program does it: every command once on real file systems, and what
// clearing up must leave alone.
#include "cli/exit_code.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "lifecycle/store/store.h"
#include "tests/cli/muster_folder.h"
#include "tests/paths.h"
#include "tests/provision/images/kept_images.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kDigestShown = 12;
constexpr WallTime kWhen{std::chrono::milliseconds(1'764'000'000'000)};

std::string inventoryWith(const std::string& images, const std::string& image) {
  std::string text(test::MusterFolder::kInventory);
  const auto from = text.find("  bookworm:"), to = text.find("profiles:");
  text.replace(from, to - from, images);
  const auto used = text.find("image: bookworm}");
  text.replace(used, 16, "image: " + image + "}");
  return text;
}

// ---- clearing up

/// A cache with images that the inventory does not declare, and a store in which somebody may name
/// them.
class ImageClearing : public ::testing::Test {
 protected:
  ImageClearing() {
    EXPECT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "makes the store"}).code, kOk);
    auto opened = lifecycle::openStore("sqlite:" + (folder_ / "state" / "muster.db").string());
    EXPECT_TRUE(opened) << opened.error().str();
    store_ = std::move(*opened);
  }

  /// Built from bytes; its digest.
  std::string keep(const std::string& name) {
    const inventory::Image image{
        name, inventory::ImageBuild{"bookworm", {"linux-image-amd64"}, ""}, {}};
    auto make = [&name](const std::filesystem::path& file) {
      return io::writeFileAtomic(file, name + std::string(provision::kMib - name.size(), 'x'));
    };
    auto images = openImageStore({folder_ / "cache", folder_ / "agent", key_},
                                 std::make_unique<provision::FileBuilder>(make));
    const auto built = images->build(image, [](std::string_view) {});
    EXPECT_TRUE(built) << built.error().str();
    return built ? built->digest : "";
  }

  lifecycle::Intent intent(const std::string& node, const std::string& wanted) {
    lifecycle::Intent intent;
    intent.id = "i-" + wanted.substr(0, wanted.find('@'));
    intent.plan_hash = std::string(64, 'a');
    intent.action.id = node + "/image";
    intent.action.facet = {lifecycle::Subject(NodeName(node)), FacetName("image")};
    intent.action.phase = "provision";
    intent.action.to = wanted;
    intent.opened_at = kWhen;
    return intent;
  }

  void fact(const std::string& node, const std::string& value) {
    const lifecycle::Fact fact{
        lifecycle::Subject(NodeName(node)), FacetName("image"), value, kWhen, "agent " + node, ""};
    ASSERT_TRUE(store_->putFacts({fact}));
  }

  std::vector<std::string> namesLeft() {
    const auto listed = folder_.muster({"image", "list", "--json"});
    EXPECT_EQ(listed.code, kOk) << listed.err;
    std::vector<std::string> names;
    for (const auto& image : nlohmann::json::parse(listed.out)) names.push_back(image["name"]);
    return names;
  }

  test::MusterFolder folder_;
  io::SigningKey key_ = *io::SigningKey::generate();
  std::unique_ptr<lifecycle::Store> store_;
};

TEST_F(ImageClearing, whatSomebodyNamesStaysAndSaysWho) {
  fact("gpu001", "running@" + keep("running"));
  ASSERT_TRUE(store_->openIntent(intent("gpu002", "open@" + keep("open"))));
  ASSERT_TRUE(store_->openIntent(intent("gpu002", "past@" + keep("past"))));
  ASSERT_TRUE(store_->closeIntent("i-past", lifecycle::IntentState::Done, "written", kWhen));
  fact("gpu099", "foreign@" + keep("foreign"));  // a node that the inventory has lost
  ASSERT_TRUE(store_->openIntent(intent("gpu098", "gone@" + keep("gone"))));
  ASSERT_TRUE(store_->putValue("rollout.list", R"(["r1"])"));
  ASSERT_TRUE(
      store_->putValue("rollout.r1.frozen", R"({"image":"rolled@)" + keep("rolled") + "\"}"));
  keep("nobody");

  const auto cleared = folder_.muster({"image", "gc", "--yes"});
  ASSERT_EQ(cleared.code, kOk) << cleared.err;
  EXPECT_THAT(cleared.out,
              AllOf(HasSubstr("node gpu001 has it"), HasSubstr("work that is under way names it"),
                    HasSubstr("the journal of gpu002 names it"), HasSubstr("node gpu099 has it"),
                    HasSubstr("rollout r1 names it")));
  EXPECT_THAT(cleared.out, HasSubstr("removes nobody@"));
  EXPECT_THAT(namesLeft(), ::testing::UnorderedElementsAre("running", "open", "past", "foreign",
                                                           "gone", "rolled"));
}

TEST_F(ImageClearing, nothingGoesWithoutAWord) {
  keep("nobody");
  const auto asked = folder_.muster({"image", "gc"});
  EXPECT_EQ(asked.code, kWorkLeft) << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("Nothing was removed"));
  EXPECT_THAT(namesLeft(), ::testing::ElementsAre("nobody"));
}

TEST_F(ImageClearing, theRamOsOfAnotherVersionGoesWithItsSize) {
  const auto old = "cache/ramos/" + std::string(64, 'a');
  ASSERT_TRUE(io::makeDirs(folder_ / old));
  folder_.write(old + "/initrd.img", std::string(3 << 20, 'x'));
  const auto asked = folder_.muster({"image", "gc"});
  EXPECT_EQ(asked.code, kWorkLeft) << asked.err;
  EXPECT_THAT(asked.out, AllOf(HasSubstr(old + ": 3 MiB"), HasSubstr("Nothing was removed")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / old));
  EXPECT_EQ(folder_.muster({"image", "gc", "--yes"}).code, kOk);
  EXPECT_FALSE(std::filesystem::exists(folder_ / old));
}

TEST_F(ImageClearing, aStoreThatCannotBeReadKeepsEverything) {
  keep("nobody");
  store_.reset();
  for (const char* part : {"muster.db", "muster.db-wal", "muster.db-shm"})
    std::filesystem::remove(folder_ / "state" / part);
  folder_.write("state/muster.db",
                "this is no database, and it is long enough to be looked at as one: " +
                    std::string(4096, 'x'));
  const auto refused = folder_.muster({"image", "gc", "--yes"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(namesLeft(), ::testing::ElementsAre("nobody"));
}

// ---- every command once

class ImageCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a tree keeps its owners only for root";
    makeTar("old", "one");
    makeTar("new", "two");
    folder_.write("cluster.yaml", inventoryWith(declare("old") + declare("new"), "old"));
  }

  void makeTar(const std::string& name, const std::string& content) {
    const auto done = io::runChecked(
        {.program = "sh",
         .args = {
             "-ec",
             "cd \"$1\"; \"$4\" $2; echo $3 >$2/etc/release; touch $2/usr/bin/$3; tar -C $2 -cf "
             "$2.tar .",
             "sh", (folder_ / "").string(), name, content,
             (test::sourceFolder() / "tests/provision/images/make_startable_tree.sh").string()}});
    ASSERT_TRUE(done) << done.error().str();
  }
  std::string declare(const std::string& name) {
    return fmt::format("  {0}: {{import: {0}.tar, sha256: {1}}}\n", name,
                       *io::sha256File(folder_ / (name + ".tar")));
  }
  /// To a site that knows nobody: refused without its key, taken with it, refused when it was cut
  /// short.
  void carry(const std::string& bundle) {
    test::MusterFolder other;
    const auto refused = other.muster({"image", "import", bundle});
    EXPECT_EQ(refused.code, kFailed) << refused.out;
    other.write("site.pem", folder_.muster({"image", "key"}).out);
    const auto pem = (other / "site.pem").string();
    const auto taken = other.muster({"image", "import", bundle, "--trust", pem});
    ASSERT_EQ(taken.code, kOk) << taken.err;
    EXPECT_THAT(taken.out, HasSubstr("old@" + listed().back()["digest"].get<std::string>().substr(
                                                  0, kDigestShown)));
    EXPECT_THAT(other.muster({"image", "import", bundle, "--trust", pem}).out,
                HasSubstr("it was here already"));
    std::filesystem::resize_file(bundle, std::filesystem::file_size(bundle) / 2);
    EXPECT_EQ(test::MusterFolder().muster({"image", "import", bundle, "--trust", pem}).code,
              kFailed);
  }
  nlohmann::json listed() {
    return nlohmann::json::parse(folder_.muster({"image", "list", "--json"}).out);
  }

  test::MusterFolder folder_;
};

TEST_F(ImageCommands, imagesAreBuiltListedComparedCarriedAndCleared) {
  EXPECT_THAT(folder_.muster({"image", "list"}).out,
              HasSubstr("not built: muster image build old"));
  for (const char* name : {"old", "new"}) {
    const auto built = folder_.muster({"image", "build", name});
    ASSERT_EQ(built.code, kOk) << built.out << built.err;
  }
  EXPECT_EQ(folder_.muster({"image", "build", "other"}).code, kFailed);
  const auto images = listed();
  ASSERT_EQ(images.size(), 2u);
  EXPECT_TRUE(images[0]["declared"].get<bool>());
  EXPECT_THAT(folder_.muster({"image", "list"}).out,
              AllOf(HasSubstr("this site"), HasSubstr("gpu-node"), HasSubstr("no profile")));
  EXPECT_THAT(folder_.muster({"image", "verify"}).out,
              HasSubstr("every chunk and signature is right"));

  const auto diff = folder_.muster({"image", "diff", "old", "new", "--json"});
  EXPECT_EQ(diff.code, kFailed) << "they differ";
  const auto said = nlohmann::json::parse(diff.out);
  EXPECT_THAT(said["changed"].dump(), HasSubstr("etc/release"));
  EXPECT_THAT(said["added"].dump(), HasSubstr("usr/bin/two"));
  EXPECT_EQ(folder_.muster({"image", "diff", "old", "old"}).code, kOk);

  const auto bundle = (folder_ / "old.bundle").string();
  ASSERT_EQ(folder_.muster({"image", "export", "old", bundle}).code, kOk);
  EXPECT_EQ(folder_.muster({"image", "export", "other", bundle}).code, kFailed);
  carry(bundle);

  EXPECT_THAT(folder_.muster({"image", "sign", "new"}).out, HasSubstr("signed by this site"));
  folder_.write("cluster.yaml", inventoryWith(declare("new"), "new"));
  const auto cleared = folder_.muster({"image", "gc", "--yes"});
  EXPECT_EQ(cleared.code, kOk) << cleared.err;
  EXPECT_THAT(cleared.out, AllOf(HasSubstr("keeps   new@"), HasSubstr("removes old@")));
  EXPECT_EQ(listed().size(), 1u);
}

TEST_F(ImageCommands, anArchiveWhoseIndexIsNestedDeepIsRefusedWithWords) {
  const auto made = io::runChecked(
      {.program = "sh",
       .args = {"-ec",
                "cd \"$1\"; mkdir -p oci/blobs/sha256; echo '{\"imageLayoutVersion\":\"1.0.0\"}' "
                ">oci/oci-layout;"
                "{ head -c 10000 /dev/zero | tr '\\0' '['; head -c 10000 /dev/zero | tr '\\0' ']'; "
                "} >oci/index.json; tar -C oci -cf deep.tar blobs index.json oci-layout",
                "sh", (folder_ / "").string()}});
  ASSERT_TRUE(made) << made.error().str();
  folder_.write("cluster.yaml", inventoryWith(declare("deep"), "deep"));
  const auto built = folder_.muster({"image", "build", "deep"});
  EXPECT_EQ(built.code, kFailed);
  EXPECT_THAT(built.err, AllOf(HasSubstr("deep.tar"), HasSubstr("index.json"),
                               HasSubstr("nested deeper than 64 levels")));
}

TEST_F(ImageCommands, aDamagedImageIsFoundAndNotSigned) {
  ASSERT_EQ(folder_.muster({"image", "build", "old"}).code, kOk);
  const auto pack = folder_ / "cache" / "images" / listed()[0]["key"].get<std::string>() / "pack";
  auto bytes = *io::readFile(pack);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(io::writeFileAtomic(pack, bytes));
  const auto verified = folder_.muster({"image", "verify", "old"});
  EXPECT_EQ(verified.code, kFailed);
  EXPECT_THAT(verified.out, AllOf(HasSubstr("damaged"), HasSubstr("muster image build old")));
  EXPECT_EQ(folder_.muster({"image", "sign", "old"}).code, kFailed);
}

}  // namespace
}  // namespace muster::cli
