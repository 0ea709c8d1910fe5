// SPDX-License-Identifier: Apache-2.0
#include "bmc/quirks.h"

#include "lifecycle/model/facet.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

// Without these a Supermicro resets what it does not keep: the BMC its network, accounts and
// certificate, the BIOS its settings.
constexpr std::array kSupermicroUploads = {
    OemUpdateParameters{
        "BMC",
        R"({"Supermicro":{"BMC":{"PreserveCfg":true,"PreserveSdr":true,"PreserveSsl":true}}})",
        true},
    OemUpdateParameters{
        "BIOS",
        R"({"Supermicro":{"BIOS":{"PreserveME":true,"PreserveNVRAM":true,"PreserveSMBIOS":true,"BackupBIOS":false}}})",
        true},
};

/// OpenBMC on NVIDIA's Grace machines, which say in Product or in the manager's FirmwareVersion
/// what they are, not in the system.
constexpr QuirkRow graceRow(std::string_view model, std::string_view version) {
  return QuirkRow{
      .vendor = "nvidia*",
      .model = model,
      .version = version,
      .source =
          "no SimpleUpdate, a downgrade needs ForceUpdate, the package of the GPU tray goes to "
          "HGX_Chassis_0, boot overrides to the settings object and without a mode (libredfish "
          "nvidia_gbx00.rs and nvidia_gh200.rs, captures); a staged image's task stays in Stopping "
          "(nvfwupd, bmcweb); AuxPowerReset wants the host off",
      .boot_override_on_settings = true,
      .boot_mode = false,
      .update = UpdateMethod::Multipart,
      .background_copies = "Oem/Nvidia/BackgroundCopyStatus",
      .staged_state = "Stopping",
      .upload_oem = R"({"ForceUpdate":true})",
      .ac_cycle = AcCycleMethod{AcCycleOwner::Chassis, "BMC_0",
                                "Actions/Oem/#NvidiaChassis.AuxPowerReset", "AuxPowerCycle", true},
      .tray = TrayTarget{"HGX_*", "/redfish/v1/Chassis/HGX_Chassis_0"}};
}

// One row per known difference. Rows describe what was read in captures or in public drivers, with
// their source.
constexpr std::array kRows = {
    QuirkRow{.vendor = "dell*",
             .model = "*",
             .version = "*",
             .source =
                 "iDRAC: ids of inventory members contain the version; a finished task disappears, "
                 "its Job stays, and answers 404 while it is "
                 "created (libredfish dell.rs, ironic power.py); Manager.Reset knows "
                 "GracefulRestart only; fwupd waits 120 s; AC cycle is a BIOS attribute; a Job "
                 "that waits for the restart is Scheduled, and a Previous-… member given to "
                 "SimpleUpdate goes back; before MultipartHttpPushUri a form goes to the inventory "
                 "with its ETag, 201 names an Available-… member, SimpleUpdate takes that (Dell's "
                 "iDRAC-Redfish-Scripting); IndicatorLED is Lit while nobody looks for the machine "
                 "(captures)",
             .lit_is_idle = true,
             .keeps_finished_tasks = false,
             .inventory_key = InventoryKey::InstalledFqdd,
             .manager_reset = "GracefulRestart",
             .stabilize_gap = 10s,
             .rollback = RollbackMethod::UpdateFromPrevious,
             .staged_state = "Scheduled",
             .new_task_404_retries = 3,
             .ac_cycle = AcCycleMethod{AcCycleOwner::BiosAttribute, "", "PowerCycleRequest",
                                       "FullPowerCycle"},
             .push = PushMethod{true, true, true},
             .cancel_staged = CancelStagedMethod::DeleteJob},
    QuirkRow{.vendor = "hpe*",
             .model = "*",
             .version = "*",
             .source = "iLO 5/6: ids of inventory members are numbers that shift (capture); no "
                       "MultipartHttpPushUri, progress in Oem.Hpe of the UpdateService "
                       "(redfishdocs); Smart Components of more than 32 MiB go in pieces with a "
                       ".compsig each (ilorest uploadcomp); AuxCycle after ForceOff",
             .keeps_finished_tasks = false,
             .inventory_key = InventoryKey::Name,
             .stabilize_gap = 10s,
             .flash_state = "Oem/Hpe",
             .piece_bytes = 32u << 20,
             .ac_cycle = AcCycleMethod{AcCycleOwner::System, "",
                                       "Oem/Hpe/Actions/#HpeComputerSystemExt.SystemReset",
                                       "AuxCycle", true}},
    QuirkRow{.vendor = "supermicro*",
             .model = "*",
             .version = "*",
             .source =
                 "an upload is verified, StartUpdate begins it (bmclib x12, fwupd); "
                 "GracefulRestart only (capture); OemFirmwareAlreadyInUpdateMode is "
                 "left by a cold reset of the BMC; AC cycle by an OEM action; Oem flags keep the "
                 "configuration, Targets are the RelatedItems of BMC and BIOS (bmclib x12, fwupd, "
                 "capture)",
             .apply_time = "OnStartUpdateRequest",
             .manager_reset = "GracefulRestart",
             .stabilize_gap = 10s,
             .two_phase = true,
             .stuck_message = "OemFirmwareAlreadyInUpdateMode",
             .ac_cycle = AcCycleMethod{AcCycleOwner::System, "",
                                       "Actions/Oem/#OemSystemExtensions.Reset", "ACCycle"},
             .oem_update_parameters = kSupermicroUploads},
    QuirkRow{.vendor = "supermicro*",
             .model = "*X10*",
             .version = "*",
             .source = "X10 has no BootSourceOverrideMode (metal-operator #982)",
             .boot_mode = false},
    QuirkRow{.vendor = "nvidia*",
             .model = "*DGX*H100*",
             .version = "*",
             .source =
                 "AMI on DGX H100: writes go to the settings object with If-Match; inventory "
                 "of 66 members is slow, 180 s; motherboard packages want an "
                 "empty UpdateParameters, those of the GPU tray name HGX_0 (nvfwupd, "
                 "dgx_rftarget.py); $expand drops required fields; roots of trust copy by "
                 "themselves but for EROT_BMC_0 and EROT_BIOS_0; BootOrder is written with "
                 "If-None-Match (libredfish nvidia_viking.rs); InsertMedia wants UserName and "
                 "Password, whatever they are (OpenStack's sushy, virtual_media.py, bug "
                 "2071945)",
             .boot_override_on_settings = true,
             .boot_order_if_none_match = true,
             .send_targets = false,
             .media_user = "none",
             .manager_reset = "ForceRestart",
             .off_on_pause = 10s,
             .stabilize_gap = 30s,
             .inventory_read = 180s,
             .background_copies = "Oem/Nvidia/BackgroundCopyStatus",
             .expand = false,
             .commit = "HostBMC_0 HostBIOS_0",
             .commit_action = "Actions/Oem/#NvidiaUpdateService.CommitImage",
             .tray = TrayTarget{"HGX_*", "HGX_0"}},
    graceRow("*GB200*", "*"),
    graceRow("*GB300*", "*"),
    graceRow("*", "GB200*"),
    graceRow("*", "GB300*"),
    graceRow("*", "GH200*"),  // its Product is P3809, the BMC's card, which switch trays have too
    QuirkRow{.vendor = "openbmc*",
             .model = "*",
             .version = "*",
             .source = "bmcweb: TaskState Stopping for a staged image, for 5 h; SimpleUpdate "
                       "refuses every scheme; Links.ActiveSoftwareImage of the manager can be set; "
                       "InsertMedia knows smb and https only (virtual_media.hpp)",
             .media_schemes = "https smb",
             .update = UpdateMethod::Multipart,
             .rollback = RollbackMethod::ActiveImage,
             .staged_state = "Stopping",
             .cancel_staged = CancelStagedMethod::ActiveImage},
    QuirkRow{.vendor = "lenovo*",
             .model = "*",
             .version = "*",
             .source = "XCC: ApplyTime must be Immediate (libredfish 64234506); 10 s between off "
                       "and on on SR675V3",
             .apply_time = "Immediate",
             .off_on_pause = 10s,
             .stabilize_gap = 10s},
};

constexpr std::array<std::string_view, 5> kTryLater = {
    "UnableToModifyDuringSystemPOST",  // HPE iLO while the host is in POST, status 400
    "HMCCommuicationFailed",           // DGX H100, host is off or the baseboard is starting (their
                                       // spelling), status 503
    "ServiceTemporarilyUnavailable",   // DSP0268 base registry
    "ServiceInUnknownState",           // DSP0268 base registry
    "RAC0218",                         // iDRAC: too many sessions
};

bool fits(std::string_view glob, std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string pattern(glob);
  std::transform(pattern.begin(), pattern.end(), pattern.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lifecycle::matches(pattern, text);
}

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

void apply(const QuirkRow& row, Quirks& quirks) {
  if (row.boot_override_on_settings)
    quirks.boot_override_on_settings = *row.boot_override_on_settings;
  if (row.boot_mode) quirks.boot_mode = *row.boot_mode;
  if (row.boot_order_if_none_match) quirks.boot_order_if_none_match = *row.boot_order_if_none_match;
  if (row.lit_is_idle) quirks.lit_is_idle = *row.lit_is_idle;
  if (row.keeps_finished_tasks) quirks.keeps_finished_tasks = *row.keeps_finished_tasks;
  if (row.send_targets) quirks.send_targets = *row.send_targets;
  if (row.apply_time) quirks.apply_time = *row.apply_time;
  if (row.media_schemes) quirks.media_schemes = *row.media_schemes;
  if (row.media_user) quirks.media_user = *row.media_user;
  if (row.inventory_key) quirks.inventory_key = *row.inventory_key;
  if (row.manager_reset) quirks.manager_reset = *row.manager_reset;
  if (row.off_on_pause) quirks.off_on_pause = *row.off_on_pause;
  if (row.stabilize_gap) quirks.stabilize_gap = *row.stabilize_gap;
  if (row.inventory_read) quirks.inventory_read = *row.inventory_read;
  if (row.update) quirks.update = *row.update;
  if (row.two_phase) quirks.two_phase = *row.two_phase;
  if (row.rollback) quirks.rollback = *row.rollback;
  if (row.staged_state) quirks.staged_state = *row.staged_state;
  if (row.background_copies) quirks.background_copies = *row.background_copies;
  if (row.expand) quirks.expand = *row.expand;
  if (row.upload_oem) quirks.upload_oem = *row.upload_oem;
  if (row.flash_state) quirks.flash_state = *row.flash_state;
  if (row.stuck_message) quirks.stuck_message = *row.stuck_message;
  if (row.commit) quirks.commit = wordsOf(*row.commit);
  if (row.commit_action) quirks.commit_action = *row.commit_action;
  if (row.new_task_404_retries) quirks.new_task_404_retries = *row.new_task_404_retries;
  if (row.piece_bytes) quirks.piece_bytes = *row.piece_bytes;
  if (row.ac_cycle) quirks.ac_cycle = *row.ac_cycle;
  if (row.tray) quirks.tray = *row.tray;
  if (row.push) quirks.push = *row.push;
  if (row.cancel_staged) quirks.cancel_staged = *row.cancel_staged;
  if (row.oem_update_parameters) quirks.oem_update_parameters = *row.oem_update_parameters;
}

}  // namespace

std::span<const QuirkRow> quirkRows() { return kRows; }

Quirks quirksOf(const BmcIdentity& identity) {
  Quirks quirks;
  for (const QuirkRow& row : kRows) {
    const bool vendor =
        fits(row.vendor, identity.vendor) || fits(row.vendor, identity.manufacturer);
    const bool model = fits(row.model, identity.model) ||
                       std::ranges::any_of(identity.other_models, [&](const std::string& other) {
                         return fits(row.model, other);
                       });
    if (vendor && model && fits(row.version, identity.version)) apply(row, quirks);
  }
  return quirks;
}

std::span<const std::string_view> tryLaterMessages() { return kTryLater; }

}  // namespace muster::bmc
