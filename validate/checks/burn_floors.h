// SPDX-License-Identifier: Apache-2.0
// What the rates of a burn are evaluated against: skus.json by the GPU's model.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct Verdict;

/// Floors of the table for GPUs of one model, of those stages that run, as muster-burn takes them
/// ("gemm_bf16_gflops=715500"): 0.95 of a power limit is no floor, only rates are.
std::vector<std::string> burnFloors(const std::string& model, const std::string& stages);

/// Whether the table evaluates a rate of a burn ("gemm_fp16_gflops") of this model.
bool hasBurnFloor(const std::string& model, std::string_view value);

/// The share of what others of a kind reach that a rate of a burn must reach where it is compared.
/// Own choices: memory has one clock on all GPUs of a board; products and copies are bounded by
/// power, heat and the host, which differ from one good machine to the next.
double leastShareOfOthers(std::string_view value);

/// One GPU of at least four of a node that is far below the others in memory or in products: most
/// formats have no published floor.
void compareGpusOfTheNode(Verdict& verdict);

/// Copies between GPUs, all of them at once, against a share of what one pair alone reaches; and
/// which rates of a pass have no floor at all.
void evaluateCopiesAndNameTheRest(Verdict& verdict, const std::string& model, std::size_t gpus,
                                  const std::vector<std::string>& floors);

}  // namespace muster::validate
