// SPDX-License-Identifier: Apache-2.0
// What an update costs a node that has the image before it: real generations of one Debian system,
// each built from the archive as `muster image build` does it, laid out anew (as mke2fs does) and
// over its predecessor, in the same run.
//
// The archive's suites hold up to three versions of a package (point release, updates, security);
// preferences choose among them, so a step is an upgrade that Debian has published: OpenSSL and
// OpenSSH, curl and sudo, systemd and util-linux, the C library, the kernel, then all that is left;
// then packages are added and removed. Only their order is the bench's own. Trees are kept in the
// cache; MUSTER_BENCH_TREES names a folder with other ones (0, 1, 2, …). Needs root, the archive
// and ten minutes.
#include "base/io/files.h"
#include "base/io/process.h"
#include "bench/bench.h"
#include "provision/images/apt_sources.h"
#include "provision/images/apt_system.h"
#include "provision/images/ext4_succession.h"
#include "provision/images/ext_tree.h"
#include "provision/images/image_diff.h"
#include "provision/images/pack_writer.h"
#include "provision/images/recipes.h"
#include "provision/images/system_builder.h"

#include <fmt/ranges.h>
#include <zstd.h>

#include <fstream>
#include <iostream>
#include <thread>

using namespace muster;
using bench::need, bench::sh;
namespace fs = std::filesystem;

namespace {

constexpr double kMib = 1 << 20;
constexpr int kZstdLevel = 9;  ///< as packs
constexpr std::uint64_t kOtherChunkBytes[] = {256u << 10, 4u << 20};
constexpr std::size_t kSmallFileBytes = 60'000;

/// Versions that a generation still has; "*" as in apt_preferences(5).
struct Pin {
  const char *packages, *version;
  int until;  ///< generations before this one
};
constexpr Pin kPins[] = {
    {"openssl libssl3", "3.0.17*", 1},
    {"openssh-*", "*deb12u7", 1},
    {"curl libcurl4 libcurl3-gnutls", "*deb12u5", 2},
    {"sudo", "*deb12u2", 2},
    {"systemd systemd-* libsystemd* udev libudev1 libnss-* libpam-systemd", "252.38*", 3},
    {"util-linux util-linux-* libblkid1 libmount1 libuuid1 libsmartcols1 libfdisk1 mount bsdutils "
     "fdisk eject",
     "2.38.1-5+deb12u1", 3},
    {"libc6 libc-bin libc-l10n locales", "2.36-9+deb12u7", 4}};
constexpr int kKernelFrom = 5, kAllFrom = 6, kAddedFrom = 7, kRemovedFrom = 8;
constexpr const char* kSteps[] = {"",
                                  "OpenSSL, OpenSSH",
                                  "curl, sudo",
                                  "systemd, util-linux",
                                  "C library",
                                  "kernel",
                                  "all other updates",
                                  "slurmd, munge, nvme-cli, rdma-core added",
                                  "git removed, chrony and python3-yaml added"};
constexpr int kGenerations = static_cast<int>(std::size(kSteps));

fs::path cacheFolder() {
  const char* cache = std::getenv("MUSTER_CACHE");
  return fs::path(cache ? cache : std::string(std::getenv("HOME")) + "/.cache/muster") / "bench" /
         "delta";
}

std::string preferences(int generation) {
  if (generation >= kAllFrom) return "";
  std::string text;
  const auto add = [&text](std::string_view packages, std::string_view pin, int priority) {
    text += fmt::format("Package: {}\nPin: {}\nPin-Priority: {}\n\n", packages, pin, priority);
  };
  add("*", "release n=bookworm-security", 100);
  add("*", "release n=bookworm-updates", 100);
  for (const Pin& pin : kPins)
    if (generation < pin.until) add(pin.packages, fmt::format("version {}", pin.version), 1001);
  if (generation >= kKernelFrom)
    add("linux-image-* linux-base*", "release n=bookworm-security", 1001);
  return text;
}

/// A generation's tree of files, built as a node image is.
void install(int generation, const fs::path& work, const fs::path& root) {
  const auto recipes = work / "recipes", chosen = work / "preferences";
  need(io::makeDirs(work));
  need(provision::writeRecipes(recipes));
  need(io::writeFileAtomic(chosen, preferences(generation)));
  auto packages = provision::recipeLines("node/packages");
  for (const char* more : {"linux-image-amd64", "openssh-server", "curl", "openssl", "sudo",
                           "mdadm", "lvm2", "python3"})
    packages.emplace_back(more);
  if (generation < kRemovedFrom) packages.emplace_back("git");
  if (generation >= kAddedFrom)
    packages.insert(packages.end(), {"slurmd", "munge", "nvme-cli", "rdma-core"});
  if (generation >= kRemovedFrom) packages.insert(packages.end(), {"chrony", "python3-yaml"});
  auto lines = provision::hostDebianLines("/etc/apt", "bookworm");
  if (lines.empty())
    lines = {"deb http://deb.debian.org/debian bookworm main",
             "deb http://deb.debian.org/debian bookworm-updates main",
             "deb http://deb.debian.org/debian-security bookworm-security main"};
  const std::string at = "\"$1/etc/apt/preferences.d";
  provision::AptSystem system{.variant = "minbase",
                              .suite = "bookworm",
                              .packages = std::move(packages),
                              .lines = std::move(lines),
                              .options = {},
                              .env = {},
                              .root = root,
                              .recipes = recipes,
                              .out = work};
  system.options = {
      "--dpkgopt=" + (recipes / "node/modules-left-out.cfg").string(),
      fmt::format("--setup-hook=mkdir -p {}\" && cp '{}' {}/bench\"", at, chosen.string(), at),
      "--essential-hook=" + (recipes / "node/essential.sh").string(),
      "--customize-hook=" + (recipes / "node/customize.sh").string(),
      fmt::format("--customize-hook=rm {}/bench\"", at)};
  need(provision::installAptSystem(std::move(system)));
}

/// Where the tree of a generation is, if it is given or kept.
fs::path treeOf(int generation) {
  const char* trees = std::getenv("MUSTER_BENCH_TREES");
  return trees ? fs::path(trees) / std::to_string(generation) : cacheFolder() / "last-tree";
}

/// The generation as mke2fs lays it out; kept.
fs::path freshImage(int generation) {
  const fs::path folder = cacheFolder(), image = folder / fmt::format("fresh{}", generation);
  if (fs::exists(image)) return image;
  need(io::makeDirs(folder));
  const fs::path root = treeOf(generation), work = folder / "work", partial = folder / "partial";
  if (std::getenv("MUSTER_BENCH_TREES") == nullptr) {
    sh(fmt::format("rm -rf --one-file-system '{}' '{}'", work.string(), root.string()));
    install(generation, work, root);
  }
  need(provision::makeExt4(root, partial, provision::kImageEpochSeconds));
  fs::rename(partial, image);
  return image;
}

std::size_t compressed(ZSTD_CCtx* context, std::string_view raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  return ZSTD_compressCCtx(context, out.data(), out.size(), raw.data(), raw.size(), kZstdLevel);
}

struct Fetch {
  std::size_t chunks = 0, changed = 0;
  std::uint64_t bytes = 0, raw_bytes = 0;  ///< compressed; not compressed
};

/// What a node with `a` must fetch to get `b`, in chunks of some size.
Fetch fetchOf(const fs::path& a, const fs::path& b, std::uint64_t chunk_bytes) {
  std::ifstream old_file(a, std::ios::binary), new_file(b, std::ios::binary);
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     ZSTD_freeCCtx);
  std::string x(chunk_bytes, '\0'), y(chunk_bytes, '\0');
  Fetch fetch;
  for (;;) {
    const auto got_x = static_cast<std::size_t>(
        old_file.read(x.data(), static_cast<std::streamsize>(chunk_bytes)).gcount());
    const auto got_y = static_cast<std::size_t>(
        new_file.read(y.data(), static_cast<std::streamsize>(chunk_bytes)).gcount());
    if (got_y == 0) return fetch;
    ++fetch.chunks;
    const std::string_view before(x.data(), got_x), after(y.data(), got_y);
    if (before == after) continue;
    ++fetch.changed;
    if (wire::allZero(after)) continue;
    fetch.bytes += compressed(context.get(), after);
    fetch.raw_bytes += after.size();
  }
}

struct ChangedFiles {
  std::size_t files = 0, touched = 0;  ///< with other content; only with another inode
  std::uint64_t bytes = 0, packed_bytes = 0;
};

/// Files whose content no file of that name or size had before.
ChangedFiles changedFiles(const fs::path& a, const fs::path& b) {
  const auto old_fs = need(provision::openExt(a, false)),
             new_fs = need(provision::openExt(b, false));
  const auto before = need(provision::ExtTree::read(old_fs.get())),
             after = need(provision::ExtTree::read(new_fs.get()));
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     ZSTD_freeCCtx);
  ChangedFiles changed;
  for (const auto& [number, node] : after.nodes()) {
    if (!node.isRegular()) continue;
    const auto* old = before.find(node.paths.front());
    if (old != nullptr && old->isRegular() && need(sameContent(before, *old, after, node))) {
      changed.touched += sameInode(before, *old, after, node) ? 0 : 1;
      continue;
    }
    ++changed.files;
    changed.bytes += node.sizeBytes();
    std::string content(node.sizeBytes(), '\0');
    ext2_file_t file = nullptr;
    unsigned got = 0;
    if (ext2fs_file_open(new_fs.get(), number, 0, &file) != 0 ||
        ext2fs_file_read(file, content.data(), static_cast<unsigned>(content.size()), &got) != 0)
      std::exit(2);
    ext2fs_file_close(file);
    changed.packed_bytes += compressed(context.get(), content);
  }
  return changed;
}

/// The disk of a node that had the image: grown, mounted, every file read, logs written.
fs::path diskThatRan(const fs::path& image) {
  const fs::path disk = cacheFolder() / "disk", at = cacheFolder() / "mounted";
  sh(
      fmt::format("cp --sparse=always '{0}' '{1}'; truncate -s 8G '{1}'; e2fsck -fp '{1}'; "
                  "resize2fs '{1}'; mkdir -p '{2}'; mount -o loop '{1}' '{2}'; "
                  "find '{2}' -xdev -type f -exec cat {{}} + >/dev/null; "
                  "head -c 64M /dev/urandom >'{2}/var/log/bench'; sync; umount '{2}'",
                  image.string(), disk.string(), at.string()));
  return disk;
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / kMib; }

}  // namespace

int main() {
  bench::Report report("delta");
  const fs::path folder = cacheFolder();
  fs::path before_fresh = freshImage(0);
  fs::path before = folder / "over0";
  sh(fmt::format("cp --sparse=always '{}' '{}'", before_fresh.string(), before.string()));
  std::uint64_t ran_bytes = 0, anew_bytes = 0, over_bytes = 0, file_bytes = 0, packed_bytes = 0;
  const char* wanted = std::getenv("MUSTER_BENCH_GENERATIONS");
  const int last = wanted ? std::min(kGenerations, std::atoi(wanted)) : kGenerations;
  for (int i = 1; i < last; ++i) {
    const fs::path fresh = freshImage(i), over = folder / fmt::format("over{}", i);
    sh(fmt::format("cp --sparse=always '{}' '{}'", before.string(), over.string()));
    const auto begin = std::chrono::steady_clock::now();
    const auto done = need(provision::layOutOver(over, fresh, wire::kPackChunkBytes));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const auto files = changedFiles(before_fresh, fresh);
    const auto anew = fetchOf(before_fresh, fresh, wire::kPackChunkBytes),
               fetch = fetchOf(before, over, wire::kPackChunkBytes);
    std::cerr << fmt::format(
        "{} ({}): {} files with {:.2f} MiB ({:.2f} MiB packed) changed, {} only touched; anew {} "
        "of "
        "{} chunks, {:.1f} MiB; over {} of {} chunks, {:.2f} MiB ({:.2f} × files, {:.2f} × "
        "packed); "
        "dead {:.1f} MiB, grown {:.0f} MiB; {:.1f} s\n",
        i, kSteps[i], files.files, mib(files.bytes), mib(files.packed_bytes), files.touched,
        anew.changed, anew.chunks, mib(anew.bytes), fetch.changed, fetch.chunks, mib(fetch.bytes),
        mib(fetch.bytes) / mib(files.bytes), mib(fetch.bytes) / mib(files.packed_bytes),
        mib(done.dead_bytes), mib(done.grown_bytes), seconds);
    for (const auto chunk_bytes : kOtherChunkBytes) {
      const auto other = fetchOf(before, over, chunk_bytes);
      std::cerr << fmt::format("   chunks of {} KiB: {} differ, {:.2f} MiB\n", chunk_bytes >> 10,
                               other.changed, mib(other.bytes));
    }
    const auto ran = fetchOf(diskThatRan(before), over, wire::kPackChunkBytes);
    ran_bytes += ran.bytes;
    std::cerr << fmt::format("   by a node that ran: {} differ, {:.2f} MiB\n", ran.changed,
                             mib(ran.bytes));
    report.record({fmt::format("{}: fetched, beside bytes of changed files", kSteps[i]),
                   mib(fetch.bytes) / mib(files.bytes), "x", 1.2, bench::Bar::AtMost,
                   mib(anew.bytes) / mib(files.bytes)});
    anew_bytes += anew.bytes;
    over_bytes += fetch.bytes;
    file_bytes += files.bytes;
    packed_bytes += files.packed_bytes;
    fs::remove(before);
    before_fresh = fresh;
    before = over;
  }
  const auto whole = fetchOf("/dev/null", before, wire::kPackChunkBytes),
             whole_fresh = fetchOf("/dev/null", before_fresh, wire::kPackChunkBytes);
  // The smallest update that there is: one more file.
  const fs::path added = treeOf(last - 1) / "usr/share/bench-added";
  sh(fmt::format("head -c {} /dev/urandom >'{}'", kSmallFileBytes, added.string()));
  const fs::path small = folder / "small", over = folder / "small-over";
  need(provision::makeExt4(treeOf(last - 1), small, provision::kImageEpochSeconds));
  fs::remove(added);
  sh(fmt::format("cp --sparse=always '{}' '{}'", before.string(), over.string()));
  need(provision::layOutOver(over, small, wire::kPackChunkBytes));
  const auto small_anew = fetchOf(before_fresh, small, wire::kPackChunkBytes),
             small_fetch = fetchOf(before, over, wire::kPackChunkBytes);
  report.record({"one new file of 60 KB: chunks that differ",
                 static_cast<double>(small_fetch.changed), "chunks", std::nullopt,
                 bench::Bar::AtMost, static_cast<double>(small_anew.changed)});
  report.record({"one new file of 60 KB: fetched", mib(small_fetch.bytes), "MiB", std::nullopt,
                 bench::Bar::AtMost, mib(small_anew.bytes)});
  for (const auto& file : {before, small, over, folder / "disk"}) fs::remove(file);
  report.record({"all steps: fetched, beside bytes of changed files",
                 mib(over_bytes) / mib(file_bytes), "x", 1.2, bench::Bar::AtMost,
                 mib(anew_bytes) / mib(file_bytes)});
  report.record({"all steps: fetched, beside changed files, each compressed",
                 mib(over_bytes) / mib(packed_bytes), "x", std::nullopt, bench::Bar::AtMost,
                 mib(anew_bytes) / mib(packed_bytes)});
  report.record({"all steps: fetched", mib(over_bytes), "MiB", std::nullopt, bench::Bar::AtMost,
                 mib(anew_bytes)});
  report.record({"all steps: fetched by a node that ran", mib(ran_bytes), "MiB", std::nullopt,
                 bench::Bar::AtMost, mib(over_bytes)});
  report.record({"after all steps: whole image packed", mib(whole.bytes), "MiB", std::nullopt,
                 bench::Bar::AtMost, mib(whole_fresh.bytes)});
  return report.exitCode();
}
