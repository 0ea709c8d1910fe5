// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments/renamed.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace muster::cli {
namespace {

[[noreturn]] void refuse(const std::string& old_name, const std::string& now) {
  throw CLI::ParseError(fmt::format("{} is now {}", old_name, now), CLI::ExitCodes::InvalidError);
}

/// "muster bmc forget-pin": the names from the program down.
std::string pathOf(const CLI::App& command) {
  const auto* parent = command.get_parent();
  return parent ? pathOf(*parent) + " " + command.get_name() : "muster";
}

}  // namespace

void refuseOldCommand(CLI::App& parent, const std::string& old_name, const std::string& now) {
  auto* old_command = parent.add_subcommand(old_name, "")->group("")->prefix_command();
  // Before anybody complains of the arguments behind it.
  old_command->parse_complete_callback([old_command, now] { refuse(pathOf(*old_command), now); });
}

void refuseOldOption(CLI::App& command, const std::string& old_name, const std::string& now) {
  command
      .add_option_function<std::string>(
          old_name, [old_name, now](const std::string&) { refuse(old_name, now); })
      ->group("");
}

void refuseOldFlag(CLI::App& command, const std::string& old_name, const std::string& now) {
  command.add_flag_function(old_name, [old_name, now](std::int64_t) { refuse(old_name, now); })
      ->group("");
}

}  // namespace muster::cli
