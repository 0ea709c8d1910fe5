#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <sys/stat.h>

namespace muster::io {
namespace {

TEST(Files, replacesWholeFiles) {
  test::TempFolder folder;
  const auto file = folder / "value";
  ASSERT_TRUE(writeFileAtomic(file, "old"));
  ASSERT_TRUE(writeFileAtomic(file, "new", 0600));
  EXPECT_EQ(*readFile(file), "new");
  struct stat info {};
  ::stat(file.c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "no temporary is left";
  EXPECT_EQ(readFile(folder / "none").error().code(), ErrorCode::NotFound);
  EXPECT_EQ(readFile(file, 2).error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(writeFileAtomic(folder / "no/such/folder", "x").error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(readFile("/proc/self/status")->empty()) << "files of /proc have no size";
}

TEST(FileLock, secondTakerLearnsWhoHoldsIt) {
  test::TempFolder folder;
  {
    auto first = FileLock::take(folder / "lock");
    ASSERT_TRUE(first);
    auto second = FileLock::take(folder / "lock");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
    EXPECT_NE(second.error().str().find(std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_TRUE(FileLock::take(folder / "lock"));
}

}  // namespace
}  // namespace muster::io
