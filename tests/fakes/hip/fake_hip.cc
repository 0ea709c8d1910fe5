// SPDX-License-Identifier: Apache-2.0
// Numbers and types are those of ROCm's headers, written down here once more: what the product
// believes about them is not used. Source: hip_runtime_api.h, driver_types.h of ROCm 6.3.
#include "tests/fakes/hip/fake_hip.h"

#include "tests/fakes/gpu/fake_units.h"
#include "tests/fakes/gpu/kernels_host.h"
#include "tests/fakes/hip/code_object.h"
#include "validate/collective/element_values.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace {

using muster::test::CodeObject;
using muster::test::fakeHip;
using muster::test::KernelEntry;
namespace kernels = muster::test::kernels;
namespace burn = muster::burn;
namespace gpu = muster::burn::gpu;

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kPeerAlreadyEnabled = 704,
  kLaunchFailure = 719
};

struct Event {
  std::chrono::steady_clock::time_point at;
};
struct Module {
  CodeObject code;
  int device;
};
struct Function {
  std::string name;
  KernelEntry entry;
  int device;
};

std::mutex& books() {
  static std::mutex mutex;
  return mutex;
}
std::map<void*, std::uint64_t>& blocks() {
  static std::map<void*, std::uint64_t> all;
  return all;
}
thread_local int t_device = 0;
thread_local int t_last_error = kSuccess;

template <class T>
void* make(T value) {
  const std::scoped_lock lock(books());
  ++fakeHip().handles;
  return new T(std::move(value));
}
template <class T>
int drop(void* handle) {
  const std::scoped_lock lock(books());
  --fakeHip().handles;
  delete static_cast<T*>(handle);
  return kSuccess;
}

unsigned machineOf(const std::string& architecture) {
  return architecture.starts_with("gfx90a")   ? muster::test::kMachGfx90a
         : architecture.starts_with("gfx942") ? muster::test::kMachGfx942
                                              : muster::test::kMachGfx950;
}

/// The segment that a kernel reads its arguments from.
class Arguments {
 public:
  Arguments(const KernelEntry& entry, void** given)
      : entry_(entry), segment_(entry.argument_bytes) {
    for (std::size_t i = 0; i < entry.arguments.size(); ++i)
      std::memcpy(segment_.data() + entry.arguments[i].offset, given[i], entry.arguments[i].size);
  }
  template <class T>
  T at(std::size_t number) const {
    const auto& argument = entry_.arguments.at(number);
    if (argument.size != sizeof(T)) std::abort();  // a kernel with other arguments
    T value;
    std::memcpy(&value, segment_.data() + argument.offset, sizeof value);
    return value;
  }

 private:
  const KernelEntry& entry_;
  std::vector<char> segment_;
};

void walk(const Arguments& a) {
  kernels::walkMemory(a.at<gpu::Walk>(0), a.at<std::uint64_t*>(1), a.at<std::uint64_t>(2),
                      a.at<std::uint64_t>(3), a.at<gpu::WordReport*>(4));
}

/// Of collectives.
bool runValueKernel(const std::string& name, const Arguments& a) {
  namespace collective = muster::collective;
  if (name == "fill_input") {
    for (std::uint64_t i = 0; i < a.at<std::uint64_t>(1); ++i)
      a.at<float*>(0)[i] = collective::inputValue(a.at<std::uint64_t>(2), a.at<int>(3), i);
    return true;
  }
  if (name != "count_wrong_output") return false;
  const auto rule = a.at<collective::OutputRule>(2);
  for (std::uint64_t i = 0; i < a.at<std::uint64_t>(1); ++i)
    *a.at<unsigned long long*>(3) +=
        !(a.at<const float*>(0)[i] ==
          collective::outputValue(rule.operation, rule.seed, rule.rank, rule.ranks, rule.count, i));
  return true;
}

bool runKernel(const std::string& name, const Arguments& a, unsigned blocks_launched) {
  using Wrong = unsigned long long*;
  using Words = std::uint64_t*;
  if (name == "fill_operands")
    kernels::fillOperands(a.at<gpu::Encoding>(0), a.at<gpu::OperandRule>(1), a.at<void*>(2),
                          a.at<std::uint64_t>(3));
  else if (name == "count_wrong_operands")
    kernels::countWrongOperands(a.at<gpu::Encoding>(0), a.at<gpu::OperandRule>(1),
                                a.at<const void*>(2), a.at<std::uint64_t>(3), a.at<Wrong>(4));
  else if (name == "fill_scales")
    kernels::fillScales(a.at<gpu::ScaleRule>(0), a.at<std::uint8_t*>(1));
  else if (name == "count_wrong_scales")
    kernels::countWrongScales(a.at<gpu::ScaleRule>(0), a.at<const std::uint8_t*>(1),
                              a.at<Wrong>(2));
  else if (name == "fill_weights")
    kernels::fillWeights(a.at<std::uint64_t>(0), a.at<Words>(1), a.at<int>(2));
  else if (name == "tile_sums")
    kernels::tileSums(a.at<gpu::Output>(0), a.at<Words>(1));
  else if (name == "check_tiles")
    kernels::checkTiles(a.at<gpu::Output>(0), a.at<Words>(1), a.at<unsigned long long>(2),
                        a.at<gpu::TileReport*>(3));
  else if (name == "side_sums")
    kernels::sideSums(a.at<gpu::Output>(0), a.at<double*>(1), a.at<double*>(2));
  else if (name == "block_crcs")
    kernels::blockCrcs(a.at<Words>(0), a.at<std::uint64_t>(1), a.at<std::uint32_t*>(2));
  else if (name == "probe_units")
    kernels::probeUnits(static_cast<int>(blocks_launched), a.at<gpu::UnitReport*>(1));
  else if (name == "probe_shared")
    kernels::probeCache(a.at<gpu::CacheProbe>(0), static_cast<int>(blocks_launched),
                        a.at<gpu::CacheReport*>(1));
  else if (name == "probe_l1")
    kernels::probeCache(a.at<gpu::CacheProbe>(0), static_cast<int>(blocks_launched),
                        a.at<gpu::CacheReport*>(2));
  else if (name == "flip_bit")
    kernels::flipBit(a.at<void*>(0), a.at<int>(1), a.at<int>(2));
  else if (name == "set_nan")
    kernels::setNan(a.at<void*>(0), a.at<int>(1));
  else
    return runValueKernel(name, a);
  return true;
}

/// "walk_random_rw" walks as its arguments say only when the name says the same.
bool walkIsAsNamed(const std::string& name, const gpu::Walk& walk) {
  static constexpr const char* kPatterns[] = {"zeros", "checkerboard", "address", "walking_one",
                                              "random"};
  const auto pattern = walk.reads ? walk.read.pattern : walk.write.pattern;
  return name == std::string("walk_") + kPatterns[static_cast<std::size_t>(pattern)] + "_" +
                     (walk.reads ? "r" : "") + (walk.writes ? "w" : "");
}

}  // namespace

namespace muster::test {
FakeHip& fakeHip() {
  static FakeHip fake;
  return fake;
}
}  // namespace muster::test

extern "C" {

int hipGetDeviceCount(int* count) { return *count = fakeHip().gpus, kSuccess; }
int hipGetDevice(int* device) { return *device = t_device, kSuccess; }
int hipSetDevice(int device) {
  if (device < 0 || device >= fakeHip().gpus) return kInvalidDevice;
  return t_device = device, kSuccess;
}
/// Writes 1,472 bytes, as the library does.
int hipGetDevicePropertiesR0600(void* properties, int) {
  auto* bytes = static_cast<char*>(properties);
  std::memset(bytes, 0, 1472);
  std::strcpy(bytes, "AMD Instinct MI300X");
  const int units = muster::test::kFakeUnits;
  std::memcpy(bytes + 388, &units, sizeof units);
  const std::size_t shared = 64 << 10;
  std::memcpy(bytes + 296, &shared, sizeof shared);
  const int l2 = 2 << 20;
  std::memcpy(bytes + 616, &l2, sizeof l2);
  std::strcpy(bytes + 1160, fakeHip().architecture.c_str());
  return kSuccess;
}
int hipDeviceGetPCIBusId(char* text, int length, int device) {
  return std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", 0xa0 + device),
         kSuccess;
}
int hipDeviceCanAccessPeer(int* can, int, int) { return *can = 1, kSuccess; }
int hipDeviceEnablePeerAccess(int, unsigned) { return t_last_error = kPeerAlreadyEnabled; }
int hipMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = fakeHip().free_bytes + (2u << 30);
  return *free = *total - fakeHip().taken, kSuccess;
}
int hipGetLastError() { return std::exchange(t_last_error, kSuccess); }
const char* hipGetErrorString(int code) {
  return code == kOutOfMemory ? "out of memory" : "fake HIP error";
}

int hipMalloc(void** memory, std::size_t bytes) {
  const std::scoped_lock lock(books());
  if (fakeHip().taken + bytes > fakeHip().free_bytes) return t_last_error = kOutOfMemory;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xa5, bytes);  // fresh memory holds anything
  fakeHip().taken += blocks()[*memory] = bytes;
  return kSuccess;
}
int hipFree(void* memory) {
  const std::scoped_lock lock(books());
  fakeHip().taken -= blocks().at(memory);
  blocks().erase(memory);
  std::free(memory);
  return kSuccess;
}
int hipHostRegister(void*, std::size_t, unsigned) {
  const std::scoped_lock lock(books());
  return ++fakeHip().handles, kSuccess;
}
int hipHostUnregister(void*) {
  const std::scoped_lock lock(books());
  return --fakeHip().handles, kSuccess;
}
int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void*) {
  if (kind < 1 || kind > 3) return kInvalidValue;
  return std::memcpy(to, from, bytes), kSuccess;
}
int hipMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void*) {
  return std::memcpy(to, from, bytes), kSuccess;
}
int hipMemsetAsync(void* to, int value, std::size_t bytes, void*) {
  return std::memset(to, value, bytes), kSuccess;
}

int hipStreamCreateWithFlags(void** stream, unsigned) { return *stream = make(0), kSuccess; }
int hipStreamDestroy(void* stream) { return drop<int>(stream); }
int hipStreamSynchronize(void*) { return kSuccess; }
int hipStreamQuery(void*) {
  if (fakeHip().lost) return t_last_error = kLaunchFailure;
  return fakeHip().stalled ? t_last_error = kNotReady : kSuccess;
}
int hipStreamWaitEvent(void*, void*, unsigned) { return kSuccess; }
int hipEventCreate(void** event) { return *event = make(Event{}), kSuccess; }
int hipEventDestroy(void* event) { return drop<Event>(event); }
int hipEventRecord(void* event, void*) {
  return static_cast<Event*>(event)->at = std::chrono::steady_clock::now(), kSuccess;
}
int hipEventSynchronize(void*) { return kSuccess; }
int hipEventElapsedTime(float* milliseconds, void* begin, void* end) {
  *milliseconds = std::chrono::duration<float, std::milli>(static_cast<Event*>(end)->at -
                                                           static_cast<Event*>(begin)->at)
                      .count();
  return kSuccess;
}

int hipModuleLoadData(void** module, const void* image) {
  if (reinterpret_cast<std::uintptr_t>(image) % 4096 != 0) return kInvalidImage;
  try {
    auto code = muster::test::readCodeObject(
        {static_cast<const char*>(image), muster::test::elfSize(image)});
    if (code.machine != machineOf(fakeHip().architecture)) return kNoBinaryForGpu;
    return *module = make(Module{std::move(code), t_device}), kSuccess;
  } catch (const std::exception&) {
    return kInvalidImage;
  }
}
int hipModuleUnload(void* module) { return drop<Module>(module); }
int hipModuleGetFunction(void** function, void* module, const char* name) {
  const auto& loaded = *static_cast<Module*>(module);
  const auto found = loaded.code.kernels.find(name);
  if (found == loaded.code.kernels.end()) return kNotFound;
  static std::map<std::pair<void*, std::string>, Function> functions;  // live as their module does
  const std::scoped_lock lock(books());
  return *function = &(functions[{module, name}] = {name, found->second, loaded.device}), kSuccess;
}
int hipModuleLaunchKernel(void* function, unsigned blocks, unsigned y, unsigned z, unsigned threads,
                          unsigned ty, unsigned tz, unsigned shared, void*, void** given,
                          void** extra) {
  const auto& kernel = *static_cast<Function*>(function);
  if (kernel.device != t_device) return kInvalidHandle;
  if (blocks == 0 || threads == 0 || threads > kernel.entry.max_threads ||
      shared + kernel.entry.shared_bytes > (64u << 10) || y * z * ty * tz != 1 || extra)
    return kInvalidValue;
  const Arguments arguments(kernel.entry, given);
  const std::scoped_lock lock(books());
  ++fakeHip().launches;
  if (!kernel.name.starts_with("walk_"))
    return runKernel(kernel.name, arguments, blocks) ? kSuccess : kNotFound;
  if (!walkIsAsNamed(kernel.name, arguments.at<gpu::Walk>(0))) return kInvalidValue;
  return walk(arguments), kSuccess;
}

}  // extern "C"
