// SPDX-License-Identifier: Apache-2.0
#include "tests/paths.h"

namespace muster::test {

std::filesystem::path sourceFolder() { return MUSTER_SOURCE_DIR; }
std::filesystem::path binFolder() { return MUSTER_BIN_DIR; }

}  // namespace muster::test
