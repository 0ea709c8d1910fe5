// SPDX-License-Identifier: Apache-2.0
// What the rates of a burn are evaluated against: skus.json by the GPU's model.
#pragma once

#include "validate/checks/check_row.h"

#include <string>
#include <vector>

namespace muster::validate {

/// Floors of the table for GPUs of one model, of those stages that run, as muster-burn takes them
/// ("gemm_bf16_gflops=715500"): 0.95 of a power limit is no floor, only rates are.
std::vector<std::string> burnFloors(const std::string& model, const std::string& stages);

/// One GPU of at least four of a node that is far below the others in memory or in products:
/// published floors of memory are half of the peak and less, and most formats have none.
void compareGpusOfTheNode(Verdict& verdict);

/// Copies between GPUs, all of them at once, against a share of what one pair alone reaches; and
/// which rates of a pass have no floor at all.
void evaluateCopiesAndNameTheRest(Verdict& verdict, const std::string& model, std::size_t gpus,
                                  const std::vector<std::string>& floors);

}  // namespace muster::validate
