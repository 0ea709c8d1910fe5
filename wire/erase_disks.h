// SPDX-License-Identifier: Apache-2.0
// Parameters of the task erase-disks, once for the controller that prints them and the agent that
// reads them.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

inline constexpr std::size_t kMaxErasedDisks = 64;

struct EraseParams {
  std::string node_serial;                ///< as a person typed it
  std::vector<std::string> disk_serials;  ///< empty: every disk that is built in
  bool wipe_allowed = false;
};

std::string toJson(const EraseParams& params);
/// Errors: Corrupt (no JSON object), InvalidInput naming the member
Result<EraseParams> parseEraseParams(std::string_view text);

}  // namespace muster::wire
