// SPDX-License-Identifier: Apache-2.0
// The machine that a check looks at: its files below `root`, and the programs that it may run.
#pragma once

#include "base/io/process.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace muster::validate {

struct Host {
  std::filesystem::path root = "/";
  std::function<Result<io::ProcessExit>(const io::Command&)> run = [](const io::Command& command) {
    return io::runBlocking(command);
  };
  std::filesystem::path programs = {};  ///< beside the agent; empty: by PATH only

  /// The first line of a file below root without the space around it; empty when it cannot be read.
  std::string line(const std::filesystem::path& file) const;
  /// Names in a folder below root, sorted; none when there is no such folder.
  std::vector<std::string> names(const std::filesystem::path& folder) const;
  std::string text(const std::filesystem::path& file) const;
};

/// A finite number and nothing else: "nan" is below no limit.
std::optional<double> numberIn(std::string_view text);

}  // namespace muster::validate
