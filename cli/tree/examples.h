// SPDX-License-Identifier: Apache-2.0
// An example in the help of each command.
#pragma once

#include <span>
#include <string_view>

namespace CLI {
class App;
}

namespace muster::cli {

struct Example {
  std::string_view command;  ///< "bmc power"
  std::string_view line;     ///< as it is typed
};
std::span<const Example> examples();

/// Adds each to the help of its command.
void addExamples(CLI::App& app);

}  // namespace muster::cli
