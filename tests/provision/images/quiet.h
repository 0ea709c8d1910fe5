// SPDX-License-Identifier: Apache-2.0
// Building an image without saying what is done.
#pragma once

#include "provision/images/system_builder.h"

namespace muster::provision {

inline const Say kQuiet = [](std::string_view) {};

}  // namespace muster::provision
