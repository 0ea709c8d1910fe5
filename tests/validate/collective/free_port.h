// SPDX-License-Identifier: Apache-2.0
// A port of the loopback for the processes of one test.
#pragma once

#include "validate/collective/tcp_streams.h"

namespace muster::collective {

inline int freePort() {
  const auto listener = listenAt(0);
  return *portOf(listener->get());
}

}  // namespace muster::collective
