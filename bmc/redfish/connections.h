// SPDX-License-Identifier: Apache-2.0
// The connections of a session: one exchange with the BMC at a time within its rate limit, after a
// permit among the requests to all BMCs; a lost connection is made again once.
#pragma once

#include "bmc/arbiter.h"
#include "bmc/redfish/connection_trust.h"
#include "bmc/redfish/multipart.h"
#include "bmc/redfish/reply.h"
#include "bmc/withheld_words.h"
#include "lifecycle/executor/adaptive_semaphore.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::bmc {
inline constexpr std::chrono::milliseconds kRedfishTimeout{30000};  ///< of a request

struct RedfishCall {
  std::string method, path;
  io::Headers headers;
  std::string body;
  FirmwareImage image = {};  ///< after the body, and then body_end
  std::string body_end = {};
  std::chrono::milliseconds timeout = kRedfishTimeout;
  bool repeatable = true;  ///< may be sent again after a lost connection
  bool wait_busy = true;   ///< wait and repeat on 429 and 503
  bool upload = false;     ///< a connection of its own, and a permit among the uploads
  bool of_login = false;   ///< begins or ends a session, and changes nothing of the machine
};

class RedfishConnections {
 public:
  struct Limits {
    lifecycle::AdaptiveSemaphore* requests = nullptr;  ///< of all BMCs together; null: unbounded
    lifecycle::AdaptiveSemaphore* uploads = nullptr;
    std::size_t rank = 0;  ///< among those that wait for such a permit: the lowest first, so that
                           ///< what has begun gets to its end
  };

  RedfishConnections(std::string base_url, Limits limits, Clock& clock, ConnectionTrust& trust)
      : base_url_(std::move(base_url)),
        limits_(limits),
        clock_(clock),
        trust_(trust),
        rate_limiter_(clock) {}

  /// Any status is an answer. `token`: "" for none. What the service says in words comes without
  /// the token and without what withheld() has.
  Async<RedfishReply> exchange(RedfishCall call, std::string token);
  /// A long answer in pieces, on a connection of its own that needs no permit. Any status but 2xx
  /// is an Error.
  Async<void> stream(std::string path, std::string last_event_id, std::string token,
                     std::function<Result<void>(std::string_view)> sink);
  /// Of this BMC: what must not come back in its words.
  WithheldWords& withheld() { return withheld_; }
  /// The next request makes a new one.
  void forget() { idle_.clear(); }
  /// Requests so far that may have changed something.
  std::uint64_t writes() const { return writes_; }

 private:
  Async<void> ensureTrust();
  Async<io::HttpResponse> sendWithPermit(io::HttpRequest request, bool fresh,
                                         lifecycle::AdaptiveSemaphore* permits);
  Async<io::HttpResponse> sendOnce(io::HttpRequest request, bool fresh);
  Error evaluated(io::HttpClient& client, Error error);
  RedfishReply replyOf(io::HttpResponse response) const;
  std::unique_ptr<io::HttpClient> takeClient(bool fresh);

  std::string base_url_;
  Limits limits_;
  Clock& clock_;
  ConnectionTrust& trust_;
  RateLimiter rate_limiter_;
  WithheldWords withheld_;
  std::uint64_t writes_ = 0;
  std::vector<std::unique_ptr<io::HttpClient>> idle_;
};

}  // namespace muster::bmc
