// SPDX-License-Identifier: Apache-2.0
// The stages of a node's way from the rack into its pool, in their order (DESIGN §5).
#pragma once

namespace muster::lifecycle {

enum class Stage {
  Enrollment,
  Firmware,  ///< by the BMC, before there is a system
  Bios,
  Raid,  ///< volumes of RAID controllers
  Inspection,
  Image,
  Boot,
  Drivers,
  InBandFirmware,
  Storage,
  Fabric,
  Gates,
  Certificate,
  Pool,
  None,  ///< part of no stage: what is observed for other reasons, or asked for by a person
};

}  // namespace muster::lifecycle
