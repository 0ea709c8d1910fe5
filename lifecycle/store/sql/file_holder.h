// SPDX-License-Identifier: Apache-2.0
// Who else has a file of SQLite open.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace muster::lifecycle::sql {

/// Another process with a connection to the database `file`, which has a write-ahead log: there a
/// connection keeps its shared lock for life. 0: a process that this one cannot see (another
/// container); nullopt: none.
/// Source: SQLite's file format, "The Lock-Byte Page"; fcntl(2), F_GETLK
std::optional<pid_t> otherHolderOf(const std::filesystem::path& file);

/// Whether that process runs the program file that this one runs. One that was replaced by an
/// upgrade, or may not be looked at, does not.
bool isSameProgram(pid_t process);

/// "process 4711 (/usr/lib/muster/muster server)"
std::string describeProcess(pid_t process);

}  // namespace muster::lifecycle::sql
