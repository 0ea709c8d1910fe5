// SPDX-License-Identifier: Apache-2.0
// Open findings, with who raised them.
#pragma once

#include "lifecycle/model/finding.h"

#include <string>
#include <vector>

namespace muster::cli {

std::string findingsText(const std::vector<lifecycle::Finding>& findings);
std::string findingsJson(const std::vector<lifecycle::Finding>& findings);

}  // namespace muster::cli
