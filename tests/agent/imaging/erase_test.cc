// SPDX-License-Identifier: Apache-2.0
// Erasing: the guards, the order of methods, and that a disk is believed only when what was on it
// is gone. Disks are files.
#include "agent/imaging/erase.h"
#include "base/io/files.h"
#include "tests/run_async.h"
#include "wire/task_reason.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kDiskBytes = 9u << 20;
constexpr std::size_t kSanicapAt = 328, kOacsAt = 256, kFnaAt = 524;

std::string identify(unsigned oacs, unsigned sanicap, unsigned fna) {
  std::string data(4096, '\0');
  data[kOacsAt] = static_cast<char>(oacs);
  data[kSanicapAt] = static_cast<char>(sanicap);
  data[kFnaAt] = static_cast<char>(fna);
  return data;
}

std::string sanitizeLog(unsigned progress, unsigned state) {
  return {static_cast<char>(progress & 0xff), static_cast<char>(progress >> 8),
          static_cast<char>(state), '\0'};
}

/// Answers the first write with success and keeps nothing.
class Forgetful final : public BlockTarget {
 public:
  std::uint64_t sizeBytes() const override { return kDiskBytes; }
  Result<void> write(std::uint64_t, std::string_view) override { return {}; }
  Result<void> zero(std::uint64_t, std::uint64_t) override { return {}; }
  Result<void> read(std::uint64_t, std::span<char> out) override {
    std::fill(out.begin(), out.end(), '\0');
    return {};
  }
  Result<void> flush() override { return {}; }
};

class Erase : public ::testing::Test {
 protected:
  Erase() {
    tools_ = eraseTools();
    tools_.run = [this](const std::string& program, const std::vector<std::string>& args) {
      return tool(program, args);
    };
    tools_.pause = [this](std::chrono::seconds) { ++pauses_; };
    tools_.progress = [this](double fraction, const std::string&) {
      most_ = std::max(most_, fraction);
    };
    tools_.cancelled = [this] { return cancelled_; };
    tools_.now_seconds = [] { return 0.0; };
  }

  DiskInfo disk(const std::string& name, const std::string& serial) {
    std::string content;
    for (std::uint64_t i = 0; i < kDiskBytes; ++i)
      content.push_back(static_cast<char>('a' + (i * 31 + i / 4096) % 23));
    EXPECT_TRUE(io::writeFileAtomic(folder_ / name, content));
    DiskInfo info;
    info.path = folder_ / name;
    info.serial = serial;
    info.size_bytes = kDiskBytes;
    return info;
  }
  void fillWith(const std::filesystem::path& file, char byte) {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    const std::string bytes(kDiskBytes, byte);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  /// A program does what `acts_` says of it and its first words; else it is not offered.
  Result<std::string> tool(const std::string& program, const std::vector<std::string>& args) {
    const std::lock_guard guard(mutex_);
    std::string words = program;
    for (const auto& arg : args) words += " " + (arg.starts_with("/") ? std::string("DISK") : arg);
    said_.push_back(words);
    const auto act = acts_.find(words);
    if (act == acts_.end()) return fail(ErrorCode::Internal, "not supported");
    return act->second();
  }
  std::function<Result<std::string>()> wipes(const std::filesystem::path& file, char byte) {
    return [this, file, byte]() -> Result<std::string> {
      fillWith(file, byte);
      return std::string();
    };
  }
  std::function<Result<std::string>()> answers(const std::string& text) {
    return [text]() -> Result<std::string> { return text; };
  }
  static wire::EraseParams allowed(std::vector<std::string> serials = {}) {
    return {"NODE1", std::move(serials), true};
  }
  static nlohmann::json told(const EraseReport& report) {
    return nlohmann::json::parse(report.json());
  }

  test::TempFolder folder_;
  EraseTools tools_;
  std::mutex mutex_;
  std::map<std::string, std::function<Result<std::string>()>> acts_;
  std::vector<std::string> said_;
  int pauses_ = 0;
  double most_ = 0;
  bool cancelled_ = false;
};

TEST_F(Erase, aDiskThatOffersNothingIsOverwrittenWithZeros) {
  const auto one = disk("sda", "A");
  const auto report = eraseDisks(allowed(), {one}, "NODE1", tools_);
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(report->complete());
  const auto& done = report->disks[0];
  EXPECT_EQ(done.method, "overwrite");
  EXPECT_EQ(done.level, "clear");
  EXPECT_THAT(done.tried, ElementsAre("secure-discard: not supported"));
  EXPECT_GT(done.places_checked, kMarkedPlaces / 2);
  EXPECT_EQ(*io::readFile(one.path), std::string(kDiskBytes, '\0')) << "the last byte too";
  EXPECT_EQ(most_, 1.0);
  const auto json = told(*report);
  EXPECT_EQ(json["disks"][0]["serial"], "A");
  EXPECT_EQ(json["disks"][0]["bytes_erased"], kDiskBytes);
  EXPECT_EQ(json["complete"], true);
}

TEST_F(Erase, guardsComeBeforeTheFirstByte) {
  const auto one = disk("sda", "A"), twin = disk("sdb", "A");
  const auto before = *io::readFile(one.path);
  wire::EraseParams forbidden = allowed();
  forbidden.wipe_allowed = false;
  EXPECT_EQ(eraseDisks(forbidden, {one}, "NODE1", tools_).error().code(), ErrorCode::Denied);
  const auto other = eraseDisks(allowed(), {one}, "NODE2", tools_);
  EXPECT_EQ(other.error().code(), ErrorCode::Denied);
  EXPECT_TRUE(other.error().has(wire::TaskReason::DisksUntouched))
      << "its installed system would lose its key";
  EXPECT_THAT(other.error().text(), HasSubstr("NODE2"));
  wire::EraseParams nobody{"", {}, true};
  EXPECT_EQ(eraseDisks(nobody, {one}, "", tools_).error().code(), ErrorCode::Denied)
      << "two empty serials are no match";
  EXPECT_EQ(eraseDisks(allowed({"B"}), {one}, "NODE1", tools_).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(eraseDisks(allowed({""}), {one}, "NODE1", tools_).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(eraseDisks(allowed({"A"}), {one, twin}, "NODE1", tools_).error().code(),
            ErrorCode::Conflict);
  tools_.claim = [&](const std::filesystem::path& path) -> Result<DiskClaim> {
    if (path == twin.path) return fail(ErrorCode::Conflict, "mounted");
    return DiskClaim();
  };
  EXPECT_EQ(eraseDisks(allowed(), {one, twin}, "NODE1", tools_).error().code(), ErrorCode::Conflict)
      << "one in use stops all";
  EXPECT_EQ(*io::readFile(one.path), before);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Erase, anArrayOfItsDisksIsLetGoOfAndTheDisksAreHeldToTheEnd) {
  const auto one = disk("sda", "A"), two = disk("sdb", "B"), stays = disk("sdc", "C");
  std::vector<std::string> assembled{"sda", "sdb", "sdc"};  // each held by an array of its own
  int held = 0, held_by_methods = 0;
  tools_.release = [&](const DiskInfo& disk) {
    std::erase(assembled, disk.path.filename().string());
  };
  tools_.claim = [&](const std::filesystem::path& path) -> Result<DiskClaim> {
    if (std::find(assembled.begin(), assembled.end(), path.filename()) != assembled.end())
      return fail(ErrorCode::Conflict, "part of an array");
    ++held;
    return DiskClaim(&held, [](int* count) { --*count; });
  };
  acts_["blkdiscard --secure --force DISK"] = [&]() -> Result<std::string> {
    held_by_methods += held;
    return fail(ErrorCode::Internal, "not supported");
  };
  const auto report = eraseDisks(allowed({"A", "B"}), {one, two, stays}, "NODE1", tools_);
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_TRUE(report->complete());
  EXPECT_EQ(held_by_methods, 2 + 2) << "both, during each disk's own method";
  EXPECT_EQ(held, 0);
  EXPECT_THAT(assembled, ElementsAre("sdc")) << "nobody asked for that one";
}

TEST_F(Erase, removableAndUnnamedDisksStayAndAreTold) {
  auto stick = disk("sdz", "STICK");
  stick.removable = true;
  const auto before = *io::readFile(stick.path);
  const auto all = eraseDisks(allowed(), {disk("sda", "A"), stick}, "NODE1", tools_);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->disks.size(), 1u);
  EXPECT_THAT(all->left, ElementsAre(HasSubstr("STICK")));
  EXPECT_EQ(*io::readFile(stick.path), before);
  EXPECT_EQ(eraseDisks(allowed(), {stick}, "NODE1", tools_).error().code(), ErrorCode::NotFound);
}

TEST_F(Erase, nvmeForgetsItsKeyWhenItCan) {
  const auto one = disk("nvme0n1", "N");
  acts_["nvme id-ctrl --raw-binary DISK"] = answers(identify(2, 3, 4));
  acts_["nvme format DISK --ses=2 --force"] = wipes(one.path, 'r');
  const auto report = eraseDisks(allowed({"N"}), {one}, "NODE1", tools_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->disks[0].method, "nvme-format-crypto");
  EXPECT_EQ(report->disks[0].level, "purge");
  EXPECT_THAT(report->disks[0].tried, IsEmpty());
  EXPECT_EQ(said_.size(), 2u);
}

TEST_F(Erase, aMethodThatSaysItWorkedAndDidNotMakesRoomForTheNext) {
  const auto one = disk("nvme0n1", "N");
  acts_["nvme id-ctrl --raw-binary DISK"] = answers(identify(2, 2, 4));
  acts_["nvme format DISK --ses=2 --force"] = answers("Success formatting namespace:1");
  acts_["nvme sanitize DISK --sanact=2"] = answers("");
  int polls = 0;
  acts_["nvme sanitize-log --raw-binary DISK"] = [&]() -> Result<std::string> {
    if (++polls < 3) return sanitizeLog(0x8000, 2);
    fillWith(one.path, '\0');
    return sanitizeLog(0xffff, 1);
  };
  const auto report = eraseDisks(allowed(), {one}, "NODE1", tools_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->disks[0].method, "nvme-sanitize-block");
  EXPECT_THAT(report->disks[0].tried, ElementsAre(HasSubstr("is still there")));
  EXPECT_EQ(polls, 3);
  EXPECT_EQ(pauses_, 3);
}

TEST_F(Erase, aSanitizeThatFailsOrTellsNothingIsNoSuccess) {
  const auto one = disk("nvme0n1", "N");
  acts_["nvme id-ctrl --raw-binary DISK"] = answers(identify(0, 3, 0));
  acts_["nvme sanitize DISK --sanact=2"] = answers("");
  acts_["nvme sanitize DISK --sanact=4"] = answers("");
  acts_["nvme sanitize-log --raw-binary DISK"] = answers(sanitizeLog(0, 3));
  const auto report = eraseDisks(allowed(), {one}, "NODE1", tools_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->disks[0].method, "overwrite");
  EXPECT_THAT(report->disks[0].tried,
              ElementsAre(HasSubstr("state 3"), HasSubstr("state 3"), HasSubstr("secure-discard")));
  acts_["nvme sanitize-log --raw-binary DISK"] = answers("x");
  EXPECT_THAT(eraseDisks(allowed(), {one}, "NODE1", tools_)->disks[0].tried[0],
              HasSubstr("no state"));
}

TEST_F(Erase, whatWouldTakeANamespaceAlongThatStaysIsNotUsed) {
  const auto one = disk("nvme0n1", "N1"), other = disk("nvme0n2", "N2");
  const auto before = *io::readFile(other.path);
  const auto report = eraseDisks(allowed({"N1"}), {one, other}, "NODE1", tools_);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->disks[0].method, "overwrite");
  EXPECT_THAT(report->disks[0].tried,
              ElementsAre(HasSubstr("another namespace"), HasSubstr("secure-discard")));
  EXPECT_THAT(said_, ElementsAre("blkdiscard --secure --force DISK"))
      << "nvme was not called at all";
  EXPECT_EQ(*io::readFile(other.path), before);
}

TEST_F(Erase, aBrokenDiskIsAFaultAndDoesNotStopTheOthers) {
  const auto broken = disk("sda", "A"), good = disk("sdb", "B");
  tools_.open = [&](const std::filesystem::path& path) -> Result<std::unique_ptr<BlockTarget>> {
    if (path == broken.path) return std::unique_ptr<BlockTarget>(std::make_unique<Forgetful>());
    return openBlockTarget(path);
  };
  const auto report = eraseDisks(allowed(), {broken, good}, "NODE1", tools_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->complete());
  EXPECT_THAT(report->disks[0].fault, HasSubstr("lost as soon as they are written"));
  EXPECT_EQ(report->disks[0].method, "");
  EXPECT_EQ(report->disks[1].method, "overwrite");
  EXPECT_EQ(told(*report)["complete"], false);
}

TEST_F(Erase, stopsWhenItIsTold) {
  const auto one = disk("sda", "A");
  cancelled_ = true;
  const auto report = eraseDisks(allowed(), {one}, "NODE1", tools_);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->complete());
  EXPECT_THAT(report->disks[0].fault, HasSubstr("was cancelled"));
}

TEST_F(Erase, aDiskInUseIsNotClaimed) {
  EXPECT_EQ(eraseTools().claim(folder_ / "nothing").error().code(), ErrorCode::NotFound);
  EXPECT_TRUE(eraseTools().claim(disk("sda", "A").path)) << "a file stands in for a disk";
}

TEST(NvmeMethods, areReadFromWhatTheControllerSaysOfItself) {
  using enum EraseMethod;
  EXPECT_THAT(nvmeMethods(identify(2, 3, 4)),
              ElementsAre(NvmeFormatCrypto, NvmeSanitizeBlock, NvmeSanitizeCrypto, NvmeFormatUser));
  EXPECT_THAT(nvmeMethods(identify(0, 0, 4)), IsEmpty()) << "crypto erase needs format";
  EXPECT_THAT(nvmeMethods(identify(2, 0, 0)), ElementsAre(NvmeFormatUser));
  EXPECT_THAT(nvmeMethods("short"), IsEmpty());
  EXPECT_EQ(nvmeController("/dev/nvme12n3"), "/dev/nvme12");
  for (const char* none :
       {"/dev/sda", "/dev/nvme0", "/dev/nvme0n1p2", "/dev/nvme", "/dev/nvmen1", "/dev/nvme0n"})
    EXPECT_EQ(nvmeController(none), "") << none;
}

}  // namespace
}  // namespace muster::agent
