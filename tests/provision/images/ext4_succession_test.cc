// SPDX-License-Identifier: Apache-2.0
// Successions of random trees. What is claimed of the result is asked of others than the code that
// made it: e2fsck, and the kernel, which mounts it and whose tree is compared by tar.
#include "provision/images/ext4_succession.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "provision/images/system_builder.h"
#include "tests/run_async.h"
#include "wire/pack_index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kChunk = wire::kPackChunkBytes;

void shell(const std::string& script) {
  const auto done = io::runChecked({.program = "bash", .args = {"-euo", "pipefail", "-c", script}});
  ASSERT_TRUE(done) << script << ": " << done.error().str();
}

std::string outputOf(const std::string& script) {
  const auto done = io::runChecked({.program = "bash", .args = {"-euo", "pipefail", "-c", script}});
  EXPECT_TRUE(done) << script << ": " << done.error().str();
  return done.value_or("");
}

std::size_t chunksThatDiffer(const fs::path& a, const fs::path& b) {
  std::ifstream x(a, std::ios::binary), y(b, std::ios::binary);
  std::string in_a(kChunk, '\0'), in_b(kChunk, '\0');
  std::size_t differ = 0;
  for (;;) {
    const auto got_a = x.read(in_a.data(), kChunk).gcount(),
               got_b = y.read(in_b.data(), kChunk).gcount();
    if (got_a == 0 && got_b == 0) return differ;
    differ += got_a != got_b ||
              std::memcmp(in_a.data(), in_b.data(), static_cast<std::size_t>(got_a)) != 0;
  }
}

class Ext4Succession : public testing::Test {
 protected:
  fs::path tree() const { return folder_ / "tree"; }
  void SetUp() override { ASSERT_TRUE(io::makeDirs(tree())); }

  /// What can be random in a tree; as root also owners, devices and capabilities.
  std::string bytes(std::size_t count) {
    std::string out(count, '\0');
    for (auto& byte : out) byte = static_cast<char>(random_());
    return out;
  }
  std::size_t upTo(std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random_);
  }
  void put(const fs::path& path, const std::string& content) {
    ASSERT_TRUE(io::makeDirs(path.parent_path()));
    std::error_code ignored;
    fs::remove_all(path, ignored);
    std::ofstream(path, std::ios::binary) << content;  // not synced: there are many
    settle(path);
  }
  void settle(const fs::path& path) {
    const timespec times[2] = {{1700000000, 0}, {1700000000 + static_cast<time_t>(upTo(1000)), 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  }

  fs::path make(const std::string& name) {
    const auto made = makeExt4(tree(), folder_ / name);
    EXPECT_TRUE(made) << made.error().str();
    return folder_ / name;
  }
  Result<Succession> over(const fs::path& predecessor, const fs::path& fresh,
                          const std::string& name) {
    shell(fmt::format("cp --sparse=always '{}' '{}'", predecessor.string(),
                      (folder_ / name).string()));
    return layOutOver(folder_ / name, fresh, kChunk);
  }
  void expectSound(const fs::path& image) {
    const auto checked =
        io::runChecked({.program = "e2fsck", .args = {"-f", "-n", image.string()}});
    EXPECT_TRUE(checked) << checked.error().str();
  }
  /// Names, types, modes, owners, times, links, devices, extended attributes and content.
  /// lost+found, which mke2fs makes, is not in the tree.
  std::string asTar(const fs::path& folder) {
    return outputOf(fmt::format(
        "cd '{}'; find . -path ./lost+found -prune -o -type d -printf '%P d %m %U %G %T@\n' -o "
        "-printf '%P %y %m %U %G %n %T@ %l\n' | sort; "
        "tar --sort=name --numeric-owner --xattrs --xattrs-include='*' --format=posix "
        "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime "
        "--exclude=./lost+found -cf - . | sha256sum",
        folder.string()));
  }
  /// By the kernel, read-only.
  std::string mountedTar(const fs::path& image) {
    const auto at = folder_ / "mounted";
    EXPECT_TRUE(io::makeDirs(at));
    shell(fmt::format("mount -o loop,ro '{}' '{}'", image.string(), at.string()));
    auto text = asTar(at);
    shell(fmt::format("umount '{}'", at.string()));
    return text;
  }

  /// Not in memory, where /tmp may be: tmpfs lists extended attributes in another order, and tar
  /// keeps that.
  test::TempFolder folder_{"/var/tmp"};
  std::mt19937 random_{[] {
    const char* seed = std::getenv("MUSTER_TEST_SEED");
    return static_cast<std::mt19937::result_type>(seed != nullptr ? std::atoi(seed) : 20240607);
  }()};
};

/// Whoever labels a tree while it is built finds the labels on the node.
TEST_F(Ext4Succession, labelsOfSelinuxAreKeptAndFollowTheNewTree) {
  const auto file = tree() / "etc/passwd";
  const auto label = [&](const std::string& type) {
    const auto text = "system_u:object_r:" + type + ":s0";
    return ::lsetxattr(file.c_str(), "security.selinux", text.c_str(), text.size() + 1, 0) == 0;
  };
  put(file, bytes(5000));
  if (!label("etc_t")) GTEST_SKIP() << "labels cannot be set here: needs root";
  const auto labelIn = [&](const fs::path& image) {
    return outputOf(fmt::format("debugfs -R 'ea_get /etc/passwd security.selinux' '{}' 2>/dev/null",
                                image.string()));
  };
  const auto first = make("first");
  EXPECT_NE(labelIn(first).find("system_u:object_r:etc_t:s0"), std::string::npos) << labelIn(first);
  ASSERT_TRUE(label("passwd_file_t"));
  const auto second = make("second");
  ASSERT_TRUE(over(first, second, "over"));
  EXPECT_NE(labelIn(folder_ / "over").find("system_u:object_r:passwd_file_t:s0"),
            std::string::npos);
  expectSound(folder_ / "over");
}

TEST_F(Ext4Succession, oneNewFileChangesFewChunks) {
  for (int i = 0; i < 300; ++i) put(tree() / fmt::format("d{}/f{}", i % 17, i), bytes(upTo(90000)));
  const auto first = make("first");
  put(tree() / "d0/aaa-new", bytes(60000));
  const auto second = make("second");
  const auto done = over(first, second, "over");
  ASSERT_TRUE(done) << done.error().str();
  expectSound(folder_ / "over");
  EXPECT_EQ(done->new_files, 1u);
  EXPECT_LE(chunksThatDiffer(first, folder_ / "over"), 6u);
  EXPECT_EQ(chunksThatDiffer(first, folder_ / "over"), done->changed_chunks);
  std::cout << chunksThatDiffer(first, second) << " chunks differ when laid out anew\n";
}

TEST_F(Ext4Succession, randomTrees) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  std::vector<fs::path> files, folders{tree()};
  int serial = 0;
  const auto anyOf = [this](std::vector<fs::path>& list) { return list[upTo(list.size() - 1)]; };
  const auto drop = [&files](const fs::path& path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    std::erase_if(files, [](const fs::path& file) {
      std::error_code none;
      return !fs::exists(fs::symlink_status(file, none));
    });
  };
  const auto edit = [&] {
    const fs::path path = anyOf(folders) / fmt::format("n{}-{}", serial, bytes(1)[0] & 15);
    ++serial;
    switch (upTo(13)) {
      case 0:
        ASSERT_TRUE(io::makeDirs(path));
        folders.push_back(path);
        break;
      case 1:
        fs::create_symlink(std::string(1 + upTo(200), 'l'), path);
        settle(path);
        files.push_back(path);
        break;
      case 2:
        if (!files.empty()) {
          const auto which = anyOf(files);
          if (fs::is_symlink(which)) break;  // mke2fs makes two of a link with two names
          fs::create_hard_link(which, path);
          files.push_back(path);
        }
        break;
      case 3:
        ASSERT_EQ(::mknod(path.c_str(), upTo(1) ? S_IFCHR | 0600 : S_IFIFO | 0644,
                          makedev(upTo(500), upTo(70000))),
                  0);
        settle(path);
        files.push_back(path);
        break;
      case 4:
      case 5:
        if (files.size() > 300) drop(anyOf(files));
        break;
      case 6:
        if (!files.empty()) {
          const auto from = anyOf(files);
          fs::rename(from, path);
          std::erase(files, from);
          files.push_back(path);
        }
        break;
      case 7:
        if (!files.empty()) {
          const auto which = anyOf(files);
          (void)::lchown(which.c_str(), static_cast<uid_t>(upTo(70000)),
                         static_cast<gid_t>(upTo(70000)));
          if (!fs::is_symlink(which)) ::chmod(which.c_str(), static_cast<mode_t>(upTo(07777)));
          settle(which);
        }
        break;
      case 8:
        if (!files.empty()) {
          const auto which = anyOf(files);
          if (!fs::is_regular_file(fs::symlink_status(which))) break;
          const std::string value = bytes(upTo(600));
          (void)::lsetxattr(which.c_str(), upTo(1) ? "user.some" : "trusted.other", value.data(),
                            value.size(), 0);
        }
        break;
      case 9:
        if (!files.empty()) {
          const auto which = anyOf(files);
          if (!fs::is_regular_file(fs::symlink_status(which))) break;
          // cap_net_raw=ep. Source: linux/capability.h, struct vfs_cap_data
          const unsigned char capability[20] = {1, 0, 0, 2, 0, 32};
          (void)::lsetxattr(which.c_str(), "security.capability", capability, sizeof capability, 0);
        }
        break;
      case 10:
        if (files.size() > 300 && upTo(9) == 0) {
          const auto gone = anyOf(folders);
          if (gone == tree()) break;
          drop(gone);
          std::erase_if(folders, [](const fs::path& one) { return !fs::exists(one); });
        }
        break;
      case 11: {
        std::string holes(upTo(300) * 4096 + upTo(4095), '\0');
        for (int i = 0; i < 4 && !holes.empty(); ++i) holes[upTo(holes.size() - 1)] = 'x';
        put(path, holes);
        files.push_back(path);
        break;
      }
      default:
        if (upTo(1) == 0 && !files.empty()) {
          const auto which = anyOf(files);
          if (fs::is_regular_file(fs::symlink_status(which))) {
            put(which, bytes(upTo(200000)));
            break;
          }
        }
        put(path, bytes(upTo(upTo(20) == 0 ? 3'000'000 : 60'000)));
        files.push_back(path);
    }
  };
  for (int i = 0; i < 1500; ++i) edit();
  fs::path before = make("generation0");
  const char* wanted = std::getenv("MUSTER_TEST_GENERATIONS");
  const int last = wanted != nullptr ? std::atoi(wanted) : 5;
  for (int generation = 1; generation <= last; ++generation) {
    SCOPED_TRACE(generation);
    for (std::size_t i = upTo(200); i > 0; --i) edit();
    for (const auto& folder : folders) settle(folder);
    const timespec epoch[2] = {{kImageEpochSeconds, 0}, {kImageEpochSeconds, 0}};
    ::utimensat(AT_FDCWD, tree().c_str(), epoch, 0);  // mke2fs gives the root its own time
    const auto fresh = make("fresh");
    const std::string name = fmt::format("generation{}", generation);
    const auto done = over(before, fresh, name);
    ASSERT_TRUE(done) << done.error().str();
    const auto again = over(before, fresh, "again");
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(chunksThatDiffer(folder_ / name, folder_ / "again"), 0u) << "not reproducible";
    EXPECT_EQ(chunksThatDiffer(before, folder_ / name), done->changed_chunks);
    expectSound(folder_ / name);
    EXPECT_EQ(mountedTar(folder_ / name), asTar(tree()));
    if (HasFailure()) return;
    std::cout << fmt::format("generation {}: {} of {} chunks, {} new bytes, {} dead, grown {}\n",
                             generation, done->changed_chunks, done->chunks, done->new_bytes,
                             done->dead_bytes, done->grown_bytes);
    fs::remove(folder_ / "again");
    if (generation > 1) fs::remove(before);
    before = folder_ / name;
  }
  // What a node does with it: grow it to its disk, mount it, write. On copies: the loop device of
  // the last look may still hold the file, read-only.
  shell(
      fmt::format("cd '{}'; cp --sparse=always '{}' disk; truncate -s 600M disk; "
                  "e2fsck -f -p disk; resize2fs disk 2>&1; mkdir -p grown; "
                  "mount -o loop disk grown; cp -a tree grown/lost+found/copied; umount grown; "
                  "cp --sparse=always disk looked-at",
                  folder_.path().string(), before.string()));
  EXPECT_EQ(mountedTar(folder_ / "looked-at"), asTar(tree()));
  expectSound(folder_ / "disk");
}

}  // namespace
}  // namespace muster::provision
