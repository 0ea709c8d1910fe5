// SPDX-License-Identifier: Apache-2.0
// A real block device: partitioned, written, checked, grown, made bootable, mounted and looked at.
#include "agent/imaging/chunk_writer.h"
#include "agent/imaging/install.h"
#include "agent/imaging/whole_disk.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "pack_server.h"
#include "provision/images/system_builder.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

namespace muster::agent {
namespace {

class LoopDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "disk", ""));
    std::filesystem::resize_file(folder_ / "disk", 512ull << 20);
    const auto device =
        io::runChecked({.program = "losetup",
                        .args = {"--find", "--show", "--partscan", (folder_ / "disk").string()}});
    if (!device) GTEST_SKIP() << "this machine lends no loop device: " << device.error().str();
    device_ = device->substr(0, device->find('\n'));
  }
  void TearDown() override {
    if (!window_.empty())
      (void)io::runChecked({.program = "losetup", .args = {"--detach", window_.string()}});
    if (!device_.empty())
      (void)io::runChecked({.program = "losetup", .args = {"--detach", device_.string()}});
  }
  /// A small tree that looks like a system.
  wire::PackIndex makePack() {
    const auto tree = folder_ / "tree";
    for (const char* name : {"etc", "boot/efi", "usr/lib", "root"})
      EXPECT_TRUE(io::makeDirs(tree / name));
    EXPECT_TRUE(io::writeFileAtomic(tree / "vmlinuz", "kernel"));
    EXPECT_TRUE(provision::makeExt4(tree, folder_ / "raw"));
    auto index = provision::writePack(folder_ / "raw", folder_ / "pack", "small", 2);
    EXPECT_TRUE(index);
    return *index;
  }

  /// A kernel without partitions on loop devices: a second loop device shows the root partition.
  void useWindow() {
    const auto table = nlohmann::json::parse(
        *io::runChecked({.program = "sfdisk", .args = {"--json", device_.string()}}));
    const auto& root = table["partitiontable"]["partitions"][kRootPartition - 1];
    const auto bytes = [&root](const char* key) {
      return std::to_string(root[key].get<std::uint64_t>() * 512);
    };
    const auto window = io::runChecked({.program = "losetup",
                                        .args = {"--find", "--show", "--offset", bytes("start"),
                                                 "--sizelimit", bytes("size"), device_.string()}});
    ASSERT_TRUE(window) << window.error().str();
    window_ = layout_.root = window->substr(0, window->find('\n'));
  }
  /// Divides the disk and writes the small system to it, over old data: empty chunks must really
  /// become zeros.
  void write() {
    const wire::PackIndex index = makePack();
    ASSERT_TRUE(io::runChecked(
        {.program = "sh",
         .args = {"-c", "yes old | dd of=\"$1\" bs=1M count=512 iflag=fullblock 2>/dev/null; sync",
                  "sh", device_.string()}}));
    const auto layout = divideDisk(device_);
    ASSERT_TRUE(layout) << layout.error().str();
    layout_ = *layout;
    if (!std::filesystem::exists(layout_.root)) useWindow();
    test::PackServer server{*io::readFile(folder_ / "pack"), {}};
    auto target = openBlockTarget(layout_.root);
    ASSERT_TRUE(target) << target.error().str();
    Workers workers(3);
    SystemClock clock;
    ChunkJob job{.index = index,
                 .pack_url = "http://x/pack",
                 .mirror_urls = {},
                 .target = **target,
                 .make_http = [&server] { return std::make_unique<test::PackClient>(server); },
                 .workers = workers,
                 .clock = clock,
                 .progress = [](double, const std::string&) {}};
    const auto written = test::runAsync(writeAndVerify(std::move(job)), std::chrono::seconds(60));
    ASSERT_TRUE(written) << written.error().str();
  }
  std::string cat(const char* name) {
    return io::runChecked({.program = "debugfs",
                           .args = {"-R", std::string("cat ") + name, layout_.root.string()}})
        .value_or("(missing)");
  }

  test::TempFolder folder_;
  std::filesystem::path device_, window_;
  Layout layout_;
};

TEST_F(LoopDiskTest, holdsTheImageAndNothingOld) {
  write();
  if (IsSkipped() || HasFatalFailure()) return;
  const auto checked =
      io::runChecked({.program = "e2fsck", .args = {"-f", "-n", layout_.root.string()}});
  EXPECT_TRUE(checked) << checked.error().str();
  EXPECT_EQ(cat("/vmlinuz"), "kernel");
  EXPECT_EQ(describeDiskContent(device_)->text, "none") << "not complete yet";
}

TEST_F(LoopDiskTest, becomesASystem) {
  if (io::readFile("/proc/filesystems").value_or("").find("vfat") == std::string::npos)
    GTEST_SKIP() << "this kernel cannot mount vfat";
  if (!io::runChecked({.program = "grub-install", .args = {"--version"}}))
    GTEST_SKIP() << "needs grub-install (grub2-common)";
  write();
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(io::makeDirs(folder_ / "agent"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent/muster-agent", "binary", 0755));
  wire::WriteImageParams params;
  params.hostname = "gpu001";
  const auto installed =
      installSystem(device_, layout_, params, {Secret("KEY"), "CERTIFICATE"}, "52:54:00:00:00:01",
                    folder_ / "agent", [](const std::string&) {});
  ASSERT_TRUE(installed) << installed.error().str();
  ASSERT_TRUE(markComplete(device_, kRootPartition));
  EXPECT_EQ(describeDiskContent(device_)->text, "a system installed by muster");
  EXPECT_EQ(cat("/etc/hostname"), "gpu001\n");
  const auto size = io::runChecked(
      {.program = "sh",
       .args = {"-c", "dumpe2fs -h \"$1\" 2>/dev/null | sed -n 's/^Block count: *//p'", "sh",
                layout_.root.string()}});
  ASSERT_TRUE(size);
  EXPECT_GT(std::stoull(*size) * 4096, 350ull << 20) << "it fills its partition";
}

/// A disk whose end takes nothing: a loop device over a file with holes where only a part of it has
/// room.
TEST_F(LoopDiskTest, thatFailsInTheMiddleIsNamedWithWhatToDo) {
  if (IsSkipped()) return;
  const auto room = folder_ / "room";
  ASSERT_TRUE(io::makeDirs(room));
  if (::mount("tmpfs", room.c_str(), "tmpfs", 0, "size=4M") != 0)
    GTEST_SKIP() << "this machine mounts no tmpfs";
  ASSERT_TRUE(io::writeFileAtomic(room / "disk", ""));
  std::filesystem::resize_file(room / "disk", 32u << 20);
  const auto device = io::runChecked(
      {.program = "losetup", .args = {"--find", "--show", (room / "disk").string()}});
  if (device) {
    window_ = device->substr(0, device->find('\n'));
    auto target = *openBlockTarget(window_, DiskInfo{window_, "DYING", "", 32u << 20}.str());
    std::optional<Error> error;
    const std::string data(1u << 20, 'x');
    for (std::uint64_t at = 0; at < 32u << 20 && !error; at += data.size()) {
      auto done = target->write(at, data);
      if (done) done = target->flush();
      if (!done) error = done.error();
    }
    EXPECT_TRUE(error) << "the disk took more than there is room for";
    EXPECT_THAT(error ? error->text() : "",
                testing::AllOf(testing::HasSubstr(window_.string() + " (serial DYING"),
                               testing::EndsWith("it is failing: replace the disk")));
    target.reset();
    (void)io::runChecked({.program = "losetup", .args = {"--detach", window_.string()}});
    window_.clear();
  }
  ::umount2(room.c_str(), MNT_DETACH);
}

/// An image of a whole disk of 96 MiB on this one of 512: partitions and file system reach to its
/// end, its system becomes the node's.
class WholeLoopDiskTest : public LoopDiskTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Table, WholeLoopDiskTest, testing::Values("gpt", "dos"),
                         [](const auto& table) { return std::string(table.param); });

TEST_P(WholeLoopDiskTest, takesTheImageAndGrowsIt) {
  const bool gpt = std::string(GetParam()) == "gpt";
  ASSERT_TRUE(io::makeDirs(folder_ / "agent"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "agent/muster-agent", "binary", 0755));
  const auto sh = [this](const std::string& script) {
    const auto done = io::runChecked(
        {.program = "sh", .args = {"-ec", "cd \"$1\"; " + script, "sh", folder_.path().string()}});
    EXPECT_TRUE(done) << done.error().str();
  };
  sh("mkdir -p t/etc t/usr/lib/systemd t/boot; echo ID=x >t/etc/os-release; echo own >t/etc/fstab; "
     ": >t/usr/lib/systemd/systemd; mke2fs -q -t ext4 -d t fs 64M;"
     "truncate -s 96M whole; printf '" +
     std::string(gpt ? "label: gpt\nsize=1M,name=bios\nsize=64M,name=system\n"
                     : "label: dos\nlabel-id: 0x1b2c3d4e\nsize=1M\nsize=64M\n") +
     "' | sfdisk -q whole; dd if=fs of=whole bs=1M seek=2 conv=notrunc status=none");
  auto index =
      provision::writePack(folder_ / "whole", folder_ / "pack", "vendor", 2, wire::PackKind::Disk);
  ASSERT_TRUE(index) << index.error().str();
  test::PackServer server{*io::readFile(folder_ / "pack"), {}};
  auto target = openBlockTarget(device_);
  ASSERT_TRUE(target) << target.error().str();
  Workers workers(kLanes);
  SystemClock clock;
  ChunkJob job{.index = *index,
               .pack_url = "http://x/pack",
               .mirror_urls = {},
               .target = **target,
               .make_http = [&server] { return std::make_unique<test::PackClient>(server); },
               .workers = workers,
               .clock = clock,
               .progress = [](double, const std::string&) {}};
  GrownDisk marked;
  HeadMark head{folder_ / "twin", [&]() -> Result<void> {
                  TRY(made, markWriting(folder_ / "twin"));
                  marked = made;
                  return {};
                }};
  const auto written =
      test::runAsync(writeWholeDisk(std::move(job), std::move(head)), std::chrono::seconds(60));
  ASSERT_TRUE(written) << written.error().str();
  EXPECT_EQ(describeDiskContent(device_)->text, "none")
      << "power that goes now leaves nobody's system";
  const auto window =
      [this](int number) {  // as useWindow: this kernel may show no partitions of loop devices
        if (std::filesystem::exists(partitionNode(device_, number)))
          return partitionNode(device_, number);
        const auto table = nlohmann::json::parse(
            *io::runChecked({.program = "sfdisk", .args = {"--json", device_.string()}}));
        const auto& part =
            table["partitiontable"]["partitions"][static_cast<std::size_t>(number - 1)];
        const auto bytes = [&part](const char* key) {
          return std::to_string(part[key].get<std::uint64_t>() * 512);
        };
        if (!window_.empty())
          (void)io::runChecked({.program = "losetup", .args = {"--detach", window_.string()}});
        const auto shown =
            io::runChecked({.program = "losetup",
                            .args = {"--find", "--show", "--offset", bytes("start"), "--sizelimit",
                                     bytes("size"), device_.string()}});
        window_ = shown ? shown->substr(0, shown->find('\n')) : "";
        return window_;
      };
  const auto grown = growDisk(marked, device_, [](const std::string&) {}, window);
  ASSERT_TRUE(grown) << grown.error().str();
  EXPECT_TRUE(grown->grown);
  EXPECT_EQ(grown->label, gpt ? "system" : "");
  EXPECT_EQ(describeDiskContent(device_)->text, "none") << "not complete yet";
  wire::WriteImageParams params;
  params.hostname = "gpu001";
  const auto installed =
      installIntoImage(*grown, params, {Secret("KEY"), "CERTIFICATE"}, "52:54:00:00:00:01",
                       folder_ / "agent", [](const std::string&) {}, {});
  ASSERT_TRUE(installed) << installed.error().str();
  ASSERT_TRUE(finishDisk(device_, *grown));
  EXPECT_THAT(describeDiskContent(device_)->text,
              testing::HasSubstr(gpt ? "\"system\"" : "partitions "));
  const auto id = *io::runChecked({.program = "sfdisk", .args = {"--disk-id", device_.string()}});
  EXPECT_EQ(id.starts_with("0x1b2c3d4e"), !gpt) << "what its fstab may name";
  EXPECT_TRUE(io::runChecked({.program = "sfdisk", .args = {"--verify", device_.string()}}))
      << "both tables are where they belong";
  layout_.root = grown->root;
  EXPECT_EQ(cat("/etc/hostname"), "gpu001\n");
  EXPECT_EQ(cat("/etc/fstab"), "own\n");
  const auto size = io::runChecked(
      {.program = "sh",
       .args = {"-c", "dumpe2fs -h \"$1\" 2>/dev/null | sed -n 's/^Block count: *//p'", "sh",
                layout_.root.string()}});
  ASSERT_TRUE(size);
  EXPECT_GT(std::stoull(*size) * 1024, 400ull << 20) << "blocks of 1 KiB or more";
}

}  // namespace
}  // namespace muster::agent
