// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/host_files.h"

#include "base/io/files.h"
#include "tests/run_async.h"

namespace muster::provision {
namespace {

class HostFilesTest : public ::testing::Test {
 protected:
  HostChange write(const HostLines& wanted) {
    const auto change = files_.write(wanted);
    EXPECT_TRUE(change) << change.error().str();
    return change.value_or(HostChange{});
  }
  HostLines onDisk() const {
    HostLines out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "hosts"))
      out[entry.path().filename().string()] = io::readFile(entry.path()).value_or("?");
    return out;
  }
  muster::test::TempFolder folder_;
  HostFiles files_{folder_ / "hosts"};
};

TEST_F(HostFilesTest, newHostsNeedNoSignal) {
  const auto first = write({{"gpu001", "a\n"}});
  EXPECT_EQ(first.added, 1u);
  EXPECT_FALSE(first.mustReread()) << "dnsmasq sees a new file by itself";
  const auto second = write({{"gpu001", "a\n"}, {"gpu002", "b\n"}});
  EXPECT_EQ(second.added, 1u);
  EXPECT_EQ(second.replaced, 0u);
  EXPECT_EQ(onDisk(), (HostLines{{"gpu001", "a\n"}, {"gpu002", "b\n"}}));
}

TEST_F(HostFilesTest, whatDnsmasqHasReadMustBeReadAgain) {
  write({{"gpu001", "a\n"}, {"gpu002", "b\n"}});
  EXPECT_TRUE(write({{"gpu001", "other\n"}, {"gpu002", "b\n"}}).mustReread());
  const auto removed = write({{"gpu002", "b\n"}});
  EXPECT_EQ(removed.removed, 1u);
  EXPECT_TRUE(removed.mustReread());
  EXPECT_EQ(onDisk(), (HostLines{{"gpu002", "b\n"}}));
  EXPECT_FALSE(write({{"gpu002", "b\n"}}).mustReread()) << "nothing changed";
}

TEST_F(HostFilesTest, moreNewFilesThanTheKernelReportsNeedASignal) {
  HostLines many;
  for (std::size_t i = 0; i <= HostChange::kMaxNoticed; ++i) many["n" + std::to_string(i)] = "x\n";
  EXPECT_TRUE(write(many).mustReread());
}

TEST_F(HostFilesTest, leftoversOfAnEarlierControllerAreCorrected) {
  ASSERT_TRUE(io::makeDirs(folder_ / "hosts"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "hosts/gone", "old\n"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "hosts/torn", "52:54:00"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "hosts/huge", std::string(100000, 'x')));
  const auto change = write({{"torn", "52:54:00:00:00:01,10.20.1.1,torn\n"}, {"huge", "small\n"}});
  EXPECT_EQ(change.removed, 1u);
  EXPECT_EQ(change.replaced, 2u);
  EXPECT_EQ(onDisk(),
            (HostLines{{"torn", "52:54:00:00:00:01,10.20.1.1,torn\n"}, {"huge", "small\n"}}));
}

TEST_F(HostFilesTest, folderThatCannotBeUsedIsAnErrorAndTheNextCallTriesAgain) {
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "hosts", "a file, no folder"));
  EXPECT_FALSE(files_.write({{"gpu001", "a\n"}}));
  std::filesystem::remove(folder_ / "hosts");
  EXPECT_EQ(write({{"gpu001", "a\n"}}).added, 1u);
}

TEST_F(HostFilesTest, whatFailedHalfWayIsFinishedByTheNextCall) {
  write({});
  std::filesystem::create_directory(folder_ / "hosts/b");  // stands where a file must go
  EXPECT_FALSE(files_.write({{"a", "1\n"}, {"b", "2\n"}}));
  std::filesystem::remove(folder_ / "hosts/b");
  const auto change = write({{"a", "1\n"}, {"b", "2\n"}});
  EXPECT_EQ(change.added, 1u) << "a was there already";
  EXPECT_EQ(onDisk(), (HostLines{{"a", "1\n"}, {"b", "2\n"}}));
}

}  // namespace
}  // namespace muster::provision
