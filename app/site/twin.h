// SPDX-License-Identifier: Apache-2.0
// The virtual twin of the rack: starting and stopping it, its virtual BMCs' faults, its packages.
#pragma once

#include "app/site/options.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::app {

using TwinLog = std::function<void(std::string_view)>;

struct TwinNames {
  std::string name, network_namespace;
};
/// Effect: the state folder belongs to this rack from now on (rack_state.h).
Result<TwinNames> startTwin(const Options& options, const TwinLog& log);
Result<void> stopTwin(const Options& options, const TwinLog& log);

struct TwinNode {
  std::string name, power, bmc_url, console;
};
/// Errors: NotFound (the twin is not up)
Result<std::vector<TwinNode>> twinNodes(const Options& options);

struct TwinFault {
  std::string node;
  // A rule for requests; without a path there is none.
  std::string method = "*", path;
  std::string merge;  ///< JSON that is laid over the answer
  int status = 0, latency_ms = 0;
  bool drop = false, after = false;
  // How the next updates end; empty: as they should.
  std::string update_fault;
  int count = 1;       ///< how often; negative: until it is cleared
  bool clear = false;  ///< what was set before is removed
};
/// Answers what is set then (JSON). Errors: NotFound, InvalidInput
Result<std::string> setTwinFault(const Options& options, const TwinFault& fault);

/// Writes the drivers' apt repository and the firmware files of the example into the inventory's
/// folder.
Result<void> makeTwinPackages(const std::filesystem::path& folder, const TwinLog& log);

/// Moves this process into the twin's network, with its tools' environment.
Result<void> enterTwin(const Options& options);

}  // namespace muster::app
