// SPDX-License-Identifier: Apache-2.0
// What `sfdisk --json` says. One reader for controller (imports) and agent (disks).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

struct Partition {
  std::string node;  ///< "/dev/vda3"
  int number =
      0;  ///< from the node's name: tables may have gaps and need not be in order; 0: it has none
  std::string name;  ///< GPT label
  std::string uuid;  ///< small letters, as udev's by-partuuid links are; sfdisk prints capitals
  std::uint64_t start_sectors = 0, size_sectors = 0;  ///< of 512 bytes
};

struct PartitionTable {
  std::string label;  ///< "gpt", "dos"; empty: there is no table
  std::string id;     ///< of the disk, as its table has it: "0x1b2c3d4e"
  std::vector<Partition> partitions;
};

/// Total: what is no such text has no partitions.
PartitionTable readPartitionTable(std::string_view sfdisk_json);

/// Beginning of a disk that is enough for the next.
inline constexpr std::size_t kTableHeadBytes = 8192;
/// What the partition table at the beginning of a disk counts in, 512 or 4096: a GPT's header lies
/// in the second sector. An MBR tells nothing of it, and is taken for 512.
int sectorBytesOfTable(std::string_view head);

}  // namespace muster::wire
