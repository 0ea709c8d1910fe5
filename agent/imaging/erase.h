// SPDX-License-Identifier: Apache-2.0
// Erasing disks for good, before a machine or a disk leaves the site. Runs in the RAM OS;
// docs/adr/0022.
//
// Guards, each on its own and all before the first byte: the controller's plan had a wipe
// permission; the serial that a person typed is the one that this machine's own firmware tells;
// each disk can be had for nobody else but us, which holds until the end: udev would assemble an
// old array again as soon as somebody who wrote to a disk of it closes it.
//
// Per disk the strongest method that it offers is tried first, and one that fails, or that did not
// do what it said, makes room for the next. Whether it did is found out, not believed: before,
// places all over the disk are marked with random blocks; after, none of them may still be there.
#pragma once

#include "agent/imaging/block_target.h"
#include "agent/imaging/disks.h"
#include "wire/erase_disks.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::agent {

inline constexpr std::size_t kMarkedPlaces =
    512;  ///< beside the first and the last block of a disk
inline constexpr std::uint64_t kMarkBytes = 4096;
inline constexpr std::size_t kDisksAtOnce =
    wire::kMaxErasedDisks;  ///< so the largest disk says how long it takes
inline constexpr std::chrono::seconds kSanitizePoll{5};
inline constexpr int kMaxSanitizePolls = 8640;  ///< twelve hours

enum class EraseMethod {
  NvmeFormatCrypto,
  NvmeSanitizeBlock,
  NvmeSanitizeCrypto,
  NvmeFormatUser,
  SecureDiscard,
  Overwrite
};
std::string_view toString(EraseMethod method);  ///< "nvme-format-crypto", …
/// "purge": also what the disk keeps back for itself. "clear": only what can be addressed. In the
/// words of NIST SP 800-88.
std::string_view levelOf(EraseMethod method);

struct DiskErasure {
  DiskInfo disk;
  std::string method;  ///< empty: it is not erased
  std::string level;
  std::vector<std::string> tried;  ///< "METHOD: why it was not enough"
  std::uint64_t bytes = 0;         ///< that are gone
  std::size_t places_checked = 0;  ///< marked before, read back after
  double seconds = 0;
  std::string fault;
};

struct EraseReport {
  std::string node_serial;
  std::vector<DiskErasure> disks;
  std::vector<std::string> left;  ///< disks that were not meant, for people
  bool complete() const;
  std::string json() const;
};

using DiskClaim = std::shared_ptr<const void>;

/// All of the outside. Called from several threads at once, but for one controller of disks from
/// one at a time.
struct EraseTools {
  /// Stops arrays and volumes that udev made of what an earlier system left on the disk.
  std::function<void(const DiskInfo&)> release;
  /// Standard output. Errors: the program's failure
  std::function<Result<std::string>(const std::string& program,
                                    const std::vector<std::string>& args)>
      run;
  std::function<Result<std::unique_ptr<BlockTarget>>(const std::filesystem::path&)> open;
  /// Takes the disk alone: for as long as the claim lives nobody mounts, assembles or maps it.
  /// Errors: Conflict
  std::function<Result<DiskClaim>(const std::filesystem::path&)> claim;
  std::function<void(std::chrono::seconds)> pause;
  std::function<void(double fraction, const std::string& text)> progress;
  std::function<bool()> cancelled;      ///< somebody ended the task, or its time is nearly up
  std::function<double()> now_seconds;  ///< of a steady clock
};
/// The real ones; the last three are the caller's.
EraseTools eraseTools();

/// Which disks are meant. Pure.
/// Errors: Denied (no permission; the serial is another machine's, or this machine tells none),
/// NotFound, Conflict (a serial that two disks have)
Result<std::vector<DiskInfo>> chooseErased(const wire::EraseParams& params,
                                           const std::vector<DiskInfo>& disks,
                                           const std::string& machine_serial);

/// Blocking. A disk that could not be erased has a fault in the report and does not stop the
/// others. Errors: those of chooseErased, Conflict (in use); then nothing was written
Result<EraseReport> eraseDisks(const wire::EraseParams& params, const std::vector<DiskInfo>& disks,
                               const std::string& machine_serial, const EraseTools& tools);

/// One disk, by the first method that is enough. `whole_controller`: every namespace of its
/// controller is erased, so what works on all of them at once may be used.
DiskErasure eraseDisk(
    const DiskInfo& disk, bool whole_controller, const EraseTools& tools,
    const std::function<void(double fraction, const std::string& text)>& progress);

/// What an NVMe controller offers, from its Identify data (NVMe base specification, Identify
/// Controller).
std::vector<EraseMethod> nvmeMethods(std::string_view identify_controller);
/// "/dev/nvme0n1" → "/dev/nvme0"; empty when it is no namespace of an NVMe controller.
std::string nvmeController(const std::filesystem::path& disk);

}  // namespace muster::agent
