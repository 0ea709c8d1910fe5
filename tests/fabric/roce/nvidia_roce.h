// SPDX-License-Identifier: Apache-2.0
// What is declared where nothing else is: NVIDIA's DSCP 26 → 3, notifications 48 → 6.
#pragma once

#include "inventory/model/fabric.h"

namespace muster::fabric::test {

inline const inventory::Roce kNvidiaRoce;

}  // namespace muster::fabric::test
