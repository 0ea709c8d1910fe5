// SPDX-License-Identifier: Apache-2.0
// Quirks: what BMCs do differently, as data. A new vendor or firmware is a row in quirks.cc, never
// an `if` elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

/// How an inventory member is named so that the name survives an update.
enum class InventoryKey {
  Id,             ///< the member's Id
  Name,           ///< the member's Name; with where it is, or its Id, where the Name is not unique
  InstalledFqdd,  ///< iDRAC: only "Installed-…" members, by what follows "__" (the Id itself
                  ///< contains the version)
};

/// Which of the ways that an UpdateService offers is taken. Auto: the first of these that it
/// offers.
enum class UpdateMethod { Auto, Multipart, HttpPush, SimpleUpdate };

/// How the image that a component ran before is made to run again. UpdateFromPrevious: SimpleUpdate
/// with the inventory's "Previous-…" member as ImageURI. ActiveImage: the manager's
/// Links.ActiveSoftwareImage is set to another of its SoftwareImages.
enum class RollbackMethod { None, UpdateFromPrevious, ActiveImage };

/// How an image that waits for its activation is taken back. DeleteJob: its job in the queue.
/// ActiveImage: the manager's Links.ActiveSoftwareImage is set to the one that runs; the BMC's own
/// image only.
enum class CancelStagedMethod { None, DeleteJob, ActiveImage };

/// How standby power is cut, where ResetType FullPowerCycle is not offered. `action` is a path
/// below Actions of the owner, or below the owner itself.
enum class AcCycleOwner { None, System, Chassis, BiosAttribute };
struct AcCycleMethod {
  AcCycleOwner owner = AcCycleOwner::None;
  std::string_view chassis;  ///< Id of the chassis that has the action
  std::string_view action;   ///< path to it in the owner; or the BIOS attribute
  std::string_view
      value;  ///< its ResetType; or the attribute's value, which the next restart carries out
  bool host_off = false;  ///< refused while the host is on
};

/// Components that a package is sent to as a whole.
struct TrayTarget {
  std::string_view members;  ///< glob of their names; "": none
  std::string_view target;   ///< a member of the inventory's collection, or a path from the root
};

/// What an upload says besides, of components whose names fit.
struct OemUpdateParameters {
  std::string_view component;  ///< glob
  std::string_view oem;        ///< JSON of UpdateParameters' Oem
  bool target_is_related =
      false;  ///< Targets names the inventory member's RelatedItem in its place, where it has one
};

/// How a file goes to HttpPushUri, where that is the way. By itself: the body is the file, and the
/// answer names its task.
struct PushMethod {
  bool form = false;                ///< in a form, as its part "file"
  bool if_match = false;            ///< with the ETag of what it is sent to
  bool then_simple_update = false;  ///< the answer's Location is firmware that lies ready;
                                    ///< SimpleUpdate of it begins the update
};

struct Quirks {
  bool boot_override_on_settings =
      false;                              ///< PATCH @Redfish.Settings' object instead of the system
  bool boot_mode = true;                  ///< BootSourceOverrideMode is sent
  bool boot_order_if_none_match = false;  ///< BootOrder is written with If-None-Match
  std::string media_schemes;  ///< of URLs that its virtual CD reads, divided by blanks; empty: what
                              ///< the drive lists, else any
  std::string media_user;     ///< UserName and Password that inserting an image wants though the
                              ///< server asks for none; empty: they are not sent
  bool lit_is_idle = false;   ///< IndicatorLED: Lit is normal, Blinking locates
  bool keeps_finished_tasks = true;
  bool send_targets = true;  ///< UpdateParameters names the component
  TrayTarget tray;           ///< named in UpdateParameters whatever send_targets says
  std::string apply_time;    ///< @Redfish.OperationApplyTime of an upload; empty: not sent
  InventoryKey inventory_key = InventoryKey::Id;
  std::string manager_reset;  ///< used when the manager does not say what it allows
  UpdateMethod update = UpdateMethod::Auto;
  PushMethod push;
  bool two_phase = false;  ///< an upload is only verified; UpdateService.StartUpdate then begins it
  std::string upload_oem;  ///< JSON object that is laid into UpdateParameters
  std::span<const OemUpdateParameters> oem_update_parameters = {};  ///< the first that fits
  std::string flash_state;  ///< where in the UpdateService a flash without a task shows itself:
                            ///< State and FlashProgressPercent below it
  std::uintmax_t piece_bytes = 0;  ///< a larger file goes in pieces of so many, each with a
                                   ///< signature file beside it; 0: whole
  std::string stuck_message;       ///< message id after which only a reset of the BMC helps
  std::string staged_state;  ///< TaskState or JobState of an image that is taken in and waits for
                             ///< its activation; empty: Completed
  RollbackMethod rollback = RollbackMethod::None;
  CancelStagedMethod cancel_staged = CancelStagedMethod::None;
  int new_task_404_retries =
      0;  ///< a task that is just being created answers 404 so many times, 10 s apart
  std::string background_copies;  ///< where in a chassis the state of its second slot is, which
                                  ///< the machine fills by itself; empty: nowhere
  std::vector<std::string>
      commit;                 ///< globs of components whose second slot is filled when asked for
  std::string commit_action;  ///< … by this action of the UpdateService
  bool expand = true;         ///< $expand gives whole members, where it is offered
  AcCycleMethod ac_cycle;
  std::chrono::milliseconds off_on_pause{1000};  ///< between power off and on
  std::chrono::milliseconds stabilize_gap{
      1000};  ///< between two of the good reads after a BMC reset
  std::chrono::milliseconds inventory_read{30000};  ///< timeout of one inventory read
};

/// Who a BMC is, as far as it says so.
struct BmcIdentity {
  std::string vendor;                          ///< service root Vendor, else its Oem key
  std::string manufacturer;                    ///< of the system, else of its chassis
  std::string model;                           ///< of the system
  std::string version;                         ///< of the manager's firmware
  std::vector<std::string> other_models = {};  ///< of its chassis and the service (Product): a
                                               ///< row's glob fits any of them
};

/// Only what is set changes; rows apply in order, so that a later, narrower row wins.
struct QuirkRow {
  std::string_view vendor;   ///< glob against vendor or manufacturer, case does not matter
  std::string_view model;    ///< glob against each model that is reported
  std::string_view version;  ///< glob
  std::string_view source;   ///< where this is known from
  std::optional<bool> boot_override_on_settings = {}, boot_mode = {}, boot_order_if_none_match = {},
                      lit_is_idle = {}, keeps_finished_tasks = {}, send_targets = {};
  std::optional<std::string_view> apply_time = {}, media_schemes = {}, media_user = {};
  std::optional<InventoryKey> inventory_key = {};
  std::optional<std::string_view> manager_reset = {};
  std::optional<std::chrono::milliseconds> off_on_pause = {}, stabilize_gap = {},
                                           inventory_read = {};
  std::optional<UpdateMethod> update = {};
  std::optional<bool> two_phase = {};
  std::optional<std::string_view> background_copies = {};
  std::optional<bool> expand = {};
  std::optional<RollbackMethod> rollback = {};
  std::optional<std::string_view> staged_state = {}, upload_oem = {}, flash_state = {},
                                  stuck_message = {}, commit = {},  ///< globs, divided by blanks
      commit_action = {};
  std::optional<int> new_task_404_retries = {};
  std::optional<std::uintmax_t> piece_bytes = {};
  std::optional<AcCycleMethod> ac_cycle = {};
  std::optional<TrayTarget> tray = {};
  std::optional<PushMethod> push = {};
  std::optional<CancelStagedMethod> cancel_staged = {};
  std::optional<std::span<const OemUpdateParameters>> oem_update_parameters = {};
};

std::span<const QuirkRow> quirkRows();
Quirks quirksOf(const BmcIdentity& identity);

/// Messages by which a BMC says "not now": the call is repeated later, whatever its status was.
std::span<const std::string_view> tryLaterMessages();

}  // namespace muster::bmc
