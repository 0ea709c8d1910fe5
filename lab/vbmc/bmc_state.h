// SPDX-License-Identifier: Apache-2.0
// What a virtual BMC remembers over its own restarts: firmware slots, boot override, failed logins.
// One JSON file a node.
#pragma once

#include "lab/vbmc/login_guard.h"
#include "lab/vbmc/vendor_profile.h"

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::lab::vbmc {

/// One updatable component: the running slot, the staged one, and the one to fall back to.
struct Slot {
  std::string version;
  std::string staged_version;    ///< empty: nothing waits for a reset
  std::string previous_version;  ///< what ran before; empty: nothing else did
  std::uint64_t uploads = 0;     ///< images received, good or bad
  std::uint64_t flashes =
      0;  ///< images that were verified and written: what "never flashed twice" is counted by
  bool broken = false;  ///< the running image left it worse: it shows no version
};

/// What is in a virtual drive.
struct Medium {
  std::string image;  ///< URI
  bool write_protected = true;
};

/// Of a RAID controller.
struct Volume {
  std::string id, name;
  std::string level;                ///< "RAID1"; empty: a drive that is shown as it is
  std::vector<std::string> drives;  ///< ids
};

struct BmcState {
  std::map<std::string, Slot> slots;           ///< by FirmwareInventory Id
  std::string boot_once = "None";              ///< Redfish's word: None, Pxe, Hdd, UefiHttp, …
  bool boot_lasts = false;                     ///< for all boots
  std::string boot_uri;                        ///< of UefiHttp
  std::vector<std::string> boot_order;         ///< references; what it lacks comes last
  std::vector<std::string> staged_boot_order;  ///< from the next start on; empty: nothing waits
  std::set<std::string> boot_disabled;         ///< options that are skipped
  bool locating = false;                       ///< the LED tells where the machine is
  std::map<std::string, Medium> media;         ///< by the drive's id
  std::vector<Volume> volumes;                 ///< of its RAID controller
  std::uint64_t volume_ids = 0;                ///< given out
  std::uint64_t volume_orders = 0;             ///< accepted: to make one, or to delete one
  std::map<std::string, Account> accounts;     ///< by id, without the first
  std::string account_salt,
      account_sha256;               ///< of a password that was changed; empty: as the lab gave it
  std::uint64_t failed_logins = 0;  ///< ever
  std::uint64_t starts = 0;         ///< power-ons that it carried out
  std::uint64_t tasks = 0;          ///< task ids given out; an id is never used twice
  std::uint64_t ac_cycles = 0;
  std::map<std::string, std::string> bios, staged_bios;  ///< attributes
  bool bios_job = false;  ///< the next start takes the staged ones over, and none may be added
  std::vector<std::string>
      violations;  ///< what no controller may do: "power was cut while BIOS was written"
  std::vector<std::string> log;  ///< system event log, oldest first; the last kMaxLog

  static constexpr std::size_t kMaxLog = 200, kMaxViolations = 50;

  /// A fresh BMC of this kind.
  static BmcState fresh(const VendorProfile& vendor_profile);
  /// The file's content, or a fresh state when there is none. Errors: Corrupt
  static Result<BmcState> load(const std::filesystem::path& file,
                               const VendorProfile& vendor_profile);
  Result<void> save(const std::filesystem::path& file) const;
};

}  // namespace muster::lab::vbmc
