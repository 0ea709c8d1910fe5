// SPDX-License-Identifier: Apache-2.0
// Memory bandwidth of the host, memory node by memory node: the triad of STREAM, every thread on a
// processor of its node and on memory of its own.
#pragma once

#include "validate/checks/check_row.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

/// Processors of each memory node that has some and that this process may use. A kernel without
/// memory nodes: all are of node 0.
/// Errors: Corrupt when the machine's tables cannot be read
Result<std::map<int, std::vector<int>>> memoryNodes(const Host& host);
/// "0-3,8" → 0 1 2 3 8. Errors: Corrupt
Result<std::vector<int>> processorsIn(std::string_view list);

struct NodeStream {
  std::size_t processors = 0;
  double gbytes_per_s = 0;  ///< of the best round; STREAM's count: 24 bytes an element
};
struct StreamRun {
  std::map<int, NodeStream> nodes;
  std::uint64_t wrong_elements = 0;
  int rounds = 0;
};
/// All nodes at once, `node_bytes` in three arrays on each, two rounds at least.
/// Errors: Unavailable (no memory, a processor that cannot be used)
Result<StreamRun> runStream(const std::map<int, std::vector<int>>& nodes, std::uint64_t node_bytes,
                            std::chrono::milliseconds duration);

/// What the memory of a processor's socket can give at all, GB/s, by its model as the kernel prints
/// it; nullopt: nobody has written it down.
std::optional<double> memoryPeakGbytes(std::string_view model);

/// Floors: a parameter, else a share of the sockets' peak on a machine that is no virtual one; the
/// nodes among each other always.
Verdict evaluateStream(const StreamRun& run, const nlohmann::json& params, const Host& host);

}  // namespace muster::validate
