// SPDX-License-Identifier: Apache-2.0
// What a whole disk holds, looked at on its node: what is decided by, and the same for people.
#pragma once

#include "wire/messages.h"

#include <string>

namespace muster::agent {

struct DiskContent {
  wire::DiskUse use = wire::DiskUse::Other;  ///< what cannot be read is Other, never Empty
  std::string text;                          ///< "none", "ext4 \"data\" on /dev/vda1"
};

}  // namespace muster::agent
