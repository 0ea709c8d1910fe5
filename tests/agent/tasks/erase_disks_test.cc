// SPDX-License-Identifier: Apache-2.0
// The agent's task: from its parameters to its report, on a machine whose sysfs, firmware and disks
// are files.
#include "agent/tasks/erase_disks.h"
#include "base/io/files.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/run_async.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kEachDiskBytes = 6u << 20, kSectorBytes = 512;

/// Takes what is written until a byte, then is no more; what was there stays.
class DyingTarget final : public BlockTarget {
 public:
  DyingTarget(std::unique_ptr<BlockTarget> disk, std::uint64_t dies_at)
      : disk_(std::move(disk)), dies_at_(dies_at) {}
  std::uint64_t sizeBytes() const override { return disk_->sizeBytes(); }
  Result<void> write(std::uint64_t offset, std::string_view data) override {
    if (data.size() > kMarkBytes && offset >= dies_at_)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot write at byte {}: Input/output error", offset));
    return disk_->write(offset, data);
  }
  Result<void> zero(std::uint64_t offset, std::uint64_t length) override {
    return disk_->zero(offset, length);
  }
  Result<void> read(std::uint64_t offset, std::span<char> out) override {
    return disk_->read(offset, out);
  }
  Result<void> flush() override { return disk_->flush(); }

 private:
  std::unique_ptr<BlockTarget> disk_;
  std::uint64_t dies_at_;
};

/// Moves on when it is told; from any thread.
class AgentClock final : public Clock {
 public:
  WallTime now() const override { return {}; }
  std::chrono::steady_clock::time_point steady() const override {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(seconds));
  }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds, WakeToken*) override { co_return false; }
  std::atomic<int> seconds = 1000;
};

/// Each piece that is overwritten takes its time.
class SlowTarget final : public BlockTarget {
 public:
  SlowTarget(std::unique_ptr<BlockTarget> disk, AgentClock& clock, int seconds)
      : disk_(std::move(disk)), clock_(clock), seconds_(seconds) {}
  std::uint64_t sizeBytes() const override { return disk_->sizeBytes(); }
  Result<void> write(std::uint64_t offset, std::string_view data) override {
    if (data.size() > kMarkBytes) clock_.seconds += seconds_;
    return disk_->write(offset, data);
  }
  Result<void> zero(std::uint64_t offset, std::uint64_t length) override {
    return disk_->zero(offset, length);
  }
  Result<void> read(std::uint64_t offset, std::span<char> out) override {
    return disk_->read(offset, out);
  }
  Result<void> flush() override { return disk_->flush(); }

 private:
  std::unique_ptr<BlockTarget> disk_;
  AgentClock& clock_;
  int seconds_;
};

class EraseTask : public ::testing::Test {
 protected:
  EraseTask() {
    put("sys/class/dmi/id/product_serial", "NODE1\n");
    addDisk("sda", "DISK-A");
    addDisk("sdb", "DISK-B");
  }
  void put(const std::filesystem::path& name, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((folder_ / name).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / name, text));
  }
  void addDisk(const std::string& name, const std::string& serial) {
    const std::filesystem::path block = std::filesystem::path("sys/block") / name;
    put(block / "device/serial", serial + "\n");
    put(block / "size", std::to_string(kEachDiskBytes / kSectorBytes) + "\n");
    put(block / "ro", "0\n");
    put(block / "removable", "0\n");
    put(std::filesystem::path("dev") / name, content_);
  }
  /// No tool of these disks' own works: what is left is overwriting.
  EraseTools outside() {
    EraseTools tools = eraseTools();
    tools.run = [](const std::string& program,
                   const std::vector<std::string>&) -> Result<std::string> {
      return fail(ErrorCode::Internal, program + ": not supported");
    };
    tools.open = [this](const std::filesystem::path& path) -> Result<std::unique_ptr<BlockTarget>> {
      TRY(disk, openBlockTarget(path));
      if (path.filename() == dying_)
        return std::make_unique<DyingTarget>(std::move(disk), kEachDiskBytes / 2);
      if (path.filename() == slow_)
        return std::make_unique<SlowTarget>(std::move(disk), agent_clock_, 545);
      return std::move(disk);
    };
    return tools;
  }
  Result<nlohmann::json> run(const nlohmann::json& params) {
    Clock& clock = slow_.empty() ? static_cast<Clock&>(clock_) : agent_clock_;
    auto handler = eraseHandler(TaskTools{folder_.path(), "", processes_, workers_, clock},
                                [this] { return outside(); });
    return test::runAsync(handler(params, context_));
  }
  std::string disk(const std::string& name) { return *io::readFile(folder_ / "dev" / name); }

  test::TempFolder folder_;
  const std::string content_ = std::string(kEachDiskBytes, 's');
  std::string dying_, slow_;
  AgentClock agent_clock_;
  test::FakeProcessRunner processes_;
  Workers workers_{2};
  SystemClock clock_;
  TaskContextPtr context_ = std::make_shared<TaskContext>("intent-1", std::chrono::seconds(600));
};

TEST_F(EraseTask, erasesEveryDiskAndReportsEach) {
  const auto report = run({{"node_serial", "NODE1"},
                           {"disk_serials", nlohmann::json::array()},
                           {"wipe_allowed", true}});
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ((*report)["complete"], true);
  ASSERT_EQ((*report)["disks"].size(), 2u);
  for (const auto& one : (*report)["disks"]) {
    EXPECT_EQ(one["method"], "overwrite") << one.dump();
    EXPECT_EQ(one["level"], "clear");
    EXPECT_EQ(one["bytes_erased"], kEachDiskBytes);
    EXPECT_GT(one["places_checked"], 100);
  }
  EXPECT_EQ(disk("sda"), std::string(kEachDiskBytes, '\0'));
  EXPECT_EQ(disk("sdb"), std::string(kEachDiskBytes, '\0'));
  EXPECT_GT(context_->progressNow().fraction, 0.9);
}

TEST_F(EraseTask, onlyWhatWasNamed) {
  const auto report =
      run({{"node_serial", "NODE1"}, {"disk_serials", {"DISK-B"}}, {"wipe_allowed", true}});
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ((*report)["disks"].size(), 1u);
  EXPECT_THAT((*report)["left"][0].get<std::string>(), HasSubstr("DISK-A"));
  EXPECT_EQ(disk("sda"), content_);
}

TEST_F(EraseTask, anotherMachineOrNoPermissionTouchesNothing) {
  for (const auto& params :
       {nlohmann::json{{"node_serial", "NODE2"}, {"wipe_allowed", true}},
        nlohmann::json{{"node_serial", "NODE1"}},
        nlohmann::json{
            {"node_serial", "NODE1"}, {"disk_serials", {"DISK-C"}}, {"wipe_allowed", true}}}) {
    const auto report = run(params);
    ASSERT_FALSE(report) << params.dump();
    EXPECT_EQ(disk("sda") + disk("sdb"), content_ + content_);
  }
}

TEST_F(EraseTask, aDiskThatDiesInTheMiddleIsNamedAndTheOthersAreErased) {
  dying_ = "sda";
  const auto report = run({{"node_serial", "NODE1"}, {"wipe_allowed", true}});
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ((*report)["complete"], false);
  const auto& dead = (*report)["disks"][0];
  EXPECT_EQ(dead["serial"], "DISK-A");
  EXPECT_EQ(dead["method"], "");
  EXPECT_THAT(dead["fault"].get<std::string>(), HasSubstr("Input/output error"));
  EXPECT_EQ((*report)["disks"][1]["method"], "overwrite");
  EXPECT_EQ(disk("sdb"), std::string(kEachDiskBytes, '\0'));
  EXPECT_NE(disk("sda").find(std::string(2 * kMarkBytes, 's')), std::string::npos)
      << "and it does still hold what it held";
}

/// Two namespaces of one controller, which are erased one after the other; the deadline is at 600
/// s.
TEST_F(EraseTask, tellsWhatIsErasedBeforeItsTimeIsUp) {
  addDisk("nvme0n1", "DISK-C");
  addDisk("nvme0n2", "DISK-D");
  slow_ = "nvme0n2";
  const auto report = run(
      {{"node_serial", "NODE1"}, {"disk_serials", {"DISK-C", "DISK-D"}}, {"wipe_allowed", true}});
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ((*report)["complete"], false);
  EXPECT_EQ((*report)["disks"][0]["method"], "overwrite");
  EXPECT_EQ((*report)["disks"][1]["method"], "");
  EXPECT_THAT((*report)["disks"][1]["fault"].get<std::string>(),
              HasSubstr("its deadline passed, after 4 of 6 MiB"));
  EXPECT_LT(agent_clock_.seconds, 1600) << "the deadline itself would have thrown the report away";
}

TEST_F(EraseTask, stopsWhenItsDeadlineHasPassed) {
  context_->cancel();
  const auto report = run({{"node_serial", "NODE1"}, {"wipe_allowed", true}});
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ((*report)["complete"], false);
  EXPECT_EQ(disk("sda"), content_);
}

}  // namespace
}  // namespace muster::agent
