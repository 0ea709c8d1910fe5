// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/live.h"

#include "agent/imaging/block_target.h"
#include "agent/imaging/chunk_writer.h"
#include "agent/imaging/fetch_index.h"
#include "agent/imaging/install.h"
#include "base/io/files.h"
#include "base/io/memory.h"
#include "base/io/process.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <sys/mount.h>
#include <algorithm>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kToolLimit{2};
constexpr double kFetchFrom = 0.02, kFetchTo = 0.90;
constexpr std::size_t kMaxReleaseBytes = 256;

Result<void> tool(std::string program, std::vector<std::string> args) {
  io::Command command{.program = std::move(program), .args = std::move(args)};
  command.timeout = kToolLimit;
  TRY_OK(io::runChecked(command));
  return {};
}

Result<void> mountAt(const fs::path& point, std::vector<std::string> args) {
  TRY_OK(io::makeDirs(point));
  args.push_back(point.string());
  return tool("mount", std::move(args));
}

fs::path imageFile(const LivePlaces& places) { return places.folder / "memory/image"; }

/// An earlier try that broke off holds memory.
void undo(const LivePlaces& places) {
  for (const char* point : {"root", "changes", "image", "memory"})
    ::umount2((places.folder / point).c_str(), MNT_DETACH);
}

/// A file in memory that is as large as the image.
Result<std::unique_ptr<BlockTarget>> makeRoom(const LivePlaces& places,
                                              const wire::PackIndex& index) {
  undo(places);
  TRY_OK(checkMemory(index, io::availableMemoryBytes()));
  TRY_OK(mountAt(places.folder / "memory",
                 {"-t", "tmpfs", "-o",
                  fmt::format("size={},mode=0700", index.size_bytes + (1u << 20)), "muster-live"}));
  TRY_OK(io::writeFileAtomic(imageFile(places), "", 0600));
  std::error_code error;
  fs::resize_file(imageFile(places), index.size_bytes, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot make {}: {}", imageFile(places).string(), error.message()));
  return openBlockTarget(imageFile(places));
}

Result<void> checkKernel(const LivePlaces& places) {
  TRY(text, io::readFile(places.kernel_release, kMaxReleaseBytes));
  const std::string running = text.substr(0, text.find('\n'));
  std::vector<std::string> has;
  std::error_code error;
  for (const char* folder : {"usr/lib/modules", "lib/modules"})
    for (const auto& entry : fs::directory_iterator(places.root() / folder, error))
      has.push_back(entry.path().filename());
  if (std::find(has.begin(), has.end(), running) != has.end()) return {};
  return fail(ErrorCode::Conflict, fmt::format("kernel {} was started, the image has modules for "
                                               "{}: a boot server has files of another image",
                                               running, fmt::join(has, ", ")));
}

/// The image below, memory above: it can be changed like any other until the machine restarts.
Result<void> assemble(const LivePlaces& places) {
  const auto image = places.folder / "image", changes = places.folder / "changes";
  TRY_OK(tool(
      "modprobe",
      {"--all", "loop", "squashfs",
       "overlay"}));  // without the module there is not even a /dev/loop-control that would load it
  TRY_OK(mountAt(image, {"-t", "squashfs", "-o", "loop,ro", imageFile(places).string()}));
  TRY_OK(mountAt(changes, {"-t", "tmpfs", "-o", "mode=0755", "muster-live"}));
  for (const char* part : {"upper", "work"}) TRY_OK(io::makeDirs(changes / part));
  const std::string layers = fmt::format("lowerdir={},upperdir={},workdir={}", image.string(),
                                         (changes / "upper").string(), (changes / "work").string());
  TRY_OK(mountAt(places.root(), {"-t", "overlay", "-o", layers, "muster-live"}));
  return checkKernel(places);
}

Result<void> configure(const LivePlaces& places, const wire::WriteImageParams& params,
                       const InstalledIdentity& identity, const WriterDeps& deps) {
  const auto root = places.root();
  std::error_code error;
  if (!fs::exists(root / "usr/lib/systemd/systemd", error) &&
      !fs::exists(root / "lib/systemd/systemd", error))
    return fail(ErrorCode::InvalidInput,
                "the image's system has no systemd, which starts muster's agent");
  TRY_OK(
      configureSystem(root, params, identity, Layout{}, deps.provisioning_mac, deps.agent_folder));
  TRY_OK(io::writeFileAtomic(root / "etc/fstab",
                             "# This system is in memory; there is nothing to mount.\n"));
  TRY_OK(configureUserData(root, params));
  if (fs::exists(root / "usr/bin/ssh-keygen", error))
    TRY_OK(tool("chroot", {root.string(), "ssh-keygen", "-A"}));
  return {};
}

}  // namespace

std::string LiveReport::json() const {
  return jsonText(nlohmann::json{{"digest", digest},
                                 {"seconds", seconds},
                                 {"memory_bytes", memory_bytes},
                                 {"bytes_fetched", bytes_fetched},
                                 {"retries", retries},
                                 {"dropped_mirrors", dropped_mirrors}});
}

Result<void> checkMemory(const wire::PackIndex& index, std::uint64_t available_bytes) {
  const auto needed = index.size_bytes + wire::kLiveRoomBytes;
  if (available_bytes >= needed) return {};
  return fail(
      ErrorCode::InvalidInput,
      fmt::format("{} MiB of memory are free, the live image {} takes {} MiB and its system {} MiB "
                  "beside it; make the image smaller, or one that is written to a disk",
                  available_bytes >> 20, index.name, index.size_bytes >> 20,
                  wire::kLiveRoomBytes >> 20));
}

Async<LiveReport> startLive(wire::WriteImageParams params, WriterDeps deps, LivePlaces places,
                            std::chrono::seconds deadline) {
  const auto start = deps.clock.steady();
  deps.progress(0, "fetching the index of the image");
  CO_TRY(index, co_await fetchIndex(params, deps, start + deadline));
  if (index.kind != wire::PackKind::Live)
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("image {} is not live: it must be written to a disk", index.name));

  // What is shared with the pool lives in this frame, which outlives every piece of work it awaits.
  const LivePlaces* shared_places = &places;
  const wire::WriteImageParams* shared_params = &params;
  const wire::PackIndex* shared_index = &index;
  const WriterDeps* shared_deps = &deps;
  std::function<Result<std::unique_ptr<BlockTarget>>()> make_room = [shared_places, shared_index] {
    return makeRoom(*shared_places, *shared_index);
  };
  CO_TRY(target, co_await offload<Result<std::unique_ptr<BlockTarget>>>(deps.workers,
                                                                        std::move(make_room)));

  deps.progress(kFetchFrom, fmt::format("fetching {} into memory", index.name));
  auto progress = deps.progress;
  ChunkJob job{.index = index,
               .pack_url = params.pack_url,
               .mirror_urls = params.mirror_urls,
               .target = *target,
               .deadline = std::chrono::duration_cast<std::chrono::seconds>(
                   deadline - (deps.clock.steady() - start)),
               .make_http = deps.make_http,
               .workers = deps.workers,
               .clock = deps.clock,
               .progress =
                   [progress](double fraction, const std::string& text) {
                     progress(kFetchFrom + fraction * (kFetchTo - kFetchFrom), text);
                   },
               .scanned = deps.scanned};
  CO_TRY(written, co_await writeChunks(std::move(job)));
  target.reset();

  deps.progress(kFetchTo, "asking for the certificate of the live system");
  CO_TRY(identity, co_await deps.identity());
  const InstalledIdentity* shared_identity = &identity;
  std::function<Result<void>()> finish = [=]() -> Result<void> {
    TRY_OK(assemble(*shared_places));
    return configure(*shared_places, *shared_params, *shared_identity, *shared_deps);
  };
  CO_TRY_OK(co_await offload<Result<void>>(deps.workers, std::move(finish)));

  LiveReport report{
      params.digest,    std::chrono::duration<double>(deps.clock.steady() - start).count(),
      index.size_bytes, written.bytes_fetched,
      written.retries,  {}};
  for (const auto& mirror : written.dropped_mirrors)
    report.dropped_mirrors.push_back(fmt::format("{}: {}", mirror.url, mirror.why));
  co_return report;
}

}  // namespace muster::agent
