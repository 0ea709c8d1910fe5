// SPDX-License-Identifier: Apache-2.0
// Both topologies over one numbering of devices and ports, so that the peer of a port is one
// look-up.
//
// A found device may answer under another name than the declared one; where its cables prove who it
// is, it counts as that.
#pragma once

#include "fabric/topology/topology.h"

#include <unordered_map>

namespace muster::fabric {

class Wiring {
 public:
  using Slot = int;  ///< one port of one device
  static constexpr Slot kNone = -1;

  struct DeviceInfo {
    const std::string* name = nullptr;
    Slot first = 0;  ///< slot of its port 0
    int ports = 0;
    bool is_switch = false, is_declared = false, is_found = false;
    int declared_cables = 0;
    int level = 0;  ///< that a shape declares: leaf 1, spine 2, core 3; else 0
    const std::string* elsewhere = nullptr;  ///< the other fabric on which this HCA is declared
  };
  /// A device that is where `declared` belongs and calls itself `found`.
  struct Renamed {
    enum class How {
      OtherName,   ///< one that is not its own; empty: none
      SharedName,  ///< its own, which another device carries too
      Exchanged,   ///< each other's: `declared` and `found` are hosts, or switches
    };
    std::string declared, found;
    Port place;  ///< the other end of a cable that proves it
    How how = How::OtherName;
  };

  /// Borrows both.
  Wiring(const Topology& declared, const Topology& found);

  Slot slots() const { return static_cast<Slot>(device_of_.size()); }
  const DeviceInfo& device(Slot slot) const {
    return devices_[static_cast<std::size_t>(device_of_[static_cast<std::size_t>(slot)])];
  }
  Port port(Slot slot) const { return {*device(slot).name, slot - device(slot).first}; }
  const std::vector<DeviceInfo>& devices() const { return devices_; }
  const std::vector<Renamed>& renamed() const { return renamed_; }

  struct Ends {
    Slot peer = kNone;
    const Link* link = nullptr;
  };
  const Ends& declared(Slot slot) const { return declared_[static_cast<std::size_t>(slot)]; }
  const Ends& found(Slot slot) const { return found_[static_cast<std::size_t>(slot)]; }

 private:
  using Ids = std::unordered_map<std::string_view, int>;

  void number(const Topology& topology, bool is_declared);
  void wire(const Topology& topology, std::vector<Ends>& into) const;
  /// Of a found port; kNone: a renamed device has fewer.
  Slot slot(const Port& port) const;
  bool exchangePossible(Slot slot) const;
  int idOf(const std::string& name) const { return ids_.at(name); }
  void tellDevices(const Topology& found);
  void tellHosts(const Topology& found);
  /// The device that is declared where this end of a found cable is; nullptr: none, or the port
  /// differs.
  const DeviceInfo* expectedAt(Slot own, Slot peer) const;

  Ids ids_;  // a found name leads to the device that it is
  std::vector<DeviceInfo> devices_;
  std::vector<int> device_of_;  // slot → device
  std::vector<Ends> declared_, found_;
  std::vector<Renamed> renamed_;
};

}  // namespace muster::fabric
