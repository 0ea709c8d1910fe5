// SPDX-License-Identifier: Apache-2.0
// The disk writer beside the pipeline that it replaces: `curl | zstd -dc | dd oflag=direct`, the
// same image from the same warm server to the same place, in the same run. The writer verifies
// every chunk before and after; the pipeline verifies nothing.
//
// The image is a real root file system of MUSTER_BENCH_IMAGE_MIB (2048), made of this machine's own
// /usr and kept in the cache. MUSTER_BENCH_DISK is written instead of a file there; what is on it
// is lost. A loop device over a file in memory plays a disk that is faster than the processors.
// MUSTER_BENCH_LINK (1gbit, 10gbit; needs root) puts a link of that rate between server and node;
// without it the image comes over loopback.
#include "agent/imaging/chunk_writer.h"
#include "agent/imaging/existing_content.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "bench/bench.h"
#include "provision/images/pack_writer.h"
#include "provision/images/system_builder.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <thread>

using namespace muster;
using bench::need, bench::sh;

namespace {

constexpr int kRuns = 3;
constexpr std::size_t kChangedEvery = 20;  ///< 5 %
constexpr double kMib = 1 << 20;
constexpr std::chrono::seconds kLimit{900};

std::filesystem::path cacheFolder() {
  const char* cache = std::getenv("MUSTER_CACHE");
  return std::filesystem::path(cache ? cache
                                     : std::string(std::getenv("HOME")) + "/.cache/muster") /
         "bench";
}

std::filesystem::path diskOr(std::filesystem::path file) {
  const char* disk = std::getenv("MUSTER_BENCH_DISK");
  return disk ? std::filesystem::path(disk) : std::move(file);
}

struct Files {
  std::filesystem::path folder = cacheFolder();
  std::filesystem::path raw = folder / "root.raw", pack = folder / "pack",
                        index = folder / "content.json", stream = folder / "root.zst",
                        target = diskOr(folder / "disk");
};

/// Everything after this goes through the link, in a network namespace of its own.
void beBehindALink() {
  const char* rate = std::getenv("MUSTER_BENCH_LINK");
  if (!rate) return;
  if (::unshare(CLONE_NEWNET) != 0)
    need(Result<void>(
        fail(ErrorCode::Denied, "MUSTER_BENCH_LINK needs root for a network namespace")));
  sh(fmt::format(
      "ip link set lo up && tc qdisc add dev lo root tbf rate '{}' burst 256k latency 40ms", rate));
}

/// A file system of the wanted size: as much of /usr as fits.
void prepare(const Files& files, unsigned mib) {
  const std::string mark = std::to_string(mib);
  if (io::readFile(files.folder / "mib").value_or("") == mark) return;
  need(io::makeDirs(files.folder));
  const std::string folder = files.folder.string();
  sh("cd '" + folder + "'; rm -rf tree root.* pack content.json disk; mkdir tree; left=$((" + mark +
     " * 1024 * 4 / 5)); "
     "for part in /usr/bin /usr/lib/gcc /usr/lib/x86_64-linux-gnu /usr/share /usr/sbin "
     "/usr/include /usr/libexec; do [ -d $part ] || continue; "
     "need=$(du -skx $part | cut -f1); name=tree/$(echo $part | tr / _); [ -e $name ] && continue; "
     "[ $need -gt $left ] && continue; "
     "cp -ax $part $name; left=$((left - need)); done");
  need(provision::makeExt4(files.folder / "tree", files.raw));
  sh("cd '" + folder + "'; rm -rf tree");
  const auto index = need(
      provision::writePack(files.raw, files.pack, "bench", std::thread::hardware_concurrency()));
  need(io::writeFileAtomic(files.index, canonicalJson(index)));
  sh("cd '" + folder +
     "'; zstd -q -f -9 -T0 root.raw -o root.zst; head -c $(stat -c %s root.raw) /dev/zero >disk; "
     "sync disk");
  need(io::writeFileAtomic(files.folder / "mib", mark));
}

Task<io::ServerResponse> serve(std::filesystem::path file) {
  co_return io::ServerResponse::file({file, "application/octet-stream"});
}

/// A server in a process of its own; dies with this one.
std::uint16_t startServer(const Files& files) {
  int channel[2];
  if (::pipe(channel) != 0) std::exit(2);
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    asio::io_context control;
    auto server = need(io::startHttpServer(control.get_executor(), {}));
    server->addRoutes(
        {{"GET", "/pack", [&files](io::ServerRequest) { return serve(files.pack); }},
         {"GET", "/root.zst", [&files](io::ServerRequest) { return serve(files.stream); }}});
    const std::uint16_t port = server->port();
    if (::write(channel[1], &port, sizeof port) != sizeof port) std::exit(2);
    control.run();
    std::exit(0);
  }
  std::uint16_t port = 0;
  if (::read(channel[0], &port, sizeof port) != sizeof port) std::exit(2);
  return port;
}

std::uint64_t peakKib() {
  const std::string status = io::readFile("/proc/self/status").value_or("");
  const auto at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + 6, nullptr, 10);
}

/// One write, in a process of its own so that its memory can be told.
int writeOnce(const Files& files, const std::string& url, bool keep) {
  const auto index = need(wire::readIndex(need(io::readFile(files.index))));
  auto target = need(agent::openBlockTarget(files.target));
  Workers workers(agent::kLanes);
  SystemClock clock;
  asio::io_context control;
  agent::ChunkJob job{.index = index,
                      .pack_url = url,
                      .mirror_urls = {},
                      .target = *target,
                      .keep_matching_chunks = keep,
                      .deadline = kLimit,
                      .make_http = [] { return io::makeHttpClient(); },
                      .workers = workers,
                      .clock = clock,
                      .progress = [](double, const std::string&) {}};
  const std::uint64_t before = peakKib();
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Result<agent::ChunkReport>> report;
  asio::co_spawn(control, writeAndVerify(std::move(job)),
                 [&report](std::exception_ptr broken, Result<agent::ChunkReport> result) {
                   if (broken) std::rethrow_exception(broken);
                   report.emplace(std::move(result));
                 });
  control.run();
  const auto done = need(std::move(*report));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << nlohmann::json{{"seconds", seconds},
                              {"memory_mib", static_cast<double>(peakKib() - before) / 1024},
                              {"fetched", done.bytes_fetched},
                              {"window", done.peak_buffer_bytes}};
  return 0;
}

nlohmann::json runWriter(const std::string& url, bool keep) {
  io::Command command{.program = std::filesystem::read_symlink("/proc/self/exe").string(),
                      .args = {"--write", url, keep ? "keep" : "all"}};
  command.timeout = kLimit;
  return nlohmann::json::parse(need(io::runChecked(command)));
}

double runPipeline(const Files& files, const std::string& url) {
  return bench::fastestSeconds(1, [&] {
    sh("curl -sf '" + url + "' | zstd -dc | dd of='" + files.target.string() +
       "' bs=4M oflag=direct iflag=fullblock conv=notrunc,fsync status=none");
  });
}

/// The disk alone: the same bytes by the same number of readers, with nothing done to them.
double readDisk(const Files& files, const wire::PackIndex& index) {
  const auto target = need(agent::openBlockTarget(files.target));
  return bench::fastestSeconds(1, [&] {
    std::atomic<std::size_t> next = 0;
    const auto read = [&] {
      agent::AlignedBuffer buffer(index.chunk_bytes);
      for (std::size_t i = next++; i < index.chunks.size(); i = next++) {
        buffer.resize(index.rawBytes(i));
        need(target->read(i * index.chunk_bytes, buffer.span()));
      }
    };
    std::vector<std::jthread> readers;
    for (std::uint64_t i = 0; i < agent::kReaders; ++i) readers.emplace_back(read);
  });
}

/// Other bytes in every twentieth chunk: the disk then holds an image of which 5 % has changed.
void changeSome(const Files& files, const wire::PackIndex& index) {
  auto target = need(agent::openBlockTarget(files.target));
  const std::string junk(4096, 'j');
  for (std::size_t i = 0; i < index.chunks.size(); i += kChangedEvery)
    need(target->write(i * index.chunk_bytes, junk));
  need(target->flush());
}

}  // namespace

int main(int argc, char** argv) {
  const Files files;
  if (argc == 4 && std::string_view(argv[1]) == "--write")
    return writeOnce(files, argv[2], std::string_view(argv[3]) == "keep");
  const char* wanted = std::getenv("MUSTER_BENCH_IMAGE_MIB");
  const unsigned mib = wanted ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : 2048;
  prepare(files, mib);
  beBehindALink();
  const auto index = need(wire::readIndex(need(io::readFile(files.index))));
  const double raw_mib = static_cast<double>(index.size_bytes) / kMib;
  const std::string origin = "http://127.0.0.1:" + std::to_string(startServer(files));

  double pipeline = 1e9, full = 1e9, same = 1e9, changed = 1e9, disk = 1e9, memory = 0, window = 0;
  runPipeline(files, origin + "/root.zst");  // warms the server
  for (int run = 0; run < kRuns; ++run) {
    pipeline = std::min(pipeline, runPipeline(files, origin + "/root.zst"));
    const auto written = runWriter(origin + "/pack", false);
    full = std::min<double>(full, written["seconds"]);
    memory = std::max<double>(memory, written["memory_mib"]);
    window = std::max<double>(window, written["window"].get<double>() / kMib);
    const auto looked = runWriter(origin + "/pack", true);
    same = std::min<double>(same, looked["seconds"]);
    memory = std::max<double>(memory, looked["memory_mib"]);
    window = std::max<double>(window, looked["window"].get<double>() / kMib);
    disk = std::min(disk, readDisk(files, index));
    changeSome(files, index);
    changed = std::min<double>(changed, runWriter(origin + "/pack", true)["seconds"]);
  }

  bench::Report report("writer");
  report.record({"full write, verified twice, beside curl|zstd|dd", pipeline / full, "x", 1.0,
                 bench::Bar::AtLeast, std::nullopt});
  report.record({"the same beside the pipeline and then reading the disk", (pipeline + disk) / full,
                 "x", std::nullopt, bench::Bar::AtLeast, std::nullopt});
  report.record({"full write", raw_mib / full, "MiB/s raw", std::nullopt, bench::Bar::AtLeast,
                 raw_mib / pipeline});
  report.record({"memory above baseline", memory, "MiB", 64, bench::Bar::AtMost, window});
  report.record({"the same image again", full / same, "x", 8, bench::Bar::AtLeast, std::nullopt});
  report.record(
      {"an image with 5 % changed", full / changed, "x", 5, bench::Bar::AtLeast, std::nullopt});
  report.record({"looking at what is there", raw_mib / same, "MiB/s raw", std::nullopt,
                 bench::Bar::AtLeast, raw_mib / disk});
  report.record({"looking beside reading the disk", disk / same, "x", std::nullopt,
                 bench::Bar::AtLeast, std::nullopt});
  return report.exitCode();
}
