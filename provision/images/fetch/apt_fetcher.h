// SPDX-License-Identifier: Apache-2.0
// The fetch unit's side of apt's methods (docs/adr/0437): the real method runs here, as a user that
// may do nothing, and writes into a folder of the unit's.
#pragma once

#include "base/result.h"
#include "provision/images/fetch/fetch_socket.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

namespace muster::provision {

struct AptFetcher {
  std::filesystem::path method;  ///< the program
  std::filesystem::path folder;  ///< for what it fetches
  std::map<std::string, std::string> env;
  /// While files grow, as often an empty line is sent, which says nothing: a large file has no
  /// messages for long, and who asked may know that it goes on.
  std::chrono::milliseconds sign_interval;
};

/// Until the asker ends, which ends the method, too. `begun` is what came after the request. What
/// fails the asker has been told as apt is. Errors: NotFound (no such method), Corrupt (no messages
/// of apt's, or a file that grows beyond what apt expects), Unavailable (the method has ended)
Result<void> fetchForApt(FetchSocket& asker, std::string begun, const AptFetcher& fetcher);

}  // namespace muster::provision
