// SPDX-License-Identifier: Apache-2.0
// The node whose console the tests of this folder read.
#pragma once

#include "base/ids.h"

namespace muster::bmc {

inline const NodeName kNode("gpu001");

}  // namespace muster::bmc
