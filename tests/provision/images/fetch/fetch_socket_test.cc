// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/fetch_socket.h"

#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace muster::provision {
namespace {

using testing::HasSubstr;

class CopyFetched : public testing::Test {
 protected:
  /// Of `size` bytes, with these texts in it.
  io::Fd fileWith(off_t size, const std::vector<std::pair<off_t, std::string>>& texts) {
    io::Fd file(::open((folder_ / "from").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(file.get(), size), 0);
    for (const auto& [at, text] : texts)
      EXPECT_EQ(::pwrite(file.get(), text.data(), text.size(), at),
                static_cast<ssize_t>(text.size()));
    return file;
  }
  struct stat statusOf(const char* name) {
    struct stat out{};
    EXPECT_EQ(::stat((folder_ / name).c_str(), &out), 0);
    return out;
  }

  test::TempFolder folder_;
};

TEST_F(CopyFetched, holesStayHoles) {
  constexpr off_t kSize = 256 << 20, kText = 100 << 20;
  const auto file = fileWith(kSize, {{0, "begin"}, {kText, "middle"}});
  const auto done = copyFetched(file.get(), folder_ / "to");
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(*done, static_cast<std::uint64_t>(kSize));
  EXPECT_EQ(statusOf("to").st_size, kSize);
  if (statusOf("from").st_blocks * 512 < 1 << 20)  // as file systems have them
    EXPECT_LT(statusOf("to").st_blocks * 512, 1 << 20);
  const io::Fd copy(::open((folder_ / "to").c_str(), O_RDONLY | O_CLOEXEC));
  for (const auto& [at, text] :
       {std::pair<off_t, std::string>{0, "begin"}, {kText, "middle"}, {kSize - 3, {0, 0, 0}}}) {
    std::string read(text.size(), 'x');
    EXPECT_EQ(::pread(copy.get(), read.data(), read.size(), at), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(read, text);
  }
}

TEST_F(CopyFetched, whatIsLargerThanAnyFileOfAnArchiveIsRefused) {
  const auto file = fileWith(static_cast<off_t>(kMaxFetchedBytes) + 1, {});
  const auto done = copyFetched(file.get(), folder_ / "to");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("may have 17179869184 at most"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "to"));
}

}  // namespace
}  // namespace muster::provision
