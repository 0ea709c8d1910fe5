// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/behaviour.h"

#include <array>
#include <utility>

namespace muster::lab::vbmc {
namespace {

constexpr std::uintmax_t kSmartComponentBytes = 32u << 20;

constexpr std::array<std::string_view, 3> kKeptOfBmc = {"PreserveCfg", "PreserveSdr",
                                                        "PreserveSsl"};
constexpr std::array<std::string_view, 4> kKeptOfBios = {"PreserveME", "PreserveNVRAM",
                                                         "PreserveSMBIOS", "BackupBIOS"};
constexpr std::array<OemRule, 2> kSupermicroRules = {
    {{"BMC", "BMC", kKeptOfBmc}, {"BIOS", "BIOS", kKeptOfBios}}};

constexpr std::array<ResourceName, 4> kDellNames = {
    {{"/redfish/v1/Systems/system", "/redfish/v1/Systems/System.Embedded.1"},
     {"/redfish/v1/Managers/bmc", "/redfish/v1/Managers/iDRAC.Embedded.1"},
     {"/redfish/v1/Chassis/chassis", "/redfish/v1/Chassis/System.Embedded.1"},
     {"/redfish/v1/UpdateService/upload", "/redfish/v1/UpdateService/MultipartUpload"}}};
constexpr std::array<ResourceName, 3> kNumberedNames = {
    {{"/redfish/v1/Systems/system", "/redfish/v1/Systems/1"},
     {"/redfish/v1/Managers/bmc", "/redfish/v1/Managers/1"},
     {"/redfish/v1/Chassis/chassis", "/redfish/v1/Chassis/1"}}};
constexpr std::array<ResourceName, 3> kDgxNames = {
    {{"/redfish/v1/Systems/system", "/redfish/v1/Systems/DGX"},
     {"/redfish/v1/Managers/bmc", "/redfish/v1/Managers/BMC"},
     {"/redfish/v1/Chassis/chassis", "/redfish/v1/Chassis/DGX"}}};
constexpr std::array<ResourceName, 5> kGraceNames = {
    {{"/redfish/v1/Systems/system/SD", "/redfish/v1/Systems/System_0/Settings"},
     {"/redfish/v1/Systems/system", "/redfish/v1/Systems/System_0"},
     {"/redfish/v1/Managers/bmc", "/redfish/v1/Managers/BMC_0"},
     {"/redfish/v1/Chassis/chassis", "/redfish/v1/Chassis/Chassis_0"},
     {"/redfish/v1/UpdateService/upload", "/redfish/v1/UpdateService/update-multipart"}}};
constexpr std::array<ResourceName, 1> kOpenBmcNames = {
    {{"/redfish/v1/UpdateService/upload", "/redfish/v1/UpdateService/update-multipart"}}};

constexpr std::array<std::string_view, 10> kDellTargets = {
    "None",      "Pxe",       "Floppy",     "Cd",     "Hdd",
    "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"};
constexpr std::array<std::string_view, 12> kHpeTargets = {
    "None",  "Cd",        "Hdd", "Usb",       "SDCard",   "Utilities",
    "Diags", "BiosSetup", "Pxe", "UefiShell", "UefiHttp", "UefiTarget"};
constexpr std::array<std::string_view, 10> kSupermicroTargets = {
    "None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext", "UefiHttp"};
constexpr std::array<std::string_view, 15> kAmiTargets = {
    "None",       "Pxe",       "Floppy",    "Cd",          "Usb",
    "Hdd",        "BiosSetup", "Utilities", "Diags",       "UefiShell",
    "UefiTarget", "SDCard",    "UefiHttp",  "RemoteDrive", "UefiBootNext"};
constexpr std::array<std::string_view, 8> kBmcwebTargets = {
    "None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb", "UefiHttp"};

constexpr std::array<MediaDrive, 2> kDellDrives = {
    {{"1", {"CD", "DVD", "USBStick"}}, {"2", {"CD", "DVD", "USBStick"}}}};
constexpr std::array<MediaDrive, 2> kHpeDrives = {
    {{"1", {"Floppy", "USBStick"}}, {"2", {"CD", "DVD"}}}};
constexpr std::array<MediaDrive, 3> kSupermicroDrives = {
    {{"VirtualMedia1", {"CD", "DVD", "Floppy", "USBStick"}},
     {"VirtualMedia2", {"CD", "DVD", "Floppy", "USBStick"}},
     {"VirtualMedia3", {"CD", "DVD", "Floppy", "USBStick"}}}};
constexpr std::array<MediaDrive, 2> kAmiDrives = {{{"CD1", {"CD", "DVD"}}, {"HD1", {"USBStick"}}}};
constexpr std::array<MediaDrive, 1> kBmcwebDrives = {{{"Slot_0", {"CD", "USBStick"}}}};

constexpr std::array<std::string_view, 9> kHpeLevels = {"RAID0",  "RAID1",       "RAID10",
                                                        "RAID5",  "RAID50",      "RAID6",
                                                        "RAID60", "RAID1Triple", "RAID10Triple"};

/// Dell's documents and its iDRAC-Redfish-Scripting; names: capture.
constexpr Behaviour kIdrac = {
    .names = kDellNames,
    .dell_system_id = 0x0A6B,
    .boot_targets = kDellTargets,
    .led = {LedOwner::System, false, "Lit", "Blinking"},
    .drives = kDellDrives,
    .drives_of_system = true,
    .system_links_drives = true,
    .keeps_finished_tasks = false,
    .staged_state = "Scheduled",
    .new_task_404s = 3,
    .jobs = true,
    .member_ids = MemberIds::InstalledFqdd,
    .goes_back = GoesBack::ByPreviousMember,
    .manager_reset = "GracefulRestart",
    .raid = {"RAID.SL.3-1", "PERC H755 Front", "Disk.Bay.", ":Enclosure.Internal.0-1:RAID.SL.3-1",
             kUsualLevels, false, "OnReset", true, true},
    .cut = {StandbyCut::Owner::BiosAttribute, {}, "PowerCycleRequest", "FullPowerCycle", false}};

/// HPE's Redfish documents (flash of firmware, pieces with .compsig); names: capture.
constexpr Behaviour kIlo = {
    .names = kNumberedNames,
    .boot_targets = kHpeTargets,
    .option_ids = OptionIds::Numbers,
    .options_can_be_off = false,
    .led = {LedOwner::System, false, "Off", "Lit"},
    .drives = kHpeDrives,
    .keeps_finished_tasks = false,
    .member_ids = MemberIds::Numbers,
    .flash_state = "Oem/Hpe",
    .piece_bytes = kSmartComponentBytes,
    .raid = {"DE081000", "HPE Smart Array P408i-p SR Gen10", "", "", kHpeLevels, true, "", false},
    .cut = {StandbyCut::Owner::System,
            {},
            "Oem/Hpe/Actions/#HpeComputerSystemExt.SystemReset",
            "AuxCycle",
            true}};

/// Supermicro's Redfish guide (OnStartUpdateRequest, Preserve…); names: capture.
constexpr Behaviour kSupermicro = {
    .names = kNumberedNames,
    .boot_targets = kSupermicroTargets,
    .option_paths = false,
    .led = {LedOwner::System, true, "Off", "Blinking"},
    .drives = kSupermicroDrives,
    .system_links_drives = true,
    .eject_only_when_inserted = true,
    .two_phase = true,
    .stuck_message = "OemFirmwareAlreadyInUpdateMode",
    .oem_rules = kSupermicroRules,
    .manager_reset = "GracefulRestart",
    .cut = {
        StandbyCut::Owner::System, {}, "Actions/Oem/#OemSystemExtensions.Reset", "ACCycle", false}};

/// NVIDIA's DGX H100 documents; names, SD and CommitImage: capture; the account for an image:
/// OpenStack's bug 2071945.
constexpr Behaviour kDgx = {.names = kDgxNames,
                            .override_on_settings = true,
                            .if_match_required = true,
                            .boot_targets = kAmiTargets,
                            .targets_on_system = false,
                            .option_ids = OptionIds::Digits,
                            .option_aliases = true,
                            .order_if_none_match = true,
                            .led = {LedOwner::System, false, "Off", "Lit"},
                            .drives = kAmiDrives,
                            .media_wants_account = true,
                            .whole_tray = "/redfish/v1/UpdateService/FirmwareInventory/HGX_0",
                            .copies_in_background = true,
                            .commit_action = "Actions/Oem/#NvidiaUpdateService.CommitImage",
                            .manager_reset = "ForceRestart",
                            .expand_drops_fields = true};

/// bmcweb's sources (Stopping); names, what the system does not say, Product, Settings,
/// AuxPowerReset, CommitImage: capture of a GB200.
constexpr Behaviour kGrace = {
    .names = kGraceNames,
    .system_says_identity = false,
    .product = "GB200 NVL",
    .override_on_settings = true,
    .boot_mode = false,
    .boot_targets = kBmcwebTargets,
    .drives = {},
    .staged_state = "Stopping",
    .whole_tray = "/redfish/v1/Chassis/HGX_Chassis_0",
    .copies_in_background = true,
    .commit_action = "Actions/Oem/#NvidiaUpdateService.CommitImage",
    .cut = {StandbyCut::Owner::Chassis, "BMC_0", "Actions/Oem/#NvidiaChassis.AuxPowerReset",
            "AuxPowerCycle", true}};

/// bmcweb's sources (virtual_media.hpp: smb and https only).
constexpr Behaviour kOpenBmc = {.names = kOpenBmcNames,
                                .boot_targets = kBmcwebTargets,
                                .drives = kBmcwebDrives,
                                .media_schemes = {"https://", "smb://"},
                                .staged_state = "Stopping",
                                .goes_back = GoesBack::ByActiveImage};

constexpr Behaviour kPlain = {.drives_of_system = true, .system_links_drives = true};

constexpr std::array<std::pair<std::string_view, const Behaviour*>, 7> kRows = {
    {{"idrac", &kIdrac},
     {"idrac-before-multipart", &kIdrac},
     {"ilo", &kIlo},
     {"supermicro", &kSupermicro},
     {"dgx-h100", &kDgx},
     {"gb200", &kGrace},
     {"openbmc", &kOpenBmc}}};

}  // namespace

const Behaviour& behaviourOf(std::string_view profile) {
  for (const auto& [name, behaviour] : kRows)
    if (name == profile) return *behaviour;
  return kPlain;
}

}  // namespace muster::lab::vbmc
