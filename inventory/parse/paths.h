// SPDX-License-Identifier: Apache-2.0
// Which files an inventory may name: those in its own folder, and those in folders that whoever
// runs muster allows.
//
// An inventory comes out of a repository that many can propose changes to, and muster reads as
// root. `user_data: ../../etc/shadow`, or a link in the repository that leads there, must not bring
// that file onto a node or into an error. Links are resolved before they are evaluated. An
// inventory cannot allow anything to itself.
#pragma once

#include "inventory/parse/document.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::inventory {

class Reader;

/// Folders, separated by ':'; `muster --allow-path DIR` adds to it.
inline constexpr const char* kAllowPathVariable = "MUSTER_ALLOW_PATH";

/// Where sites keep secrets and images outside an inventory, without being asked.
inline constexpr std::string_view kAllowedFolders[] = {"/etc/muster", "/srv"};

/// Whether the path, with all links resolved, is in `folder` or in one of the allowed folders. It
/// need not exist.
bool mayName(const std::filesystem::path& folder, const std::filesystem::path& path);

/// A path of the inventory, absolute, links as written. Nothing, and a diagnostic, when it leads
/// elsewhere or to a FIFO, device or socket.
std::optional<std::filesystem::path> namedPath(std::string_view written, const Value& where,
                                               Reader& reader);

}  // namespace muster::inventory
