// SPDX-License-Identifier: Apache-2.0
// Formats of images and archives that an import does not take, so that it can say what it was given
// and how to make of it what it takes.
#pragma once

#include <string>

namespace muster::provision {

/// "it is a VHDX; convert it: …"; empty: it is none of those that are known.
std::string foreignFormat(int fd);

}  // namespace muster::provision
