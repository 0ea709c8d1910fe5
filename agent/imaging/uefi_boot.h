// SPDX-License-Identifier: Apache-2.0
// The boot order that a machine's UEFI firmware keeps, after a system was installed: that system
// first, the network next, systems that somebody left on other disks switched off. Read from the
// firmware's variables (base/io/uefi_variables.h), written by efibootmgr. docs/adr/0281
#pragma once

#include "agent/imaging/disks.h"
#include "base/io/uefi_variables.h"

namespace muster::agent {

/// An EFI system partition that holds muster's boot loader.
struct InstalledEsp {
  std::filesystem::path disk;
  int partition = kEspPartition;
  std::string partuuid;  ///< small letters
};

/// Where a running Linux shows its firmware's variables and its disks' partitions.
struct UefiPlaces {
  std::filesystem::path variables = io::kUefiVariables;
  std::filesystem::path partitions = "/dev/disk/by-partuuid";
};

/// Whether the system that runs is the RAM OS. Any other one has a boot order of its own, which is
/// left alone: tests install on machines that people work at.
bool runsFromMemory();

/// What was changed, a line each; empty: nothing had to be. A second run changes nothing.
/// Errors: Corrupt, Denied (variables that cannot be read), Internal (efibootmgr's own words),
/// Unavailable (the firmware did not keep what it took). Their texts end in what to do.
Result<std::vector<std::string>> mendUefiBoot(const std::vector<InstalledEsp>& installed,
                                              const UefiPlaces& places = {});

}  // namespace muster::agent
