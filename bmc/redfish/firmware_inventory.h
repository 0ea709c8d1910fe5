// SPDX-License-Identifier: Apache-2.0
// The firmware inventory of a BMC, under names that survive an update (quirks.h, InventoryKey).
#pragma once

#include "bmc/redfish/resources.h"

#include <map>
#include <string>
#include <vector>

namespace muster::bmc {

/// Status/State of a member while an image of it is being written.
inline constexpr std::string_view kUpdating = "Updating";

/// What a member or an image says of itself, without blanks at its ends, and not without end.
std::string versionAt(const Json& json);

class FirmwareInventory {
 public:
  explicit FirmwareInventory(RedfishResources& resources) : resources_(resources) {}

  struct Contents {
    std::string collection;  ///< its URI
    std::vector<FirmwareItem> items;
    std::map<std::string, std::string> uri_by_name;
    std::map<std::string, std::string>
        related_by_name;  ///< the first RelatedItem, where there is one
    std::map<std::string, Member>
        previous;  ///< by name, where the inventory lists images that ran before
  };
  /// A read, remembered until the session writes something.
  Async<Contents> read();
  /// The last such read right after its answer, where nothing was unreadable; else a new one. What
  /// asks at intervals sees changes: they are longer.
  Async<Contents> cached();
  /// No read that was sent until now counts any more.
  void forgetRead() {
    read_.reset();
    ++reads_sent_;
  }

 private:
  Async<Contents> contents();

  RedfishResources& resources_;
  UntilForgotten<std::string> collection_;
  struct Read {
    std::weak_ptr<const Contents> contents;    ///< recent_reads.h
    std::chrono::steady_clock::time_point at;  ///< of its answer
    std::uint64_t writes = 0;                  ///< of the session until then
    std::uint64_t generation = 0;
  };
  std::optional<Read> read_;
  std::uint64_t reads_sent_ = 0;
};

}  // namespace muster::bmc
