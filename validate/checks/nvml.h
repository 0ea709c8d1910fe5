// SPDX-License-Identifier: Apache-2.0
// NVML by dlopen: the few calls that checks need, with the library's own ABI. No NVIDIA header or
// library at build time.
#pragma once

#include "base/result.h"
#include "wire/messages.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace muster::validate {

/// What one GPU says of its health. A value that the driver does not offer stays nullopt: the check
/// then has no data.
struct GpuHealth {
  wire::Gpu identity;
  std::optional<bool> ecc_enabled;
  std::optional<std::uint64_t> ecc_uncorrected_volatile;
  std::optional<std::uint64_t> ecc_uncorrected_aggregate;
  struct RemappedRows {
    unsigned correctable = 0, uncorrectable = 0;
    bool pending = false, failure = false;
  };
  std::optional<RemappedRows> remapped;
  std::optional<std::uint64_t> throttle_reasons;  ///< bit mask, see kThrottle… in gpu_checks.cc
  std::optional<std::uint64_t> ecc_corrected_volatile;
  struct RetiredPages {
    unsigned single_bit = 0, double_bit = 0;
    bool pending = false;
  };
  std::optional<RetiredPages> retired;  ///< before row remapping (A100) there was this
  /// Nanoseconds that the chip has been held back since the driver was loaded, by cause.
  std::optional<std::uint64_t> throttle_power_ns, throttle_thermal_ns, throttle_board_ns,
      throttle_reliability_ns;
  std::optional<unsigned> nvlinks_up;
  std::optional<unsigned> nvlinks_down;  ///< while others of the same GPU are up; a GPU without any
                                         ///< has none that could be down
  std::optional<std::uint64_t> nvlink_errors;  ///< replays, recoveries and CRC errors of all links
  bool nvlink_counts_crc = false;  ///< by generations before 5, which know no bit error rate
  struct Pcie {
    unsigned generation = 0, max_generation = 0, width = 0,
             max_width = 0;  ///< max: of GPU and slot together
  };
  std::optional<Pcie> pcie;
  std::optional<bool> inforom_valid;
  /// NVSwitch fabric: 3 is registered ("completed"); nullopt where the GPU has none.
  struct Fabric {
    unsigned state = 0;
    int status = 0;
    std::string cluster_uuid;  ///< hex; the same on all nodes of an NVLink domain
    unsigned clique = 0;       ///< who can reach whom within it
    unsigned health_mask = 0;  ///< 0: this driver does not say
  };
  std::optional<Fabric> fabric;
  std::optional<std::uint64_t> pcie_replays;
  std::optional<unsigned> temperature_c;
  std::optional<unsigned> slowdown_c;  ///< where the hardware holds the chip back
  std::optional<unsigned> power_mw, power_limit_mw, power_default_mw;
  std::optional<unsigned> sm_mhz, sm_max_mhz, memory_mhz, memory_max_mhz;
  std::optional<std::uint64_t> memory_bytes;
};

/// Errors a bit that a link of NVLink 5 or later has received since its counters began; 0: none was
/// seen. nullopt: the driver does not say, or says what is no rate.
struct NvLinkBer {
  unsigned link = 0;
  std::optional<double> effective;  ///< that forward error correction has left
  std::optional<double> symbol;     ///< of symbols, likewise after correction
};

/// What a fabric's health mask says, in words; empty: nothing is wrong.
std::string fabricTroubleOf(unsigned health_mask);

/// A session with NVML; shut down on destruction.
class Nvml {
 public:
  /// Loads libnvidia-ml.so.1, or the file that MUSTER_NVML names.
  /// Errors: NotFound (no library), Unavailable (driver does not answer), Corrupt (a symbol is
  /// missing)
  static Result<Nvml> open();
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();

  Result<std::string> driverVersion() const;
  /// Of CUDA, that the driver can run: 13000 is 13.0.
  Result<int> cudaVersion() const;
  Result<std::vector<GpuHealth>> gpus() const;
  /// One of them, by its place in that list: what looks every second asks no more than it needs.
  Result<GpuHealth> gpu(unsigned index) const;
  /// Bit error rates of each NVLink that is up, by the GPU's place in that list. Not part of
  /// `gpu`: each link is asked.
  Result<std::vector<NvLinkBer>> nvLinkBer(unsigned index) const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace muster::validate
