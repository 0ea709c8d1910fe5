// SPDX-License-Identifier: Apache-2.0
// Where the serial lines of the twin's machines are.
#include "lab/lab.h"
#include "lab/rack.h"

namespace muster::lab {

std::filesystem::path consoleSocket(const LabHandle& lab, const std::string& node) {
  return Paths{lab.folder, {}}.console() / (node + ".sock");
}

}  // namespace muster::lab
