// SPDX-License-Identifier: Apache-2.0
// The order of a whole imaging, top to bottom.
#include "agent/imaging/writer.h"

#include "agent/imaging/block_target.h"
#include "agent/imaging/chunk_writer.h"
#include "agent/imaging/disks.h"
#include "agent/imaging/fetch_index.h"
#include "agent/imaging/install.h"
#include "agent/imaging/progress_heartbeat.h"
#include "agent/imaging/replaced_member.h"
#include "agent/imaging/root_system.h"
#include "agent/imaging/whole_disk.h"
#include "agent/imaging/wipe_policy.h"
#include "base/io/process.h"
#include "base/json_output.h"
#include "wire/task_reason.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::agent {

namespace {

// Where the bar stands when a step begins.
constexpr std::uint64_t kBesideRootBytes =
    132ull << 20;  ///< the partitions before the root (disks.h), and the table at both ends
constexpr std::size_t kKeyBytes = 48;
constexpr const char* kHeadTwin = "/run/muster/head-of-disk";
constexpr int kTwinSectorBytes =
    512;  ///< of files, to sfdisk: the table of a disk with others can only be marked on the disk
constexpr double kChunksFrom = 0.02, kChunksTo = 0.88, kInstallFrom = 0.90;

template <class T>
Async<T> inPool(Workers& workers, std::function<Result<T>()> work) {
  co_return co_await offload<Result<T>>(workers, std::move(work));
}

/// What was chosen, planned and opened.
struct Prepared {
  DiskInfo disk;
  std::optional<RootPlan> root;  ///< of a system disk of several parts
  StoragePlan storage;
  std::map<std::string, std::string> keys;  ///< of encrypted sets, made on this node
  Layout layout;  ///< of a root file system; empty for an image of a whole disk
  std::unique_ptr<BlockTarget> target;  ///< where the image goes: the root partition, or the disk
};

std::uint64_t bytesBeside(const wire::PackIndex& index) {
  return index.kind == wire::PackKind::RootFs ? kBesideRootBytes : 0;
}

/// "/dev/nvme1n1p3 of /dev/nvme1n1 (serial X, 3.5 GiB)": who replaces a disk goes by its serial.
std::string nameOf(const std::filesystem::path& device, const std::vector<DiskInfo>& disks) {
  std::vector<std::string> names;
  for (const DiskInfo& one : disks) names.push_back(one.str());
  return fmt::format("{} of {}", device.string(), fmt::join(names, ", "));
}

WipePolicy policyOf(const wire::WriteImageParams& params) {
  return {params.wipe_allowed, params.data_wipe_allowed};
}
Result<DiskContent> contentOf(const DiskInfo& disk) { return describeDiskContent(disk.path); }

/// What is known of refused sets beyond what their disks hold; nothing but superblocks is read.
Error withNewMembers(Error refusal, const std::vector<wire::StorageSet>& sets,
                     const StoragePlan& storage) {
  std::string words;
  for (const auto& set : sets) {
    std::vector<Member> members;
    for (const auto& [name, disk] : storage.guarded) {
      if (name != set.name) continue;
      const io::Command examine{
          .program = "mdadm",
          .args = {"--examine", "--export", partitionNode(disk.path, 1).string()}};
      members.push_back({disk, contentOf(disk).value_or(DiskContent()).use,
                         io::runChecked(examine).value_or("")});
    }
    if (members.empty()) continue;
    if (const auto found =
            replacedMember(set.name, raidNumber(set.raid).value_or(kNoRaid), members))
      words += "; " + *found;
  }
  if (words.empty()) return refusal;
  Error more(refusal.code(), refusal.text() + words);
  for (const auto& reason : refusal.reasons()) more = std::move(more).because(reason);
  return std::move(more).because(wire::TaskReason::MemberReplaced);
}

/// The second look at what the disks hold: an image was written meanwhile.
Result<void> makeStorage(const Prepared& prepared, WipePolicy policy,
                         const std::function<void(const std::string&)>& notify) {
  TRY_OK(guardDisks({}, prepared.storage, policy, contentOf));
  return runSteps(prepared.storage.steps, prepared.keys, runStorageTool, notify);
}

/// The first bytes that are written.
Result<void> makePartitions(Prepared& prepared, const wire::PackIndex& index, WipePolicy policy,
                            const std::function<void(const std::string&)>& notify) {
  if (!prepared.root) releaseDisk(prepared.disk);
  if (index.kind == wire::PackKind::Disk) return {};
  if (!prepared.root) {
    TRY(layout, divideDisk(prepared.disk.path));
    prepared.layout = layout;
    return {};
  }
  const bool seen =
      prepared.root->key == wire::RootKey::None &&
      std::all_of(
          prepared.root->disks.begin(), prepared.root->disks.end(), [](const DiskInfo& disk) {
            return dividedForRoot(
                io::runChecked({.program = "sfdisk", .args = {"--json", disk.path.string()}})
                    .value_or(""));
          });
  // The other disks first: what lets go of old arrays there would let go of this one too.
  TRY_OK(makeStorage(prepared, policy, notify));
  prepared.keys[std::string(kRootSet)] = io::randomToken(kKeyBytes);
  TRY_OK(runSteps(prepared.root->steps, prepared.keys, runStorageTool, notify));
  prepared.layout = layoutOf(*prepared.root);
  prepared.layout.kept = seen;
  TRY(uuid, partitionUuid(prepared.disk.path, kEspPartition));
  prepared.layout.esp_partuuid = uuid;
  return {};
}

/// Everything that can be refused is, before the first byte is written.
Result<Prepared> chooseDisks(const wire::WriteImageParams& params, const wire::PackIndex& index) {
  if (index.kind == wire::PackKind::Live)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("image {} is live: it runs in memory and is written to no disk", index.name));
  Prepared prepared;
  const auto disks = listDisks("/");
  if (params.root && index.kind == wire::PackKind::RootFs) {
    TRY(root, planRoot(disks, params.disk, *params.root, index.size_bytes, params.hostname));
    prepared.root = std::move(root);
    prepared.disk = prepared.root->disks.front();
  } else {
    TRY(disk, chooseDisk(disks, params.disk));
    prepared.disk = disk;
  }
  const DiskInfo& disk = prepared.disk;
  const std::vector<DiskInfo> system_disks =
      prepared.root ? prepared.root->disks : std::vector<DiskInfo>{disk};
  if (!prepared.root && disk.size_bytes < index.size_bytes + bytesBeside(index))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is too small: the image needs {} MiB and {} MiB beside it",
                            disk.str(), index.size_bytes >> 20, bytesBeside(index) >> 20));
  TRY_OK(checkSectorsOf(index, disk));
  const FoundStorage found = params.storage.empty() ? FoundStorage() : findStorage(disks);
  TRY(storage, planStorage(disks, system_disks, params.storage, params.hostname, found));
  prepared.storage = std::move(storage);
  if (auto guarded = guardDisks(system_disks, prepared.storage, policyOf(params), contentOf);
      !guarded)
    return fail(withNewMembers(std::move(guarded).error(), params.storage, prepared.storage));
  for (const auto& name : prepared.storage.keys) prepared.keys[name] = io::randomToken(kKeyBytes);
  return prepared;
}

Result<Prepared> prepareDisk(const wire::WriteImageParams& params, const wire::PackIndex& index,
                             const std::function<void(const std::string&)>& notify) {
  auto chosen = chooseDisks(params, index);
  if (!chosen) return wire::untouched(std::move(chosen).error());
  Prepared prepared = std::move(*chosen);
  TRY_OK(makePartitions(prepared, index, policyOf(params), notify));
  const DiskInfo& disk = prepared.disk;
  const std::vector<DiskInfo> system_disks =
      prepared.root ? prepared.root->disks : std::vector<DiskInfo>{disk};
  auto target =
      index.kind == wire::PackKind::RootFs
          ? openBlockTarget(prepared.layout.root, nameOf(prepared.layout.root, system_disks))
          : openBlockTarget(disk.path, disk.str());
  if (!target) return fail(std::move(target).error());
  prepared.target = std::move(*target);
  return prepared;
}

}  // namespace

Async<WriteImageReport> writeImage(wire::WriteImageParams params, WriterDeps deps,
                                   std::chrono::seconds deadline) {
  const auto start = deps.clock.steady();
  deps.progress(0, "fetching the index of the image");
  auto fetched = co_await fetchIndex(params, deps, start + deadline);
  if (!fetched) co_return wire::untouched(std::move(fetched).error());
  const wire::PackIndex& index = *fetched;

  // Blocks shared with the pool live in this frame, which outlives every piece of work it awaits.
  const wire::WriteImageParams* shared_params = &params;
  const wire::PackIndex* shared_index = &index;
  const auto home = co_await asio::this_coro::executor;
  const auto notify_at = [home, progress = deps.progress](double fraction) {
    return [home, progress, fraction](const std::string& text) {
      asio::post(home, [progress, fraction, text] { progress(fraction, text); });
    };
  };
  std::function<Result<Prepared>()> prepare = [shared_params, shared_index, notify = notify_at(0)] {
    return prepareDisk(*shared_params, *shared_index, notify);
  };
  auto prepared = co_await inPool<Prepared>(deps.workers, std::move(prepare));
  if (!prepared) co_return fail(std::move(prepared).error());
  // For an image of a whole disk before its partition table comes: nothing that can take long lies
  // between that and the mark on it.
  std::optional<InstalledIdentity> early;
  if (index.kind == wire::PackKind::Disk) {
    CO_TRY(identity, co_await deps.identity());
    early = std::move(identity);
  }
  deps.progress(kChunksFrom, fmt::format("writing {} to {}", index.name, prepared->disk.str()));

  auto progress = deps.progress;
  ChunkJob job{.index = index,
               .pack_url = params.pack_url,
               .mirror_urls = params.mirror_urls,
               .target = *prepared->target,
               .keep_matching_chunks = prepared->layout.kept,
               .deadline = std::chrono::duration_cast<std::chrono::seconds>(
                   deadline - (deps.clock.steady() - start)),
               .make_http = deps.make_http,
               .workers = deps.workers,
               .clock = deps.clock,
               .progress =
                   [progress](double fraction, const std::string& text) {
                     progress(kChunksFrom + fraction * (kChunksTo - kChunksFrom), text);
                   },
               .scanned = deps.scanned};
  GrownDisk marked;
  GrownDisk* mark = &marked;
  HeadMark head;
  if (prepared->disk.sector_bytes == kTwinSectorBytes) head.twin = kHeadTwin;
  head.mark = [at = head.twin.empty() ? prepared->disk.path : head.twin, mark]() -> Result<void> {
    TRY(made, markWriting(at));
    *mark = made;
    return {};
  };
  CO_TRY(written, co_await (index.kind == wire::PackKind::Disk
                                ? writeWholeDisk(std::move(job), std::move(head))
                                : writeAndVerify(std::move(job))));
  prepared->target.reset();

  if (!early) {
    deps.progress(kInstallFrom, "asking for the certificate of the installed system");
    CO_TRY(identity, co_await deps.identity());
    early = std::move(identity);
  }

  const Prepared* on_disk = &*prepared;
  const InstalledIdentity* shared_identity = &*early;
  const WriterDeps* shared_deps = &deps;
  std::function<Result<bool>()> install = [=]() -> Result<bool> {
    const auto notify = notify_at(kInstallFrom);
    if (!on_disk->root) TRY_OK(makeStorage(*on_disk, policyOf(*shared_params), notify));
    const auto configure_more = [=](const std::filesystem::path& root) -> Result<void> {
      TRY_OK(configureStorage(root, on_disk->storage, on_disk->keys));
      TRY_OK(configureUserData(root, *shared_params));
      if (!on_disk->root) return {};
      const ProgressHeartbeat working(notify, "the system makes its initrd for this disk");
      return configureRoot(root, *on_disk->root, on_disk->keys.at(std::string(kRootSet)),
                           runInSystem);
    };
    if (shared_index->kind == wire::PackKind::Disk) {
      TRY(grown, growDisk(*mark, on_disk->disk.path, notify, [on_disk](int number) {
            return partitionNode(on_disk->disk.path, number);
          }));
      TRY_OK(installIntoImage(grown, *shared_params, *shared_identity,
                              shared_deps->provisioning_mac, shared_deps->agent_folder, notify,
                              configure_more));
      TRY_OK(finishDisk(on_disk->disk.path, grown));
      return true;
    }
    TRY_OK(installSystem(on_disk->disk.path, on_disk->layout, *shared_params, *shared_identity,
                         shared_deps->provisioning_mac, shared_deps->agent_folder, notify,
                         configure_more));
    if (!on_disk->root) {
      TRY_OK(markComplete(on_disk->disk.path, kRootPartition));
      return true;
    }
    TRY_OK(runSteps(on_disk->root->closing, on_disk->keys, runStorageTool, notify));
    for (const DiskInfo& disk : on_disk->root->disks)
      TRY_OK(markComplete(disk.path, kComposedRootPartition));
    return true;
  };
  CO_TRY_OK(co_await inPool<bool>(deps.workers, std::move(install)));

  WriteImageReport report;
  report.digest = params.digest;
  report.disk = prepared->disk.str();
  report.seconds = std::chrono::duration<double>(deps.clock.steady() - start).count();
  report.bytes_written = written.bytes_written;
  report.bytes_skipped = written.bytes_skipped;
  report.bytes_fetched = written.bytes_fetched;
  report.peak_buffer_bytes = written.peak_buffer_bytes;
  report.retries = written.retries;
  report.kept_storage = prepared->storage.kept;
  for (const auto& mirror : written.dropped_mirrors)
    report.dropped_mirrors.push_back(fmt::format("{}: {}", mirror.url, mirror.why));
  co_return report;
}

std::string WriteImageReport::json() const {
  return jsonText(nlohmann::json{{"digest", digest},
                                 {"disk", disk},
                                 {"seconds", seconds},
                                 {"bytes_written", bytes_written},
                                 {"bytes_skipped", bytes_skipped},
                                 {"bytes_fetched", bytes_fetched},
                                 {"peak_buffer_bytes", peak_buffer_bytes},
                                 {"retries", retries},
                                 {"dropped_mirrors", dropped_mirrors},
                                 {"kept_storage", kept_storage}});
}

}  // namespace muster::agent
