// The order of a whole imaging, top to bottom.
#include "agent/writer/writer.h"

#include "agent/writer/block_target.h"
#include "agent/writer/chunk_writer.h"
#include "agent/writer/disks.h"
#include "agent/writer/install.h"
#include "agent/writer/whole_disk.h"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace muster::agent {

namespace {

constexpr std::chrono::seconds kIndexTimeout{60};
constexpr std::chrono::milliseconds kFirstBackoff{500}, kMaxBackoff{10000};
// Where the bar stands when a step begins.
constexpr std::uint64_t kBesideRootBytes = 132ull << 20;  ///< the partitions before the root (disks.h), and the table at both ends
constexpr std::size_t kKeyBytes = 48;
constexpr double kChunksFrom = 0.02, kChunksTo = 0.88, kInstallFrom = 0.90;

template <class T>
Async<T> inPool(Workers& workers, std::function<Result<T>()> work) {
  auto op = offload<Result<T>>(workers, std::move(work));
  co_return co_await std::move(op);
}

/// The index, believed; asked for again while the controller does not answer.
Async<PackIndex> fetchIndex(const WriteImageParams& params, const WriterDeps& deps, std::chrono::steady_clock::time_point end) {
  auto url = io::Url::parse(params.index_url);
  if (!url) co_return fail(std::move(url).error());
  auto http = deps.make_http();
  auto pause = kFirstBackoff;
  for (;;) {
    io::HttpRequest request;
    request.url = *url;
    request.timeout = kIndexTimeout;
    request.max_body_bytes = kMaxIndexBytes;
    auto sending = http->send(std::move(request));
    auto response = co_await std::move(sending);
    if (response && response->status == 200) co_return openIndex(response->body, params.digest, params.signing_public_pem);
    const std::string fault = response ? fmt::format("{} answers {}", params.index_url, response->status) : response.error().str();
    if (response && response->status < 500) co_return fail(ErrorCode::NotFound, fault + ": the controller does not have this image");
    if (!response && response.error().code() == ErrorCode::Denied) co_return fail(std::move(response).error());
    if (deps.clock.steady() + pause >= end) co_return fail(ErrorCode::Timeout, "the index of the image could not be fetched; last: " + fault);
    deps.progress(0, fmt::format("{}; trying again in {:.1f} s", fault, pause.count() / 1000.0));
    auto wait = deps.clock.sleep(pause);
    co_await std::move(wait);
    pause = std::min(pause * 2, kMaxBackoff);
  }
}

/// What was chosen, planned and opened.
struct Prepared {
  DiskInfo disk;
  StoragePlan storage;
  std::map<std::string, std::string> keys;  ///< of encrypted sets, made on this node
  Layout layout;                            ///< of a root file system; empty for an image of a whole disk
  std::unique_ptr<BlockTarget> target;      ///< where the image goes: the root partition, or the disk
};

std::uint64_t bytesBeside(const PackIndex& index) { return index.kind == PackKind::RootFs ? kBesideRootBytes : 0; }

Result<void> guard(const DiskInfo& disk, bool wipe_allowed) {
  TRY(content, describeDiskContent(disk.path));
  if (content == "none" || wipe_allowed) return {};
  return fail(ErrorCode::Denied, fmt::format("{} holds {}; it is not overwritten, because the plan did not say that this node may be wiped", disk.str(), content));
}

/// Everything that can be refused is, before the first byte is written.
Result<Prepared> prepareDisk(const WriteImageParams& params, const PackIndex& index) {
  Prepared prepared;
  const auto disks = listDisks("/");
  TRY(disk, chooseDisk(disks, params.disk));
  prepared.disk = disk;
  if (disk.size_bytes < index.size_bytes + bytesBeside(index))
    return fail(ErrorCode::InvalidInput, fmt::format("{} is too small: the image needs {} MiB and {} MiB beside it", disk.str(), index.size_bytes >> 20, bytesBeside(index) >> 20));
  const Finished finished = params.storage.empty() ? Finished() : finishedPartitions(disks);
  TRY(storage, planStorage(disks, disk, params.storage, params.hostname, finished));
  prepared.storage = std::move(storage);
  TRY_OK(guard(disk, params.wipe_allowed));
  for (const DiskInfo& other : prepared.storage.wiped) TRY_OK(guard(other, params.wipe_allowed));
  for (const auto& name : prepared.storage.keys) prepared.keys[name] = io::randomToken(kKeyBytes);

  if (index.kind == PackKind::RootFs) {
    TRY(layout, divideDisk(disk.path));
    prepared.layout = layout;
  }
  auto target = openBlockTarget(index.kind == PackKind::RootFs ? prepared.layout.root : disk.path);
  if (!target) return fail(std::move(target).error());
  prepared.target = std::move(*target);
  return prepared;
}

}  // namespace

Async<WriteImageReport> writeImage(WriteImageParams params, WriterDeps deps, std::chrono::seconds deadline) {
  const auto start = deps.clock.steady();
  deps.progress(0, "fetching the index of the image");
  auto fetching = fetchIndex(params, deps, start + deadline);
  CO_TRY(index, co_await std::move(fetching));

  // Blocks shared with the pool live in this frame, which outlives every piece of work it awaits.
  const WriteImageParams* shared_params = &params;
  const PackIndex* shared_index = &index;
  std::function<Result<Prepared>()> prepare = [shared_params, shared_index] { return prepareDisk(*shared_params, *shared_index); };
  auto preparing = inPool<Prepared>(deps.workers, std::move(prepare));
  auto prepared = co_await std::move(preparing);
  if (!prepared) co_return fail(std::move(prepared).error());
  deps.progress(kChunksFrom, fmt::format("writing {} to {}", index.name, prepared->disk.str()));

  auto progress = deps.progress;
  ChunkJob job{.index = index,
               .pack_url = params.pack_url,
               .mirror_urls = params.mirror_urls,
               .target = *prepared->target,
               .keep_right_chunks = prepared->layout.kept,
               .deadline = std::chrono::duration_cast<std::chrono::seconds>(deadline - (deps.clock.steady() - start)),
               .make_http = deps.make_http,
               .workers = deps.workers,
               .clock = deps.clock,
               .progress = [progress](double fraction, const std::string& text) { progress(kChunksFrom + fraction * (kChunksTo - kChunksFrom), text); },
               .looked = deps.looked};
  auto writing = index.kind == PackKind::Disk ? writeWholeDisk(std::move(job)) : writeAndVerify(std::move(job));
  CO_TRY(written, co_await std::move(writing));
  prepared->target.reset();

  deps.progress(kInstallFrom, "asking for the certificate of the installed system");
  auto asking = deps.identity();
  CO_TRY(identity, co_await std::move(asking));

  const auto home = co_await asio::this_coro::executor;
  const Prepared* on_disk = &*prepared;
  const InstalledIdentity* shared_identity = &identity;
  const WriterDeps* shared_deps = &deps;
  std::function<Result<bool>()> install = [=]() -> Result<bool> {
    const auto say = [=](const std::string& text) { asio::post(home, [progress, text] { progress(kInstallFrom, text); }); };
    TRY_OK(runStorage(on_disk->storage, on_disk->keys, runStorageTool, say));
    const auto configure_more = [=](const std::filesystem::path& root) -> Result<void> {
      TRY_OK(configureStorage(root, on_disk->storage, on_disk->keys));
      return configureUserData(root, *shared_params);
    };
    if (shared_index->kind == PackKind::Disk) {
      TRY(grown, growDisk(on_disk->disk.path, say, [on_disk](int number) { return partitionNode(on_disk->disk.path, number); }));
      TRY_OK(installIntoImage(grown, *shared_params, *shared_identity, shared_deps->provisioning_mac, shared_deps->agent_folder, say, configure_more));
      TRY_OK(finishDisk(on_disk->disk.path, grown));
      return true;
    }
    TRY_OK(installSystem(on_disk->disk.path, on_disk->layout, *shared_params, *shared_identity, shared_deps->provisioning_mac,
                         shared_deps->agent_folder, say, configure_more));
    TRY_OK(markComplete(on_disk->disk.path));
    return true;
  };
  auto installing = inPool<bool>(deps.workers, std::move(install));
  CO_TRY_OK(co_await std::move(installing));

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
  for (const auto& mirror : written.dropped_mirrors) report.dropped_mirrors.push_back(fmt::format("{}: {}", mirror.url, mirror.why));
  co_return report;
}

}  // namespace muster::agent
