// SPDX-License-Identifier: Apache-2.0
// OpenSM's files by name, how it is called, and what the unit that runs it lets it read
// (docs/adr/0360): it believes nothing of who asks, so it takes only the options that muster
// writes, with paths in its own folder. No plug-in, no console.
#pragma once

#include "base/io/process.h"
#include "base/result.h"

#include <filesystem>
#include <string_view>

namespace muster::fabric {

inline constexpr std::string_view kOpensmConf = "opensm.conf";
inline constexpr std::string_view kRootGuids = "root_guids";
inline constexpr std::string_view kIoGuids = "io_guids";
inline constexpr std::string_view kNodeGuids = "cn_guids";
inline constexpr std::string_view kPartitionsConf = "partitions.conf";
inline constexpr std::string_view kOpensmLog = "opensm.log";
inline constexpr std::string_view kOpensmOutput = "opensm.out";
inline constexpr std::string_view kGuidToLid = "guid2lid";  ///< LIDs that stay over a restart
inline constexpr std::string_view kSubnetList = "opensm-subnet.lst";

/// OpenSM with the files in `folder`, where it keeps its own.
io::Command opensmCommand(io::Command called, const std::filesystem::path& folder);

/// Errors: InvalidInput, with the line
Result<void> checkOpensmFile(std::string_view name, std::string_view text,
                             const std::filesystem::path& folder);

}  // namespace muster::fabric
