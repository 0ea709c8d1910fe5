// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/hardware_raid.h"

#include <fmt/format.h>

namespace muster::inventory {

std::string whyNoRaid(wire::RaidLevel level, int drives) {
  using wire::RaidLevel;
  switch (level) {
    case RaidLevel::None:
      return "a volume of a RAID controller has a level";
    case RaidLevel::Raid0:
      return {};  // of one drive, too: how controllers show a single one
    case RaidLevel::Raid1:
      return drives == 2 ? "" : "RAID 1 has two drives";
    case RaidLevel::Raid5:
    case RaidLevel::Raid6:
      if (drives >= wire::leastDisks(level)) return {};
      return fmt::format("RAID {} needs {} drives at least", *wire::raidNumber(level),
                         wire::leastDisks(level));
    case RaidLevel::Raid10:
      if (drives >= wire::leastDisks(level) && drives % 2 == 0) return {};
      return "RAID 10 has an even number of drives, four at least";
  }
  return {};
}

}  // namespace muster::inventory
