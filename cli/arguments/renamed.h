// SPDX-License-Identifier: Apache-2.0
// Names that commands and options had in earlier versions: refused, with the new name.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace muster::cli {

/// `muster PARENT OLD …` fails with "OLD is now NEW". Hidden from the help.
void refuseOldCommand(CLI::App& parent, const std::string& old_name, const std::string& now);

/// The same for an option that takes a value, and for a flag.
void refuseOldOption(CLI::App& command, const std::string& old_name, const std::string& now);
void refuseOldFlag(CLI::App& command, const std::string& old_name, const std::string& now);

}  // namespace muster::cli
