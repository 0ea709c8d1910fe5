// Quirks: what BMCs do differently, as data. A new vendor or firmware is a row in quirks.cc, never an `if` elsewhere.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster::bmc {

/// How an inventory member is named so that the name survives an update.
enum class InventoryKey {
  Id,             ///< the member's Id
  Name,           ///< the member's Name; its Id where the Name is not unique
  InstalledFqdd,  ///< iDRAC: only "Installed-…" members, by what follows "__" (the Id itself contains the version)
};

struct Quirks {
  bool boot_override_on_settings = false;  ///< PATCH @Redfish.Settings' object instead of the system
  bool boot_mode = true;                   ///< BootSourceOverrideMode is sent
  bool keeps_finished_tasks = true;
  bool send_targets = true;                ///< UpdateParameters names the component
  std::string apply_time;                  ///< @Redfish.OperationApplyTime of an upload; empty: not sent
  InventoryKey inventory_key = InventoryKey::Id;
  std::string manager_reset;               ///< used when the manager does not say what it allows
  std::chrono::milliseconds off_on_pause{1000};     ///< between power off and on
  std::chrono::milliseconds settle_gap{1000};       ///< between two of the good reads after a BMC reset
  std::chrono::milliseconds inventory_read{30000};  ///< timeout of one inventory read
};

/// Who a BMC is, as far as it says so.
struct BmcIdentity {
  std::string vendor;        ///< service root Vendor, else its Oem key
  std::string manufacturer;  ///< of the system
  std::string model;         ///< of the system
  std::string version;       ///< of the manager's firmware
};

/// Only what is set changes; rows apply in order, so that a later, narrower row wins.
struct QuirkRow {
  std::string_view vendor;   ///< glob against vendor or manufacturer, case does not matter
  std::string_view model;    ///< glob
  std::string_view version;  ///< glob
  std::string_view source;   ///< where this is known from
  std::optional<bool> boot_override_on_settings = {}, boot_mode = {}, keeps_finished_tasks = {}, send_targets = {};
  std::optional<std::string_view> apply_time = {};
  std::optional<InventoryKey> inventory_key = {};
  std::optional<std::string_view> manager_reset = {};
  std::optional<std::chrono::milliseconds> off_on_pause = {}, settle_gap = {}, inventory_read = {};
};

std::span<const QuirkRow> quirkRows();
Quirks quirksOf(const BmcIdentity& identity);

/// Messages by which a BMC says "not now": the call is repeated later, whatever its status was.
std::span<const std::string_view> tryLaterMessages();

}  // namespace muster::bmc
