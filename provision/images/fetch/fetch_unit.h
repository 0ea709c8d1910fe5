// SPDX-License-Identifier: Apache-2.0
// The fetch unit (docs/adr/0437): has the network, is no root, and answers one request of root's.
#pragma once

#include "base/result.h"

#include <chrono>
#include <filesystem>

#include <sys/types.h>

namespace muster::provision {

struct FetchUnit {
  std::filesystem::path folder;  ///< for folders of requests
  std::filesystem::path methods = "/usr/lib/apt/methods";
  uid_t asker = 0;                                                     ///< who alone may ask
  std::chrono::milliseconds request_limit = std::chrono::seconds(30);  ///< until it is whole
  std::chrono::milliseconds sign_interval = std::chrono::minutes(1);   ///< AptFetcher's
};

/// Answers the request on `connection` in a folder of its own, which is gone afterwards. Errors:
/// those that were answered, Denied (somebody else asks), InvalidInput (no request)
Result<void> serveFetchRequest(int connection, const FetchUnit& unit);

}  // namespace muster::provision
