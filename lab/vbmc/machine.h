// SPDX-License-Identifier: Apache-2.0
// Seam: the machine that a virtual BMC switches. A libvirt domain in the lab, a few booleans in
// tests.
#pragma once

#include "base/async/task.h"

#include <filesystem>
#include <string>

namespace muster::lab::vbmc {

enum class BootDevice { Disk, Network };

struct StartOptions {
  /// Holds for this start only: the next reboot that the guest makes by itself tries the disk
  /// first.
  BootDevice first = BootDevice::Disk;
  std::string bios_version;            ///< what SMBIOS tells the guest
  std::string cd = {};                 ///< URI of a virtual CD that is tried before both; "": none
  std::filesystem::path cd_file = {};  ///< the same, read from there; the machine's own business
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual Async<bool> isOn() = 0;
  /// Nothing happens when it is on.
  virtual Async<void> start(StartOptions options) = 0;
  /// At once, without asking the guest. Nothing happens when it is off.
  virtual Async<void> stop() = 0;
  /// Presses the power button; the guest may take its time or ignore it.
  virtual Async<void> pressButton() = 0;
  /// Takes the virtual CD out while it runs. Nothing happens when it has none.
  virtual Async<void> emptyDrive() = 0;
};

}  // namespace muster::lab::vbmc
