// SPDX-License-Identifier: Apache-2.0
// The command line as a plain tree: what completion, man pages and "did you mean" are made of.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muster::cli {

/// What stands as a value, as far as completion can know it.
enum class ValueKind { None, Text, File, Nodes, Profile, Pool, Rack, Rollout };
/// "nodes"; "" where nothing is looked up.
std::string wordOf(ValueKind kind);

struct OptionInfo {
  std::vector<std::string> names;  ///< "--out", "-o"; of a positional its one name
  std::string help;
  ValueKind value = ValueKind::None;
  std::vector<std::string> choices;  ///< where only these are allowed
  bool required = false;
};

struct CommandInfo {
  std::vector<std::string> path;  ///< below the program: {"bmc", "power"}; empty: the program
  std::string help;
  std::string footer;
  std::vector<OptionInfo> options, positionals;
  std::vector<CommandInfo> commands;
  std::string name() const { return path.empty() ? "muster" : path.back(); }
};

/// Without what is hidden: commands and options of earlier versions.
CommandInfo commandTree(const CLI::App& app);

/// "did you mean `muster status`?" for the first word that no command has; "" where none is near.
std::string adviceOnWords(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace muster::cli
