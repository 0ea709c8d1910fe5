// SPDX-License-Identifier: Apache-2.0
// muster's boot media in the virtual CDs of nodes. What it puts in is written down before the BMC
// is told, so that whoever comes after a kill knows what to take out. A medium that muster has not
// inserted is a person's: it is never ejected, and nothing is booted beside it.
#pragma once

#include "base/ids.h"
#include "bmc/bmc.h"
#include "provision/boot_log.h"
#include "provision/netboot/netboot.h"

#include <optional>

namespace muster::provision {

class VirtualCds {
 public:
  /// `log`: nullptr: no medium can be inserted, for none could be found again.
  VirtualCds(bmc::BmcFleet& bmcs, Netboot& netboot, BootLog* log)
      : bmcs_(bmcs), netboot_(netboot), log_(log) {}
  /// Arms the node and inserts its medium. Answers what the machine is to boot from.
  /// Errors: NotFound (the BMC has no virtual CD), Conflict (somebody else's medium is inserted),
  /// both not to be tried again; those of Netboot::armMedium and Boot::insertMedia
  Async<bmc::BootTarget> insert(NodeName node);
  /// What muster has left there is taken out; nothing happens where that is nothing.
  Async<void> eject(NodeName node);
  /// As it was written down; the BMC is not asked.
  Result<std::optional<InsertedMedium>> left(const NodeName& node) const;

 private:
  bool isOurs(const bmc::VirtualMedium& drive, const std::optional<InsertedMedium>& record) const;

  bmc::BmcFleet& bmcs_;
  Netboot& netboot_;
  BootLog* log_;
};

}  // namespace muster::provision
