// SPDX-License-Identifier: Apache-2.0
// dnf's archives and packages by the fetch unit (docs/adr/0437): its dnf, with the same
// configuration and the same words, resolves and downloads into a folder as its cache; the build
// unit's dnf, which is root, works with that cache alone and verifies each package's signature.
//
// Asked: {"dnf": {"configuration": TEXT, "release": TEXT, "packages": [NAME…], "modules":
// [NAME…]}}. Answered: {"file": PATH} with a descriptor for each file of the cache, then {"done":
// true}, or {"error": CODE, "text": TEXT}.
#pragma once

#include "base/result.h"
#include "provision/images/fetch/fetch_socket.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace muster::provision {

struct DnfRequest {
  std::string configuration, release;
  std::vector<std::string> packages, modules;
  friend bool operator==(const DnfRequest&, const DnfRequest&) = default;
};
nlohmann::json toJson(const DnfRequest& request);
/// Errors: InvalidInput
Result<DnfRequest> parseDnfRequest(const nlohmann::json& request);

/// How rpm keeps its records in the system, for programs whose home it is. Errors: Internal
Result<void> writeRpmMacros(const std::filesystem::path& home);
/// Errors: NotFound (no dnf on this machine, and what to do)
Result<void> checkDnf(const std::string& release);

/// Where a root folder has dnf's cache.
std::filesystem::path dnfCacheOf(const std::filesystem::path& root);

/// The build unit's side: fills `cache`. Errors: those of dnf there, of dialFetchUnit, Unavailable
/// (the unit has ended), Timeout, Corrupt (an answer that is none)
Result<void> fetchDnfCache(const std::filesystem::path& socket, uid_t owner,
                           const DnfRequest& request, const std::filesystem::path& cache);

/// The fetch unit's side, in an empty folder: what takes minutes, and then what is said. dnf and
/// what it has started end with the asker. Errors: those of dnf; Timeout; Unavailable (who asked
/// has gone); of FetchSocket::send
Result<void> downloadForDnf(const FetchSocket& asker, const DnfRequest& request,
                            const std::filesystem::path& folder,
                            const std::map<std::string, std::string>& env);
Result<void> handOverDnfCache(FetchSocket& asker, const std::filesystem::path& folder);

}  // namespace muster::provision
