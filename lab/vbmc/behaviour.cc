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

/// Dell's documents and its iDRAC-Redfish-Scripting; names: capture.
constexpr Behaviour kIdrac = {
    .names = kDellNames,
    .keeps_finished_tasks = false,
    .staged_state = "Scheduled",
    .new_task_404s = 3,
    .jobs = true,
    .member_ids = MemberIds::InstalledFqdd,
    .goes_back = GoesBack::ByPreviousMember,
    .manager_reset = "GracefulRestart",
    .cut = {StandbyCut::Owner::BiosAttribute, {}, "PowerCycleRequest", "FullPowerCycle", false}};

/// HPE's Redfish documents (flash of firmware, pieces with .compsig); names: capture.
constexpr Behaviour kIlo = {.names = kNumberedNames,
                            .keeps_finished_tasks = false,
                            .member_ids = MemberIds::Numbers,
                            .flash_state = "Oem/Hpe",
                            .piece_bytes = kSmartComponentBytes,
                            .cut = {StandbyCut::Owner::System,
                                    {},
                                    "Oem/Hpe/Actions/#HpeComputerSystemExt.SystemReset",
                                    "AuxCycle",
                                    true}};

/// Supermicro's Redfish guide (OnStartUpdateRequest, Preserve…); names: capture.
constexpr Behaviour kSupermicro = {
    .names = kNumberedNames,
    .two_phase = true,
    .stuck_message = "OemFirmwareAlreadyInUpdateMode",
    .oem_rules = kSupermicroRules,
    .manager_reset = "GracefulRestart",
    .cut = {
        StandbyCut::Owner::System, {}, "Actions/Oem/#OemSystemExtensions.Reset", "ACCycle", false}};

/// NVIDIA's DGX H100 documents; names, SD and CommitImage: capture.
constexpr Behaviour kDgx = {.names = kDgxNames,
                            .override_on_settings = true,
                            .if_match_required = true,
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
    .staged_state = "Stopping",
    .whole_tray = "/redfish/v1/Chassis/HGX_Chassis_0",
    .copies_in_background = true,
    .commit_action = "Actions/Oem/#NvidiaUpdateService.CommitImage",
    .cut = {StandbyCut::Owner::Chassis, "BMC_0", "Actions/Oem/#NvidiaChassis.AuxPowerReset",
            "AuxPowerCycle", true}};

/// bmcweb's sources.
constexpr Behaviour kOpenBmc = {
    .names = kOpenBmcNames, .staged_state = "Stopping", .goes_back = GoesBack::ByActiveImage};

constexpr Behaviour kPlain = {};

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
