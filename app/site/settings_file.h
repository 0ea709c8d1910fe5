// SPDX-License-Identifier: Apache-2.0
// /etc/muster/muster.conf: this host's settings for every muster command and service, so that a
// person's command and the service mean the same inventory, state and store.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace muster::app {

inline constexpr const char* kSettingsFile = "/etc/muster/muster.conf";
/// Names another file; empty: none is read.
inline constexpr const char* kSettingsFileVariable = "MUSTER_CONF";

/// Lines KEY=VALUE, as systemd's EnvironmentFile= reads them; # begins a comment line; a value may
/// stand in double quotes. Errors: InvalidInput with file and line (no such setting, no '=', an
/// open quote, a control character)
Result<std::map<std::string, std::string>> parseSettings(std::string_view text,
                                                         const std::filesystem::path& file);

/// Puts what the file says into the environment, where the environment does not say it already.
/// Nothing happens when there is no file, or this user may not read it. Errors: those of
/// parseSettings, Denied (users other than root and this one could write it)
/// Effect: sets environment variables; before threads begin
Result<void> applySettingsFile();

}  // namespace muster::app
