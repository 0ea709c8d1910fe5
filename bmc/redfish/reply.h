// SPDX-License-Identifier: Apache-2.0
// The answer of a Redfish service, and what it means to the caller.
#pragma once

#include "base/io/http.h"
#include "bmc/redfish/json_view.h"

#include <chrono>
#include <string>

namespace muster::bmc {

struct RedfishReply {
  int status = 0;
  io::Headers headers;
  Json body;
  std::size_t bytes = 0;  ///< of the body, as it came

  bool ok() const { return status >= 200 && status < 300; }
  std::string header(const std::string& name) const;
  /// ETag header, else @odata.etag.
  std::string etag() const;
};

/// The path of a link that may be a whole URL; "" when it is neither.
std::string pathOnly(const std::string& link);

/// Where a link of the BMC leads: on the BMC itself. Errors: Corrupt (to another host, which is not
/// followed, or no path from the root)
Result<io::Url> urlOfLink(const std::string& base_url, const std::string& link);

/// What a status and the service's own words mean to the caller.
/// 401, 403 Denied · 404 NotFound · 409, 412 Conflict · 408, 429, 5xx Unavailable · else
/// InvalidInput
Error errorOf(const RedfishReply& reply, const std::string& what);

/// By its status (429, 503), or by a message that means it.
bool saysLater(const RedfishReply& reply);

/// How often "later" is waited for; then it is the answer.
inline constexpr int kMaxBusyWaits = 6;
/// Retry-After in seconds (the date form is ignored), else exponential in `attempt`, from 0.
std::chrono::milliseconds busyWait(const RedfishReply& reply, int attempt);

}  // namespace muster::bmc
