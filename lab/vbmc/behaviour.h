// SPDX-License-Identifier: Apache-2.0
// How a virtual BMC behaves, by whose it plays. Data of the lab's own, from captures and the
// vendors' documents; it shares nothing with the client (docs/adr/0226), so that what one of both
// has wrong shows in a test.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace muster::lab::vbmc {

/// Id of a member of the firmware inventory.
enum class MemberIds {
  Names,          ///< the component's name
  Numbers,        ///< 1, 2, …, which shift when a member comes or goes; Name is the component's
  InstalledFqdd,  ///< iDRAC: "Installed-0-VERSION__FQDD", and "Previous-0-VERSION__FQDD"
};

/// How the image that ran before is ordered.
enum class GoesBack {
  No,
  ByPreviousMember,  ///< SimpleUpdate of the inventory's "Previous-…" member
  ByActiveImage,     ///< PATCH of the manager's Links.ActiveSoftwareImage
};

/// What cuts standby power besides ResetType FullPowerCycle.
struct StandbyCut {
  enum class Owner { None, System, Chassis, BiosAttribute };
  Owner owner = Owner::None;
  std::string_view chassis = {};  ///< Id of the chassis that has the action
  std::string_view action = {};   ///< path to it in its owner; or the BIOS attribute
  std::string_view value = {};    ///< its ResetType; or the attribute's value
  bool host_off = false;          ///< refused while the host is on
};

/// What an upload for one component must say in Oem.
struct OemRule {
  std::string_view component;               ///< its name
  std::string_view kind;                    ///< Oem/Supermicro/KIND
  std::span<const std::string_view> names;  ///< that there are; those of Preserve… keep settings
};

/// Id of a boot option; its reference is "Boot0001".
enum class OptionIds { References, Digits, Numbers };

enum class LedOwner { None, System, Chassis };

/// The LED by which people find a machine.
struct Led {
  LedOwner owner = LedOwner::None;
  bool active = false;                        ///< LocationIndicatorActive
  std::string_view idle = {}, locating = {};  ///< IndicatorLED; "": it has none
};

/// A drive that the BMC shows to the machine.
struct MediaDrive {
  std::string_view id;
  std::array<std::string_view, 4> types;  ///< "": no more
};

/// What BootSourceOverrideTarget may be where no capture says more.
inline constexpr std::array<std::string_view, 5> kUsualBootTargets = {"None", "Pxe", "Hdd", "Cd",
                                                                      "UefiHttp"};
inline constexpr std::array<MediaDrive, 1> kUsualDrives = {{{"Cd", {"CD", "DVD"}}}};

/// The vendor's name of what the lab's service calls otherwise.
struct ResourceName {
  std::string_view inside, outside;  ///< paths from the root
};

/// A RAID controller, where the machine is given drives for one.
struct RaidBehaviour {
  std::string_view controller = "RAID0", name = "RAID Controller";  ///< Id and Name of its Storage
  std::string_view drive_prefix = "Bay", drive_suffix = {};         ///< around a drive's number
  std::span<const std::string_view> levels;
  bool capabilities = true;          ///< Volumes/Capabilities says what a POST may have
  std::string_view apply_time = {};  ///< the one that its Volumes take; "": they take none
  bool by_task = true;               ///< else a POST answers with the volume itself
  bool dell = false;                 ///< drives have DellPhysicalDisk
};
inline constexpr std::array<std::string_view, 5> kUsualLevels = {"RAID0", "RAID1", "RAID5", "RAID6",
                                                                 "RAID10"};

struct Behaviour {
  std::span<const ResourceName> names = {};  ///< the longest first
  // ---- what it says of itself
  bool system_says_identity =
      true;                       ///< Manufacturer, Model, SerialNumber and EthernetInterfaces of
                                  ///< the system; else chassis, Product and BootOptions say it
  std::string_view product = {};  ///< of the service root; "": none
  int dell_system_id = 0;         ///< Oem.Dell.DellSystem.SystemID, the kind of machine; 0: none
  // ---- boot override
  bool override_on_settings = false;  ///< only the settings object takes it
  bool if_match_required = false;     ///< a PATCH without If-Match is refused
  bool boot_mode = true;              ///< the system has BootSourceOverrideMode
  std::span<const std::string_view> boot_targets = kUsualBootTargets;
  bool targets_on_system = true;  ///< the system lists them, not only its settings object
  // ---- boot order, which the settings object takes where there is one
  OptionIds option_ids = OptionIds::References;
  bool option_paths = true;          ///< options show UefiDevicePath
  bool option_aliases = false;       ///< and Alias
  bool options_can_be_off = true;    ///< and BootOptionEnabled
  bool order_if_none_match = false;  ///< its PATCH comes with If-None-Match
  // ---- LED, virtual media
  Led led = {LedOwner::System, true};
  std::span<const MediaDrive> drives = kUsualDrives;
  bool drives_of_system = false;          ///< else the manager has them
  bool system_links_drives = false;       ///< and the system leads there
  bool eject_only_when_inserted = false;  ///< the action is there only then
  std::array<std::string_view, 5> media_schemes = {"http://", "https://", "nfs://", "smb://",
                                                   "cifs://"};  ///< of Image
  bool media_wants_account = false;  ///< inserting needs UserName and Password
  // ---- tasks
  bool keeps_finished_tasks = true;
  std::string_view staged_state = {};  ///< TaskState while an image waits; "": Completed
  int new_task_404s = 0;  ///< a new task has become a Job, which answers 404 so many times
  bool jobs = false;      ///< the manager links them
  // ---- images
  MemberIds member_ids = MemberIds::Names;
  GoesBack goes_back = GoesBack::No;
  std::string_view flash_state = {};  ///< path in the UpdateService; a form takes the file, no task
  std::uintmax_t piece_bytes = 0;     ///< a larger file comes in pieces
  bool two_phase = false;             ///< an upload is verified; StartUpdate begins it
  std::string_view stuck_message = {};
  std::span<const OemRule> oem_rules = {};
  std::string_view whole_tray = {};  ///< a target: the image says which of its parts it is for
  bool copies_in_background = false;
  std::string_view commit_action = {};  ///< path of CommitImage in the UpdateService; "": none
  // ---- the rest
  std::string_view manager_reset = {};  ///< the one ResetType that it takes; "": the usual two
  bool expand_drops_fields = false;
  RaidBehaviour raid = {.levels = kUsualLevels, .apply_time = "Immediate"};
  StandbyCut cut = {};
};

/// Of a vendor profile (lab/vbmc/vendor_profile.h).
const Behaviour& behaviourOf(std::string_view profile);

}  // namespace muster::lab::vbmc
