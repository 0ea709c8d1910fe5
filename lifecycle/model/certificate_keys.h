// SPDX-License-Identifier: Apache-2.0
// Where certificates lie among the store's values. What they are is validate/'s; keep shows them
// without knowing more.
#pragma once

#include "base/ids.h"

#include <string>

namespace muster::lifecycle {

inline std::string certificateKey(const NodeName& node) { return "certificate." + node.str(); }

}  // namespace muster::lifecycle
