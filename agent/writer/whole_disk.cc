#include "agent/writer/whole_disk.h"

#include "agent/protocol/partition_table.h"
#include "agent/writer/mount.h"
#include "base/io/files.h"
#include "base/io/process.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kTableBytes = 1u << 20;  ///< at either end; a GPT with 128 entries takes 17 KiB
constexpr std::chrono::minutes kToolLimit{10};
constexpr const char* kMountFolder = "/run/muster/target";

Result<std::string> tool(std::string program, std::vector<std::string> args, std::string stdin_text = {}) {
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

std::string fileSystemOf(const fs::path& device) { return trimmed(tool("blkid", {"--probe", "--match-tag", "TYPE", "--output", "value", device.string()}).value_or("")); }

/// Those that have a number.
std::vector<Partition> partsOf(std::string_view sfdisk_json) {
  auto parts = readPartitionTable(sfdisk_json).partitions;
  std::erase_if(parts, [](const Partition& part) { return part.number == 0; });
  return parts;
}

Result<bool> growFileSystem(const fs::path& device, const std::string& type) {
  if (type == "ext4") {
    // Exit 1: faults were repaired. A file system that was copied while it was mounted has its journal still to be played.
    (void)tool("e2fsck", {"-f", "-p", device.string()});
    TRY_OK(tool("resize2fs", {device.string()}));
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
  const bool found = mounted && (fs::exists(fs::path(kMountFolder) / "etc/os-release", error) || fs::exists(fs::path(kMountFolder) / "usr/lib/os-release", error));
  return mounted && mounted->end() && found;
}

/// An index that stands for `chunks` chunks from the first on.
PackIndex firstChunks(const PackIndex& index, std::size_t chunks) {
  PackIndex part = index;
  part.chunks.resize(std::min(chunks, part.chunks.size()));
  part.size_bytes = std::min<std::uint64_t>(index.size_bytes, part.chunks.size() * index.chunk_bytes);
  return part;
}

}  // namespace

Async<ChunkReport> writeWholeDisk(ChunkJob job, std::function<Result<void>()> there) {
  if (job.target.sizeBytes() < job.index.size_bytes)
    co_return fail(ErrorCode::InvalidInput, fmt::format("the image is of a disk of {} MiB, this one has {} MiB", job.index.size_bytes >> 20, job.target.sizeBytes() >> 20));
  BlockTarget* target = &job.target;
  std::function<Result<void>()> empty = [target] { return emptyTables(*target); };
  auto emptying = offload<Result<void>>(job.workers, std::move(empty));
  CO_TRY_OK(co_await std::move(emptying));

  ChunkJob rest = job, first = job;
  rest.keep_right_chunks = true;
  rest.index.chunks[0].zero = true;  // it stays empty until all others are right
  first.index = firstChunks(job.index, 1);
  first.looked = {};
  if (job.looked)  // who fetches for us must bring the first chunk too, later
    rest.looked = [looked = job.looked](const PackIndex& index, std::vector<char> right) {
      right[0] = 0;
      looked(index, right);
    };
  first.progress = [progress = job.progress](double, const std::string& text) { progress(1, text); };
  auto writing = writeAndVerify(std::move(rest));
  CO_TRY(report, co_await std::move(writing));
  auto finishing = writeAndVerify(std::move(first));
  CO_TRY(last, co_await std::move(finishing));
  auto telling = offload<Result<void>>(job.workers, std::move(there));
  CO_TRY_OK(co_await std::move(telling));
  report.bytes_fetched += last.bytes_fetched;
  report.retries += last.retries;
  co_return report;
}

Result<int> lastPartition(std::string_view sfdisk_json) {
  const auto parts = partsOf(sfdisk_json);
  const auto last = std::max_element(parts.begin(), parts.end(), [](const Partition& a, const Partition& b) { return a.start_sectors < b.start_sectors; });
  if (last == parts.end()) return fail(ErrorCode::InvalidInput, "the image has no partitions: it is not of a whole disk");
  return last->number;
}

Result<GrownDisk> markWriting(const fs::path& disk) {
  TRY(table, tool("sfdisk", {"--json", disk.string()}));
  TRY(last, lastPartition(table));
  GrownDisk grown;
  grown.last = last;
  grown.gpt = readPartitionTable(table).label == "gpt";
  if (!grown.gpt) return grown;
  const auto number = std::to_string(last);
  TRY(label, tool("sfdisk", {"--part-label", disk.string(), number}));
  grown.label = trimmed(label);
  TRY_OK(tool("sfdisk", {"--no-reread", "--relocate", "gpt-bak-std", disk.string()}));
  TRY_OK(tool("sfdisk", {"--no-reread", "--part-label", disk.string(), number, std::string(kWritingLabel)}));
  return grown;
}

Result<GrownDisk> growDisk(GrownDisk grown, const fs::path& disk, const std::function<void(const std::string&)>& say, const PartitionNodes& node_of) {
  say("growing the image to its disk");
  TRY_OK(tool("sfdisk", {"--no-reread", "--quiet", "--partno", std::to_string(grown.last), disk.string()}, ", +\n"));
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
  return fail(ErrorCode::InvalidInput, "none of the image's partitions holds a Linux system on ext4 or xfs, so muster's agent cannot run in it");
}

Result<void> finishDisk(const fs::path& disk, const GrownDisk& grown) {
  if (grown.gpt) TRY_OK(tool("sfdisk", {"--no-reread", "--part-label", disk.string(), std::to_string(grown.last), grown.label}));
  TRY_OK(tool("sync", {}));
  return {};
}

Result<void> installIntoImage(const GrownDisk& disk, const WriteImageParams& params, const InstalledIdentity& identity, const std::string& provisioning_mac,
                              const fs::path& agent_folder, const std::function<void(const std::string&)>& say,
                              const std::function<Result<void>(const fs::path&)>& configure_more) {
  say("configuring the image's own system");
  auto root = Mount::make(disk.root, kMountFolder, disk.filesystem.c_str());
  if (!root) return fail(std::move(root).error());
  std::error_code error;
  if (!fs::exists(fs::path(kMountFolder) / "usr/lib/systemd/systemd", error) && !fs::exists(fs::path(kMountFolder) / "lib/systemd/systemd", error))
    return fail(ErrorCode::InvalidInput, "the image's system has no systemd, which starts muster's agent");
  TRY_OK(configureSystem(kMountFolder, params, identity, Layout{}, provisioning_mac, agent_folder));
  if (configure_more) TRY_OK(configure_more(kMountFolder));
  return root->end();
}

}  // namespace muster::agent
