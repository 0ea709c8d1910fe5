// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/whole_disk.h"

#include "agent/imaging/block_target.h"
#include "agent/imaging/disks.h"
#include "agent/imaging/erase.h"
#include "agent/imaging/grow_ext4.h"
#include "agent/imaging/mount.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "wire/partition_table.h"
#include "wire/task_reason.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kTableBytes =
    1u << 20;  ///< at either end; a GPT with 128 entries takes 17 KiB
constexpr std::uint64_t kFirstBlockBytes =
    4096;  ///< what a disk is known by: an MBR, a GPT's header
constexpr std::size_t kSectorBytes = 512;
constexpr std::size_t kDiskIdAt = 440;  ///< in an MBR, least significant byte first
constexpr std::chrono::minutes kToolLimit{10};
constexpr const char* kMountFolder = "/run/muster/target";

Result<std::string> tool(std::string program, std::vector<std::string> args,
                         std::string stdin_text = {}) {
  io::Command command{.program = std::move(program), .args = std::move(args)};
  command.stdin_text = std::move(stdin_text);
  command.timeout = kToolLimit;
  return io::runChecked(command);
}

std::string trimmed(std::string text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  return text;
}

Result<void> emptyTables(BlockTarget& target) {
  const std::uint64_t size = target.sizeBytes(), table = std::min(kTableBytes, size);
  TRY_OK(target.zero(0, table));
  TRY_OK(target.zero((size - table) / 4096 * 4096, size - (size - table) / 4096 * 4096));
  return target.flush();
}

std::string fileSystemOf(const fs::path& device) {
  return trimmed(
      tool("blkid", {"--probe", "--match-tag", "TYPE", "--output", "value", device.string()})
          .value_or(""));
}

/// Those that have a number.
std::vector<wire::Partition> partsOf(std::string_view sfdisk_json) {
  auto parts = wire::readPartitionTable(sfdisk_json).partitions;
  std::erase_if(parts, [](const wire::Partition& part) { return part.number == 0; });
  return parts;
}

Result<bool> growFileSystem(const fs::path& device, const std::string& type) {
  if (type == "ext4") {
    TRY_OK(growExt4(device));
    return true;
  }
  if (type != "xfs") return false;
  auto mounted = Mount::make(device, kMountFolder, "xfs");
  if (!mounted) return fail(std::move(mounted).error());
  TRY_OK(tool("xfs_growfs", {kMountFolder}));
  TRY_OK(mounted->end());
  return true;
}

bool holdsSystem(const fs::path& device, const std::string& type) {
  if (type != "ext4" && type != "xfs") return false;
  auto mounted = Mount::make(device, kMountFolder, type.c_str());
  std::error_code error;
  const bool found = mounted && (fs::exists(fs::path(kMountFolder) / "etc/os-release", error) ||
                                 fs::exists(fs::path(kMountFolder) / "usr/lib/os-release", error));
  return mounted && mounted->end() && found;
}

/// An index that stands for `chunks` chunks from the first on.
wire::PackIndex firstChunks(const wire::PackIndex& index, std::size_t chunks) {
  wire::PackIndex part = index;
  part.chunks.resize(std::min(chunks, part.chunks.size()));
  part.size_bytes =
      std::min<std::uint64_t>(index.size_bytes, part.chunks.size() * index.chunk_bytes);
  return part;
}

}  // namespace

namespace {

/// The copy of a GPT at the end of the twin. Sectors that are empty there may belong to the image
/// on the disk.
Result<void> copyTail(BlockTarget& from, BlockTarget& to) {
  const std::uint64_t size = from.sizeBytes(), begin = (size - std::min(kTableBytes, size)) /
                                                       kFirstBlockBytes * kFirstBlockBytes;
  AlignedBuffer tail(size - begin), there(size - begin);
  tail.resize(size - begin);
  there.resize(size - begin);
  TRY_OK(from.read(begin, tail.span()));
  TRY_OK(to.read(begin, there.span()));
  for (std::size_t at = 0; at < tail.size(); at += kSectorBytes) {
    const auto sector = tail.view().substr(at, kSectorBytes);
    if (!wire::allZero(sector)) std::copy(sector.begin(), sector.end(), there.data() + at);
  }
  TRY_OK(to.write(begin, there.view()));
  return to.flush();
}

/// The first block comes last, in one go: before it there is no table, after it there is a marked
/// one.
Result<void> copyHead(BlockTarget& from, BlockTarget& to, std::uint64_t head_bytes) {
  AlignedBuffer head(head_bytes), check(head_bytes);
  head.resize(head_bytes);
  check.resize(head_bytes);
  TRY_OK(from.read(0, head.span()));
  if (head_bytes > kFirstBlockBytes)
    TRY_OK(to.write(kFirstBlockBytes, head.view().substr(kFirstBlockBytes)));
  TRY_OK(to.flush());
  TRY_OK(to.write(0, head.view().substr(0, kFirstBlockBytes)));
  TRY_OK(to.flush());
  TRY_OK(to.read(0, check.span()));
  if (check.view() != head.view())
    return fail(
        Error(ErrorCode::Internal,
              fmt::format("the beginning of {} does not read as it was written: replace the disk",
                          to.name()))
            .because(wire::TaskReason::DiskFailing));
  return {};
}

/// With room for both ends, so that nothing is missing when the disk has everything else already.
Result<std::unique_ptr<BlockTarget>> makeTwin(const fs::path& file, std::uint64_t size_bytes,
                                              std::uint64_t head_bytes) {
  const auto problem = [&file](const std::string& why) {
    std::error_code ignored;
    fs::remove(file, ignored);
    return fail(Error(ErrorCode::Unavailable,
                      fmt::format("no room for the beginning of the disk in {}: {}; nothing was "
                                  "written. The memory or the RAM disk of this machine is full",
                                  file.string(), why))
                    .retryable(true));
  };
  std::error_code error;
  fs::remove(file, error);
  if (const auto made = io::makeDirs(file.parent_path()); !made)
    return problem(made.error().text());
  if (const auto made = io::writeFileAtomic(file, "", 0600); !made)
    return problem(made.error().text());
  fs::resize_file(file, size_bytes, error);
  if (error) return problem(error.message());
  io::Fd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  const std::uint64_t tail = std::min(kTableBytes + kFirstBlockBytes, size_bytes);
  for (const auto& [offset, bytes] : {std::pair{std::uint64_t{0}, std::min(head_bytes, size_bytes)},
                                      std::pair{size_bytes - tail, tail}})
    if (::fallocate(fd.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0 &&
        errno != EOPNOTSUPP)
      return problem(std::strerror(errno));
  return openBlockTarget(file);
}

}  // namespace

Result<void> checkSectorsOf(const wire::PackIndex& index, const DiskInfo& disk) {
  const int wanted = index.tableSectorBytes();
  if (wanted == 0 || disk.sector_bytes == 0 || disk.sector_bytes == wanted) return {};
  const std::string other = nvmeController(disk.path).empty()
                                ? std::string()
                                : fmt::format(
                                      ", or give the disk sectors of {} bytes, which empties it "
                                      "(nvme format --block-size={})",
                                      wanted, wanted);
  return fail(
      ErrorCode::InvalidInput,
      fmt::format("{} has sectors of {} bytes, the partition table of image {} is for sectors of "
                  "{}: the machine would find no partitions; nothing was written. Take an image "
                  "that was made for sectors of {} bytes, "
                  "a root file system (without `kind: disk`), which muster divides the disk for{}",
                  disk.str(), disk.sector_bytes, index.name, wanted, disk.sector_bytes, other));
}

Async<ChunkReport> writeWholeDisk(ChunkJob job, HeadMark head) {
  if (job.target.sizeBytes() < job.index.size_bytes)
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("the image is of a disk of {} MiB, this one has {} MiB",
                               job.index.size_bytes >> 20, job.target.sizeBytes() >> 20));
  BlockTarget* target = &job.target;
  const std::size_t head_chunks = (kTableBytes + job.index.chunk_bytes - 1) / job.index.chunk_bytes;
  const wire::PackIndex beginning = firstChunks(job.index, head_chunks);
  std::unique_ptr<BlockTarget> twin;
  if (!head.twin.empty()) {
    CO_TRY(made, makeTwin(head.twin, target->sizeBytes(), beginning.size_bytes));
    twin = std::move(made);
  }
  std::function<Result<void>()> empty = [target] { return emptyTables(*target); };
  CO_TRY_OK(co_await offload<Result<void>>(job.workers, std::move(empty)));

  ChunkJob rest = job;
  rest.keep_matching_chunks = true;
  for (std::size_t i = 0; i < std::min(head_chunks, rest.index.chunks.size()); ++i)
    rest.index.chunks[i].zero = true;  // empty until all others are right
  if (job.scanned)                     // who fetches for us must bring the beginning too, later
    rest.scanned = [scanned = job.scanned, head_chunks](const wire::PackIndex& index,
                                                        std::vector<char> right) {
      std::fill_n(right.begin(), std::min(head_chunks, right.size()), 0);
      scanned(index, right);
    };
  CO_TRY(report, co_await writeAndVerify(std::move(rest)));

  BlockTarget* beside = twin.get();
  ChunkJob first{.index = beginning,
                 .pack_url = job.pack_url,
                 .mirror_urls = job.mirror_urls,
                 .target = beside ? *beside : *target,
                 .keep_matching_chunks = false,
                 .deadline = job.deadline,
                 .first_backoff = job.first_backoff,
                 .max_backoff = job.max_backoff,
                 .make_http = job.make_http,
                 .workers = job.workers,
                 .clock = job.clock,
                 .progress = [progress = job.progress](double, const std::string& text) {
                   progress(1, text);
                 }};
  CO_TRY(last, co_await writeAndVerify(std::move(first)));
  std::function<Result<void>()> put = [mark = head.mark, beside, target,
                                       bytes = beginning.size_bytes]() -> Result<void> {
    TRY_OK(mark());
    if (!beside) return {};
    TRY_OK(copyTail(*beside, *target));
    return copyHead(*beside, *target, bytes);
  };
  const auto done = co_await offload<Result<void>>(job.workers, std::move(put));
  std::error_code ignored;
  if (!head.twin.empty()) fs::remove(head.twin, ignored);
  CO_TRY_OK(done);
  report.bytes_fetched += last.bytes_fetched;
  report.retries += last.retries;
  co_return report;
}

Result<int> lastPartition(std::string_view sfdisk_json) {
  const auto parts = partsOf(sfdisk_json);
  const auto last = std::max_element(parts.begin(), parts.end(),
                                     [](const wire::Partition& a, const wire::Partition& b) {
                                       return a.start_sectors < b.start_sectors;
                                     });
  if (last == parts.end())
    return fail(ErrorCode::InvalidInput, "the image has no partitions: it is not of a whole disk");
  return last->number;
}

namespace {

/// Answers the number that the disk had.
Result<std::uint32_t> exchangeDiskId(const fs::path& disk, std::uint32_t id) {
  TRY(target, openBlockTarget(disk));
  AlignedBuffer block(kFirstBlockBytes);
  block.resize(kFirstBlockBytes);
  TRY_OK(target->read(0, block.span()));
  std::uint32_t had = 0;
  for (std::size_t byte = 0; byte < 4; ++byte) {
    char& at = block.data()[kDiskIdAt + byte];
    had |= std::uint32_t{static_cast<unsigned char>(at)} << (8 * byte);
    at = static_cast<char>(id >> (8 * byte));
  }
  TRY_OK(target->write(0, block.view()));
  TRY_OK(target->flush());
  return had;
}

}  // namespace

Result<GrownDisk> markWriting(const fs::path& disk) {
  TRY(text, tool("sfdisk", {"--json", disk.string()}));
  const auto table = wire::readPartitionTable(text);
  GrownDisk grown;
  grown.gpt = table.label == "gpt";
  if (table.label.empty() || partsOf(text).empty())
    return fail(ErrorCode::InvalidInput, "the image has no partitions: it is not of a whole disk");
  if (!grown.gpt) {
    TRY(had, exchangeDiskId(disk, kWritingDiskId));
    if (had == kWritingDiskId)
      return fail(ErrorCode::InvalidInput,
                  "the image is of a disk that muster had half written; make it of another one");
    grown.disk_id = had;
    return grown;
  }
  TRY(last, lastPartition(text));
  const auto number = std::to_string(last);
  TRY(label, tool("sfdisk", {"--part-label", disk.string(), number}));
  grown.label = trimmed(label);
  grown.last = last;
  TRY_OK(tool("sfdisk", {"--no-reread", "--relocate", "gpt-bak-std", disk.string()}));
  TRY_OK(tool("sfdisk",
              {"--no-reread", "--part-label", disk.string(), number, std::string(kWritingLabel)}));
  return grown;
}

Result<GrownDisk> growDisk(GrownDisk grown, const fs::path& disk,
                           const std::function<void(const std::string&)>& notify,
                           const PartitionNodes& node_of) {
  notify("growing the image to its disk");
  TRY(before, tool("sfdisk", {"--json", disk.string()}));
  TRY(last,
      lastPartition(before));  // logical ones of an MBR lie anywhere: the twin does not know them
  grown.last = last;
  TRY_OK(tool("sfdisk",
              {"--no-reread", "--quiet", "--partno", std::to_string(grown.last), disk.string()},
              ", +\n"));
  (void)tool("blockdev", {"--rereadpt", disk.string()});
  (void)tool("udevadm", {"settle", "--timeout=30"});

  TRY(after, tool("sfdisk", {"--json", disk.string()}));
  const fs::path end = node_of(grown.last);
  const std::string type = fileSystemOf(end);
  TRY(reaches, growFileSystem(end, type));
  grown.grown = reaches;
  for (const auto& part : partsOf(after)) {
    grown.root = node_of(part.number);
    grown.filesystem = fileSystemOf(grown.root);
    if (holdsSystem(grown.root, grown.filesystem)) return grown;
  }
  return fail(ErrorCode::InvalidInput,
              "none of the image's partitions holds a Linux system on ext4 or xfs, so muster's "
              "agent cannot run in it");
}

Result<void> finishDisk(const fs::path& disk, const GrownDisk& grown) {
  TRY_OK(tool("sync", {}));  // the mark goes when everything else is on the disk
  if (grown.gpt)
    TRY_OK(tool("sfdisk", {"--no-reread", "--part-label", disk.string(), std::to_string(grown.last),
                           grown.label}));
  else
    TRY_OK(exchangeDiskId(disk, grown.disk_id));
  TRY_OK(tool("sync", {}));
  return {};
}

Result<void> installIntoImage(const GrownDisk& disk, const wire::WriteImageParams& params,
                              const InstalledIdentity& identity,
                              const std::string& provisioning_mac, const fs::path& agent_folder,
                              const std::function<void(const std::string&)>& notify,
                              const std::function<Result<void>(const fs::path&)>& configure_more) {
  notify("configuring the image's own system");
  auto root = Mount::make(disk.root, kMountFolder, disk.filesystem.c_str());
  if (!root) return fail(std::move(root).error());
  std::error_code error;
  if (!fs::exists(fs::path(kMountFolder) / "usr/lib/systemd/systemd", error) &&
      !fs::exists(fs::path(kMountFolder) / "lib/systemd/systemd", error))
    return fail(ErrorCode::InvalidInput,
                "the image's system has no systemd, which starts muster's agent");
  TRY_OK(configureSystem(kMountFolder, params, identity, Layout{}, provisioning_mac, agent_folder));
  if (configure_more) TRY_OK(configure_more(kMountFolder));
  TRY_OK(labelSystem(kMountFolder, notify));
  return root->end();
}

}  // namespace muster::agent
