// SPDX-License-Identifier: Apache-2.0
// Builds for a muster that is not root (docs/adr/0343): a unit of systemd's own, started for one
// connection, is root and makes the file system; who asks packs and signs it. What is asked for is
// a name in the inventory, which the unit reads itself: no package, script or path comes from who
// asks.
//
// One line each way is one JSON object. Asked: {"image": NAME, "key": KEY} or {"ramos":
// ARCHITECTURE, "key": KEY}, where KEY says which declaration is meant. Answered: {"say": TEXT} as
// it goes on, then {"file": NAME, "path": PATH} for each file and {"done": true}, or {"error":
// CODE, "text": TEXT}. The files last until the connection ends.
#pragma once

#include "provision/images/system_builder.h"

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace muster::provision {

inline constexpr const char* kBuildSocket = "/run/muster-build/socket";

struct BuildRequest {
  std::string image;                                ///< its name; empty: the RAM OS is asked for
  std::string key;                                  ///< imageKey, ramOsKey
  Architecture architecture = Architecture::Amd64;  ///< of the RAM OS
  friend bool operator==(const BuildRequest&, const BuildRequest&) = default;
};
std::string toLine(const BuildRequest& request);
/// Errors: InvalidInput
Result<BuildRequest> parseBuildRequest(std::string_view line);

/// Asks the unit that listens on `socket`, which must be `owner`'s (root's). Errors: those of the
/// build; also Unavailable (the unit ended without an answer), Timeout, Denied (somebody else's
/// socket)
std::unique_ptr<SystemBuilder> makeUnitBuilder(std::filesystem::path socket, uid_t owner = 0);

/// What this process builds with: its own hands as root, and where there is no unit; else the unit.
std::unique_ptr<SystemBuilder> makeSystemBuilder();

/// What the inventory declares that the unit reads.
struct BuildDeclarations {
  std::function<Result<inventory::Image>(const std::string& name)> image;
  std::function<Result<inventory::RamOsSpec>()> ram_os;
};
/// Where programs of the build that are not root come to the folder in which it works, which lies
/// behind one that root alone passes.
using BuildAccess = std::function<Result<std::filesystem::path>(const std::filesystem::path& work)>;
/// The unit's side: answers the one request of a connection, in a folder of its own below `folder`
/// that is gone afterwards. Ends the process when the asker goes away while it builds. Errors:
/// those that were answered, too
Result<void> serveBuildRequest(int connection, const std::filesystem::path& folder,
                               SystemBuilder& builder, const BuildDeclarations& declared,
                               const BuildAccess& way = {});

}  // namespace muster::provision
