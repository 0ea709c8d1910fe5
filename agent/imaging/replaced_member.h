// SPDX-License-Identifier: Apache-2.0
// A set of disks whose guard refuses because one of its disks is a new one: told from its md
// superblocks, so that whoever reads the refusal knows that the data is whole and what would keep
// it. Nothing is done about it here: docs/adr/0111.
#pragma once

#include "agent/imaging/disks.h"
#include "wire/messages.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

/// A disk of the set: whether it is empty, and what `mdadm --examine --export` says of its first
/// partition.
struct Member {
  DiskInfo disk;
  wire::DiskUse use;
  std::string examine;
};

/// Words where every disk that is not empty is a member of one array of the declared level and
/// number of disks, the others are empty, and the array can do without them.
std::optional<std::string> replacedMember(const std::string& set, int raid,
                                          const std::vector<Member>& members);

}  // namespace muster::agent
