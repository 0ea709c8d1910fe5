// What a virtual BMC remembers over its own restarts: firmware slots, boot override, failed logins. One JSON file a node.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace muster::lab::vbmc {

/// One updatable component: the running slot and the staged one.
struct Slot {
  std::string version;
  std::string staged_version;  ///< empty: nothing waits for a reset
  std::uint64_t uploads = 0;   ///< images received, good or bad
  std::uint64_t flashes = 0;   ///< images that were verified and written: what "never flashed twice" is counted by
};

struct BmcState {
  std::map<std::string, Slot> slots;  ///< by FirmwareInventory Id
  std::string boot_once = "None";     ///< Redfish's word: None, Pxe, Hdd
  std::uint64_t failed_logins = 0;    ///< ever
  std::uint64_t starts = 0;           ///< power-ons that it carried out
  std::uint64_t tasks = 0;            ///< task ids given out; an id is never used twice

  /// A fresh BMC: BMC 2.0.0, BIOS 1.4.0.
  static BmcState fresh();
  /// The file's content, or a fresh state when there is none. Errors: Corrupt
  static Result<BmcState> load(const std::filesystem::path& file);
  Result<void> save(const std::filesystem::path& file) const;
};

}  // namespace muster::lab::vbmc
