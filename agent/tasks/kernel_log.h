// SPDX-License-Identifier: Apache-2.0
// What the kernel has said since boot, as symptoms. Reads /dev/kmsg, which keeps each record with
// its number and who said it: what a program wrote there itself is no evidence.
#pragma once

#include "wire/health.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// One record of /dev/kmsg: "6,339,5140900,-;NVRM: Xid (PCI:0000:18:00): 79, …".
struct KernelRecord {
  std::uint64_t sequence = 0;
  bool by_kernel = false;
  std::string_view text;
};
std::optional<KernelRecord> parseKernelRecord(std::string_view line);

/// The symptom that a message of the kernel means; nothing for nearly all of them. Pure.
std::optional<wire::Symptom> symptomOf(std::string_view message);

/// The last lines of the kernel's own, at most so many bytes: what a repair shop asks for. Errors:
/// Unavailable
Result<std::vector<std::string>> kernelLinesOf(const std::filesystem::path& kmsg,
                                               std::size_t max_bytes);

/// Counts what was said since boot, also what has left the kernel's ring since it was read.
class KernelLog {
 public:
  /// Takes in what is new. Errors: Unavailable (it cannot be read)
  Result<void> read(const std::filesystem::path& kmsg);
  std::vector<wire::Symptom> symptoms() const;

  /// This GPU is as new: what was said of it up to now is over.
  void forgetGpu(const std::string& device);
  /// Up to which record each such GPU's past is over; to be kept for the next life of the agent in
  /// the same boot.
  const std::map<std::string, std::uint64_t>& overUpTo() const { return over_; }
  void setOver(std::map<std::string, std::uint64_t> over) { over_ = std::move(over); }

 private:
  void absorb(std::string_view line);
  std::uint64_t next_ = 0;
  std::map<std::string, std::uint64_t> over_;
  std::map<std::pair<std::string, std::string>, wire::Symptom> seen_;  ///< by id and device
};

}  // namespace muster::agent
