// SPDX-License-Identifier: Apache-2.0
// What the burn engine asks of hardware: products, memory steps, copies, a look at the sensors. One
// implementation for the host's processors (cpu/), one for GPUs (gpu/) over CUDA (cuda/) or HIP
// (hip/), a scripted one in the tests. The engine decides; a device only does, counts and times.
#pragma once

#include "base/result.h"
#include "validate/burn/arith.h"
#include "validate/burn/device_types.h"
#include "validate/burn/telemetry.h"

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster::burn {

/// What exactness allows of a number format. Source of the widths: IEEE 754, OCP FP8 (E4M3, E5M2)
/// and MX (E8M0, E2M1), CUDA's documentation of TF32 and BF16.
struct DtypeRow {
  Dtype dtype;
  const char* name;
  int significant_bits;        ///< of an operand of random data
  std::int64_t integer_limit;  ///< integer operands lie within; the sums of `max_n` products stay
                               ///< exact in the accumulator
  int max_n;
  double unit_roundoff;  ///< of the accumulator; 0: integers
  int scale_block = 0;   ///< values along k that share a scale; 0: no scales
  /// A has two values of each four along k (2:4), multiplied by the matrix units' own selection.
  /// Burnt where it is asked for by name: its rate is information.
  bool sparse = false;
};
const DtypeRow& rowOf(Dtype dtype);
Result<Dtype> parseDtype(std::string_view name);

/// Integer: every sum is exact, in any order. Random: all bits toggle; evaluated by row and column
/// sums, then by repetition bit for bit.
enum class Operands { Integer, Random };

/// C = A·Bᵀ, all n × n. A and B lie with k running fastest; n is a multiple of kTile.
struct GemmPlan {
  Dtype dtype = Dtype::Fp32;
  Operands operands = Operands::Integer;
  int n = 1024;
  std::uint64_t seed = 0;
  int tilesPerSide() const { return n / kTile; }
  int tiles() const { return tilesPerSide() * tilesPerSide(); }
};

struct BadTile {
  int unit = 0;  ///< core, SM or CU that checked it
  /// A core multiplies what it checks; which unit of a GPU a library multiplies on it does not
  /// tell.
  bool multiplied_there = true;
  int tile = 0;  ///< row-major
  std::uint64_t product = 0;
  std::uint32_t odd_values = 0;  ///< that are no integer at all: NaN, infinity, fraction
  std::vector<double> values;    ///< the tile, row-major; of the first bad tile only
};
struct GemmRound {
  std::uint64_t products = 0;
  double seconds = 0;  ///< that the device worked on them
  std::uint64_t bad_tiles = 0;
  std::vector<BadTile> first;  ///< a few
};
/// Sums of each row over each tile column, [row][tile column], and of each column over each tile
/// row, [tile row][column].
struct SideSums {
  std::vector<double> rows, columns;
};

/// One prepared product with its memory. Not for several threads.
class GemmWork {
 public:
  virtual ~GemmWork() = default;
  /// One checksum a tile, against which verified products are evaluated.
  virtual Result<void> setGolden(std::vector<std::uint64_t> sums) = 0;
  /// Multiplies at least `products` times; with `verify` every tile of every product is compared
  /// with the golden.
  virtual Result<GemmRound> multiply(std::uint64_t products, bool verify) = 0;
  /// Checksums of the last product (of unit 0): over values for integers, over bits for random
  /// data.
  virtual Result<std::vector<std::uint64_t>> tileSums() = 0;
  virtual Result<SideSums> sideSums() = 0;
  /// Operands that are not what they were made as.
  virtual Result<std::uint64_t> wrongInputs() = 0;
};

/// One walk over the whole region: at each word read and compare, then write.
struct MemoryStep {
  bool downwards = false;
  std::optional<MemoryWord> read, write;
  std::chrono::milliseconds hold{0};  ///< bit-fade: before it the region is left alone
};
struct BadWord {
  std::uint64_t offset_bytes = 0, expected = 0, seen = 0;
  int unit = -1;  ///< SM, CU or core that read it; -1: not known
};
struct StepResult {
  std::uint64_t bytes_moved = 0;  ///< read plus written
  double seconds = 0;
  std::uint64_t wrong_words = 0;
  std::vector<BadWord> first;
};
class MemoryWork {
 public:
  virtual ~MemoryWork() = default;
  virtual std::uint64_t bytes() const = 0;
  virtual Result<StepResult> step(const MemoryStep& step, std::uint64_t seed) = 0;
  /// What a plain copy within the region reaches, read plus written, in bytes a second.
  virtual Result<double> copyRate() = 0;
};

struct CopyRound {
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::uint64_t bad_blocks = 0;
  std::uint64_t first_bad_offset = 0;
  std::optional<int> host_node = {};  ///< memory node of the host's end; nullopt: none, not known
};

/// That every unit has for itself.
enum class UnitCache { SharedMemory, L1 };
std::string_view toString(UnitCache cache);  ///< "shared memory"
/// Patterns in one of them.
struct CacheRound {
  std::uint64_t words = 0, wrong_words = 0;  ///< words that were read
  int units = 0;                             ///< that read some
  std::vector<BadWord> first;                ///< offsets within the unit's part
};

/// What a part of the device (an SM, a core) answered to a small product of its own.
struct UnitResult {
  int unit = 0;
  std::uint64_t products = 0, wrong = 0;
};

enum class FaultKind {
  OutputBit,
  InputBit,
  ScaleBit,
  PlaceBit,  ///< of sparse operands: which values of a group are kept
  NotANumber,
  MemoryBit,
  CopyBit,
  CacheBit,
  SlowKernel
};
/// How often a device with FaultKind::SlowKernel does each product: far beyond what other work on
/// the machine does to a rate.
inline constexpr int kSlowKernelTimes = 16;
/// A fault that the self-test puts in. `at`: index of a value, word or block; `bit` counts from the
/// lowest.
struct Fault {
  FaultKind kind = FaultKind::OutputBit;
  std::uint64_t at = 0;
  int bit = 0;
  std::uint64_t after = 0;  ///< so many products are right before it begins
};

struct Identity {
  std::string kind;                  ///< "cpu", "cuda" or "hip"
  std::string model, serial, place;  ///< place: PCI address, or "host"
  int units = 0;                     ///< cores or SMs
  std::string library = {};  ///< that multiplies, with its version: the bits of its results are
                             ///< comparable between devices of a model
};

class Device {
 public:
  virtual ~Device() = default;
  virtual Identity identity() const = 0;
  virtual std::vector<Dtype> dtypes() const = 0;
  /// Burnt only where it is asked for by name: what has no floor and has not met a device.
  virtual bool isByName(Dtype dtype) const { return rowOf(dtype).sparse; }
  /// The size at which this device reaches its rate.
  virtual int preferredN(Dtype dtype) const = 0;
  virtual Result<std::unique_ptr<GemmWork>> prepareGemm(const GemmPlan& plan) = 0;
  virtual std::uint64_t freeBytes() const = 0;
  virtual Result<std::unique_ptr<MemoryWork>> prepareMemory(std::uint64_t bytes) = 0;
  /// "host to device", "device to host", "device to 0000:3b:00.0".
  virtual std::vector<std::string> routes() const = 0;
  virtual Result<CopyRound> copy(const std::string& route, std::uint64_t bytes,
                                 std::uint64_t seed) = 0;
  virtual Result<std::vector<UnitResult>> probeUnits(std::uint64_t seed) = 0;
  /// Those that can be told apart here.
  virtual std::vector<UnitCache> unitCaches() const { return {}; }
  virtual Result<CacheRound> probeUnitCache(UnitCache cache, std::uint64_t) {
    return fail(ErrorCode::InvalidInput,
                "this device tests no cache " + std::string(toString(cache)));
  }
  /// The last cache before the memory; 0: not told.
  virtual std::uint64_t lastCacheBytes() const { return 0; }
  virtual Telemetry sample() = 0;
  /// From now on; nullopt ends it. Only the self-test asks.
  virtual void inject(std::optional<Fault> fault) = 0;
};

using Devices = std::vector<std::unique_ptr<Device>>;

}  // namespace muster::burn
