// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/stream.h"

#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <charconv>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

namespace muster::validate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kLeastNodeBytes = 192 * kMiB;
constexpr std::uint64_t kCachesPerArray = 4;  ///< STREAM: each array four times the last cache
constexpr int kBytesOfElement = 3 * sizeof(double), kMaxRounds = 1'000, kMaxProcessors = 8'192;
constexpr double kShareOfAvailable = 0.25;
constexpr double kShareOfPeak = 0.6;  ///< own choice; published triads reach 0.75 to 0.85 of peak
constexpr double kShareOfBestNode = 0.75;  ///< own choice; a channel of eight less is 0.875, of
                                           ///< four 0.75, a DIMM in the wrong slot half
constexpr double kScalar = 3;

/// Sources: Intel ARK and AMD's processor pages: channels × rate × 8 bytes, of one socket.
struct PeakRow {
  const char* model;  ///< glob of "model name" with a space behind it
  double gbytes_per_s;
};
constexpr PeakRow kPeaks[] = {
    {"*EPYC 7??1 *", 170.6},           // 8 × DDR4-2666
    {"*EPYC 7??2 *", 204.8},           // 8 × DDR4-3200
    {"*EPYC 7??3 *", 204.8},           // 8 × DDR4-3200
    {"*EPYC 9??4 *", 460.8},           // 12 × DDR5-4800
    {"*EPYC 9??5 *", 576.0},           // 12 × DDR5-6000
    {"*Xeon(R) Platinum 83*", 204.8},  // 8 × DDR4-3200
    {"*Xeon(R) Platinum 84*", 307.2},  // 8 × DDR5-4800
    {"*Xeon(R) Platinum 85*", 358.4},  // 8 × DDR5-5600
    {"*Xeon(R) 67??P*", 409.6},        // 8 × DDR5-6400
    {"*Xeon(R) 69??P*", 614.4},        // 12 × DDR5-6400
};

struct Slice {
  int node = 0, processor = 0;
  std::vector<double> best_seconds;
  std::uint64_t elements = 0, wrong = 0;
  bool broken = false;
};

bool pinTo(int processor) {
  const auto size = CPU_ALLOC_SIZE(kMaxProcessors);
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(kMaxProcessors), [](cpu_set_t* each) { CPU_FREE(each); });
  CPU_ZERO_S(size, set.get());
  CPU_SET_S(static_cast<std::size_t>(processor), size, set.get());
  return ::sched_setaffinity(0, size, set.get()) == 0;
}

std::set<int> allowedProcessors() {
  const auto size = CPU_ALLOC_SIZE(kMaxProcessors);
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(kMaxProcessors), [](cpu_set_t* each) { CPU_FREE(each); });
  CPU_ZERO_S(size, set.get());
  std::set<int> out;
  if (::sched_getaffinity(0, size, set.get()) != 0) return out;
  for (int i = 0; i < kMaxProcessors; ++i)
    if (CPU_ISSET_S(static_cast<std::size_t>(i), size, set.get())) out.insert(i);
  return out;
}

/// Memory that no cache keeps: a plain store would read its line first, which STREAM does not
/// count.
void triad(double* a, const double* b, const double* c, std::uint64_t elements) {
  for (std::uint64_t i = 0; i < elements; ++i)
    __builtin_nontemporal_store(b[i] + kScalar * c[i], a + i);
}

/// Small integers: every sum is exact, and neighbours differ.
double valueOf(std::uint64_t i, std::uint64_t array) {
  return static_cast<double>((i * 31 + array * 7) % 4'093);
}

}  // namespace

Result<std::vector<int>> processorsIn(std::string_view list) {
  std::vector<int> out;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    const auto range = list.substr(0, end);
    int first = 0, last = 0;
    auto read = std::from_chars(range.data(), range.data() + range.size(), first);
    last = first;
    if (read.ec == std::errc() && read.ptr != range.data() + range.size() && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, range.data() + range.size(), last);
    if (read.ec != std::errc() || read.ptr != range.data() + range.size() || first < 0 ||
        last < first || last >= kMaxProcessors)
      return fail(ErrorCode::Corrupt, fmt::format("\"{}\" is no list of processors", range));
    for (int i = first; i <= last; ++i) out.push_back(i);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

Result<std::map<int, std::vector<int>>> memoryNodes(const Host& host) {
  const std::filesystem::path folder = "sys/devices/system/node";
  const auto allowed = allowedProcessors();
  if (allowed.empty())
    return fail(ErrorCode::Corrupt, "the kernel allows this process no processor");
  std::map<int, std::vector<int>> nodes;
  for (const auto& name : host.names(folder)) {
    const auto number =
        name.starts_with("node") ? numberIn(std::string_view(name).substr(4)) : std::nullopt;
    if (!number) continue;
    TRY(processors, processorsIn(host.line(folder / name / "cpulist")));
    for (const int each : processors)
      if (allowed.contains(each)) nodes[static_cast<int>(*number)].push_back(each);
  }
  if (nodes.empty()) nodes[0].assign(allowed.begin(), allowed.end());
  return nodes;
}

Result<StreamRun> runStream(const std::map<int, std::vector<int>>& nodes, std::uint64_t node_bytes,
                            std::chrono::milliseconds duration) {
  std::vector<Slice> slices;
  for (const auto& [node, processors] : nodes)
    for (const int processor : processors)
      slices.push_back({.node = node,
                        .processor = processor,
                        .elements = node_bytes / kBytesOfElement / processors.size()});
  if (slices.empty()) return fail(ErrorCode::Unavailable, "no processor to measure with");
  std::atomic<bool> over = false, unusable = false;
  std::atomic<int> round = 0;
  const auto end = Clock::now() + duration;
  std::barrier begin(static_cast<std::ptrdiff_t>(slices.size()), [&]() noexcept {
    over = unusable || round >= kMaxRounds || (round >= 2 && Clock::now() >= end);
    ++round;
  });
  const auto work = [&](Slice& slice) {
    std::unique_ptr<double[]> a, b, c;
    if (!pinTo(slice.processor)) unusable = true;
    try {  // touched first by who uses it: the kernel gives it of this node
      a = std::make_unique_for_overwrite<double[]>(slice.elements);
      b = std::make_unique_for_overwrite<double[]>(slice.elements);
      c = std::make_unique_for_overwrite<double[]>(slice.elements);
      for (std::uint64_t i = 0; i < slice.elements; ++i)
        a[i] = 0, b[i] = valueOf(i, 1), c[i] = valueOf(i, 2);
    } catch (const std::bad_alloc&) {
      unusable = true;
    }
    for (;;) {
      begin.arrive_and_wait();
      if (over) break;
      const auto start = Clock::now();
      triad(a.get(), b.get(), c.get(), slice.elements);
      slice.best_seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    if (unusable) return;
    for (std::uint64_t i = 0; i < slice.elements; ++i)
      slice.wrong += a[i] != valueOf(i, 1) + kScalar * valueOf(i, 2);
  };
  {
    std::vector<std::jthread> threads;
    for (auto& slice : slices) threads.emplace_back([&work, &slice] { work(slice); });
  }
  if (unusable)
    return fail(ErrorCode::Unavailable,
                fmt::format("no {} MiB of memory on each node, or a processor that this process "
                            "may not use",
                            node_bytes / kMiB));
  StreamRun run;
  run.rounds = round - 1;
  for (const auto& [node, processors] : nodes) {
    auto& out = run.nodes[node];
    out.processors = processors.size();
    for (int i = 0; i < run.rounds; ++i) {
      double slowest = 0, bytes = 0;
      for (const auto& slice : slices)
        if (slice.node == node) {
          slowest = std::max(slowest, slice.best_seconds[static_cast<std::size_t>(i)]);
          bytes += static_cast<double>(slice.elements) * kBytesOfElement;
        }
      if (slowest > 0) out.gbytes_per_s = std::max(out.gbytes_per_s, bytes * 1e-9 / slowest);
    }
  }
  for (const auto& slice : slices) run.wrong_elements += slice.wrong;
  return run;
}

std::optional<double> memoryPeakGbytes(std::string_view model) {
  const auto padded = std::string(model) + " ";
  for (const auto& row : kPeaks)
    if (::fnmatch(row.model, padded.c_str(), 0) == 0) return row.gbytes_per_s;
  return std::nullopt;
}

namespace {

struct Processors {
  std::string model;
  std::size_t count = 0;
  std::set<std::string> sockets;
  bool virtual_machine = false;
};

Processors processorsOf(const Host& host) {
  Processors out;
  std::istringstream lines(host.text("proc/cpuinfo"));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const auto value = colon + 2 <= line.size() ? line.substr(colon + 2) : std::string();
    if (key == "processor") ++out.count;
    if (key == "model name") out.model = value;
    if (key == "physical id") out.sockets.insert(value);
    if (key == "flags") {
      std::istringstream flags(value);
      for (std::string flag; flags >> flag;) out.virtual_machine |= flag == "hypervisor";
    }
  }
  return out;
}

/// 0: nothing is expected; `why` says so, or where the floor is from.
double floorOf(const StreamRun& run, const nlohmann::json& params, const Host& host,
               std::string& why) {
  if (const double own = params.value("min_gbytes_per_s", 0.0); own > 0) {
    why = "the gate's own floor";
    return own;
  }
  const auto seen = processorsOf(host);
  const auto peak = memoryPeakGbytes(seen.model);
  std::size_t used = 0;
  for (const auto& [node, each] : run.nodes) used += each.processors;
  if (seen.virtual_machine)
    why = "no floor: a virtual machine";
  else if (!peak)
    why = fmt::format("no floor: no table knows the memory of {}",
                      seen.model.empty() ? "this processor" : seen.model);
  else if (seen.sockets.empty() || used != seen.count)
    why = "no floor: measured on some processors only";
  else {
    why =
        fmt::format("{} of {} × {} GB/s, {}", kShareOfPeak, seen.sockets.size(), *peak, seen.model);
    return kShareOfPeak * *peak * static_cast<double>(seen.sockets.size());
  }
  return 0;
}

}  // namespace

Verdict evaluateStream(const StreamRun& run, const nlohmann::json& params, const Host& host) {
  double all = 0;
  std::map<std::size_t, double> best;  // of nodes with so many processors
  Verdict verdict = pass("");
  for (const auto& [node, each] : run.nodes) {
    if (!(each.gbytes_per_s > 0))
      return noData(fmt::format("memory node {} was not measured", node));
    all += each.gbytes_per_s;
    best[each.processors] = std::max(best[each.processors], each.gbytes_per_s);
    verdict.values[fmt::format("numa{}.stream_gbytes_per_s", node)] = each.gbytes_per_s;
  }
  if (run.nodes.empty()) return noData("no memory node was measured");
  verdict.values["stream_gbytes_per_s"] = all;
  std::string why;
  const double floor = floorOf(run, params, host, why);
  std::vector<std::string> wrong;
  if (run.wrong_elements > 0)
    wrong.push_back(fmt::format("{} elements are not what was written", run.wrong_elements));
  if (floor > 0 && !(all >= floor))
    wrong.push_back(fmt::format("{:.1f} GB/s, expected at least {:.1f} ({})", all, floor, why));
  for (const auto& [node, each] : run.nodes)
    if (each.gbytes_per_s < kShareOfBestNode * best[each.processors])
      wrong.push_back(fmt::format("memory node {} gives {:.1f} GB/s, another one {:.1f}", node,
                                  each.gbytes_per_s, best[each.processors]));
  if (!wrong.empty()) verdict.status = wire::CheckStatus::Fail;
  verdict.text = wrong.empty()
                     ? fmt::format("{:.1f} GB/s over {} memory nodes, every element right; {}", all,
                                   run.nodes.size(), why)
                     : fmt::format("{}", fmt::join(wrong, "; "));
  verdict.evidence = {{"rounds", run.rounds}, {"floor", why}};
  return verdict;
}

namespace {

/// Of the last level that the kernel tells, all processors' together.
std::uint64_t lastCacheBytes(const Host& host, const std::vector<int>& processors) {
  std::map<std::string, std::uint64_t> caches;  // by who shares them
  for (const int processor : processors) {
    const auto folder = fmt::format("sys/devices/system/cpu/cpu{}/cache/index3", processor);
    const auto size = host.line(std::filesystem::path(folder) / "size");
    if (!size.ends_with('K')) continue;
    if (const auto kib = numberIn(std::string_view(size).substr(0, size.size() - 1)))
      caches[host.line(std::filesystem::path(folder) / "shared_cpu_list")] =
          static_cast<std::uint64_t>(*kib) << 10;
  }
  std::uint64_t bytes = 0;
  for (const auto& [shared, size] : caches) bytes += size;
  return bytes;
}

std::uint64_t availableBytes(const Host& host) {
  std::istringstream lines(host.text("proc/meminfo"));
  std::uint64_t kib = 0;
  for (std::string key; lines >> key; lines.ignore(256, '\n'))
    if (key == "MemAvailable:" && lines >> kib) return kib << 10;
  return 0;
}

}  // namespace

Verdict checkHostStream(const nlohmann::json& params, const Host& host) {
  const double seconds = std::clamp(params.value("seconds", 2.0), 0.0, 3'600.0);
  const auto nodes = memoryNodes(host);
  if (!nodes) return noData(nodes.error().str());
  std::uint64_t node_bytes = kLeastNodeBytes;
  for (const auto& [node, processors] : *nodes)
    node_bytes = std::max(node_bytes, 3 * kCachesPerArray * lastCacheBytes(host, processors));
  const auto free =
      static_cast<std::uint64_t>(kShareOfAvailable * static_cast<double>(availableBytes(host)) /
                                 static_cast<double>(nodes->size()));
  if (free < kLeastNodeBytes)
    return noData(fmt::format("{} MiB of free memory for each memory node, {} are needed",
                              free / kMiB, kLeastNodeBytes / kMiB));
  const auto run = runStream(*nodes, std::min(node_bytes, free),
                             std::chrono::milliseconds(static_cast<long>(seconds * 1'000)));
  if (!run) return checkError(run.error().str());
  return evaluateStream(*run, params, host);
}

}  // namespace muster::validate
