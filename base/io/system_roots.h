// SPDX-License-Identifier: Apache-2.0
// The certificate authorities that this host believes.
#pragma once

#include "base/result.h"

#include <string>

namespace muster::io {

/// PEM, all of them. Errors: NotFound (the host has no list; says what to install)
Result<std::string> systemRoots();

}  // namespace muster::io
