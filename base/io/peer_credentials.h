// SPDX-License-Identifier: Apache-2.0
// Who connected to a Unix socket, as the kernel says: nothing of it can be made up by the peer.
#pragma once

#include "base/result.h"

#include <sys/types.h>

#include <vector>

namespace muster::io {

struct PeerCredentials {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;              ///< when it connected; it may be another process's by now
  std::vector<gid_t> groups;  ///< further ones of the process; empty where the kernel does not say
  friend bool operator==(const PeerCredentials&, const PeerCredentials&) = default;
};

/// Of a connected Unix socket. Source: unix(7) SO_PEERCRED, SO_PEERGROUPS (Linux 4.13)
Result<PeerCredentials> peerCredentials(int socket);

}  // namespace muster::io
