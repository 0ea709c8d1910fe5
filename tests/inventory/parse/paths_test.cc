// SPDX-License-Identifier: Apache-2.0
// Which files an inventory may name, and that nothing of a foreign file is shown.
#include "inventory/parse/paths.h"
#include "inventory/model/credentials.h"

#include "base/io/regular_file.h"
#include "tests/inventory/inventory_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kCanary = "c4n4ry-c0ntent";

class PathsTest : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    ::unsetenv(kAllowPathVariable);
    std::string name =
        (std::filesystem::temp_directory_path() / "muster-elsewhere-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    outside_ = name;
    foreign_ = outside_ / "shadow";
    std::ofstream(foreign_) << "root:" << kCanary << ":19000:0:99999:7:::\nanna:" << kCanary
                            << ":19000:0:99999:7:::\n";
    ::chmod(foreign_.c_str(), 0600);
  }
  void TearDown() override {
    ::unsetenv(kAllowPathVariable);
    std::filesystem::remove_all(outside_);
    InventoryTest::TearDown();
  }
  std::filesystem::path outside_, foreign_;
};

TEST_F(PathsTest, aPathThatLeavesTheFolderIsRefused) {
  const auto up = foreign_.lexically_relative(folder_).string();
  ASSERT_THAT(up, HasSubstr("../"));
  EXPECT_THAT(complaints("file: secrets/bmc", "file: " + up),
              ElementsAre(AllOf(HasSubstr("leaves the inventory's folder"),
                                HasSubstr("--allow-path " + outside_.string()))));
  EXPECT_THAT(complaints("file: secrets/bmc", "file: " + foreign_.string()),
              ElementsAre(HasSubstr("leaves the inventory's folder")));
  EXPECT_THAT(complaints("from: racks.csv", "from: " + up),
              Contains(HasSubstr("leaves the inventory's folder")));
  EXPECT_THAT(complaints("image: noble,", "image: noble, user_data: " + up + ","),
              ElementsAre(HasSubstr("leaves the inventory's folder")));
}

TEST_F(PathsTest, aLinkIsEvaluatedByWhereItLeads) {
  std::filesystem::create_symlink(foreign_, folder_ / "secrets/link");
  EXPECT_THAT(
      complaints("file: secrets/bmc", "file: secrets/link"),
      ElementsAre(AllOf(HasSubstr("leaves the inventory's folder"), HasSubstr(foreign_.string()))));
  std::filesystem::create_directory_symlink(outside_, folder_ / "elsewhere");
  EXPECT_THAT(complaints("file: secrets/bmc", "file: elsewhere/shadow"),
              ElementsAre(HasSubstr("leaves the inventory's folder")));
  EXPECT_THAT(complaints("file: secrets/bmc", "file: elsewhere/not-there-yet"),
              ElementsAre(HasSubstr("leaves the inventory's folder")));
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(complaints("file: secrets/bmc", "file: loop"), Not(IsEmpty()));
}

TEST_F(PathsTest, linksThatNameEachOtherAreSaidToLeadNowhere) {
  std::filesystem::create_symlink("b.csv", folder_ / "a.csv");
  std::filesystem::create_symlink("a.csv", folder_ / "b.csv");
  EXPECT_THAT(complaints("from: racks.csv", "from: a.csv"),
              Contains(AllOf(HasSubstr("a.csv leads nowhere: links that name each other"),
                             HasSubstr("name a regular file"))));
  EXPECT_THAT(complaints("file: secrets/bmc", "file: a.csv"),
              ElementsAre(HasSubstr("leads nowhere")));
}

TEST_F(PathsTest, linksAndDotsWithinTheFolderAreFine) {
  std::filesystem::create_symlink("bmc", folder_ / "secrets/alias");
  EXPECT_THAT(complaints("file: secrets/bmc", "file: secrets/../secrets/alias"), IsEmpty());
  EXPECT_THAT(complaints("file: secrets/bmc", "file: " + (folder_ / "secrets/bmc").string()),
              IsEmpty())
      << "absolute, and in the folder";
}

TEST_F(PathsTest, anAllowedFolderMayBeNamedAndOnlyThat) {
  std::ofstream(outside_ / "bmc") << "calvin\n";
  ::chmod((outside_ / "bmc").c_str(), 0600);
  const auto written = "file: " + (outside_ / "bmc").string();
  ::setenv(kAllowPathVariable, ("/nowhere:" + outside_.string()).c_str(), 1);
  EXPECT_THAT(complaints("file: secrets/bmc", written), IsEmpty());
  ::setenv(kAllowPathVariable, (outside_.string() + "/").c_str(), 1);
  EXPECT_THAT(complaints("file: secrets/bmc", written), IsEmpty());
  for (const auto& other : {outside_.string().substr(0, outside_.string().size() - 1),
                            std::string("."), std::string(":"), outside_.string() + "/bm"}) {
    ::setenv(kAllowPathVariable, other.c_str(), 1);
    EXPECT_THAT(complaints("file: secrets/bmc", written),
                ElementsAre(HasSubstr("leaves the inventory's folder")))
        << other;
  }
}

TEST_F(PathsTest, whatIsNoRegularFileIsRefusedAndNeverWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(complaints("file: secrets/bmc", "file: fifo"),
              ElementsAre(HasSubstr("fifo is a FIFO")));
  EXPECT_THAT(complaints("from: racks.csv", "from: fifo"), Contains(HasSubstr("is a FIFO")));
  EXPECT_THAT(complaints("from: racks.csv", "from: fifo"),
              Not(Contains(HasSubstr("cannot read fifo"))))
      << "said once, and never without a cause";
  EXPECT_THAT(complaints("image: noble,", "image: noble, user_data: fifo,"),
              ElementsAre(HasSubstr("fifo is a FIFO")));
  EXPECT_THAT(complaints("file: secrets/bmc", "file: secrets"),
              ElementsAre(HasSubstr("is not a regular file")));
  ::setenv(kAllowPathVariable, "/dev", 1);
  EXPECT_THAT(complaints("file: secrets/bmc", "file: /dev/zero"),
              ElementsAre(HasSubstr("/dev/zero is a device")));
  for (const auto& inventory : {folder_ / "fifo", std::filesystem::path("/dev/zero"), folder_}) {
    const auto loaded = load(inventory);
    EXPECT_FALSE(loaded.cluster);
    EXPECT_THAT(lines(loaded), ElementsAre(HasSubstr("not a regular file"))) << inventory;
  }
  EXPECT_EQ(SecretRef{.source = folder_ / "fifo"}.read().error().code(), ErrorCode::NotFound);
}

TEST_F(PathsTest, aSocketIsNoFile) {
  const auto path = folder_ / "s";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.string().size(), sizeof address.sun_path);
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(complaints("file: secrets/bmc", "file: s"), ElementsAre(HasSubstr("s is a socket")));
  ::close(fd);
}

TEST_F(PathsTest, nothingOfAForeignFileIsShown) {
  ::setenv(kAllowPathVariable, outside_.c_str(), 1);  // even where it may be named
  const auto is_secret = Each(Not(HasSubstr(std::string(kCanary))));
  EXPECT_THAT(lines(load(foreign_)), AllOf(Not(IsEmpty()), is_secret));
  EXPECT_THAT(complaints("from: racks.csv", "from: " + foreign_.string()),
              AllOf(Contains(HasSubstr("no list of nodes")), is_secret));
  EXPECT_THAT(
      complaints("    rails: 2\n", "    rails: 2\n    cables_file: " + foreign_.string() + "\n"),
      AllOf(Contains(HasSubstr("no list of cables")), is_secret));
  EXPECT_THAT(complaints("image: noble,", "image: noble, user_data: " + foreign_.string() + ","),
              AllOf(Not(IsEmpty()), is_secret));
  for (const std::string text :
       {"{canary}\n", "token: {canary}\nother: [{canary}]\n", "a: &{canary} 1\nb: *{canary}x\n",
        "!{canary} x\n", "- {canary}\n", "\"{canary}\": 1\n\"{canary}\": 2\n",
        "x: \"\\q{canary}\"\n", "[core]\n\tpassword = {canary}\n"}) {
    std::string filled = text;
    for (auto at = filled.find("{canary}"); at != std::string::npos; at = filled.find("{canary}"))
      filled.replace(at, 8, kCanary);
    EXPECT_THAT(lines(load(write("other", filled))), AllOf(Not(IsEmpty()), is_secret)) << filled;
  }
}

TEST_F(PathsTest, aLargeFileIsNotReadWhole) {
  const auto path = write("large", std::string(100'000, 'x'));
  EXPECT_TRUE(io::readRegularFile(path, 100'000));
  EXPECT_EQ(io::readRegularFile(path, 99'999).error().code(), ErrorCode::InvalidInput);
  ::chmod(path.c_str(), 0600);
  EXPECT_THAT(complaints("file: secrets/bmc", "file: large"),
              ElementsAre(HasSubstr("has more than 64 KiB")));
  EXPECT_FALSE(SecretRef{.source = path}.read());
  EXPECT_FALSE(SecretRef{.source = std::string("head -c 1000000 /dev/zero | tr '\\0' x")}.read())
      << "a command's output is bounded too";
}

TEST_F(PathsTest, aSecretThatOthersCanReadIsAWarning) {
  ::chmod((folder_ / "secrets/bmc").c_str(), 0604);
  EXPECT_THAT(lines(loadYaml(kSmall)),
              ElementsAre(AllOf(HasSubstr("warning: everybody on this machine can read"),
                                HasSubstr("chmod 600"))));
}

}  // namespace
}  // namespace muster::inventory
