// SPDX-License-Identifier: Apache-2.0
// The builder of runs, with the real program beside this test: what is missing, built by a process
// of its own.
#include "app/runs/image_builder.h"

#include "base/io/crypto.h"
#include "tests/app/site_folder.h"
#include "tests/paths.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <thread>

namespace muster::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kLimit = 120s;

class RealImages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a tree keeps its owners only for root";
    const auto tree = test::sourceFolder() / "tests/provision/images/make_startable_tree.sh";
    const auto made =
        io::runChecked({.program = "sh",
                        .args = {"-ec", "cd \"$1\"; \"$2\" tree; tar -C tree -cf tree.tar .", "sh",
                                 (site_ / "").string(), tree.string()}});
    ASSERT_TRUE(made) << made.error().str();
    auto inventory = std::string(SiteFolder::kInventory);
    const std::string built = "{build: {suite: bookworm, packages: [linux-image-amd64]}}";
    inventory.replace(inventory.find(built), built.size(),
                      "{import: tree.tar, sha256: " + *io::sha256File(site_ / "tree.tar") + "}");
    site_.write("cluster.yaml", inventory);
    builder_ = makeImageBuilder(site_.options(), workers_);
  }
  Result<std::vector<std::string>> missing(const std::string& only) {
    return test::runAsync(builder_->missing(only));
  }
  std::unique_ptr<io::Child> start(const char* log) {
    auto child = builder_->start("bookworm", "", site_ / log);
    EXPECT_TRUE(child) << child.error().str();
    return std::move(*child);
  }
  static bool ends(io::Child& child) {
    for (const auto until = std::chrono::steady_clock::now() + kLimit;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(50ms))
      if (!child.running()) return true;
    return false;
  }

  SiteFolder site_;
  Workers workers_{1};
  std::unique_ptr<ImageBuilder> builder_;
};

TEST_F(RealImages, areMissingUntilTheProgramHasBuiltThem) {
  const auto before = missing("");
  ASSERT_TRUE(before) << before.error().str();
  EXPECT_THAT(*before, ElementsAre("ramos", "bookworm"));
  const auto unknown = missing("noble");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::NotFound);
  const auto child = start("build.log");
  ASSERT_TRUE(ends(*child));
  EXPECT_THAT(*missing("bookworm"), IsEmpty()) << io::readFile(site_ / "build.log").value_or("");
  EXPECT_THAT(*missing(""), ElementsAre("ramos"));
  EXPECT_THAT(io::readFile(site_ / "build.log").value_or(""), HasSubstr("image bookworm@"));
}

/// Two of one image at a time: the later one waits, and finds it there.
TEST_F(RealImages, areBuiltOnceByTwoAtATime) {
  const auto first = start("first.log"), second = start("second.log");
  ASSERT_TRUE(ends(*first) && ends(*second));
  EXPECT_THAT(*missing("bookworm"), IsEmpty());
  const auto digestIn = [this](const char* log) {
    const auto text = io::readFile(site_ / log).value_or("");
    const auto at = text.find("image bookworm@");
    return at == std::string::npos ? text : text.substr(at, text.find(':', at) - at);
  };
  EXPECT_EQ(digestIn("first.log"), digestIn("second.log"));
}

/// A run that is paused or whose process dies lets go of its build; the next one begins again.
TEST_F(RealImages, areBuiltAgainAfterABuildThatWasKilled) {
  start("killed.log").reset();
  const auto again = start("again.log");
  ASSERT_TRUE(ends(*again));
  EXPECT_THAT(*missing("bookworm"), IsEmpty()) << io::readFile(site_ / "again.log").value_or("");
}

}  // namespace
}  // namespace muster::app
